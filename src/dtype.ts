// The types of elements: sizes, ranges, names, promotion as in torch, and the conversion of one value.
// In goes a name or a value, out comes a DType or a value that fits it. How a device computes with
// a type it lacks is codegen's business.

import { DTypeError } from "./errors.ts";

/** One element on the host. 64-bit integers are bigint, bool is 0 or 1, everything else is number. */
export type Value = number | bigint;

type Kind = "bool" | "int" | "uint" | "float";
/**
 * What `data()` returns; floats below 32 bits come as Float32Array, integers of 4 bits as Int8Array and
 * Uint8Array.
 */
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;
/**
 * A form of `reduce` that can be called on a union of typed arrays, whose own overloads name different
 * arrays.
 */
interface Reducible {
  reduce(fn: (total: number, x: number, i: number) => number, initial?: number): number;
  reduce<U>(fn: (total: U, x: number, i: number) => U, initial: U): U;
}
/** What `data()` returns for all types except int64 and uint64, whose elements are bigints. */
export type NumberArray = Reducible & Exclude<TypedArray, BigInt64Array | BigUint64Array>;
type ArrayType = {
  new (n: number): TypedArray;
  new (buffer: ArrayBufferLike, offset?: number, n?: number): TypedArray;
  readonly BYTES_PER_ELEMENT: number;
};

/** The shape of an image: each pixel has four values. */
export type ImageShape = readonly [height: number, width: number, lanes: 4];
/** Types that only Node has: floats in 2-D images, of 16 bits and of 32 (images.ts). */
interface ImageTypes {
  imageh(shape: readonly number[]): DType;
  imagef(shape: readonly number[]): DType;
}

/**
 * A scalar type, or `count` lanes of it. `alias` is what listings print after `dtypes.`: `float`, or
 * `int.vec(4)`, which is not `int4`.
 */
export class DType {
  static readonly name: string = "DType";
  readonly name: string;
  readonly alias: string;
  readonly kind: Kind;
  /** bits of memory that one element takes, all lanes counted; a bool takes a byte */
  readonly bits: number;
  /**
   * bytes of one element; a fraction where several elements share a byte: sizes of buffers come from
   * `bytesFor`
   */
  readonly itemsize: number;
  /** several elements share a byte; codegen unpacks them (lower/unpack.ts), no device sees them */
  readonly isPacked: boolean;
  /**
   * the array that holds the elements, or their bits, on the host; for packed types the array they are
   * unpacked to
   */
  readonly storage: ArrayType;
  readonly count: number;
  // fields, since they are asked for at every node of a kernel
  readonly isFloat: boolean;
  readonly isInt: boolean;
  /** 64-bit integers travel as bigint. */
  readonly isBig: boolean;
  /** of an image (images.ts): height, width and 4. Its values are float32 */
  declare readonly image?: ImageShape;
  readonly #lanes = new Map<number, DType>();

  constructor(name: string, alias: string, kind: Kind, bits: number, storage: ArrayType, count = 1) {
    this.name = name;
    this.alias = alias;
    this.kind = kind;
    this.bits = bits;
    this.itemsize = bits / 8;
    this.isPacked = bits < 8 * count;
    this.storage = storage;
    this.count = count;
    this.isFloat = kind === "float";
    this.isInt = kind === "int" || kind === "uint";
    this.isBig = this.isInt && bits === 64 * count;
  }

  /** The bytes of a buffer of `n` elements: a last byte that is only partly used counts whole. */
  bytesFor(n: number): number {
    return Math.ceil((n * this.bits) / 8);
  }

  /** The same type in `count` lanes; interned, so that === compares. */
  vec(count: number): DType {
    if (count === 1) return this;
    let v = this.#lanes.get(count);
    if (v === undefined) {
      v = new DType(
        `${this.name}x${count}`,
        `${this.alias}.vec(${count})`,
        this.kind,
        this.bits * count,
        this.storage,
        count,
      );
      this.#lanes.set(count, v);
      scalars.set(v, this);
    }
    return v;
  }

