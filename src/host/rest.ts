// What the built package in Node is given when it starts (scripts/build/node.mjs writes the other side): the
// part of it that a program loads when it first needs it, and the code that V8 made for its parts. The areas
// of Tensor, nn and what few programs use are in that part.

import type { PartCode } from "./start.ts";
import { flags } from "./v8flags.ts";

interface Given {
  /** Loads the part, at once: what waits for it may be a sync method. `flags` as in `loadPart`. */
  rest(flags: string): unknown;
  /** of the parts loaded so far */
  readonly codes: readonly PartCode[];
}
declare const $given: Given;

let loaded: unknown;

/** What the part exports; `T` is what the caller wants of it. */
export function rest<T>(): T {
  loaded ??= $given.rest(flags());
  return loaded as T;
}

export const codes = (): readonly PartCode[] => $given.codes;
