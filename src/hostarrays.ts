// Arrays of the host and their bytes: how the elements of a dtype lie in memory, what `data()` gives, and
// which dtype a typed array has. In: values or bytes, and a DType. Out: bytes or a typed array.

import {
  bfloat16ToNumber,
  bigToDouble,
  castValue,
  type DType,
  dtypes,
  float16ToNumber,
  type NumberArray,
  numberToBfloat16,
  numberToFloat16,
  numberToSmallFloat,
  SMALL_FLOATS,
  smallFloatToNumber,
  type TypedArray,
  type Value,
  wrap,
} from "./dtype.ts";

/** The bits of an element of a packed type as its value, and back. */
const readPacked = (d: DType, bits: number): number =>
  d.isFloat ? smallFloatToNumber(d, bits) : Number(wrap(d, bits));
const writePacked = (d: DType, x: number): number =>
  d.isFloat ? numberToSmallFloat(d, x) : x & (2 ** d.bits - 1);

/**
 * What `data()` returns: the natural typed array of `n` elements. Floats below 32 bits widen to Float32Array.
 * Elements that share a byte start at its low end.
 */
export function decodeArray(
  d: DType,
  bytes: Uint8Array,
  n = Math.floor(bytes.byteLength / d.itemsize),
): TypedArray {
  const raw = bytes.byteOffset % d.itemsize === 0 ? bytes : bytes.slice();
  if (d.isPacked) {
    const perByte = 8 / d.bits;
    const out = new d.storage(n);
    for (let i = 0; i < n; i++)
      out[i] = readPacked(d, (raw[Math.floor(i / perByte)] as number) >> ((i % perByte) * d.bits));
    return out;
  }
  const stored = new d.storage(raw.buffer, raw.byteOffset, n);
  if (!d.isFloat || d.bits > 16) return stored;
  const small = SMALL_FLOATS.has(d) ? (bits: number) => smallFloatToNumber(d, bits) : float16ToNumber;
  return Float32Array.from(stored as NumberArray, d === dtypes.bfloat16 ? bfloat16ToNumber : small);
}

/** Bytes of type `d` as every device takes them: a bool that is not 0 is 1. They are copied if changed. */
export function canonicalBytes(d: DType, bytes: Uint8Array): Uint8Array {
  return d === dtypes.bool && bytes.some((x) => x > 1) ? bytes.map((x) => (x === 0 ? 0 : 1)) : bytes;
}

/** From a number straight to the bits of a narrow float. */
export const NARROW = new Map<DType, (x: number) => number>([
  [dtypes.float16, numberToFloat16],
  [dtypes.bfloat16, numberToBfloat16],
  ...[...SMALL_FLOATS.keys()].map((d) => [d, (x: number) => numberToSmallFloat(d, x)] as const),
]);

/**
 * The bytes of host values as type `d`. Numbers are converted as a cast from float64 would, except for narrow
 * floats: a cast rounds to float32 on the way, a host number is rounded once.
 */
export function encodeArray(d: DType, values: ArrayLike<Value | boolean>): Uint8Array<ArrayBuffer> {
  if (d.isPacked) return packArray(d, values);
  const out = new d.storage(new ArrayBuffer(values.length * d.itemsize));
  const half = NARROW.get(d);
  const plainFloat = d.isFloat && d.bits > 16;
  const smallInt = d.isInt && !d.isBig;
  for (let i = 0; i < values.length; i++) {
    const raw = values[i] as Value | boolean;
    const v = typeof raw === "boolean" ? Number(raw) : raw;
    // storing rounds to float32 and wraps an integer of 32 bits to the width, just as castValue does
    if (typeof v === "number" && (plainFloat || (smallInt && v === (v | 0)))) out[i] = v;
    else if (half !== undefined) out[i] = half(typeof v === "bigint" ? bigToDouble(v) : v);
    else out[i] = castValue(d, v, typeof v === "bigint" ? dtypes.int64 : dtypes.float64);
  }
  return new Uint8Array(out.buffer as ArrayBuffer);
}
function packArray(d: DType, values: ArrayLike<Value | boolean>): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(d.bytesFor(values.length));
  const perByte = 8 / d.bits;
  for (let i = 0; i < values.length; i++) {
    const raw = values[i] as Value | boolean;
    const v = typeof raw === "boolean" ? Number(raw) : raw;
    const at = Math.floor(i / perByte);
    const bits = writePacked(
      d,
      Number(d.isFloat ? v : castValue(d, v, typeof v === "bigint" ? dtypes.int64 : dtypes.float64)),
    );
    out[at] = (out[at] as number) | (bits << ((i % perByte) * d.bits));
  }
  return out;
}

/** By the name that every typed array says, also one of another frame. */
const FROM_TYPED: Readonly<Record<string, DType>> = {
  Int8Array: dtypes.int8,
  Uint8Array: dtypes.uint8,
  Uint8ClampedArray: dtypes.uint8,
  Int16Array: dtypes.int16,
  Uint16Array: dtypes.uint16,
  Int32Array: dtypes.int32,
  Uint32Array: dtypes.uint32,
  BigInt64Array: dtypes.int64,
  BigUint64Array: dtypes.uint64,
  Float16Array: dtypes.float16,
  Float32Array: dtypes.float32,
  Float64Array: dtypes.float64,
};
export const dtypeOfTyped = (a: ArrayBufferView): DType | undefined =>
  FROM_TYPED[(a as unknown as TypedArray)[Symbol.toStringTag]];
