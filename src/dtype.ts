// The types of elements: sizes, ranges, names, promotion as in torch, and the conversion of one value.
// In goes a name or a value, out comes a DType or a value that fits it. How a device computes with
// a type it lacks is codegen's business.

import { DTypeError } from "./errors.ts";

/** One element on the host. 64-bit integers are bigint, bool is 0 or 1, everything else is number. */
export type Value = number | bigint;

export type Kind = "bool" | "int" | "uint" | "float";
/** What `data()` returns; floats of 16 and 8 bits come as Float32Array. */
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
type ArrayType = {
  new (n: number): TypedArray;
  new (buffer: ArrayBufferLike, offset?: number, n?: number): TypedArray;
  readonly BYTES_PER_ELEMENT: number;
};

/** A scalar type, or `count` lanes of it. `alias` is the C-like name that listings print. */
export class DType {
  readonly name: string;
  readonly alias: string;
  readonly kind: Kind;
  readonly itemsize: number;
  readonly storage: ArrayType;
  readonly count: number;
  readonly #lanes = new Map<number, DType>();

  constructor(name: string, alias: string, kind: Kind, itemsize: number, storage: ArrayType, count = 1) {
    this.name = name;
    this.alias = alias;
    this.kind = kind;
    this.itemsize = itemsize;
    this.storage = storage;
    this.count = count;
  }

  get isFloat(): boolean {
    return this.kind === "float";
  }
  get isInt(): boolean {
    return this.kind === "int" || this.kind === "uint";
  }
  /** 64-bit integers travel as bigint. */
  get isBig(): boolean {
    return this.isInt && this.itemsize === 8 * this.count;
  }
  get bits(): number {
    return this.kind === "bool" ? 1 : this.itemsize * 8;
  }

