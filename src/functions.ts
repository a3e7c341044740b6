// Functions that are made of simpler ops where a target lacks them. `#functions` is this file; in a page it
// is deferred.ts, which has them once they are loaded.

import type { Algebra } from "./ops.ts";
import * as transcendental from "./transcendental.ts";
import * as transcendental64 from "./transcendental64.ts";
import * as trigonometry from "./trigonometry.ts";
import * as trigonometry64 from "./trigonometry64.ts";

export { erf, erfOfNumber } from "./errorfunction.ts";
export { pow } from "./power.ts";

type Unary = <T>(a: Algebra<T>, x: T) => T;
/** The function of float64 for such an operand, for others that of float32. */
const byWidth =
  (narrow: Unary, wide: Unary): Unary =>
  (a, x) =>
    (a.dtypeOf(x).itemsize === 8 ? wide : narrow)(a, x);

export const exp2 = byWidth(transcendental.exp2, transcendental64.exp2);
export const log2 = byWidth(transcendental.log2, transcendental64.log2);
export const sin = byWidth(trigonometry.sin, trigonometry64.sin);
export const cos = byWidth(trigonometry.cos, trigonometry64.cos);
