// What operands become before an op: one type, as torch promotes tensors and plain numbers, and one shape.

import { bounds, type DType, dtypes, promote, resultType, type Value } from "../../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../errors.ts";
import { arraysEqual } from "../../helpers.ts";
import type { Sint } from "../../shape/symbolic.ts";
import type { Shape } from "../../shape/view.ts";
import { type Element, TensorHandle } from "../core.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";

const DEFAULT_FLOAT = dtypes.float32;

/** The type that a plain number takes part in a promotion with. */
function elementType(x: Element): DType {
  if (typeof x === "boolean") return dtypes.bool;
  if (typeof x === "bigint") return dtypes.int64;
  return Number.isInteger(x) ? dtypes.int32 : DEFAULT_FLOAT;
}
const toValue = (x: Element): Value => (typeof x === "boolean" ? Number(x) : x);

/**
 * The methods in which a negative number may wrap into an unsigned type, as in torch: adding -1 subtracts 1.
 */
const WRAPS = /^(?:Tensor|add|sub|mul|bitwise(?:And|Or|Xor))$/;

/**
 * A plain number as an operand of type `type`. One that the type cannot hold (a fraction, NaN, 300 in uint8)
 * is refused: it would silently become another number.
 */
export function operandValue(method: string, x: Element, type: DType): Value {
  const value = toValue(x);
  if (!type.isInt) return value;
  const [low, high] = bounds(type);
  const least = type.kind === "uint" && WRAPS.test(method) ? -high : low;
  // data for which a type was chosen are truncated, as a cast does
  const isWhole = typeof value === "bigint" || value % 1 === 0 || method === "Tensor";
  // a float below 0 is 0 as a uint64, but a whole number wraps, as in all other types
  if (isWhole && value >= least && value <= high)
    return value < 0 && type === dtypes.uint64
      ? BigInt(typeof value === "bigint" ? value : Math.trunc(value))
      : value;
  throw new ArgumentError(
    `${method}: ${x} does not fit ${type.name} (${low} to ${high}); use ` +
      (isWhole ? "a wider type, or a cast, which wraps" : "a float type, or round it"),
  );
}

/** What torch.result_type says of tensors and plain numbers together. */
export const commonType = (xs: readonly (Tensor | Element)[]): DType =>
  resultType(
    xs.map((x) => {
      if (!(x instanceof TensorHandle)) return { dtype: elementType(x), rank: "number" };
      return { dtype: x.dtype, rank: x.ndim === 0 ? "zerodim" : "dimensioned" };
    }),
  );

/** The shape that all tensors have; undefined: they have several. */
function onlyShape(xs: readonly (Tensor | Element)[]): Shape | undefined {
  let shape: Shape | undefined;
  for (const x of xs) {
    if (!(x instanceof TensorHandle)) continue;
    const own = x.lazydata.shape;
    if (shape === undefined) shape = own;
    else if (own !== shape && !arraysEqual<Sint>(own, shape)) return undefined;
  }
  return shape;
}

/** The shape that all tensors broadcast to, dims aligned at the end. */
export function broadcastShape(method: string, xs: readonly (Tensor | Element)[]): Shape {
  const same = onlyShape(xs);
  if (same !== undefined) return same;
  const shapes = xs.flatMap((x) => (x instanceof TensorHandle ? [x.lazydata.shape] : []));
  const ndim = Math.max(...shapes.map((s) => s.length));
  const out: Sint[] = [];
  for (let i = 1; i <= ndim; i++) {
    const sizes = shapes.map((s) => s.at(-i) ?? 1);
    const size = sizes.find((s) => s !== 1) ?? 1;
    if (sizes.some((s) => s !== 1 && s !== size)) {
      throw new ShapeError(
        `${method}: shapes ${shapes.map(showShape).join(" and ")} do not broadcast; ` +
          `dim ${-i} has sizes ${sizes.join(" and ")}, expected equal or 1`,
      );
    }
    out.unshift(size);
  }
  return out;
}

/** Integers and bools compute functions in float32. */
export const toFloat = (d: DType): DType => (d.isFloat ? d : promote(d, DEFAULT_FLOAT));
/** Types too narrow to compute a formula or a running sum in. */
export const isNarrow = (d: DType): boolean => d.isFloat && d.itemsize < 4;
export const notBool =
  (method: string) =>
  (d: DType): DType => {
    if (d.kind !== "bool") return d;
    throw new DTypeError(
      `${method}: bool has no such operation; use logicalNot or bitwiseXor, or cast to int32`,
    );
  };
