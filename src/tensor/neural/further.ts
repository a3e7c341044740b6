// Activations that fewer networks have (gradloom/neural). The usual ones are in activations.ts.

import { ArgumentError, ShapeError } from "../../errors.ts";
import { cast, type Element } from "../core.ts";
import { fullLike } from "../creation/creation.ts";
import {
  add,
  bitwiseAnd,
  div,
  eq,
  ge,
  gt,
  le,
  log,
  lt,
  mul,
  neg,
  operands,
  sub,
  toFloat,
  unary,
  where,
  zero,
} from "../math/arithmetic.ts";
import { expm1, sigmoid, tanh } from "../math/elementary.ts";
import { abs, clamp, clampMax, isnan, rsub } from "../math/rounding.ts";
import { axisOf, reshape, shrink } from "../movement/views.ts";
import type { Typed } from "../reduce/reduce.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { elu, hardtanh, inFloat, softplus } from "./activations.ts";
import { softmax } from "./softmax.ts";

/** What makes the mean 0 and the variance 1 a fixed point of a deep network of these. */
const SELU_ALPHA = 1.6732632423543772;
const SELU_SCALE = 1.0507009873554805;

export function relu6(self: Tensor): Tensor {
  return hardtanh(self, 0, 6);
}
export function prelu(self: Tensor, weight: Tensor): Tensor {
  const channels = self.ndim < 2 ? 1 : (self.shape[1] as number);
  if (weight.ndim > 1 || (weight.size !== 1 && weight.size !== channels)) {
    throw new ShapeError(
      `prelu: the weight has shape ${showShape(weight.shape)} for an input of shape ${showShape(self.shape)}; ` +
        `expected one element or ${channels}, one a channel (dim 1)`,
    );
  }
  const each = weight.size === 1 ? [] : [channels, ...self.shape.slice(2).map(() => 1)];
  return where(gt(self, 0), self, mul(self, reshape(weight, each)));
}
export function celu(self: Tensor, alpha = 1): Tensor {
  if (alpha === 0)
    throw new ArgumentError("celu: alpha is 0, expected another number; 0 would divide by zero");
  return inFloat(self, (x) => where(le(x, 0), mul(expm1(div(clampMax(x, 0), alpha)), alpha), x));
}
export function selu(self: Tensor): Tensor {
  return inFloat(self, (x) => mul(elu(x, SELU_ALPHA), SELU_SCALE));
}
export function mish(self: Tensor): Tensor {
  return inFloat(self, (x) => mul(x, tanh(softplus(x))));
}
export function logit(self: Tensor, eps?: number | null): Tensor {
  return inFloat(self, (x) => {
    const inside = eps === undefined || eps === null ? x : clamp(x, eps, 1 - eps);
    return log(div(inside, rsub(inside, 1)));
  });
}
export function softsign(self: Tensor): Tensor {
  return inFloat(self, (x) => div(x, add(abs(x), 1)));
}
export function tanhshrink(self: Tensor): Tensor {
  return inFloat(self, (x) => sub(x, tanh(x)));
}
export function hardshrink(self: Tensor, lambd = 0.5): Tensor {
  return where(bitwiseAnd(ge(self, -lambd), le(self, lambd)), 0, self);
}
export function softshrink(self: Tensor, lambd = 0.5): Tensor {
  if (lambd < 0) throw new ArgumentError(`softshrink: lambd is ${lambd}, expected a number from 0 up`);
  const x = cast(self, toFloat(self.dtype));
  return where(gt(x, lambd), sub(x, lambd), where(lt(x, -lambd), add(x, lambd), where(isnan(x), x, 0)));
}
export function hardsigmoid(self: Tensor): Tensor {
  return unary(
    self,
    (x) => div(clamp(add(x, 3), 0, 6), 6),
    (x) => where(lt(abs(x), 3), 1 / 6, zero(x)),
  );
}
export function hardswish(self: Tensor): Tensor {
  return unary(
    self,
    (x) => div(mul(x, clamp(add(x, 3), 0, 6)), 6),
    (x) => where(le(x, -3), 0, where(lt(x, 3), add(div(x, 3), 0.5), 1)),
  );
}
export function threshold(self: Tensor, threshold: number, value: number): Tensor {
  return where(le(self, threshold), fullLike(self, value), self);
}
export function glu(self: Tensor, dim = -1): Tensor {
  if (self.ndim === 0) {
    throw new ShapeError("glu: a 0-d tensor has no dim to halve; expected at least one dim of even size");
  }
  const at = axisOf(self, "glu", dim);
  const n = self.shape[at] as number;
  if (n % 2 !== 0) {
    throw new ShapeError(
      `glu: dim ${dim} of shape ${showShape(self.shape)} has size ${n}, expected an even one`,
    );
  }
  const half = (from: number, to: number) =>
    shrink(
      self,
      self.shape.map((_, i): [number, number] | null => (i === at ? [from, to] : null)),
    );
  return mul(half(0, n / 2), sigmoid(half(n / 2, n)));
}
export function softmin(self: Tensor, dim = -1, { dtype }: Typed = {}): Tensor {
  return softmax(neg(dtype === undefined ? self : cast(self, dtype)), dim);
}
export function heaviside(self: Tensor, values: Tensor | Element): Tensor {
  const [x, v] = operands(self, "heaviside", [values]) as [Tensor, Tensor];
  return where(eq(x, 0), v, cast(gt(x, 0), x.dtype));
}
export function addcmul(
  self: Tensor,
  a: Tensor,
  b: Tensor,
  { value = 1 }: { readonly value?: Element } = {},
): Tensor {
  return add(self, mul(a, b), { alpha: value });
}
export function addcdiv(
  self: Tensor,
  a: Tensor,
  b: Tensor,
  { value = 1 }: { readonly value?: Element } = {},
): Tensor {
  return add(self, div(a, b), { alpha: value });
}
