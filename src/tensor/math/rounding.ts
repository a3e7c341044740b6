// Signs, rounding, bounds, tests, logic, and tensors made like another one: what needs no function but
// comparison.

import { bounds, type DType, type DTypeLike, dtypes, toDType } from "../../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../errors.ts";
import type { Element } from "../core.ts";
import { bitcast, cast, detach, TensorHandle, wrap } from "../core.ts";
import { expand } from "../movement/views.ts";
import { turned } from "../reduce/reduce.ts";
import type { Tensor } from "../tensor.ts";
import {
  add,
  binary,
  bitwiseAnd,
  bitwiseOr,
  bitwiseXor,
  div,
  eq,
  ge,
  gt,
  le,
  logicalNot,
  lt,
  maximum,
  minimum,
  mul,
  ne,
  neg,
  notBool,
  operands,
  type Scaled,
  steps,
  sub,
  toFloat,
  trunc,
  where,
  zero,
} from "./arithmetic.ts";
import { operandValue } from "./promotion.ts";

/** When two numbers count as equal: |a - b| <= atol + rtol * |b|. */
export interface Closeness {
  readonly rtol?: number;
  readonly atol?: number;
  readonly equalNan?: boolean;
}

/** The integer type that has the bits of a float type. */
export const bitsOf = (d: DType): DType => toDType(`int${d.itemsize * 8}` as DTypeLike);

// ---- signs ----

export function abs(self: Tensor): Tensor {
  if (!self.dtype.isFloat) return self.dtype.kind === "int" ? where(lt(self, 0), neg(self), self) : self;
  const x = detach(self);
  // the sign bit of zero goes too
  const value = where(le(x, 0), add(neg(x), 0), x);
  return wrap(value.lazydata, [self], (g) => [mul(g, sign(self))]);
}
export function sign(self: Tensor): Tensor {
  if (self.dtype.kind === "bool") return self;
  const of = (x: Tensor) => sub(cast(gt(x, 0), x.dtype), cast(lt(x, 0), x.dtype));
  return self.dtype.isFloat ? steps(self, of) : of(self);
}
export function positive(self: Tensor): Tensor {
  notBool("positive")(self.dtype);
  return self;
}
export function signbit(self: Tensor): Tensor {
  return self.dtype.isFloat ? lt(bitcast(self, bitsOf(self.dtype)), 0) : lt(self, 0);
}
export function copysign(self: Tensor, x: Tensor | Element): Tensor {
  const [a, b] = operands(self, "copysign", [x], toFloat) as [Tensor, Tensor];
  const size = abs(detach(a));
  const value = where(signbit(detach(b)), neg(size), size);
  return wrap(value.lazydata, [a, b], (g, out) => [
    mul(g, where(eq(a, 0), 0, div(detach(out), detach(a)))),
    zero(g),
  ]);
}
export function rsub(self: Tensor, x: Tensor | Element, { alpha = 1 }: Scaled = {}): Tensor {
  const [a, b] = operands(self, "rsub", [x], notBool("rsub")) as [Tensor, Tensor];
  return sub(b, a, { alpha });
}

// ---- rounding and bounds ----

