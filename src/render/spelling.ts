// How values and ops are spelt in languages that look like C: literals, and a table of the ops that C has,
// which agrees with `evaluate` in ops.ts. In go a dtype and the texts of the sources, out comes an expression
// in parentheses. What a language calls its types, and which functions it has, is its own table
// (languages.ts).

import { bounds, type DType, dtypes, floatToIntVia, type Value } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { type AluOp, isDefinedOn, isLibraryFunction, type NativeOps, OPS, opRecord } from "../ops.ts";

/** The text of an op whose sources have (scalar) type `d`. */
export type Spell = (d: DType, ...srcs: string[]) => string;

/** The math functions of a language, and its names for the types and for what no literal can say. */
export interface Words {
  readonly typeName: (d: DType) => string;
  /** the functions that it has, by their names in C's library, of those that ops.ts could do without */
  readonly functions: ReadonlySet<string>;
  /** a call of a function, for example exp2 of a float32 */
  readonly call: (fn: string, d: DType, ...srcs: string[]) => string;
  /** float32 expressions */
  readonly infinity: string;
  readonly nan: string;
  /** what follows the digits of a literal, for the types that need it */
  readonly suffix: Readonly<Record<"uint32" | "int64" | "uint64", string>>;
}

// ---- literals ----

/**
 * A double as Python's repr prints it: the shortest digits, an exponent below 1e-4, and for 1e16 and larger.
 */
export function pythonFloat(x: number): string {
  const [digits, power] = Math.abs(x).toExponential().split("e") as [string, string];
  const exponent = Number(power);
  const sign = x < 0 || Object.is(x, -0) ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${digits}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  // JavaScript prints plain digits from 1e-6 to 1e21, which covers this range
  const plain = String(Math.abs(x));
  return sign + (plain.includes(".") ? plain : `${plain}.0`);
}

/** The literal of a finite or special value in type `d`. */
export function literal(words: Words, d: DType, value: Value): string {
  if (d.kind === "bool") return value ? "1" : "0";
  return d.isFloat ? floatLiteral(words, d, Number(value)) : intLiteral(words, d, value);
}

function floatLiteral(words: Words, d: DType, x: number): string {
  const cast = (text: string): string => (d === dtypes.float32 ? text : `(${words.typeName(d)})(${text})`);
  if (Number.isNaN(x)) return cast(words.nan);
  const isInfinite = Math.abs(d === dtypes.float64 ? x : Math.fround(x)) === Infinity;
  if (isInfinite) return cast(x > 0 ? words.infinity : `(-${words.infinity})`);
  return d === dtypes.float64 ? pythonFloat(x) : cast(`${pythonFloat(x)}f`);
}

function intLiteral(words: Words, d: DType, value: Value): string {
  const suffix = Object.hasOwn(words.suffix, d.name) ? words.suffix[d.name as keyof Words["suffix"]] : "";
  // C reads the smallest int as minus a number that is one too large
  const smallest = bounds(d)[0];
  if (d.kind === "int" && d.itemsize >= 4 && BigInt(value) === BigInt(smallest)) {
    return `(-${-(BigInt(smallest) + 1n)}${suffix}-1${suffix})`;
  }
  return `${value}${suffix}`;
}

// ---- ops ----

/** Two minus signs in a row would be a decrement. */
export const operand = (x: string): string => (x.startsWith("-") ? `(${x})` : x);
export const isCount = (x: string, bits: number): boolean =>
  /^\d+[uUlL]*$/.test(x) && Number.parseInt(x, 10) < bits;

const infix =
  (symbol: string): Spell =>
  (_, a = "", b = "") =>
    `(${a}${symbol}${b})`;

const refuse = (op: AluOp, d: DType): never => {
  throw new InternalError(`${op} of ${d} cannot be rendered; codegen should have decomposed or refused it`);
};

/** Ops whose text names a source twice: these sources must be names, not expressions. */
export const REPEATS_SOURCES: ReadonlySet<AluOp> = new Set<AluOp>(["MAX"]);

/** Signed ops that a compiler may assume never to overflow, unless told otherwise. */
export const OVERFLOWS: ReadonlySet<AluOp> = new Set(
  // codegen guards divisions
  (Object.keys(OPS) as AluOp[]).filter((op) => opRecord(op).leavesRange && op !== "IDIV"),
);

/** Beyond what must be there, every language can add a product, and divide 1 by a number. */
type CStyleOps = NativeOps<Spell> & Readonly<Record<"MULACC" | "RECIP", Spell>>;

