// Powers, exponentials, logarithms, sine and cosine. The rarer ones are in further.ts, the inverse and the
// special functions in special.ts, activations in neural/.

import { type DType, dtypes } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import type { Element } from "../core.ts";
import { cast, wrap } from "../core.ts";
import type { Tensor } from "../tensor.ts";
import {
  add,
  alu,
  binary,
  bitwiseAnd,
  bitwiseOr,
  div,
  eq,
  exp,
  ge,
  log,
  log2,
  logicalNot,
  lt,
  mul,
  ne,
  neg,
  operands,
  reciprocal,
  sqrt,
  sub,
  unary,
  where,
  zero,
} from "./arithmetic.ts";
import { abs, copysign, rsub } from "./rounding.ts";

// ---- powers ----

export function pow(self: Tensor, x: Tensor | Element): Tensor {
  if (typeof x === "number" || typeof x === "bigint") {
    const n = Number(x);
    if (self.dtype.isInt && Number.isInteger(n) && n < 0) {
      throw new ArgumentError(
        `pow: ${self.dtype.name} to the power of ${n} is not an integer; cast to float32 first`,
      );
    }
    const type = operands(self, "pow", [x])[0]?.dtype as DType;
    const fixed = type.isFloat
      ? powFloat(cast(self, type), n)
      : type.isInt
        ? powTimes(cast(self, type), n)
        : undefined;
    if (fixed !== undefined) return fixed;
  }
  return binary(
    self,
    "pow",
    x,
    (a, b) => (a.dtype.isFloat ? alu(a, "POW", b) : powInt(a, b)),
    (g, out, a, b) => {
      const flat = bitwiseAnd(eq(a, 0), ge(b, 0));
      return [
        where(eq(b, 0), 0, mul(g, mul(b, pow(a, sub(b, 1))))),
        // the logarithm of 0 must not reach the product
        where(flat, 0, mul(g, mul(out, log(where(flat, 1, a))))),
      ];
    },
  );
}
/** Exponents with a shorter way than through the logarithm; their gradients are exact as well. */
function powFloat(self: Tensor, n: number): Tensor | undefined {
  if (n === 0.5) return sqrt(self);
  if (n === -0.5) return rsqrt(self);
  // more factors round more often than the power itself: 1 ulp for float32, 2 for float64
  const most = self.dtype === dtypes.float64 ? 4 : 3;
  if (!Number.isInteger(n) || n > most || n < 1 - most) return undefined;
  const value = (x: Tensor) => (n < 0 ? reciprocal(powTimes(x, -n)) : powTimes(x, n));
  if (n === 0) return wrap(self.lazydata.const(1), [self], (g) => [zero(g)]);
  return unary(self, value, (x) => mul(pow(x, n - 1), n));
}
/** By squaring; a constant exponent costs two multiplications a bit. */
function powTimes(self: Tensor, n: number): Tensor {
  let out: Tensor | undefined;
  let square: Tensor = self;
  for (let left = n; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) out = out === undefined ? square : mul(out, square);
    if (left > 1) square = mul(square, square);
  }
  return out ?? wrap(self.lazydata.const(1));
}
function powInt(self: Tensor, exponent: Tensor): Tensor {
  const one = wrap(self.lazydata.const(1));
  if (self.dtype.kind === "bool") return bitwiseOr(self, logicalNot(exponent));
  let [out, square] = [one, self as Tensor];
  for (const bit of range(self.dtype.bits - (self.dtype.kind === "int" ? 1 : 0))) {
    const set = ne(bitwiseAnd(exponent, 2n ** BigInt(bit)), 0);
    out = where(set, mul(out, square), out);
    square = mul(square, square);
  }
  if (self.dtype.kind === "uint") return out;
  // 1 / this, cut towards zero: ±1 for ±1, and -1 has the sign that the lowest bit says
  const odd = ne(bitwiseAnd(exponent, 1), 0);
  const minus = where(odd, neg(one), one);
  const below = where(eq(self, 1), one, where(eq(self, -1), minus, 0));
  return where(lt(exponent, 0), below, out);
}
export function rsqrt(self: Tensor): Tensor {
  return unary(
    self,
    (x) => reciprocal(sqrt(x)),
    (x, out) => mul(mul(out, reciprocal(x)), -0.5),
  );
}
// ---- exponentials and logarithms ----

export function expm1(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const n = x.dtype.itemsize === 8 ? 17 : 9;
      // x (1 + x/2 (1 + x/3 (…)))
      const near = range(n).reduceRight<Tensor>(
        (sum, k) => (k === 0 ? mul(sum, x) : add(mul(sum, mul(x, 1 / (k + 1))), 1)),
        wrap(x.lazydata.const(1)),
      );
      return where(lt(abs(x), 0.5), near, sub(exp(x), 1));
    },
    (_, out) => add(out, 1),
  );
}
export function log1p(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      // what rounding 1 + x lost is the same in the logarithm and in the difference
      const sum = add(x, 1);
      const fixed = mul(log(sum), div(x, sub(sum, 1)));
      return where(eq(sum, 1), x, where(eq(sum, Infinity), sum, fixed));
    },
    (x) => reciprocal(add(x, 1)),
  );
}
export function log10(self: Tensor): Tensor {
  return unary(
    self,
    (x) => mul(log2(x), Math.LOG10E * Math.LN2),
    (x) => reciprocal(mul(x, Math.LN10)),
  );
}
export function sigmoid(self: Tensor): Tensor {
  return unary(
    self,
    (x) => reciprocal(add(exp(neg(x)), 1)),
    (_, out) => mul(out, rsub(out, 1)),
  );
}

// ---- sine and cosine ----

export function sin(self: Tensor): Tensor {
  return unary(
    self,
    (x) => alu(x, "SIN"),
    (x) => cos(x),
  );
}
export function cos(self: Tensor): Tensor {
  return unary(
    self,
    (x) => alu(x, "COS"),
    (x) => neg(sin(x)),
  );
}
export function tan(self: Tensor): Tensor {
  return unary(
    self,
    (x) => div(sin(x), cos(x)),
    (_, out) => add(mul(out, out), 1),
  );
}
export function tanh(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const t = expm1(mul(abs(x), -2));
      return copysign(div(neg(t), add(t, 2)), x);
    },
    (_, out) => rsub(mul(out, out), 1),
  );
}
