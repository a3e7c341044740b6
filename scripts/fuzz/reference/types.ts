// The types of elements as the reference knows them, written from their definitions and not from src/: kinds,
// widths, rounding, wrapping, promotion and casts. In: names and elements. Out: names and elements.

import type { Scalar, TypeName } from "../language.ts";

interface Type {
  readonly kind: "bool" | "int" | "uint" | "float";
  readonly bits: number;
  /** bits of the significand, the leading one counted */
  readonly digits?: number;
  /** the exponent of the smallest normal number */
  readonly low?: number;
  /** the largest finite number */
  readonly most?: number;
}

export const TYPES: Readonly<Record<TypeName, Type>> = {
  bool: { kind: "bool", bits: 8 },
  int8: { kind: "int", bits: 8 },
  uint8: { kind: "uint", bits: 8 },
  int16: { kind: "int", bits: 16 },
  uint16: { kind: "uint", bits: 16 },
  int32: { kind: "int", bits: 32 },
  uint32: { kind: "uint", bits: 32 },
  int64: { kind: "int", bits: 64 },
  uint64: { kind: "uint", bits: 64 },
  float16: { kind: "float", bits: 16, digits: 11, low: -14, most: 65504 },
  bfloat16: { kind: "float", bits: 16, digits: 8, low: -126, most: 2 ** 127 * (2 - 2 ** -7) },
  float32: { kind: "float", bits: 32, digits: 24, low: -126, most: 2 ** 127 * (2 - 2 ** -23) },
  float64: { kind: "float", bits: 64, digits: 53, low: -1022, most: Number.MAX_VALUE },
};
export const isFloat = (d: TypeName): boolean => TYPES[d].kind === "float";
export const isInt = (d: TypeName): boolean => TYPES[d].kind === "int" || TYPES[d].kind === "uint";
export const isBig = (d: TypeName): boolean => isInt(d) && TYPES[d].bits === 64;
/** Half the distance from 1 to the next number: the largest relative error of rounding. */
export const unit = (d: TypeName): number => 2 ** -(TYPES[d].digits ?? 53);
/** The distance between subnormal numbers. */
export const tiny = (d: TypeName): number => 2 ** ((TYPES[d].low ?? -1022) - (TYPES[d].digits ?? 53) + 1);

// ---- promotion, as torch.promote_types and torch.result_type document it ----

export function promote(a: TypeName, b: TypeName): TypeName {
  const [x, y] = [TYPES[a], TYPES[b]];
  if (a === b || y.kind === "bool") return a;
  if (x.kind === "bool") return b;
  if (x.kind === "float" && y.kind === "float")
    return x.bits === y.bits ? "float32" : x.bits > y.bits ? a : b;
  if (x.kind === "float") return a;
  if (y.kind === "float") return b;
  if (x.kind === y.kind) return x.bits > y.bits ? a : b;
  const [signed, unsigned] = x.kind === "int" ? [a, b] : [b, a];
  if (TYPES[signed].bits > TYPES[unsigned].bits) return signed;
  const wider: Readonly<Record<number, TypeName>> = { 8: "int16", 16: "int32", 32: "int64", 64: "float32" };
  return wider[TYPES[unsigned].bits] as TypeName;
}
const CATEGORY = { bool: 0, int: 1, uint: 1, float: 2 } as const;

export interface Operand {
  readonly d: TypeName;
  readonly rank: "dims" | "zerodim" | "number";
}
/** Tensors of dims decide; 0-d tensors and plain numbers only raise the category. */
export function resultType(operands: readonly Operand[]): TypeName {
  const joined = (rank: Operand["rank"]): TypeName | undefined =>
    operands
      .filter((o) => o.rank === rank)
      .map((o) => o.d)
      .reduce<TypeName | undefined>((a, b) => (a === undefined ? b : promote(a, b)), undefined);
  const ranks = [joined("dims"), joined("zerodim"), joined("number")] as const;
  let result: TypeName | undefined;
  ranks.forEach((d, i) => {
    if (d === undefined) return;
    if (result === undefined) result = d;
    else if (CATEGORY[TYPES[d].kind] > CATEGORY[TYPES[result].kind])
      result = i === 2 ? d : promote(result, d);
  });
  return result as TypeName;
}
export const toFloat = (d: TypeName): TypeName => (isFloat(d) ? d : "float32");
export function sumType(d: TypeName): TypeName {
  if (isFloat(d) || TYPES[d].bits >= 32) return d;
  return TYPES[d].kind === "uint" ? "uint32" : "int32";
}
export const productType = (d: TypeName): TypeName =>
  isFloat(d) || d === "uint64" ? d : d === "bool" ? "int32" : "int64";

