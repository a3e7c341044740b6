// Watching the layers of a model while something runs: their `forward` is replaced for that long. In: a
// model, which is any object, and what to do around each call. Out: the result of the run; the layers are as
// before.

import { partsOf, restoring } from "../helpers.ts";
import { Tensor } from "../tensor/tensor.ts";

/** A part of a model that has `forward`. */
export interface WatchedLayer {
  /** its path in the model, as in the names of the state; empty for the model itself */
  readonly path: string;
  readonly type: string;
  readonly layer: { forward: (...args: never[]) => unknown };
}
const isLayer = (x: object): x is WatchedLayer["layer"] =>
  typeof (x as { forward?: unknown }).forward === "function";

/** Every layer once, outer ones first. */
export function layersOf(model: unknown): WatchedLayer[] {
  const seen = new Set<unknown>();
  const found: WatchedLayer[] = [];
  const visit = (x: unknown, path: string): void => {
    if (typeof x !== "object" || x === null || x instanceof Tensor || ArrayBuffer.isView(x) || seen.has(x))
      return;
    seen.add(x);
    if (isLayer(x)) found.push({ path, type: x.constructor?.name ?? "object", layer: x });
    for (const [key, part] of partsOf(x)) visit(part, path === "" ? String(key) : `${path}.${key}`);
  };
  visit(model, "");
  return found;
}

/** Runs `fn`; meanwhile each call of a layer is made by `around`, which gets the call to make. */
export function watching<R>(
  layers: readonly WatchedLayer[],
  around: (layer: WatchedLayer, args: readonly unknown[], call: () => unknown) => unknown,
  fn: () => R,
): R {
  const own = layers.map(({ layer }) => Object.getOwnPropertyDescriptor(layer, "forward"));
  for (const watched of layers) {
    const { forward } = watched.layer;
    const value = (...args: never[]): unknown =>
      around(watched, args, () => forward.apply(watched.layer, args));
    Object.defineProperty(watched.layer, "forward", {
      value,
      configurable: true,
      enumerable: false,
      writable: true,
    });
  }
  return restoring(fn, () => {
    layers.forEach(({ layer }, i) => {
      const before = own[i];
      if (before === undefined) Reflect.deleteProperty(layer, "forward");
      else Object.defineProperty(layer, "forward", before);
    });
  });
}

/** Columns as wide as their widest cell; numbers to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((h, i) => Math.max(h.length, ...rows.map((r) => (r[i] ?? "").length)));
  const isNumber = head.map((_, i) => rows.every((r) => /^[-\d.,]*( ?(%|ms|us|[KMG]?B))?$/.test(r[i] ?? "")));
  const line = (cells: readonly string[]): string =>
    cells
      .map((c, i) => (isNumber[i] ? c.padStart(widths[i] as number) : c.padEnd(widths[i] as number)))
      .join("  ")
      .trimEnd();
  return [line(head), widths.map((w) => "-".repeat(w)).join("  "), ...rows.map(line)].join("\n");
}
