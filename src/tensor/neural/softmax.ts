// softmax and its logarithm, safe for large values: the largest element of a row is taken off first.

import { type DTypeLike, dtypes, toDType } from "../../dtype.ts";
import { cast, detach, isEmpty, wrap } from "../core.ts";
import { exp, exp2, isNarrow, log, mul, reciprocal, sub, toFloat } from "../math/arithmetic.ts";
import { reduceSum } from "../movement/views.ts";
import { dimsOf, reduceMax, type Typed } from "../reduce/reduce.ts";
import type { Tensor } from "../tensor.ts";

export function softmax(self: Tensor, dim = -1, { dtype }: Typed = {}): Tensor {
  return normalized(self, "softmax", dim, dtype, (x, axes) => {
    const e = expSmall(shiftedOf(detach(x), axes));
    // one division a row: the sum is at least 1, so its reciprocal loses next to nothing
    return wrap(mul(e, reciprocal(reduceSum(e, axes))).lazydata, [x], (g, out) => [
      mul(out, sub(g, reduceSum(mul(g, out), axes))),
    ]);
  });
}
export function logSoftmax(self: Tensor, dim = -1, { dtype }: Typed = {}): Tensor {
  return normalized(self, "logSoftmax", dim, dtype, (x, axes) => {
    const shifted = shiftedOf(detach(x), axes);
    return wrap(sub(shifted, log(reduceSum(expSmall(shifted), axes))).lazydata, [x], (g, out) => [
      sub(g, mul(exp(out), reduceSum(g, axes))),
    ]);
  });
}
function normalized(
  self: Tensor,
  method: string,
  dim: number,
  dtype: DTypeLike | undefined,
  f: (x: Tensor, axes: readonly number[]) => Tensor,
): Tensor {
  const axes = dimsOf(self, method, dim);
  const x = cast(self, dtype === undefined ? toFloat(self.dtype) : toDType(dtype));
  return isNarrow(x.dtype) ? cast(f(cast(x, dtypes.float32), axes), x.dtype) : f(x, axes);
}
/** exp of what is not above 0: where exp would take care of lost digits, next to nothing is left to add. */
function expSmall(self: Tensor): Tensor {
  return exp2(mul(self, Math.LOG2E));
}
function shiftedOf(self: Tensor, axes: readonly number[]): Tensor {
  return isEmpty(self) ? self : sub(self, reduceMax(self, axes));
}
