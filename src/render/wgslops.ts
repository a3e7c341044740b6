// How WGSL spells types, constants, ops and casts. It has 32-bit integers, f32 and sometimes f16. Integers of
// 8 and 16 bits are i32 or u32 that hold their value and are wrapped after each op; those of 64 bits are two
// words, and their ops are functions (wgslwide.ts). WGSL converts nothing by itself and may assume NaN away,
// so casts and NaN are spelt out.

import { type DType, dtypes, scalarOf, type Value, wrap } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import type { AluOp, NativeOps } from "../ops.ts";
import { operand, pythonFloat } from "./spelling.ts";
import type { WgslHelper } from "./wgslhelpers.ts";

/** The type that a value has in a kernel. */
const TYPES: Readonly<Record<string, string>> = {
  bool: "bool",
  int8: "i32",
  uint8: "u32",
  int16: "i32",
  uint16: "u32",
  int32: "i32",
  uint32: "u32",
  int64: "vec2<u32>",
  uint64: "vec2<u32>",
  float16: "f16",
  float32: "f32",
};
export const hasType = (d: DType): boolean => Object.hasOwn(TYPES, scalarOf(d).name);

/** More lanes than a vector has, or lanes of two words, are an array. */
export function typeName(d: DType): string {
  const name = TYPES[scalarOf(d).name];
  if (name === undefined) throw new InternalError(`WGSL has no ${d}; \`support\` refuses it`);
  if (d.count === 1) return name;
  return d.count > 4 || scalarOf(d).isBig ? `array<${name},${d.count}>` : `vec${d.count}<${name}>`;
}

/** Asks for a helper function and returns its name. */
export type Need = (helper: WgslHelper) => WgslHelper;

const isUnsigned = (d: DType): boolean => d.kind === "uint";
/** An integer of 8 or 16 bits. */
const isNarrow = (d: DType): boolean => d.isInt && d.bits < 32;

export function literal(d: DType, value: Value, need: Need): string {
  if (d.kind === "bool") return value ? "true" : "false";
  if (d.isBig) {
    const bits = BigInt.asUintN(64, BigInt(value));
    return `vec2<u32>(${bits & 0xffffffffn}u,${bits >> 32n}u)`;
  }
  if (isUnsigned(d)) return `${wrap(d, value)}u`;
  if (!d.isFloat) return value === -2147483648 ? "i32(-2147483648)" : String(value);
  const x = Number(value);
  const half = (text: string): string => (d === dtypes.float16 ? `f16(${text})` : text);
  if (Number.isNaN(x)) return half(`${need("nan")}()`);
  if (Math.abs(Math.fround(x)) === Infinity) return half(x > 0 ? `${need("inf")}()` : `(-${need("inf")}())`);
  // the minus of -0.0 is an op, which may be folded to 0
  if (Object.is(x, -0)) return half("bitcast<f32>(0x80000000u)");
  return half(`${pythonFloat(x)}f`);
}

// ---- ops ----

type SpellWGSL = (d: DType, need: Need, ...srcs: string[]) => string;
const infix =
  (symbol: string): SpellWGSL =>
  (_, __, a = "", b = "") =>
    `(${a}${symbol}${operand(b)})`;
const call =
  (fn: string): SpellWGSL =>
  (_, __, ...xs) =>
    `${fn}(${xs.join(",")})`;
/** A helper on f32; f16 passes through it and rounds once. */
const helper =
  (name: WgslHelper): SpellWGSL =>
  (d, need, ...xs) => {
    if (d !== dtypes.float16) return `${need(name)}(${xs.join(",")})`;
    return `f16(${need(name)}(${xs.map((x) => `f32(${x})`).join(",")}))`;
  };
const same: SpellWGSL = (_, __, a = "") => a;
const bitsAreNaN: SpellWGSL = (d, need, x) => `${need("is_nan")}(${d === dtypes.float16 ? `f32(${x})` : x})`;
/** Counts are taken modulo the bits of the type. */
const shift =
  (symbol: string): SpellWGSL =>
  (d, _, a = "", b = "") => {
    const known = /^-?\d+u?$/.test(b) ? `${Number.parseInt(b, 10) & (d.bits - 1)}u` : undefined;
    return `(${a}${symbol}${known ?? `(u32(${b})&${d.bits - 1}u)`})`;
  };

