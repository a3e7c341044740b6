// Narrow types in terms of wide ones, for any Algebra: the bits of a small float as a float32 and back, and
// packed elements out of the word that holds them and into it. This is the one place where kernels take them
// apart: codegen/lower/unpack.ts uses it for kernels, codegen/passes/emulate.ts for floats.

import { bitcastValue, type DType, dtypes, SMALL_FLOATS } from "./dtype.ts";
import type { Algebra } from "./ops.ts";

const { bfloat16, float32, int32, uint32 } = dtypes;

/** What the bits of a float mean: those of 16, 8 and 4 bits by the same steps. */
interface NarrowFormat {
  readonly bias: number;
  readonly mantissa: number;
  /** the largest float32, as bits, that is not replaced by `beyond` */
  readonly last: number;
  readonly beyond: number;
  readonly nan: number;
  /** the first bits of infinity or NaN */
  readonly special: number;
}
function formatOf(type: DType): NarrowFormat {
  const small = SMALL_FLOATS.get(type);
  if (small === undefined)
    return { bias: 15, mantissa: 10, last: 0x477fefff, beyond: 0x7c00, nan: 0x7e00, special: 0x7c00 };
  const nearest = Math.fround(small.rounds);
  const last = Number(bitcastValue(uint32, nearest, float32)) - (nearest > small.rounds ? 1 : 0);
  return { ...small, last };
}

/** The float32 that the low bits of `w`, a uint32, stand for. Bits above those of the type are ignored. */
export function floatFromBits<T>(a: Algebra<T>, w: T, type: DType): T {
  const u32 = (n: number): T => a.constant(uint32, n);
  if (type === bfloat16) return a.bitcast(a.alu("SHL", w, u32(16)), float32);
  const { bias, mantissa, special } = formatOf(type);
  const signBit = 2 ** (type.bits - 1);
  // exponent and mantissa are moved into place and the bias is corrected: by a multiplication, which handles
  // subnormals too, or in integers
  const sign = a.alu("SHL", a.alu("AND", w, u32(signBit)), u32(32 - type.bits));
  const rest = a.alu("SHL", a.alu("AND", w, u32(signBit - 1)), u32(23 - mantissa));
  const larger = a.constant(float32, 2 ** (127 - bias));
  const scaled =
    a.ieee === false
      ? rebiased(a, rest, bias)
      : a.bitcast(a.alu("MUL", a.bitcast(rest, float32), larger), uint32);
  if (special === Infinity) return a.bitcast(a.alu("OR", sign, scaled), float32);
  const infiniteOrNan = a.alu("OR", rest, u32(0x7f800000));
  const isSpecial = a.alu("CMPLT", u32(special * 2 ** (23 - mantissa) - 1), rest);
  return a.bitcast(a.alu("OR", sign, a.alu("WHERE", isSpecial, infiniteOrNan, scaled)), float32);
}

/**
 * Exponent and mantissa of a narrow float as those of a float32, for targets on which no float32 may be
 * subnormal. A subnormal is made with a leading one, which is then subtracted.
 */
function rebiased<T>(a: Algebra<T>, rest: T, bias: number): T {
  const u32 = (n: number): T => a.constant(uint32, n);
  const normal = a.alu("ADD", rest, u32((127 - bias) * 2 ** 23));
  const one = 2 ** (1 - bias);
  const above = a.bitcast(a.alu("ADD", rest, u32((128 - bias) * 2 ** 23)), float32);
  const subnormal = a.bitcast(a.alu("SUB", above, a.constant(float32, one)), uint32);
  return a.alu("WHERE", a.alu("CMPLT", rest, u32(2 ** 23)), subnormal, normal);
}

/**
 * The bits of a float32 as the narrow type, as a uint32. Rounds to nearest, ties to even; NaN stays NaN; what
 * is too large becomes infinite, or what the format has instead.
 */