/** bool is 0 or 1: sums are OR, products AND, differences XOR; dividing by 0 is 0, as for integers. */
const BOOL: Partial<Record<AluOp, Spell>> = {
  NEG: (_, a = "") => a,
  TRUNC: (_, a = "") => a,
  ADD: infix("|"),
  SUB: infix("^"),
  MUL: infix("&"),
  IDIV: infix("&"),
  MOD: () => "0",
  MAX: infix("|"),
  CMPLT: infix("<"),
  CMPEQ: infix("=="),
  CMPNE: infix("!="),
  AND: infix("&"),
  OR: infix("|"),
  XOR: infix("^"),
  WHERE: (_, c, a, b) => `(${c}?${a}:${b})`,
  MULACC: (_, a, b, c) => `((${a}&${b})|${c})`,
};

/** The ops of a language, on every type. */
export function cstyleOps(words: Words): CStyleOps {
  /** C computes in int: the result of a narrower type is cut to its width */
  const cut = (d: DType, text: string): string =>
    d.isInt && d.itemsize < 4 ? `(${words.typeName(d)})${text}` : text;
  const arithmetic =
    (symbol: string): Spell =>
    (d, a = "", b = "") =>
      cut(d, `(${a}${symbol}${operand(b)})`);
  // 65535 * 65535 overflows the int that C would compute it in
  const mul: Spell = (d, a, b) =>
    d === dtypes.uint16 ? cut(d, `((${words.typeName(dtypes.uint32)})(${a})*${b})`) : cut(d, `(${a}*${b})`);
  const shift =
    (symbol: string): Spell =>
    (d, a = "", b = "") => {
      const bits = d.itemsize * 8;
      return cut(d, `(${a}${symbol}${isCount(b, bits) ? b : `(${b}&${bits - 1})`})`);
    };
  const math =
    (op: AluOp): Spell =>
    (d, ...xs) =>
      words.call(opRecord(op).library ?? refuse(op, d), d, ...xs);
  const functions = (Object.keys(OPS) as AluOp[]).filter(
    (op) => isLibraryFunction(op) && words.functions.has(opRecord(op).library as string),
  );

  const number: CStyleOps = {
    ...Object.fromEntries(functions.map((op) => [op, math(op)])),
    NEG: (d, a = "") => cut(d, `(-${operand(a)})`),
    SQRT: math("SQRT"),
    RECIP: (d, a) => `(${literal(words, d, 1)}/${a})`,
    TRUNC: (d, a = "") => (d.isFloat ? words.call("trunc", d, a) : a),
    ADD: arithmetic("+"),
    SUB: arithmetic("-"),
    MUL: mul,
    DIV: infix("/"),
    IDIV: (d, a, b) => cut(d, `(${a}/${b})`),
    MOD: (d, a = "", b = "") => (d.isFloat ? words.call("fmod", d, a, b) : cut(d, `(${a}%${b})`)),
    // fmax would drop a NaN
    MAX: (d, a, b) => (d.isFloat ? `(((${a}>${b})|(${a}!=${a}))?${a}:${b})` : `((${a}>${b})?${a}:${b})`),
    CMPLT: infix("<"),
    CMPEQ: infix("=="),
    CMPNE: infix("!="),
    AND: infix("&"),
    OR: infix("|"),
    XOR: infix("^"),
    SHL: shift("<<"),
    SHR: shift(">>"),
    WHERE: (_, c, a, b) => `(${c}?${a}:${b})`,
    MULACC: (d, a = "", b = "", c = "") => cut(d, `(${mul(d, a, b)}+${c})`),
  };
  const both = (op: AluOp): Spell => {
    const ofBool = BOOL[op] ?? ((d) => refuse(op, d));
    const ofNumber = number[op] ?? ((d) => refuse(op, d));
    return (d, ...xs) => {
      // a whole number is its own whole part
      if (!isDefinedOn(op, d) && op !== "TRUNC") return refuse(op, d);
      return (d.kind === "bool" ? ofBool : ofNumber)(d, ...xs);
    };
  };
  const ops = Object.keys(number) as (keyof CStyleOps)[];
  return Object.fromEntries(ops.map((op) => [op, both(op)])) as unknown as CStyleOps;
}

// ---- casts ----

/** One value as another type; out of range values are codegen's to clamp. */
export function spellCast(words: Words, to: DType, from: DType, x: string): string {
  const as = (d: DType, text: string): string => `(${words.typeName(d)})(${text})`;
  if (to === from) return x;
  if (to.kind === "bool") return `(${x}!=${literal(words, from, from.isBig ? 0n : 0)})`;
  // float16 is one step away from float32 only, so that every conversion rounds where castValue rounds
  if (to === dtypes.float16 && from !== dtypes.float32) return as(to, as(dtypes.float32, x));
  if (from === dtypes.float16 && to !== dtypes.float32) {
    return spellCast(words, to, dtypes.float32, as(dtypes.float32, x));
  }
  // -1.0 as uint8 is 255: C says so only by way of int
  if (from.isFloat && to.isInt && floatToIntVia(to) !== to) return as(to, as(floatToIntVia(to), x));
  return as(to, x);
}
