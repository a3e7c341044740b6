// How messages show what they were given.

import type { Sint } from "../shape/symbolic.ts";

export const showShape = (shape: readonly Sint[]): string => `[${shape.join(", ")}]`;

/** An argument of the wrong kind, as a message names it. */
export const describe = (x: unknown): string => {
  if (Array.isArray(x)) return "an array";
  return typeof x === "string"
    ? `the string "${x}"`
    : typeof x === "object" && x !== null
      ? "an object"
      : String(x);
};