export function round(self: Tensor, decimals = 0): Tensor {
  if (decimals !== 0) {
    if (!Number.isInteger(decimals)) {
      throw new ArgumentError(`round: decimals is ${decimals}, expected an integer`);
    }
    const scale = 10 ** Math.abs(decimals);
    const wide = (x: Tensor) =>
      decimals > 0 ? div(round(mul(x, scale)), scale) : mul(round(div(x, scale)), scale);
    return steps(self, wide);
  }
  return steps(self, (x) => {
    const t = trunc(x);
    const rest = abs(sub(x, t));
    const odd = ne(trunc(mul(t, 0.5)), mul(t, 0.5));
    const away = bitwiseOr(gt(rest, 0.5), bitwiseAnd(eq(rest, 0.5), odd));
    return where(away, where(lt(x, 0), sub(t, 1), add(t, 1)), t);
  });
}
export function clamp(self: Tensor, min?: Tensor | Element | null, max?: Tensor | Element | null): Tensor {
  const low = min ?? undefined;
  const high = max ?? undefined;
  if (low === undefined && high === undefined) {
    throw new ArgumentError("clamp: neither min nor max is given; give at least one");
  }
  if (high === undefined) return clampMin(self, low as Tensor | Element);
  if (low === undefined) return clampMax(self, high);
  const [x, lo, hi] = operands(self, "clamp", [low, high]) as [Tensor, Tensor, Tensor];
  const value = minimum(maximum(detach(x), detach(lo)), detach(hi));
  return wrap(value.lazydata, [x, lo, hi], (g) => {
    const inside = bitwiseAnd(ge(x, lo), le(x, hi));
    const below = bitwiseAnd(lt(lo, hi), lt(x, lo));
    const above = bitwiseOr(gt(x, hi), lt(hi, lo));
    return [inside, below, above].map((c) => where(c, g, 0));
  });
}
export function clampMin(self: Tensor, min: Tensor | Element): Tensor {
  return binary(
    self,
    "clampMin",
    min,
    (x, lo) => maximum(x, lo),
    (g, _, x, lo) => [where(ge(x, lo), g, 0), where(lt(x, lo), g, 0)],
  );
}
export function clampMax(self: Tensor, max: Tensor | Element): Tensor {
  return binary(
    self,
    "clampMax",
    max,
    (x, hi) => minimum(x, hi),
    (g, _, x, hi) => [where(le(x, hi), g, 0), where(gt(x, hi), g, 0)],
  );
}
export function nanToNum(self: Tensor, nan = 0, posinf?: number | null, neginf?: number | null): Tensor {
  if (!self.dtype.isFloat) return self;
  const most = largest(self.dtype);
  const finite = where(isnan(self), nan, where(eq(self, Infinity), posinf ?? most, self));
  return where(eq(self, -Infinity), neginf ?? -most, finite);
}

// ---- tests and logic: bool results ----

export function isnan(self: Tensor): Tensor {
  return ne(self, self);
}
export function isinf(self: Tensor): Tensor {
  return self.dtype.isFloat ? eq(abs(self), Infinity) : ne(self, self);
}
export function isfinite(self: Tensor): Tensor {
  return self.dtype.isFloat ? lt(abs(self), Infinity) : eq(self, self);
}
export function logicalAnd(self: Tensor, x: Tensor | Element): Tensor {
  return truths(self, "logicalAnd", x, (a, b) => bitwiseAnd(a, b));
}
export function logicalOr(self: Tensor, x: Tensor | Element): Tensor {
  return truths(self, "logicalOr", x, (a, b) => bitwiseOr(a, b));
}
export function logicalXor(self: Tensor, x: Tensor | Element): Tensor {
  return truths(self, "logicalXor", x, (a, b) => bitwiseXor(a, b));
}
function truths(
  self: Tensor,
  method: string,
  x: Tensor | Element,
  join: (a: Tensor, b: Tensor) => Tensor,
): Tensor {
  const [a, b] = operands(self, method, [x]) as [Tensor, Tensor];
  return join(ne(a, 0), ne(b, 0));
}
export function bitwiseNot(self: Tensor): Tensor {
  if (self.dtype.kind === "bool") return logicalNot(self);
  if (self.dtype.isInt) return turned(self);
  throw new DTypeError(`bitwiseNot: takes integers or bools, got ${self.dtype.name}; cast first`);
}
// ---- tensors like this one ----

export function fill(self: Tensor, value: Tensor | Element): Tensor {
  if (!(value instanceof TensorHandle)) {
    const v = operandValue("fill", value, self.dtype);
    return wrap(self.lazydata.const(v), [self], (g) => [zero(g)]);
  }
  if (value.ndim !== 0) {
    throw new ShapeError(`fill: the value has shape [${value.shape}], expected a number or a 0-d tensor`);
  }
  const filled = expand(cast(value, self.dtype), self.lazydata.shape);
  return wrap(filled.lazydata, [self, filled], (g) => [zero(g), g]);
}

/** The largest finite number of a float type. */
function largest(d: DType): number {
  const known = new Map([
    [dtypes.float16, 65504],
    [dtypes.bfloat16, 2 ** 127 * (2 - 2 ** -7)],
    [dtypes.float32, 2 ** 127 * (2 - 2 ** -23)],
    [dtypes.float64, Number.MAX_VALUE],
  ]);
  return known.get(d) ?? Number(bounds(d)[1]);
}
