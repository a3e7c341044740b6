// Elementwise functions that fewer programs use (gradloom/special): interpolation, comparisons within a
// tolerance, hyperbolic functions, sums of exponentials.

import { dtypes } from "../../dtype.ts";
import { ArgumentError, DTypeError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { cast, detach, type Element, TensorHandle, wrap } from "../core.ts";
import { reshape } from "../movement/views.ts";
import type { Tensor } from "../tensor.ts";
import {
  add,
  binary,
  bitwiseAnd,
  bitwiseOr,
  div,
  eq,
  exp,
  exp2,
  ge,
  le,
  log,
  logicalNot,
  lshift,
  lt,
  maximum,
  minimum,
  mul,
  ne,
  neg,
  operands,
  reciprocal,
  rshift,
  sqrt,
  steps,
  sub,
  toFloat,
  trunc,
  unary,
  where,
} from "./arithmetic.ts";
import { cos, expm1, log1p, pow, sigmoid, sin } from "./elementary.ts";
import { abs, type Closeness, copysign, isfinite, isinf, isnan, nanToNum, rsub, sign } from "./rounding.ts";

export function sgn(self: Tensor): Tensor {
  return sign(self);
}
export function angle(self: Tensor): Tensor {
  return steps(cast(self, toFloat(self.dtype)), (x) => where(lt(x, 0), Math.PI, where(isnan(x), x, 0)));
}
export function frac(self: Tensor): Tensor {
  if (!self.dtype.isFloat) throw new DTypeError(`frac: takes floats, got ${self.dtype.name}; cast first`);
  return sub(self, trunc(self));
}
export function fmax(self: Tensor, x: Tensor | Element): Tensor {
  const [a, b] = operands(self, "fmax", [x]) as [Tensor, Tensor];
  return where(bitwiseOr(ge(a, b), isnan(b)), a, b);
}
export function fmin(self: Tensor, x: Tensor | Element): Tensor {
  const [a, b] = operands(self, "fmin", [x]) as [Tensor, Tensor];
  return where(bitwiseOr(le(a, b), isnan(b)), a, b);
}
export function lerp(self: Tensor, end: Tensor | Element, weight: Tensor | Element): Tensor {
  const [a, b, w] = operands(self, "lerp", [end, weight], toFloat) as [Tensor, Tensor, Tensor];
  const way = sub(b, a);
  // from the nearer end, so that weights 0 and 1 are exact
  return where(lt(abs(w), 0.5), add(a, mul(w, way)), sub(b, mul(way, rsub(w, 1))));
}
export function isposinf(self: Tensor): Tensor {
  return self.dtype.isFloat ? eq(self, Infinity) : ne(self, self);
}
export function isneginf(self: Tensor): Tensor {
  return self.dtype.isFloat ? eq(self, -Infinity) : ne(self, self);
}
export function isreal(self: Tensor): Tensor {
  return wrap(self.lazydata.const(1, dtypes.bool));
}
export function isclose(
  self: Tensor,
  x: Tensor,
  { rtol = 1e-5, atol = 1e-8, equalNan = false }: Closeness = {},
): Tensor {
  if (rtol < 0 || atol < 0) {
    throw new ArgumentError(`isclose: rtol ${rtol} and atol ${atol} must not be negative`);
  }
  const [a, b] = operands(detach(self), "isclose", [detach(x)]) as [Tensor, Tensor];
  const same = eq(a, b);
  const either = equalNan ? bitwiseOr(same, bitwiseAnd(isnan(a), isnan(b))) : same;
  const float = toFloat(a.dtype);
  const gap = a.dtype.kind === "bool" ? sub(cast(a, float), cast(b, float)) : cast(sub(a, b), float);
  const near = le(abs(gap), add(mul(abs(cast(b, float)), rtol), atol));
  return bitwiseOr(either, bitwiseAnd(bitwiseAnd(isfinite(gap), near), isfinite(b)));
}
export function allclose(self: Tensor, x: Tensor, closeness: Closeness = {}): Tensor {
  const apart = logicalNot(isclose(self, x, closeness));
  return logicalNot(reshape(wrap(apart.lazydata.r("REDUCE_MAX", range(apart.ndim))), []));
}
export function equal(self: Tensor, x: Tensor): Tensor {
  const same = self.shape.join() === x.shape.join();
  if (!same) return wrap(LazyBuffer.constant(self.device, [], dtypes.bool, 0));
  const apart = ne(self, x);
  return logicalNot(reshape(wrap(apart.lazydata.r("REDUCE_MAX", range(apart.ndim))), []));
}
export function bitwiseLeftShift(self: Tensor, x: Tensor | Element): Tensor {
  const [a, b] = shift(self, "bitwiseLeftShift", x);
  return where(shiftable(a, b), lshift(a, b), 0);
}
export function bitwiseRightShift(self: Tensor, x: Tensor | Element): Tensor {
  const [a, b] = shift(self, "bitwiseRightShift", x);
  const gone = a.dtype.kind === "int" ? rshift(a, a.dtype.bits - 1) : 0;
  return where(shiftable(a, b), rshift(a, b), gone);
}
function shift(self: Tensor, method: string, x: Tensor | Element): [Tensor, Tensor] {
  const [a, b] = operands(self, method, [x]) as [Tensor, Tensor];
  if (a.dtype.isInt) return [a, b];
  throw new DTypeError(`${method}: takes integers, got ${a.dtype.name}; cast first`);
}
function shiftable(self: Tensor, by: Tensor): Tensor {
  return bitwiseAnd(ge(by, 0), lt(by, self.dtype.bits));
}

export function floatPower(self: Tensor, x: Tensor | Element): Tensor {
  const exponent = x instanceof TensorHandle ? cast(x, dtypes.float64) : x;
  return pow(cast(self, dtypes.float64), exponent);
}
export function hypot(self: Tensor, x: Tensor | Element): Tensor {
  return binary(
    self,
    "hypot",
    x,
    (a, b) => {
      const [big, small] = [maximum(abs(a), abs(b)), minimum(abs(a), abs(b))];
      const ratio = where(eq(big, 0), 0, div(small, big));
      const long = mul(big, sqrt(add(mul(ratio, ratio), 1)));
      const infinite = bitwiseOr(isinf(a), isinf(b));
      return where(infinite, Infinity, long);
    },
    (g, out, a, b) => [mul(g, div(a, out)), mul(g, div(b, out))],
    toFloat,
  );
}

export function logaddexp(self: Tensor, x: Tensor | Element): Tensor {
  return binary(
    self,
    "logaddexp",
    x,
    (a, b) => logadd(a, b, (gap) => log1p(exp(gap))),
    (g, _, a, b) => [mul(g, sigmoid(sub(a, b))), mul(g, sigmoid(sub(b, a)))],
    toFloat,
  );
}
export function logaddexp2(self: Tensor, x: Tensor | Element): Tensor {
  return binary(
    self,
    "logaddexp2",
    x,
    (a, b) => logadd(a, b, (gap) => mul(log1p(exp2(gap)), Math.LOG2E)),
    (g, _, a, b) => {
      const share = sigmoid(mul(sub(a, b), Math.LN2));
      return [mul(g, share), mul(g, rsub(share, 1))];
    },
    toFloat,
  );
}
function logadd(self: Tensor, b: Tensor, extra: (gap: Tensor) => Tensor): Tensor {
  const most = maximum(self, b);
  const gap = neg(abs(sub(self, b)));
  // equal infinities have no difference
  return add(most, where(eq(self, b), extra(nanToNum(sub(most, most))), extra(gap)));
}
export function xlogy(self: Tensor, x: Tensor | Element): Tensor {
  return binary(
    self,
    "xlogy",
    x,
    (a, b) => where(bitwiseAnd(eq(a, 0), logicalNot(isnan(b))), 0, mul(a, log(b))),
    (g, _, a, b) => {
      const none = bitwiseAnd(eq(a, 0), le(b, 0));
      return [where(none, 0, xlogy(g, where(none, 1, b))), mul(g, div(a, b))];
    },
    toFloat,
  );
}
export function sinc(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const angle = mul(x, Math.PI);
      return where(eq(x, 0), 1, div(sin(angle), where(eq(x, 0), 1, angle)));
    },
    (x, out) => where(eq(x, 0), 0, div(sub(cos(mul(x, Math.PI)), out), where(eq(x, 0), 1, x))),
  );
}
/**
 * exp(x)/2 where exp(x) may itself be too large: a short number is taken away, which is exact, and comes back
 * as a factor.
 */
function halfExp(self: Tensor): Tensor {
  return mul(exp(sub(self, 0.75)), Math.exp(0.75) / 2);
}
export function sinh(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const size = abs(x);
      const e = halfExp(size);
      const t = expm1(minimum(size, 1));
      const far = sub(e, mul(reciprocal(e), 0.25));
      return copysign(where(lt(size, 1), mul(add(t, div(t, add(t, 1))), 0.5), far), x);
    },
    (x) => cosh(x),
  );
}
export function cosh(self: Tensor): Tensor {
  return unary(
    self,
    (x) => {
      const e = halfExp(abs(x));
      return add(e, mul(reciprocal(e), 0.25));
    },
    (x) => sinh(x),
  );
}
export function deg2rad(self: Tensor): Tensor {
  return mul(cast(self, toFloat(self.dtype)), Math.PI / 180);
}
export function rad2deg(self: Tensor): Tensor {
  return mul(cast(self, toFloat(self.dtype)), 180 / Math.PI);
}
