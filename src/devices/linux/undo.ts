// What was made in steps is taken down in reverse: each step leaves behind what undoes it.

/** In reverse. A step that fails does not keep the others from being undone; gives the first failure. */
export function takeDown(undo: (() => void)[]): unknown {
  let failed: unknown;
  for (const step of undo.splice(0).reverse()) {
    try {
      step();
    } catch (e) {
      failed ??= e;
    }
  }
  return failed;
}
export function orThrow(failed: unknown): void {
  if (failed !== undefined) throw failed;
}