  toString(): string {
    return `dtypes.${this.alias}`;
  }
  toJSON(): string {
    return this.name;
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

const scalars = new Map<DType, DType>();
/** The type of one lane. */
export const scalarOf = (d: DType): DType => (d.count === 1 ? d : (scalars.get(d) ?? d));

/** A pointer to elements in global or (`local`) workgroup memory. Interned by `PtrDType`. */
export class Pointer {
  readonly base: DType;
  readonly local: boolean;
  /** elements are pixels of this image (images.ts); `base` is the type of their values */
  declare readonly image?: DType;
  constructor(base: DType, local: boolean) {
    this.base = base;
    this.local = local;
  }
  toString(): string {
    return `ptr.${this.base}`;
  }
}
export const pointers = [new Map<DType, Pointer>(), new Map<DType, Pointer>()] as const;
/** The pointer type to elements of `base`, one object for each. */
export function PtrDType(base: DType, local = false): Pointer {
  const table = pointers[local ? 1 : 0];
  let p = table.get(base);
  if (p === undefined) {
    p = new Pointer(base, local);
    table.set(base, p);
  }
  return p;
}

const int4 = new DType("int4", "int4", "int", 4, Int8Array);
const uint4 = new DType("uint4", "uint4", "uint", 4, Uint8Array);
const float4e2m1 = new DType("float4e2m1", "float4e2m1", "float", 4, Float32Array);
const bool = new DType("bool", "bool", "bool", 8, Uint8Array);
const int8 = new DType("int8", "char", "int", 8, Int8Array);
const uint8 = new DType("uint8", "uchar", "uint", 8, Uint8Array);
const int16 = new DType("int16", "short", "int", 16, Int16Array);
const uint16 = new DType("uint16", "ushort", "uint", 16, Uint16Array);
const int32 = new DType("int32", "int", "int", 32, Int32Array);
const uint32 = new DType("uint32", "uint", "uint", 32, Uint32Array);
const int64 = new DType("int64", "long", "int", 64, BigInt64Array);
const uint64 = new DType("uint64", "ulong", "uint", 64, BigUint64Array);
const float16 = new DType("float16", "half", "float", 16, Uint16Array);
const bfloat16 = new DType("bfloat16", "bfloat16", "float", 16, Uint16Array);
const float8e4m3 = new DType("float8e4m3", "float8e4m3", "float", 8, Uint8Array);
const float8e5m2 = new DType("float8e5m2", "float8e5m2", "float", 8, Uint8Array);
const float32 = new DType("float32", "float", "float", 32, Float32Array);
const float64 = new DType("float64", "double", "float", 64, Float64Array);

// biome-ignore format: a table
const named = { bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32, float64 };

/** Types that weights are stored in. Arithmetic goes through wider types, so they are not in `all`. */
const stored = { float8e4m3, float8e5m2, int4, uint4, float4e2m1 };

/** Every dtype under its own name and under its C-like alias. */
const table = {
  ...named,
  ...stored,
  char: int8,
  uchar: uint8,
  short: int16,
  ushort: uint16,
  int: int32,
  uint: uint32,
  long: int64,
  ulong: uint64,
  half: float16,
  float: float32,
  double: float64,
  all: Object.values(named) as readonly DType[],
} as const;
export const dtypes = table as typeof table & ImageTypes;

export type DTypeName = Exclude<keyof typeof table, "all">;
/** A dtype or its name: `dtypes.float32` or "float32". */
export type DTypeLike = DType | DTypeName;

export function toDType(d: DTypeLike): DType {
  if (d instanceof DType) return d;
  const found: unknown = Object.hasOwn(dtypes, d) && dtypes[d];
  if (found instanceof DType) return found;
  throw new DTypeError(
    `dtype: unknown name "${String(d)}"; expected one of ${Object.keys({ ...named, ...stored }).join(", ")}`,
  );
}

/** The smallest and largest value; floats give ±Infinity, the identities of MAX. */
export function bounds(d: DType): readonly [Value, Value] {
  if (d.isFloat) return [-Infinity, Infinity];
  if (d.kind === "bool") return [0, 1];
  const bits = BigInt(d.bits);
  const lo = d.kind === "int" ? -(1n << (bits - 1n)) : 0n;
  const hi = (1n << (d.kind === "int" ? bits - 1n : bits)) - 1n;
  return d.isBig ? [lo, hi] : [Number(lo), Number(hi)];
}

// ---- promotion ----

/** What two tensors of these types combine to, as torch.promote_types; unsigned above 8 bits as in jax. */
export function promote(a: DType, b: DType): DType {
  if (a === b) return a;
  if (a.kind === "bool") return b;
  if (b.kind === "bool") return a;
  if (a.isFloat || b.isFloat) {
    if (!b.isFloat) return a;
    if (!a.isFloat) return b;
    if (a.bits === b.bits) return float32; // float16 with bfloat16
    return a.bits > b.bits ? a : b;
  }
  if (a.kind === b.kind) return a.bits > b.bits ? a : b;
  const [s, u] = a.kind === "int" ? [a, b] : [b, a];
  if (s.bits > u.bits) return s;
  const wider = { 4: int8, 8: int16, 16: int32, 32: int64, 64: float32 } as const;
  return wider[u.bits as 4 | 8 | 16 | 32 | 64];
}

const CATEGORY: Record<Kind, number> = { bool: 0, int: 1, uint: 1, float: 2 };

/** An operand of a promotion: 0-d tensors and plain numbers only raise the category, never the width. */
export interface PromotionOperand {
  readonly dtype: DType;
  readonly rank: "dimensioned" | "zerodim" | "number";
}

/** torch.result_type: dimensioned tensors first, then 0-d tensors, then numbers of a higher category. */
export function resultType(operands: readonly PromotionOperand[]): DType {
  let result: DType | undefined;
  for (const rank of ["dimensioned", "zerodim", "number"] as const) {
    let here: DType | undefined;
    for (const o of operands)
      if (o.rank === rank) here = here === undefined ? o.dtype : promote(here, o.dtype);
    if (here === undefined) continue;
    if (result === undefined) result = here;
    else if (CATEGORY[here.kind] > CATEGORY[result.kind])
      result = rank === "number" ? here : promote(result, here);
  }
  if (result === undefined) throw new DTypeError("resultType: no operands; expected at least one");
  return result;
}

/** What a sum of this type is accumulated and returned in. */
export function sumDType(d: DType): DType {
  if (d.kind === "bool" || (d.kind === "int" && d.bits < 32)) return int32;
  return d.kind === "uint" && d.bits < 32 ? uint32 : d;
}

// ---- one value ----

const scratch = new DataView(new ArrayBuffer(8));

export function float16ToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const mantissa = bits & 1023;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? mantissa * 2 ** -24 : (1 + mantissa / 1024) * 2 ** (exponent - 15));
}

