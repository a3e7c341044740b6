// The element types of ONNX: their numbers and names, the dtype that a Tensor of them has, and their bytes.
// A type that arithmetic does not know (int4, float8) is carried by a wider dtype that holds all its values;
// weights of such a type stay packed in memory where gradloom has the type, and are widened as they are read.

import { type DType, dtypes, type SmallFloat, type TypedArray, type Value } from "../dtype.ts";
import { decodeArray, encodeArray } from "../hostarrays.ts";
import { OnnxError } from "./errors.ts";

/** A float of a byte or less that gradloom has no dtype for. */
interface OwnFloat extends Pick<SmallFloat, "bias" | "mantissa"> {
  readonly bits: number;
  /** the largest number */
  readonly max: number;
  /** what is too large becomes this when a cast does not saturate */
  readonly beyond: number;
  readonly hasInfinity: boolean;
  /** there is a NaN */
  readonly hasNan: boolean;
  /** 0 and NaN have no sign */
  readonly isUnsignedZero: boolean;
}

export interface ElementType {
  readonly name: string;
  /** the number in a file */
  readonly code: number;
  readonly bits: number;
  /** the dtype of a Tensor of this type */
  readonly dtype: DType;
  /** the dtype with the layout of the file; missing where gradloom has none */
  readonly stored: DType | undefined;
  /** the rounding of a float of a byte or less */
  readonly small?: OwnFloat;
  /** the number an integer of less than a byte is read as, and the bits it is written as */
  readonly isSigned: boolean;
}

const small = (
  bits: number,
  mantissa: number,
  bias: number,
  max: number,
  rest: Partial<OwnFloat>,
): OwnFloat => ({
  bits,
  mantissa,
  bias,
  max,
  beyond: Number.NaN,
  hasInfinity: false,
  hasNan: true,
  isUnsignedZero: false,
  ...rest,
});

const plain = (name: string, code: number, dtype: DType): ElementType => ({
  name,
  code,
  bits: dtype.bits,
  dtype,
  stored: dtype,
  isSigned: dtype.kind === "int",
});
const narrow = (
  name: string,
  code: number,
  bits: number,
  dtype: DType,
  stored: DType | undefined,
  float?: OwnFloat,
): ElementType => ({
  name,
  code,
  bits,
  dtype,
  stored,
  isSigned: dtype.kind === "int",
  ...(float === undefined ? {} : { small: float }),
});

const { float32 } = dtypes;
export const TYPES = {
  float: plain("float", 1, float32),
  uint8: plain("uint8", 2, dtypes.uint8),
  int8: plain("int8", 3, dtypes.int8),
  uint16: plain("uint16", 4, dtypes.uint16),
  int16: plain("int16", 5, dtypes.int16),
  int32: plain("int32", 6, dtypes.int32),
  int64: plain("int64", 7, dtypes.int64),
  string: narrow("string", 8, 0, dtypes.uint8, undefined),
  bool: plain("bool", 9, dtypes.bool),
  float16: plain("float16", 10, dtypes.float16),
  double: plain("double", 11, dtypes.float64),
  uint32: plain("uint32", 12, dtypes.uint32),
  uint64: plain("uint64", 13, dtypes.uint64),
  bfloat16: plain("bfloat16", 16, dtypes.bfloat16),
  float8e4m3fn: narrow("float8e4m3fn", 17, 8, float32, dtypes.float8e4m3, small(8, 3, 7, 448, {})),
  float8e4m3fnuz: narrow(
    "float8e4m3fnuz",
    18,
    8,
    float32,
    undefined,
    small(8, 3, 8, 240, { isUnsignedZero: true }),
  ),
  float8e5m2: narrow(
    "float8e5m2",
    19,
    8,
    float32,
    dtypes.float8e5m2,
    small(8, 2, 15, 57344, { beyond: Infinity, hasInfinity: true }),
  ),
  float8e5m2fnuz: narrow(
    "float8e5m2fnuz",
    20,
    8,
    float32,
    undefined,
    small(8, 2, 16, 57344, { isUnsignedZero: true }),
  ),
  uint4: narrow("uint4", 21, 4, dtypes.uint8, dtypes.uint4),
  int4: narrow("int4", 22, 4, dtypes.int8, dtypes.int4),
  float4e2m1: narrow(
    "float4e2m1",
    23,
    4,
    float32,
    dtypes.float4e2m1,
    small(4, 1, 1, 6, { hasNan: false, beyond: 6 }),
  ),
  float8e8m0: narrow("float8e8m0", 24, 8, float32, undefined),
  uint2: narrow("uint2", 25, 2, dtypes.uint8, undefined),
  int2: narrow("int2", 26, 2, dtypes.int8, undefined),
} as const satisfies Readonly<Record<string, ElementType>>;