export function floatToBits<T>(a: Algebra<T>, x: T, type: DType): T {
  const u32 = (n: number): T => a.constant(uint32, n);
  const w = a.bitcast(x, uint32);
  const isNan = a.alu("CMPNE", x, x);
  if (type === bfloat16) {
    const odd = a.alu("AND", a.alu("SHR", w, u32(16)), u32(1));
    const rounded = a.alu("SHR", a.alu("ADD", w, a.alu("ADD", odd, u32(0x7fff))), u32(16));
    const nan = a.alu("OR", a.alu("AND", a.alu("SHR", w, u32(16)), u32(0x8000)), u32(0x7fc0));
    return a.alu("WHERE", isNan, nan, rounded);
  }
  const { bias, mantissa, last, beyond, nan } = formatOf(type);
  const drop = 23 - mantissa;
  const sign = a.alu("AND", a.alu("SHR", w, u32(32 - type.bits)), u32(2 ** (type.bits - 1)));
  const mag = a.alu("AND", w, u32(0x7fffffff));
  // normal: round at the last bit by integer addition, the carry runs into the exponent by itself
  const odd = a.alu("AND", a.alu("SHR", mag, u32(drop)), u32(1));
  const bumped = a.alu("ADD", mag, a.alu("ADD", odd, u32(2 ** (drop - 1) - 1)));
  const normal = a.alu("SHR", a.alu("SUB", bumped, u32((127 - bias) * 2 ** 23)), u32(drop));
  // subnormal: adding a number with this unit leaves the rounded multiple of it in the low mantissa bits
  const unit = 2 ** (24 - bias - mantissa);
  const shifted = a.bitcast(a.alu("ADD", a.bitcast(mag, float32), a.constant(float32, unit)), uint32);
  const subnormal = a.alu("SUB", shifted, u32(Number(bitcastValue(uint32, unit, float32))));
  const small = a.alu("CMPLT", mag, u32((128 - bias) * 2 ** 23));
  const large = a.alu("CMPLT", u32(last), mag);
  const finite = a.alu("WHERE", small, subnormal, normal);
  const magnitude = a.alu("WHERE", isNan, u32(nan), a.alu("WHERE", large, u32(beyond), finite));
  return a.alu("OR", a.alu("WHERE", isNan, u32(0), sign), magnitude);
}

// ---- packed types ----

/** The type that values of a packed type are computed in. */
export const wideOf = (d: DType): DType => (d.isFloat ? float32 : d.kind === "int" ? int32 : uint32);

/** The value, in the wide type, of an element whose bits start at bit `shift` of `word`; both are uint32. */
export function unpackElement<T>(a: Algebra<T>, d: DType, word: T, shift: T): T {
  const bits = a.alu("SHR", word, shift);
  return d.isFloat ? floatFromBits(a, bits, d) : fitInteger(a, d, a.bitcast(bits, wideOf(d)));
}

/** One word, a uint32, of elements that are given in the wide type, the first at its low end. */
export function packElements<T>(a: Algebra<T>, d: DType, elements: readonly T[]): T {
  const parts = elements.map((x, i) => a.alu("SHL", elementBits(a, d, x), a.constant(uint32, i * d.bits)));
  return parts.reduce((word, part) => a.alu("OR", word, part));
}

/** The bits of a value in the wide type, as a uint32 with zeros above them. */
function elementBits<T>(a: Algebra<T>, d: DType, x: T): T {
  if (d.isFloat) return floatToBits(a, x, d);
  return a.alu("AND", a.bitcast(x, uint32), a.constant(uint32, 2 ** d.bits - 1));
}

/** The nearest value of the packed type, in the wide type: floats round, integers wrap. */
export function fitPacked<T>(a: Algebra<T>, d: DType, x: T): T {
  return d.isFloat ? floatFromBits(a, floatToBits(a, x, d), d) : fitInteger(a, d, x);
}
function fitInteger<T>(a: Algebra<T>, d: DType, x: T): T {
  if (d.kind === "uint") return a.alu("AND", x, a.constant(uint32, 2 ** d.bits - 1));
  const above = a.constant(int32, 32 - d.bits);
  return a.alu("SHR", a.alu("SHL", x, above), above);
}

/** The same bits as another packed type of the same size. */
export const reinterpretPacked = <T>(a: Algebra<T>, to: DType, from: DType, x: T): T =>
  unpackElement(a, to, elementBits(a, from, x), a.constant(uint32, 0));
