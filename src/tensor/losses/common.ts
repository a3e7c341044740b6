// What losses and distances have in common: operands of one type and shape, numbers and vectors as tensors.

import { range } from "../../helpers.ts";
import { type Element, wrap } from "../core.ts";
import { maximum, neg, operands, toFloat } from "../math/arithmetic.ts";
import { reshape } from "../movement/views.ts";
import type { Tensor } from "../tensor.ts";

/** The magnitude; the slope at 0 is 0. */
export function magnitude(self: Tensor): Tensor {
  return maximum(self, neg(self));
}
/** Two tensors as floats of one type and one shape. */
export function together(self: Tensor, method: string, x: Tensor): [Tensor, Tensor] {
  return operands(self, method, [x], toFloat) as [Tensor, Tensor];
}

/** The number `x` where a tensor is wanted. */
export function scalar(self: Tensor, x: Element): Tensor {
  return wrap(self.lazydata.const(typeof x === "boolean" ? Number(x) : x));
}
/** [1, …, n, …, 1]: a vector laid along `axis` of `ndim` dims. */
export function along(self: Tensor, axis: number, ndim: number): Tensor {
  return reshape(
    self,
    range(ndim).map((i) => (i === axis ? self.size : 1)),
  );
}