// ---- one element ----

/** An integer brought into the range of its type, modulo 2^bits. */
export function wrapInt(d: TypeName, x: bigint): Scalar {
  const { kind, bits } = TYPES[d];
  if (kind === "bool") return x === 0n ? 0 : 1;
  const w = kind === "int" ? BigInt.asIntN(bits, x) : BigInt.asUintN(bits, x);
  return bits === 64 ? w : Number(w);
}

/** The nearest number of a float type, ties to even. */
export function roundFloat(d: TypeName, x: number): number {
  if (d === "float64" || !Number.isFinite(x) || x === 0) return x;
  if (d === "float32") return Math.fround(x);
  const { digits = 53, low = 0, most = 0 } = TYPES[d];
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))), low);
  const step = 2 ** (exponent - digits + 1);
  const q = x / step;
  const f = Math.floor(q);
  const even = q - f > 0.5 || (q - f === 0.5 && f % 2 !== 0) ? f + 1 : f;
  const r = even * step;
  if (Math.abs(r) > most) return x > 0 ? Infinity : -Infinity;
  return r === 0 && x < 0 ? -0 : r;
}
/** What a cast stores: narrow floats come by way of float32. */
export const storeFloat = (d: TypeName, x: number): number =>
  d === "float64" ? x : roundFloat(d, Math.fround(x));

/** A 64-bit integer as a double whose lost bits leave a trace, so that rounding again goes the right way. */
function bigToNumber(d: TypeName, x: bigint): number {
  const size = x < 0n ? -x : x;
  if (d === "float64" || size < 2n ** 53n) return Number(x);
  const top = Number((size >> 11n) | (size % 2048n === 0n ? 0n : 1n));
  return (x < 0n ? -top : top) * 2048;
}

/**
 * The value as another type. Float to integer: truncates, NaN gives 0, out of range stops at int32 (int64 for
 * uint32 and int64, uint64 for uint64) and then wraps to the width, as the docs of `cast` say.
 */
export function castScalar(to: TypeName, x: Scalar, from: TypeName): Scalar {
  if (to === "bool") return x === 0 || x === 0n ? 0 : 1;
  if (isFloat(to)) return storeFloat(to, typeof x === "bigint" ? bigToNumber(to, x) : x);
  if (!isFloat(from)) return wrapInt(to, BigInt(x));
  const value = Number(x);
  if (Number.isNaN(value)) return wrapInt(to, 0n);
  const [low, high] =
    to === "uint64"
      ? [0n, 2n ** 64n - 1n]
      : to === "int64" || to === "uint32"
        ? [-(2n ** 63n), 2n ** 63n - 1n]
        : [-(2n ** 31n), 2n ** 31n - 1n];
  if (value >= Number(high)) return wrapInt(to, high);
  if (value <= Number(low)) return wrapInt(to, low);
  return wrapInt(to, BigInt(Math.trunc(value)));
}

/** The bits of an element, and the element that has these bits. */
export function bitcastScalar(to: TypeName, x: Scalar, from: TypeName): Scalar {
  const view = new DataView(new ArrayBuffer(8));
  const { kind, bits } = TYPES[from];
  if (kind === "float" && bits === 32) view.setFloat32(0, Number(x), true);
  else if (kind === "float" && bits === 64) view.setFloat64(0, Number(x), true);
  else view.setBigUint64(0, BigInt.asUintN(bits, BigInt(x)), true);
  if (to === "float32") return view.getFloat32(0, true);
  if (to === "float64") return view.getFloat64(0, true);
  return wrapInt(to, view.getBigUint64(0, true));
}
