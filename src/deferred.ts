// The functions of transcendental.ts, in a page: engine/ondemand loads them before the first kernel that has
// one, and puts them here. `#transcendental` is this file in a page, and transcendental.ts itself elsewhere.

import { ArgumentError } from "./errors.ts";

type Functions = typeof import("./transcendental.ts");
let loaded: Functions | undefined;

export function setFunctions(functions: Functions): void {
  loaded = functions;
}
export const hasFunctions = (): boolean => loaded !== undefined;

function functions(): Functions {
  if (loaded !== undefined) return loaded;
  throw new ArgumentError(
    "kernel: a page loads exp2, log2, sin and erf with the first kernel that is awaited; compute a value of such a " +
      'function with await first, or import "gradloom/sync"',
  );
}
export const exp2: Functions["exp2"] = (a, x) => functions().exp2(a, x);
export const log2: Functions["log2"] = (a, x) => functions().log2(a, x);
export const sin: Functions["sin"] = (a, x) => functions().sin(a, x);
export const erf: Functions["erf"] = (a, x) => functions().erf(a, x);
export const erfOfNumber: Functions["erfOfNumber"] = (x) => functions().erfOfNumber(x);
