// Activations: the elementwise functions of networks; further.ts has the rarer ones. The functions they are
// made of are in math/; softmax, which reduces, is in softmax.ts.

import { dtypes } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { cast, detach, wrap } from "../core.ts";
import { fullLike } from "../creation/creation.ts";
import {
  add,
  bitwiseOr,
  div,
  eq,
  exp,
  ge,
  gt,
  isNarrow,
  le,
  maximum,
  minimum,
  mul,
  neg,
  sub,
  toFloat,
  unary,
  where,
} from "../math/arithmetic.ts";
import { expm1, log1p, sigmoid, tanh } from "../math/elementary.ts";
import { abs, clamp, clampMax } from "../math/rounding.ts";
import { erf } from "../math/special.ts";
import type { Tensor } from "../tensor.ts";

/** `f` of floats; a formula of several steps keeps its digits in float32 at least. */
export function inFloat(self: Tensor, f: (x: Tensor) => Tensor): Tensor {
  const x = cast(self, toFloat(self.dtype));
  return isNarrow(x.dtype) ? cast(f(cast(x, dtypes.float32)), x.dtype) : f(x);
}
export function relu(self: Tensor): Tensor {
  const value = maximum(detach(self), 0);
  return wrap(value.lazydata, [self], (g, out) => [where(eq(out, 0), 0, g)]);
}
export function leakyRelu(self: Tensor, negativeSlope = 0.01): Tensor {
  return where(gt(self, 0), self, mul(self, negativeSlope));
}
export function elu(self: Tensor, alpha = 1): Tensor {
  return inFloat(self, (x) => where(le(x, 0), mul(expm1(clampMax(x, 0)), alpha), x));
}
export function silu(self: Tensor): Tensor {
  return inFloat(self, (x) => mul(x, sigmoid(x)));
}
export function gelu(self: Tensor, approximate: "none" | "tanh" = "none"): Tensor {
  if (approximate === "none")
    return inFloat(self, (x) => mul(mul(x, 0.5), add(erf(mul(x, Math.SQRT1_2)), 1)));
  if (approximate !== "tanh") {
    throw new ArgumentError(`gelu: approximate is ${approximate}, expected "none" or "tanh"`);
  }
  return inFloat(self, (x) => {
    const inner = mul(mul(add(mul(mul(x, x), 0.044715), 1), x), Math.sqrt(2 / Math.PI));
    return mul(mul(x, 0.5), add(tanh(inner), 1));
  });
}
export function softplus(self: Tensor, beta = 1, threshold = 20): Tensor {
  return unary(
    self,
    (x) => {
      const y = mul(x, beta);
      const soft = div(add(log1p(exp(neg(abs(y)))), maximum(y, 0)), beta);
      return where(gt(y, threshold), x, soft);
    },
    (x) => where(gt(mul(x, beta), threshold), 1, sigmoid(mul(x, beta))),
  );
}
export function logsigmoid(self: Tensor): Tensor {
  return unary(
    self,
    (x) => sub(minimum(x, 0), log1p(exp(neg(abs(x))))),
    (x) => sigmoid(neg(x)),
  );
}
export function hardtanh(self: Tensor, minVal = -1, maxVal = 1): Tensor {
  if (minVal > maxVal) {
    throw new ArgumentError(
      `hardtanh: minVal ${minVal} is above maxVal ${maxVal}; expected it below or equal`,
    );
  }
  const value = clamp(detach(self), fullLike(self, minVal), fullLike(self, maxVal));
  return wrap(value.lazydata, [self], (g) => [where(bitwiseOr(le(self, minVal), ge(self, maxVal)), 0, g)]);
}