  /** The same type in `count` lanes; interned, so that === compares. */
  vec(count: number): DType {
    if (count === 1) return this;
    let v = this.#lanes.get(count);
    if (v === undefined) {
      v = new DType(
        `${this.name}x${count}`,
        `${this.alias}${count}`,
        this.kind,
        this.itemsize * count,
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
}

const scalars = new Map<DType, DType>();
/** The type of one lane. */
export const scalarOf = (d: DType): DType => scalars.get(d) ?? d;

/** A pointer to elements in global or (`local`) workgroup memory. Interned by `PtrDType`. */
export class Pointer {
  readonly base: DType;
  readonly local: boolean;
  constructor(base: DType, local: boolean) {
    this.base = base;
    this.local = local;
  }
  toString(): string {
    return `ptr.${this.base}`;
  }
}
const pointers = [new Map<DType, Pointer>(), new Map<DType, Pointer>()] as const;
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

const bool = new DType("bool", "bool", "bool", 1, Uint8Array);
const int8 = new DType("int8", "char", "int", 1, Int8Array);
const uint8 = new DType("uint8", "uchar", "uint", 1, Uint8Array);
const int16 = new DType("int16", "short", "int", 2, Int16Array);
const uint16 = new DType("uint16", "ushort", "uint", 2, Uint16Array);
const int32 = new DType("int32", "int", "int", 4, Int32Array);
const uint32 = new DType("uint32", "uint", "uint", 4, Uint32Array);
const int64 = new DType("int64", "long", "int", 8, BigInt64Array);
const uint64 = new DType("uint64", "ulong", "uint", 8, BigUint64Array);
const float16 = new DType("float16", "half", "float", 2, Uint16Array);
const bfloat16 = new DType("bfloat16", "bfloat16", "float", 2, Uint16Array);
const float8e4m3 = new DType("float8e4m3", "float8e4m3", "float", 1, Uint8Array);
const float8e5m2 = new DType("float8e5m2", "float8e5m2", "float", 1, Uint8Array);
const float32 = new DType("float32", "float", "float", 4, Float32Array);
const float64 = new DType("float64", "double", "float", 8, Float64Array);

// biome-ignore format: a table
const named = { bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32, float64 };

/** Floats of 8 bits hold weights and factors of matrix products; computing is done in others, so `all` has them not. */
const eights = { float8e4m3, float8e5m2 };

/** Every dtype under its own name and under its C-like alias. */
export const dtypes = {
  ...named,
  ...eights,
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

export type DTypeName = Exclude<keyof typeof dtypes, "all">;
/** A dtype or its name: `dtypes.float32` or "float32". */
export type DTypeLike = DType | DTypeName;

export function toDType(d: DTypeLike): DType {
  if (d instanceof DType) return d;
  const found = Object.hasOwn(dtypes, d) && d !== ("all" as string) ? dtypes[d] : undefined;
  if (found === undefined) {
    throw new DTypeError(
      `dtype: unknown name "${String(d)}"; expected one of ${Object.keys({ ...named, ...eights }).join(", ")}`,
    );
  }
  return found;
}

/** The smallest and largest value; floats give ±Infinity, the identities of MAX. */
export function bounds(d: DType): readonly [Value, Value] {
  if (d.isFloat) return [-Infinity, Infinity];
  if (d.kind === "bool") return [0, 1];
  const bits = BigInt(d.itemsize * 8);
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
    if (a.itemsize === b.itemsize) return float32; // float16 with bfloat16
    return a.itemsize > b.itemsize ? a : b;
  }
  if (a.kind === b.kind) return a.itemsize > b.itemsize ? a : b;
  const [s, u] = a.kind === "int" ? [a, b] : [b, a];
  if (s.itemsize > u.itemsize) return s;
  const wider = { 1: int16, 2: int32, 4: int64, 8: float32 } as const;
  return wider[u.itemsize as 1 | 2 | 4 | 8];
}

const CATEGORY: Record<Kind, number> = { bool: 0, int: 1, uint: 1, float: 2 };

/** An operand of a promotion: 0-d tensors and plain numbers only raise the category, never the width. */
export interface Operand {
  readonly dtype: DType;
  readonly rank: "dimensioned" | "zerodim" | "number";
}

/** torch.result_type: dimensioned tensors first, then 0-d tensors, then numbers of a higher category. */
export function resultType(operands: readonly Operand[]): DType {
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
  if (d.kind === "bool" || (d.kind === "int" && d.itemsize < 4)) return int32;
  return d.kind === "uint" && d.itemsize < 4 ? uint32 : d;
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

/** A float of 8 bits: a sign, an exponent with this bias, and as many bits of a mantissa. */
export interface Float8 {
  readonly bias: number;
  readonly mantissa: number;
  /** the largest magnitude that still rounds to a finite value */
  readonly rounds: number;
  /** what is beyond: infinity, or NaN in the format that has no infinity */
  readonly beyond: number;
}
/** As in torch: e4m3 has no infinity and one NaN (of each sign), e5m2 is the upper half of a float16. */
export const FLOAT8: ReadonlyMap<DType, Float8> = new Map([
  [float8e4m3, { bias: 7, mantissa: 3, rounds: 464, beyond: 0x7f }],
  [float8e5m2, { bias: 15, mantissa: 2, rounds: 61440 - 2 ** -37, beyond: 0x7c }],
]);

function float8ToNumber(d: DType, bits: number): number {
  const { bias, mantissa, beyond } = FLOAT8.get(d) as Float8;
  const magnitude = bits & 0x7f;
  const sign = bits & 0x80 ? -1 : 1;
  if (magnitude >= beyond) return magnitude === beyond && beyond !== 0x7f ? sign * Infinity : NaN;
  const [exponent, rest] = [magnitude >> mantissa, magnitude & (2 ** mantissa - 1)];
  const unit = 2 ** (Math.max(exponent, 1) - bias - mantissa);
  return sign * (exponent === 0 ? rest : rest + 2 ** mantissa) * unit;
}

/** Rounds to nearest even; what is too large becomes what the format has for it. */
function numberToFloat8(d: DType, x: number): number {
  const { bias, mantissa, rounds, beyond } = FLOAT8.get(d) as Float8;
  if (Number.isNaN(x)) return 0x7f;
  const sign = x < 0 || Object.is(x, -0) ? 0x80 : 0;
  const a = Math.abs(x);
  if (a > rounds) return sign | beyond;
  scratch.setFloat64(0, a);
  const exponent = Math.max((scratch.getUint16(0) >> 4) - 1023, 1 - bias);
  return sign | (((exponent + bias - 1) << mantissa) + roundHalfEven(a / 2 ** (exponent - mantissa)));
}

const WRAP: Record<string, (x: number) => number> = {
  bool: (x) => (x === 0 ? 0 : 1),
  int8: (x) => (x << 24) >> 24,
  uint8: (x) => x & 0xff,
  int16: (x) => (x << 16) >> 16,
  uint16: (x) => x & 0xffff,
  int32: (x) => x | 0,
  uint32: (x) => x >>> 0,
  float16: (x) => float16ToNumber(numberToFloat16(Math.fround(x))),
  bfloat16: (x) => bfloat16ToNumber(numberToBfloat16(Math.fround(x))),
  float8e4m3: (x) => float8ToNumber(float8e4m3, numberToFloat8(float8e4m3, Math.fround(x))),
  float8e5m2: (x) => float8ToNumber(float8e5m2, numberToFloat8(float8e5m2, Math.fround(x))),
  float32: Math.fround,
  float64: (x) => x,
};

/** Brings the result of arithmetic back into the type: integers wrap, floats round. */
export function wrap(d: DType, x: Value): Value {
  if (d.isBig) return d.kind === "int" ? BigInt.asIntN(64, BigInt(x)) : BigInt.asUintN(64, BigInt(x));
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

/** A 64-bit integer as a double that rounds to any narrower float as the integer would: lost bits leave a sticky one. */
function bigToDouble(x: bigint): number {
  const size = x < 0n ? -x : x;
  if (size < 1n << 53n) return Number(x);
  const top = (size >> 11n) | (size & 0x7ffn ? 1n : 0n);
  return Number(top) * (x < 0n ? -2048 : 2048);
}

/** The integer type at which a float saturates on its way to `to`. */
export function floatToIntVia(to: DType): DType {
  if (to.isBig) return to;
  return to.kind === "uint" && to.itemsize === 4 ? int64 : int32;
}

const low32 = (x: Value): number => (typeof x === "number" ? x | 0 : Number(BigInt.asIntN(32, x)));

/** The same bits read as another type of the same size. */
export function bitcastValue(to: DType, x: Value, from: DType): Value {
  writeValue(scratch, 0, from, x);
  return readValue(scratch, 0, to);
}

type Accessor = { get: (v: DataView, at: number) => Value; set: (v: DataView, at: number, x: Value) => void };
const access8 = (d: DType): Accessor => ({
  get: (v, at) => float8ToNumber(d, v.getUint8(at)),
  set: (v, at, x) => v.setUint8(at, numberToFloat8(d, Number(x))),
});
const ACCESS: Record<string, Accessor> = {
  float8e4m3: access8(float8e4m3),
  float8e5m2: access8(float8e5m2),
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

/** What `data()` returns: the natural typed array; floats of 16 and 8 bits widen to Float32Array. */
export function decodeArray(d: DType, bytes: Uint8Array): TypedArray {
  const n = bytes.byteLength / d.itemsize;
  const raw = bytes.byteOffset % d.itemsize === 0 ? bytes : bytes.slice();
  if (FLOAT8.has(d)) return Float32Array.from(raw, (bits) => float8ToNumber(d, bits));
  if (d !== float16 && d !== bfloat16) return new d.storage(raw.buffer, raw.byteOffset, n);
  const widen = d === float16 ? float16ToNumber : bfloat16ToNumber;
  return Float32Array.from(new Uint16Array(raw.buffer, raw.byteOffset, n), widen);
}

/** From a number straight to the bits of a narrow float. */
const NARROW: ReadonlyMap<DType, (x: number) => number> = new Map([
  [float16, numberToFloat16],
  [bfloat16, numberToBfloat16],
  ...[...FLOAT8.keys()].map((d) => [d, (x: number) => numberToFloat8(d, x)] as const),
]);

/**
 * The bytes of host values as type `d`; numbers are converted as a cast from float64 would, but for the half-width
 * floats: a cast rounds to float32 on the way, a host number is rounded once.
 */
export function encodeArray(d: DType, values: ArrayLike<Value | boolean>): Uint8Array<ArrayBuffer> {
  const out = new d.storage(new ArrayBuffer(values.length * d.itemsize));
  const half = NARROW.get(d);
  const plainFloat = d === float32 || d === float64;
  const smallInt = d.isInt && !d.isBig;
  for (let i = 0; i < values.length; i++) {
    const raw = values[i] as Value | boolean;
    const v = typeof raw === "boolean" ? Number(raw) : raw;
    // storing rounds to float32 and wraps an integer of 32 bits to the width, just as castValue does
    if (typeof v === "number" && (plainFloat || (smallInt && v === (v | 0)))) out[i] = v;
    else if (half !== undefined) out[i] = half(typeof v === "bigint" ? bigToDouble(v) : v);
    else out[i] = castValue(d, v, typeof v === "bigint" ? int64 : float64);
  }
  return new Uint8Array(out.buffer as ArrayBuffer);
}

const FROM_TYPED: readonly (readonly [unknown, DType])[] = [
  [Int8Array, int8],
  [Uint8Array, uint8],
  [Uint8ClampedArray, uint8],
  [Int16Array, int16],
  [Uint16Array, uint16],
  [Int32Array, int32],
  [Uint32Array, uint32],
  [BigInt64Array, int64],
  [BigUint64Array, uint64],
  [Float32Array, float32],
  [Float64Array, float64],
];
export const dtypeOfTyped = (a: ArrayBufferView): DType | undefined =>
  FROM_TYPED.find(([t]) => a.constructor === t)?.[1];
