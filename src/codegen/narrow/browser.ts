// Arithmetic on packed and narrow types, in a page: engine/ondemand loads it before the first kernel that has
// such a type, and puts it here. Most pages never need it.

import { requireLoaded, SYNC } from "../../deferred.ts";

type Narrow = typeof import("./node.ts");
let loaded: Narrow | undefined;

export function setNarrow(narrow: Narrow): void {
  loaded = narrow;
}
export const hasNarrow = (): boolean => loaded !== undefined;

const narrow = (): Narrow =>
  requireLoaded(
    loaded,
    "kernel",
    "the arithmetic of packed types and of floats below 32 bits",
    `await such a value first, or ${SYNC}`,
  );
export const unpackTypes: Narrow["unpackTypes"] = (...args) => narrow().unpackTypes(...args);
export const emulate: Narrow["emulate"] = (...args) => narrow().emulate(...args);
