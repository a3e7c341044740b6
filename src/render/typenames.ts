// What several C-like languages write alike: the names of types, the endings of literals, the calls of
// functions, the lanes of vectors. languages.ts makes its tables of them.

import { type DType, dtypes, scalarOf } from "../dtype.ts";

type TypeNames = Readonly<Record<string, string>>;

/** bfloat16 only ever moves as 16 bits; codegen spells out its conversions. */
export const C_TYPES: TypeNames = {
  bool: "unsigned char",
  int8: "signed char",
  uint8: "unsigned char",
  int16: "short",
  uint16: "unsigned short",
  int32: "int",
  uint32: "unsigned int",
  int64: "long long",
  uint64: "unsigned long long",
  float16: "half",
  bfloat16: "unsigned short",
  float32: "float",
  float64: "double",
};
export const GPU_TYPES: TypeNames = {
  ...C_TYPES,
  int8: "char",
  uint8: "uchar",
  uint16: "ushort",
  uint32: "uint",
  int64: "long",
  uint64: "ulong",
  bfloat16: "ushort",
};

/** Scalars by the table; vectors by the C-like alias and the number of lanes (float4). */
export const typeNames =
  (scalars: TypeNames, vectors: TypeNames = {}) =>
  (d: DType): string => {
    const name = scalarOf(d).name;
    if (d.count === 1) return scalars[name] ?? d.name;
    return `${vectors[name] ?? scalarOf(d).alias}${d.count}`;
  };

export const LL = { uint32: "u", int64: "ll", uint64: "ull" } as const;
export const L = { uint32: "u", int64: "l", uint64: "ul" } as const;

/** C's rule for names: exp2f of a float, exp2 of a double. float16 goes through float and rounds once. */
export const libm = (fn: string, d: DType, ...xs: string[]): string => {
  if (d === dtypes.float16) return `(half)(${libm(fn, dtypes.float32, ...xs.map((x) => `(float)(${x})`))})`;
  return `${fn}${d === dtypes.float64 ? "" : "f"}(${xs.join(",")})`;
};
/** Overloaded names; float16 goes through float, so that it rounds as evaluate does. */
export const overloaded =
  (namespace: string) =>
  (fn: string, d: DType, ...xs: string[]): string => {
    if (d !== dtypes.float16) return `${namespace}${fn}(${xs.join(",")})`;
    return `(half)(${namespace}${fn}(${xs.map((x) => `(float)(${x})`).join(",")}))`;
  };

/** Of the functions that ops.ts could do without, those that C and the languages after it have. */
export const FUNCTIONS: ReadonlySet<string> = new Set(["exp2", "log2", "sin", "cos", "erf", "pow"]);

export const XYZW = "xyzw";
export const HEX = "0123456789abcdef";
export const dotLane = (v: string, i: number): string => `${v}.${XYZW[i]}`;
export const indexLane = (v: string, i: number): string => `${v}[${i}]`;
export const noHelper = (): string => "";