const BOOL: Partial<Record<AluOp, SpellWGSL>> = {
  NEG: same,
  TRUNC: same,
  ADD: infix("|"),
  SUB: infix("!="),
  MUL: infix("&"),
  IDIV: infix("&"),
  MOD: () => "false",
  MAX: infix("|"),
  CMPLT: (_, __, a, b) => `(!${a}&${b})`,
  XOR: infix("!="),
  MULACC: (_, __, a, b, c) => `((${a}&${b})|${c})`,
};

/**
 * sin and log2 are not among them: WGSL promises them to 2^-11 and, near 1, to 2^-21 only. exp2 is as exact
 * as the driver makes it, 3 + 2|x| ulp at least.
 */
export const NUMBER: NativeOps<SpellWGSL> = {
  NEG: (d, _, a = "") => (isUnsigned(d) ? `(0u-${a})` : `(-${operand(a)})`),
  EXP2: helper("nan_exp2"),
  // the quotients and roots of halves are rounded once, from f32
  SQRT: (d, _, a) => (d === dtypes.float16 ? `f16(sqrt(f32(${a})))` : `sqrt(${a})`),
  RECIP: (d, need, a = "") => helper("div")(d, need, "1.0f", a),
  TRUNC: (d, need, a = "") => (d.isFloat ? call("trunc")(d, need, a) : a),
  ADD: infix("+"),
  SUB: infix("-"),
  MUL: infix("*"),
  DIV: helper("div"),
  IDIV: infix("/"),
  // the % of floats is x - y*trunc(x/y), which rounds
  MOD: (d, need, a = "", b = "") => (d.isFloat ? helper("fmod") : infix("%"))(d, need, a, b),
  MAX: (d, need, a = "", b = "") => (d.isFloat ? helper("nan_max") : call("max"))(d, need, a, b),
  CMPLT: infix("<"),
  CMPEQ: (d, need, a, b) => (d.isFloat && a === b ? `(!${bitsAreNaN(d, need, a ?? "")})` : `(${a}==${b})`),
  // != of floats is an ordered comparison on some drivers: false for NaN
  CMPNE: (d, need, a, b) => {
    if (!d.isFloat) return `(${a}!=${b})`;
    return a === b ? bitsAreNaN(d, need, a ?? "") : `(!(${a}==${b}))`;
  },
  AND: infix("&"),
  OR: infix("|"),
  XOR: infix("^"),
  SHL: shift("<<"),
  SHR: shift(">>"),
  WHERE: (_, __, c, a, b) => `select(${b},${a},${c})`,
  // in one step where the GPU has it, which WGSL leaves to the driver
  MULACC: (d, _, a, b, c) => (d.isFloat ? `fma(${a},${b},${c})` : `((${a}*${b})+${c})`),
};

/** Ops whose result may need more bits than the type has. */
const OVERFLOWS: ReadonlySet<AluOp> = new Set(["NEG", "ADD", "SUB", "MUL", "IDIV", "SHL", "MULACC"]);

const wide =
  (name: WgslHelper): SpellWGSL =>
  (_, need, ...xs) =>
    `${need(name)}(${xs.join(",")})`;
/** Signed and unsigned differ. */
const bySign =
  (signed: WgslHelper, unsigned: WgslHelper): SpellWGSL =>
  (d, need, ...xs) =>
    wide(isUnsigned(d) ? unsigned : signed)(d, need, ...xs);
/** Two words; the count of a shift is the low word of its operand. */
const WIDE: Partial<Record<AluOp, SpellWGSL>> = {
  NEG: wide("neg64"),
  TRUNC: same,
  ADD: wide("add64"),
  SUB: wide("sub64"),
  MUL: wide("mul64"),
  IDIV: bySign("div64", "udiv64"),
  MOD: bySign("mod64", "umod64"),
  MAX: bySign("max64", "umax64"),
  CMPLT: bySign("lt64", "ult64"),
  CMPEQ: (_, __, a, b) => `all(${a}==${b})`,
  CMPNE: (_, __, a, b) => `any(${a}!=${b})`,
  SHL: (_, need, a, b) => `${need("shl64")}(${a},(${b}).x)`,
  SHR: (d, need, a, b) => `${need(isUnsigned(d) ? "ushr64" : "shr64")}(${a},(${b}).x)`,
  MULACC: (_, need, a, b, c) => `${need("add64")}(${need("mul64")}(${a},${b}),${c})`,
};