const BY_CODE = new Map<number, ElementType>(Object.values(TYPES).map((t) => [t.code, t]));
const BY_DTYPE = new Map<DType, ElementType>(
  Object.values(TYPES).flatMap((t: ElementType) => (t.stored === t.dtype ? [[t.dtype, t] as const] : [])),
);
const UNSUPPORTED = new Map([
  [14, "complex64"],
  [15, "complex128"],
]);

export function typeOfCode(code: number, where: string): ElementType {
  const found = BY_CODE.get(code);
  if (found !== undefined) return found;
  const name = UNSUPPORTED.get(code);
  if (name !== undefined)
    throw new OnnxError(`${where} has type ${name}, which gradloom lacks`, { isUnsupported: true });
  throw new OnnxError(`${where} has element type ${code}, which the standard does not have`);
}

/** The type that a Tensor of this dtype is by itself. */
export function typeOfDType(dtype: DType): ElementType {
  const found = BY_DTYPE.get(dtype);
  if (found === undefined)
    throw new OnnxError(`a Tensor of ${dtype.name} is not a value of ONNX; cast it first`);
  return found;
}

/** Reads `n` elements in the layout of a file's raw data; elements that share a byte start at its low end. */
export function decodeElements(type: ElementType, raw: Uint8Array, n: number): TypedArray {
  if (type.stored !== undefined) return decodeArray(type.stored, raw, n);
  const out = type.dtype === float32 ? new Float32Array(n) : new type.dtype.storage(n);
  const perByte = 8 / type.bits;
  for (let i = 0; i < n; i++) {
    const byte = raw[Math.floor(i / perByte)] as number;
    out[i] = valueOfBits(type, (byte >> ((i % perByte) * type.bits)) & (2 ** type.bits - 1));
  }
  return out;
}

/** The bytes of values in the layout of a file's raw data. */
export function encodeElements(type: ElementType, values: ArrayLike<Value>): Uint8Array {
  if (type.stored !== undefined) return encodeArray(type.stored, values);
  const out = new Uint8Array(Math.ceil((values.length * type.bits) / 8));
  const perByte = 8 / type.bits;
  for (let i = 0; i < values.length; i++) {
    const at = Math.floor(i / perByte);
    const bits = bitsOfValue(type, Number(values[i]));
    out[at] = (out[at] as number) | (bits << ((i % perByte) * type.bits));
  }
  return out;
}

function valueOfBits(type: ElementType, bits: number): number {
  if (type === TYPES.float8e8m0) return bits === 255 ? Number.NaN : 2 ** (bits - 127);
  if (type.small !== undefined) return valueOfSmall(type.small, bits);
  return type.isSigned && bits >= 2 ** (type.bits - 1) ? bits - 2 ** type.bits : bits;
}
function bitsOfValue(type: ElementType, x: number): number {
  if (type === TYPES.float8e8m0) return Number.isNaN(x) ? 255 : Math.log2(x) + 127;
  if (type.small !== undefined) return bitsOfSmall(type.small, x);
  return x & (2 ** type.bits - 1);
}

/** The types without infinities whose only NaN is where -0 would be. */
function valueOfSmall(f: OwnFloat, bits: number): number {
  const sign = 2 ** (f.bits - 1);
  if (bits === sign) return Number.NaN;
  const magnitude = bits & (sign - 1);
  const [exponent, rest] = [magnitude >> f.mantissa, magnitude & (2 ** f.mantissa - 1)];
  const unit = 2 ** (Math.max(exponent, 1) - f.bias - f.mantissa);
  return (bits & sign ? -1 : 1) * (exponent === 0 ? rest : rest + 2 ** f.mantissa) * unit;
}
function bitsOfSmall(f: OwnFloat, x: number): number {
  const sign = 2 ** (f.bits - 1);
  if (Number.isNaN(x)) return sign;
  if (x === 0) return 0;
  const a = Math.abs(x);
  const exponent = Math.max(Math.floor(Math.log2(a)), 1 - f.bias);
  const steps = Math.round(a / 2 ** (exponent - f.mantissa));
  return (x < 0 ? sign : 0) | (((exponent + f.bias - 1) << f.mantissa) + steps);
}