/** Rounds to nearest even, straight from the double, so that nothing is rounded twice. */
export function numberToFloat16(x: number): number {
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  if (Number.isNaN(x)) return 0x7e00;
  const a = Math.abs(x);
  if (a >= 65520) return sign | 0x7c00;
  scratch.setFloat64(0, a);
  const exponent = Math.max((scratch.getUint16(0) >> 4) - 1023, -14);
  // a mantissa that rounds up to 2048 carries into the exponent by itself
  return sign | (((exponent + 14) << 10) + roundHalfEven(a / 2 ** (exponent - 10)));
}

const roundHalfEven = (x: number): number => {
  const f = Math.floor(x);
  const d = x - f;
  return d > 0.5 || (d === 0.5 && f % 2 === 1) ? f + 1 : f;
};

export function bfloat16ToNumber(bits: number): number {
  scratch.setUint32(0, bits << 16);
  return scratch.getFloat32(0);
}

/** Rounds to nearest even, straight from the double too. */
export function numberToBfloat16(x: number): number {
  scratch.setFloat32(0, x);
  let bits = scratch.getUint32(0);
  if (Number.isNaN(x)) return ((bits >>> 16) & 0x8000) | 0x7fc0;
  // the float32 is halfway between two results, but the double was not: it says which is nearer
  if ((bits & 0xffff) === 0x8000) bits += Math.sign(Math.abs(x) - Math.abs(scratch.getFloat32(0)));
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

/** A float of 8 bits or fewer: a sign, an exponent with this bias, and a mantissa of this many bits. */
export interface SmallFloat {
  readonly bias: number;
  readonly mantissa: number;
  /** the largest magnitude that is not replaced by `beyond` */
  readonly rounds: number;
  /**
   * the bits of what is too large: infinity, NaN in a format without infinity, the largest number in one
   * without both
   */
  readonly beyond: number;
  /** the bits of what NaN becomes */
  readonly nan: number;
  /** the first bits that mean infinity or NaN, if the format has any */
  readonly special: number;
}
/**
 * e4m3 and e5m2 as in torch: e4m3 has no infinity and one NaN (of each sign), e5m2 is the upper half of a
 * float16. e2m1 has neither: too large becomes 6, and so does NaN, as NVIDIA's instruction has it.
 */
export const SMALL_FLOATS: ReadonlyMap<DType, SmallFloat> = new Map([
  [float8e4m3, { bias: 7, mantissa: 3, rounds: 464, beyond: 0x7f, nan: 0x7f, special: 0x7f }],
  [float8e5m2, { bias: 15, mantissa: 2, rounds: 61440 - 2 ** -37, beyond: 0x7c, nan: 0x7f, special: 0x7c }],
  [float4e2m1, { bias: 1, mantissa: 1, rounds: 6, beyond: 7, nan: 7, special: Infinity }],
]);

export function smallFloatToNumber(d: DType, bits: number): number {
  const { bias, mantissa, special } = SMALL_FLOATS.get(d) as SmallFloat;
  const signBit = 2 ** (d.bits - 1);
  const magnitude = bits & (signBit - 1);
  const sign = bits & signBit ? -1 : 1;
  const [exponent, rest] = [magnitude >> mantissa, magnitude & (2 ** mantissa - 1)];
  if (magnitude >= special) return rest === 0 ? sign * Infinity : NaN;
  const unit = 2 ** (Math.max(exponent, 1) - bias - mantissa);
  return sign * (exponent === 0 ? rest : rest + 2 ** mantissa) * unit;
}

/** Rounds to nearest even; what is too large becomes what the format has for it. */
export function numberToSmallFloat(d: DType, x: number): number {
  const { bias, mantissa, rounds, beyond, nan } = SMALL_FLOATS.get(d) as SmallFloat;
  if (Number.isNaN(x)) return nan;
  const sign = x < 0 || Object.is(x, -0) ? 2 ** (d.bits - 1) : 0;
  const a = Math.abs(x);
  if (a > rounds) return sign | beyond;
  scratch.setFloat64(0, a);
  const exponent = Math.max((scratch.getUint16(0) >> 4) - 1023, 1 - bias);
  return sign | (((exponent + bias - 1) << mantissa) + roundHalfEven(a / 2 ** (exponent - mantissa)));
}
const toSmallFloat = (d: DType) => (x: number) =>
  smallFloatToNumber(d, numberToSmallFloat(d, Math.fround(x)));

export const WRAP: Record<string, (x: number) => number> = {
  bool: (x) => (x === 0 ? 0 : 1),
  float16: (x) => float16ToNumber(numberToFloat16(Math.fround(x))),
  bfloat16: (x) => bfloat16ToNumber(numberToBfloat16(Math.fround(x))),
  float32: Math.fround,
  float64: (x) => x,
  ...Object.fromEntries([...SMALL_FLOATS.keys()].map((d) => [d.name, toSmallFloat(d)])),
};

/** Brings the result of arithmetic back into the type: integers wrap, floats round. */
export function wrap(d: DType, x: Value): Value {
  if (d.isBig) return d.kind === "int" ? BigInt.asIntN(64, BigInt(x)) : BigInt.asUintN(64, BigInt(x));
  const unused = 32 - d.bits;
  if (d.kind === "int") return (Number(x) << unused) >> unused;
  if (d.kind === "uint") return (Number(x) << unused) >>> unused;
  return (WRAP[d.name] as (x: number) => number)(Number(x));
}

/**
 * The value as type `to`. Float to integer truncates; NaN becomes 0; out of range saturates at int32 for
 * types up to 32 bits signed or 16 unsigned, at int64 for uint32 and int64, at uint64 for uint64, and then
 * wraps to the width (so -1.0 is 255 as uint8). Every device does exactly this.
 */
export function castValue(to: DType, x: Value, from: DType): Value {
  if (to.kind === "bool") return x === 0 || x === 0n ? 0 : 1;
  if (to.isFloat) return wrap(to, typeof x === "bigint" && to !== float64 ? bigToDouble(x) : Number(x));
  if (!from.isFloat) return to.isBig ? wrap(to, BigInt(x)) : wrap(to, low32(x));
  const t = Math.trunc(Number(x));
  if (Number.isNaN(t)) return to.isBig ? 0n : 0;
  if (!to.isBig) {
    // -2^63 and below has no low bits set, 2^63 and above stops at 2^63-1, which has them all
    if (floatToIntVia(to) === int64) return t <= -(2 ** 63) ? 0 : wrap(to, t >= 2 ** 63 ? -1 : t | 0);
    return wrap(to, t <= -(2 ** 31) ? -(2 ** 31) : t >= 2 ** 31 - 1 ? 2 ** 31 - 1 : t | 0);
  }
  const [lo, hi] = bounds(to);
  return t <= Number(lo) ? lo : t >= Number(hi) ? hi : wrap(to, BigInt(t));
}

/**
 * A 64-bit integer as a double that rounds to any narrower float as the integer would: lost bits leave a
 * sticky one.
 */
export function bigToDouble(x: bigint): number {
  const size = x < 0n ? -x : x;
  if (size < 1n << 53n) return Number(x);
  const top = (size >> 11n) | (size & 0x7ffn ? 1n : 0n);
  return Number(top) * (x < 0n ? -2048 : 2048);
}

/** The integer type at which a float saturates on its way to `to`. */
export function floatToIntVia(to: DType): DType {
  if (to.isBig) return to;
  return to.kind === "uint" && to.bits === 32 ? int64 : int32;
}

const low32 = (x: Value): number => (typeof x === "number" ? x | 0 : Number(BigInt.asIntN(32, x)));

/** The same bits read as another type of the same size. */
export function bitcastValue(to: DType, x: Value, from: DType): Value {
  writeValue(scratch, 0, from, x);
  return readValue(scratch, 0, to);
}

type Accessor = { get: (v: DataView, at: number) => Value; set: (v: DataView, at: number, x: Value) => void };
const accessSmall = (d: DType): Accessor => ({
  get: (v, at) => smallFloatToNumber(d, v.getUint8(at)),
  set: (v, at, x) => v.setUint8(at, numberToSmallFloat(d, Number(x))),
});
/**
 * One element at a byte. Packed types are read and written in words, by decodeArray and encodeArray alone.
 */
export const ACCESS: Record<string, Accessor> = {
  float8e4m3: accessSmall(float8e4m3),
  float8e5m2: accessSmall(float8e5m2),
  bool: { get: (v, at) => (v.getUint8(at) ? 1 : 0), set: (v, at, x) => v.setUint8(at, x ? 1 : 0) },
  int8: { get: (v, at) => v.getInt8(at), set: (v, at, x) => v.setInt8(at, Number(x)) },
  uint8: { get: (v, at) => v.getUint8(at), set: (v, at, x) => v.setUint8(at, Number(x)) },
  int16: { get: (v, at) => v.getInt16(at, true), set: (v, at, x) => v.setInt16(at, Number(x), true) },
  uint16: { get: (v, at) => v.getUint16(at, true), set: (v, at, x) => v.setUint16(at, Number(x), true) },
  int32: { get: (v, at) => v.getInt32(at, true), set: (v, at, x) => v.setInt32(at, Number(x), true) },
  uint32: { get: (v, at) => v.getUint32(at, true), set: (v, at, x) => v.setUint32(at, Number(x), true) },
  int64: { get: (v, at) => v.getBigInt64(at, true), set: (v, at, x) => v.setBigInt64(at, BigInt(x), true) },
  uint64: {
    get: (v, at) => v.getBigUint64(at, true),
    set: (v, at, x) => v.setBigUint64(at, BigInt(x), true),
  },
  float16: {
    get: (v, at) => float16ToNumber(v.getUint16(at, true)),
    set: (v, at, x) => v.setUint16(at, numberToFloat16(Number(x)), true),
  },
  bfloat16: {
    get: (v, at) => bfloat16ToNumber(v.getUint16(at, true)),
    set: (v, at, x) => v.setUint16(at, numberToBfloat16(Number(x)), true),
  },
  float32: { get: (v, at) => v.getFloat32(at, true), set: (v, at, x) => v.setFloat32(at, Number(x), true) },
  float64: { get: (v, at) => v.getFloat64(at, true), set: (v, at, x) => v.setFloat64(at, Number(x), true) },
};

export const readValue = (v: DataView, at: number, d: DType): Value =>
  (ACCESS[d.name] as Accessor).get(v, at);
export const writeValue = (v: DataView, at: number, d: DType, x: Value): void =>
  (ACCESS[d.name] as Accessor).set(v, at, x);
