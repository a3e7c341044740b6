// exp2 and log2 of float64, as transcendental.ts has them for float32. A page loads these with the first
// kernel that needs them.

import { dtypes } from "./dtype.ts";
import { FLOAT64_MAGIC } from "./notation.ts";
import type { Algebra } from "./ops.ts";
import { exp2In, type FloatFormat, log2In } from "./transcendental.ts";

export const FLOAT64: FloatFormat = {
  int: dtypes.int64,
  mantissa: 52,
  bias: 1023,
  magic: FLOAT64_MAGIC,
  exp2Range: [-1100, 1030],
  lift: 512,
  // degree 10, relative error of 2^x 2^-58.0, 2^-55.0 with rounded coefficients
  exp2: [
    Math.LN2,
    0.2402265069591013,
    0.055504108664820084,
    0.00961812910759412,
    0.001333355814677461,
    0.00015403530457111864,
    0.000015252733493136672,
    0.0000013215435282432815,
    1.0178199568349251e-7,
    7.073783226266358e-9,
    4.4347717941067807e-10,
  ],
  minNormal: 2 ** -1022,
  rootHalf: 0x3fe6a09e667f3bcdn,
  // degree 6, relative error of the logarithm 2^-59.5, 2^-59.0 with rounded coefficients
  log2: [
    0.9617966939259853, 0.577078016347141, 0.4121985855775558, 0.3205985567913853, 0.26233338080841667,
    0.22093504748130702, 0.2134604358798606,
  ],
};

export const exp2 = <T>(a: Algebra<T>, x: T): T => exp2In(FLOAT64, a, x);
export const log2 = <T>(a: Algebra<T>, x: T): T => log2In(FLOAT64, a, x);