/** An op on one lane; `d` is the type of its operands. */
export function spellOp(fn: AluOp, d: DType, need: Need, xs: readonly string[]): string {
  const own = d.kind === "bool" ? BOOL[fn] : d.isBig ? WIDE[fn] : undefined;
  const spell = own ?? NUMBER[fn];
  if (spell === undefined) throw new InternalError(`WGSL has no ${fn}; codegen decomposes it`);
  const text = spell(d, need, ...xs);
  return OVERFLOWS.has(fn) ? wrapped(d, text) : text;
}
/** What is left of a result in 8 or 16 bits. */
function wrapped(d: DType, text: string): string {
  if (!isNarrow(d)) return text;
  if (isUnsigned(d)) return `(${text}&${2 ** d.bits - 1}u)`;
  return `extractBits(${text},0u,${d.bits}u)`;
}

// ---- casts ----

export function cast(to: DType, from: DType, x: string, need: Need): string {
  if (to === from) return x;
  if (to.kind === "bool") return isNotZero(from, x, need);
  if (to.isBig) return toWide(to, from, x, need);
  if (from.isBig && !to.isFloat) return wrapped(to, isUnsigned(to) ? `(${x}).x` : `i32((${x}).x)`);
  if (from.isBig) {
    const single = `${need(isUnsigned(from) ? "u64_to_f32" : "i64_to_f32")}(${x})`;
    return to === dtypes.float16 ? `f16(${single})` : single;
  }
  if (to === dtypes.float16 && from !== dtypes.float32 && from.kind !== "bool") return `f16(f32(${x}))`;
  // some drivers round a u32 twice: the sum of its halves rounds once
  if (to === dtypes.float32 && from === dtypes.uint32)
    return `(f32((${x})>>16u)*65536.0f+f32((${x})&65535u))`;
  if (to.isFloat) return `${typeName(to)}(${x})`;
  if (!from.isFloat) return wrapped(to, `${typeName(to)}(${x})`);
  const single = from === dtypes.float16 ? `f32(${x})` : x;
  if (to === dtypes.uint32) return `${need("to_u32")}(${single})`;
  const integer = `${need("to_i32")}(${single})`;
  return isUnsigned(to) ? wrapped(to, `u32(${integer})`) : wrapped(to, integer);
}
function isNotZero(from: DType, x: string, need: Need): string {
  if (from.isBig) return `any(${x}!=vec2<u32>())`;
  return from.isFloat ? `(!(${x}==${literal(from, 0, need)}))` : `(${x}!=${literal(from, 0, need)})`;
}
function toWide(to: DType, from: DType, x: string, need: Need): string {
  if (from.isBig) return x;
  if (from.isFloat) {
    const single = from === dtypes.float16 ? `f32(${x})` : x;
    return `${need(isUnsigned(to) ? "f32_to_u64" : "f32_to_i64")}(${single})`;
  }
  if (from.kind === "int") return `${need("i32_to_i64")}(${x})`;
  return `vec2<u32>(u32(${x}),0u)`;
}

/** The same bits as another type of the same size. */
export function bitcast(to: DType, from: DType, x: string): string {
  if (to === from || to.isBig) return x;
  if (to === dtypes.float16) return `bitcast<vec2<f16>>(u32(${x})&65535u).x`;
  if (from === dtypes.float16) {
    const bits = `(bitcast<u32>(vec2<f16>(${x},0.0h))&65535u)`;
    return isUnsigned(to) ? bits : wrapped(to, `bitcast<i32>${bits}`);
  }
  if (from.kind === "bool")
    return wrapped(to, `select(${literal(to, 0, unneeded)},${literal(to, 1, unneeded)},${x})`);
  if (to.kind === "bool") return `(${x}!=${literal(from, 0, unneeded)})`;
  const text = `bitcast<${typeName(to)}>(${x})`;
  return wrapped(to, text);
}
const unneeded: Need = (name) => name;
