// The part of the built package that a program loads when it first needs it. scripts/build/node.mjs puts the
// areas of Tensor, nn and what few programs use into a file of its own, and adds `loadRest` to the others.

/** Loads the file, at once: what waits for it may be a sync method. */
declare function loadRest(): unknown;

let loaded: unknown;

/** What the file exports; `T` is the part of it that the caller wants. */
export function rest<T>(): T {
  loaded ??= loadRest();
  return loaded as T;
}
