// Arithmetic on packed and narrow types, in a page: engine/ondemand loads it before the first kernel that has
// such a type, and puts it here. Most pages never need it.

import { ArgumentError } from "../../errors.ts";

type Narrow = typeof import("./node.ts");
let loaded: Narrow | undefined;

export function setNarrow(narrow: Narrow): void {
  loaded = narrow;
}
export const hasNarrow = (): boolean => loaded !== undefined;

function narrow(): Narrow {
  if (loaded !== undefined) return loaded;
  throw new ArgumentError(
    "kernel: a page loads the arithmetic of packed types and of floats below 32 bits with the first kernel that is " +
      'awaited; compute a value of the type with await first, or import "gradloom/sync"',
  );
}
export const unpackTypes: Narrow["unpackTypes"] = (...args) => narrow().unpackTypes(...args);
export const emulate: Narrow["emulate"] = (...args) => narrow().emulate(...args);
