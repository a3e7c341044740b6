// The ops, one record each: group, arity, result type, meaning on one value, gradient, what it does to zero
// padding, what it costs, what C's library calls it, and how to express it through other ops where a target
// lacks it. Adding an op is adding its name and its record here: a target needs a spelling only for an op
// without a decomposition (RequiredOp). LazyBuffers, the schedule's LazyOps and the UOps all speak these
// names.

import { cos, erf, erfOfNumber, exp2, log2, pow, sin } from "#functions";
import type { OpPiece } from "./deferred.ts";
import { bounds, type DType, dtypes, type Value, wrap } from "./dtype.ts";

/**
 * The algebra in which decompositions and gradients are written: `T` is a UOp in codegen, a Tensor in
 * autograd.
 */
export interface Algebra<T> {
  alu(op: AluOp, ...srcs: readonly T[]): T;
  constant(dtype: DType, value: Value): T;
  cast(x: T, dtype: DType): T;
  bitcast(x: T, dtype: DType): T;
  dtypeOf(x: T): DType;
  /** a MULACC of this type is one step, and rounds once; absent: none is */
  fuses?(dtype: DType): boolean;
  /** false: there is no float64; absent: there is */
  readonly hasDouble?: boolean;
  /** false: float32 has no subnormal values; absent: it has them */
  readonly ieee?: boolean;
  /** the value is known to be 0, below it, or NaN; absent: nothing is known */
  isNotPositive?(x: T): boolean;
}

export type UnaryOp = "NEG" | "EXP2" | "LOG2" | "SIN" | "COS" | "ERF" | "SQRT" | "RECIP" | "TRUNC";
export type BinaryOp =
  | "ADD"
  | "SUB"
  | "MUL"
  | "DIV"
  | "POW"
  | "IDIV"
  | "MOD"
  | "MAX"
  | "CMPLT"
  | "CMPEQ"
  | "CMPNE"
  | "AND"
  | "OR"
  | "XOR"
  | "SHL"
  | "SHR"
  | "DOT2";
export type TernaryOp = "WHERE" | "MULACC";
export type AluOp = UnaryOp | BinaryOp | TernaryOp;

type Gradient = <T>(a: Algebra<T>, g: T, out: T, ...xs: T[]) => readonly (T | undefined)[];

/** By this name in the records: their types, which are exported, then name no file of `#functions`. */
type Decompose = <T>(a: Algebra<T>, ...xs: T[]) => T;

interface OpRecord {
  readonly group: "UnaryOps" | "BinaryOps" | "TernaryOps";
  readonly arity: 1 | 2 | 3;
  /** same: the type of the last source; bool: a comparison */
  readonly result: "same" | "bool";
  readonly commutative?: true;
  /** the only types it is defined on: floats, all others, or words of 32 bits with a sign */
  readonly on?: "floats" | "integers" | "int32";
  /** op(0, …, 0) is 0, so a zero padding may be moved from the result to the sources */
  readonly padSafe: boolean;
  /** how many operations it is made of, or takes the time of, where that is not one */
  readonly cost?: number;
  /** the name of the function on floats in C's library; languages that have one like it call it so */
  readonly library?: string;
  /** of integers in the range of their type the result may be outside of it, and wraps */
  readonly leavesRange?: true;
  /** `d` is the type of the sources (of the last one for WHERE) */
  readonly evaluate: (d: DType, ...xs: Value[]) => Value;
  readonly decompose?: Decompose;
  /** a page loads this piece, with the decomposition, before the first kernel that needs it (deferred.ts) */
  readonly piece?: OpPiece;
  /** that piece also evaluates the op, so that it is needed where the target has the op itself */
  readonly isEvaluatedByPiece?: true;
  /** the gradients of the sources, given that of the result; undefined where none flows */
  readonly gradient: Gradient;
}

// Number and bigint are never mixed within one call: both branches are the same expression on purpose.
type N = number;
const float = (f: (x: number) => number) => (d: DType, x: Value) => wrap(d, f(Number(x)));
const compare = (f: (a: Value, b: Value) => boolean) => (_: DType, a: Value, b: Value) => (f(a, b) ? 1 : 0);
const bitwise =
  (small: (a: N, b: N) => N, big: (a: bigint, b: bigint) => bigint) => (d: DType, a: Value, b: Value) =>
    wrap(d, d.isBig ? big(a as bigint, b as bigint) : small(a as N, b as N));
/** The shift counts modulo the width of the type, as WebAssembly and Java do. */
const count = (d: DType, b: Value): N => (typeof b === "bigint" ? Number(b & 63n) : b & (d.bits - 1));

const add = (d: DType, a: Value, b: Value): Value => {
  if (d.kind === "bool") return a || b ? 1 : 0;
  return wrap(d, d.isBig ? (a as bigint) + (b as bigint) : (a as N) + (b as N));
};
const mul = (d: DType, a: Value, b: Value): Value => {
  if (d.isBig) return wrap(d, (a as bigint) * (b as bigint));
  return wrap(d, d.isInt ? Math.imul(a as N, b as N) : (a as N) * (b as N));
};
/** C's division: towards zero; by zero gives 0 and the smallest int by -1 wraps, where C would trap. */
const idiv = (d: DType, a: Value, b: Value): Value => {
  if (d.isBig) return b === 0n ? 0n : wrap(d, (a as bigint) / (b as bigint));
  return b === 0 ? 0 : wrap(d, Math.trunc((a as N) / (b as N)));
};
/** C's remainder: the sign of the dividend; by zero gives 0. */
const mod = (d: DType, a: Value, b: Value): Value => {
  if (d.isBig) return b === 0n ? 0n : wrap(d, (a as bigint) % (b as bigint));
  if (d.isFloat) return wrap(d, (a as N) % (b as N));
  return b === 0 ? 0 : wrap(d, (a as N) % (b as N) || 0);
};
/** JavaScript has NaN for 1^NaN and (-1)^Infinity, IEEE 754 has 1. */
const power = (a: N, b: N): N => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : a ** b);
/** NaN wins, as in torch; which zero wins is not specified. */
const max = (_: DType, a: Value, b: Value): Value => (Number.isNaN(a) || a > b ? a : b);

/** The halves of a word, each with a sign. */
const halves = <T>(a: Algebra<T>, x: T): readonly [low: T, high: T] => {
  const half = a.constant(dtypes.int32, 16);
  return [a.alu("SHR", a.alu("SHL", x, half), half), a.alu("SHR", x, half)];
};

/** Steps and bits: flat or without meaning between two values. */
const flat: Gradient = () => [];

const unary = { group: "UnaryOps", arity: 1, result: "same", padSafe: true } as const;
const binary = { group: "BinaryOps", arity: 2, result: "same", padSafe: true } as const;
const comparison = { ...binary, result: "bool", gradient: flat } as const;
const bits = { ...binary, on: "integers", gradient: flat } as const;

const RECORDS = {
  NEG: {
    ...unary,
    leavesRange: true,
    evaluate: (d, x) => wrap(d, d.isBig ? -(x as bigint) : d.isInt ? -(x as N) | 0 : -(x as N)),
    gradient: (a, g) => [a.alu("NEG", g)],
  },
  EXP2: {
    ...unary,
    on: "floats",
    cost: 16,
    library: "exp2",
    padSafe: false,
    evaluate: float((x) => 2 ** x),
    decompose: exp2 as Decompose,
    piece: "transcendental",
    gradient: (a, g, out) => [a.alu("MUL", g, a.alu("MUL", out, a.constant(a.dtypeOf(g), Math.LN2)))],
  },
  LOG2: {
    ...unary,
    on: "floats",
    cost: 24,
    library: "log2",
    padSafe: false,
    evaluate: float(Math.log2),
    decompose: log2 as Decompose,
    piece: "transcendental",
    gradient: (a, g, _, x) => [a.alu("DIV", g, a.alu("MUL", x, a.constant(a.dtypeOf(g), Math.LN2)))],
  },
  SIN: {
    ...unary,
    on: "floats",
    cost: 60,
    library: "sin",
    evaluate: float(Math.sin),
    decompose: sin as Decompose,
    piece: "trigonometry",
    gradient: (a, g, _, x) => [a.alu("MUL", g, a.alu("COS", x))],
  },
  COS: {
    ...unary,
    on: "floats",
    cost: 60,
    library: "cos",
    padSafe: false,
    evaluate: float(Math.cos),
    decompose: cos as Decompose,
    piece: "trigonometry",
    gradient: (a, g, _, x) => [a.alu("NEG", a.alu("MUL", g, a.alu("SIN", x)))],
  },
  ERF: {
    ...unary,
    on: "floats",
    cost: 44,
    library: "erf",
    evaluate: float(erfOfNumber),
    decompose: erf as Decompose,
    piece: "erf",
    isEvaluatedByPiece: true,
    gradient: (a, g, _, x) => {
      const constant = (c: number) => a.constant(a.dtypeOf(g), c);
      const power = a.alu("MUL", a.alu("MUL", x, x), constant(-Math.LOG2E));
      return [a.alu("MUL", g, a.alu("MUL", a.alu("EXP2", power), constant(2 / Math.sqrt(Math.PI))))];
    },
  },
  SQRT: {
    ...unary,
    on: "floats",
    cost: 6,
    library: "sqrt",
    evaluate: float(Math.sqrt),
    gradient: (a, g, out) => [a.alu("DIV", g, a.alu("MUL", out, a.constant(a.dtypeOf(g), 2)))],
  },
  RECIP: {
    ...unary,
    on: "floats",
    cost: 5,
    padSafe: false,
    evaluate: float((x) => 1 / x),
    decompose: (a, x) => a.alu("DIV", a.constant(a.dtypeOf(x), 1), x),
    gradient: (a, g, out) => [a.alu("MUL", a.alu("NEG", g), a.alu("MUL", out, out))],
  },
  TRUNC: { ...unary, on: "floats", library: "trunc", evaluate: float(Math.trunc), gradient: flat },

  ADD: { ...binary, commutative: true, leavesRange: true, evaluate: add, gradient: (_, g) => [g, g] },
  SUB: {
    ...binary,
    leavesRange: true,
    evaluate: (d, a, b) => wrap(d, d.isBig ? (a as bigint) - (b as bigint) : (a as N) - (b as N)),
    gradient: (a, g) => [g, a.alu("NEG", g)],
  },
  MUL: {
    ...binary,
    commutative: true,
    leavesRange: true,
    evaluate: mul,
    gradient: (a, g, _, x, y) => [a.alu("MUL", g, y), a.alu("MUL", g, x)],
  },
  DIV: {
    ...binary,
    on: "floats",
    cost: 5,
    padSafe: false,
    evaluate: (d, a, b) => wrap(d, (a as N) / (b as N)),
    gradient: (a, g, out, _, y) => [a.alu("DIV", g, y), a.alu("NEG", a.alu("DIV", a.alu("MUL", g, out), y))],
  },
  POW: {
    ...binary,
    on: "floats",
    cost: 80,
    library: "pow",
    padSafe: false,
    evaluate: (d, a, b) => wrap(d, power(a as N, b as N)),
    decompose: pow as Decompose,
    piece: "power",
    // x^y = x^(y-1) x; for x = 0 and y >= 0 its slope along y is 0, and the logarithm must not reach it
    gradient: (a, g, out, x, y) => {
      const d = a.dtypeOf(g);
      const constant = (c: number) => a.constant(d, c);
      const is = (v: typeof x, c: number) => a.alu("CMPEQ", v, constant(c));
      const less = a.alu("POW", x, a.alu("SUB", y, constant(1)));
      const slope = a.alu("WHERE", is(y, 0), constant(0), a.alu("MUL", y, less));
      const isFlat = a.alu("CMPLT", a.alu("CMPLT", y, constant(0)), is(x, 0));
      const log = a.alu("MUL", a.alu("LOG2", a.alu("WHERE", isFlat, constant(1), x)), constant(Math.LN2));
      return [
        a.alu("MUL", g, slope),
        a.alu("WHERE", isFlat, constant(0), a.alu("MUL", g, a.alu("MUL", out, log))),
      ];
    },
  },
  /** the smallest integer divided by -1 is too large by one */
  IDIV: { ...binary, on: "integers", cost: 10, leavesRange: true, evaluate: idiv, gradient: flat },
  MOD: {
    ...binary,
    cost: 10,
    padSafe: false,
    evaluate: mod,
    gradient: (a, g, _, x, y) => [g, a.alu("NEG", a.alu("MUL", g, a.alu("TRUNC", a.alu("DIV", x, y))))],
  },
  MAX: {
    ...binary,
    commutative: true,
    evaluate: max,
    // a tie shares the gradient and beside NaN both get it whole, as in torch
    gradient: (a, g, _, x, y) => {
      const zero = a.constant(a.dtypeOf(g), 0);
      const half = a.alu("WHERE", a.alu("CMPEQ", x, y), a.alu("MUL", g, a.constant(a.dtypeOf(g), 0.5)), g);
      return [
        a.alu("WHERE", a.alu("CMPLT", x, y), zero, half),
        a.alu("WHERE", a.alu("CMPLT", y, x), zero, half),
      ];
    },
  },
  CMPLT: { ...comparison, evaluate: compare((a, b) => a < b) },
  CMPEQ: { ...comparison, commutative: true, padSafe: false, evaluate: compare((a, b) => a === b) },
  CMPNE: { ...comparison, commutative: true, evaluate: compare((a, b) => a !== b) },
  AND: {
    ...bits,
    commutative: true,
    evaluate: bitwise(
      (a, b) => a & b,
      (a, b) => a & b,
    ),
  },
  OR: {
    ...bits,
    commutative: true,
    evaluate: bitwise(
      (a, b) => a | b,
      (a, b) => a | b,
    ),
  },
  XOR: {
    ...bits,
    commutative: true,
    evaluate: bitwise(
      (a, b) => a ^ b,
      (a, b) => a ^ b,
    ),
  },
  SHL: {
    ...bits,
    leavesRange: true,
    evaluate: (d, a, b) => wrap(d, d.isBig ? (a as bigint) << BigInt(count(d, b)) : (a as N) << count(d, b)),
  },
  /** arithmetic on signed types, logical on unsigned ones */
  SHR: {
    ...bits,
    evaluate: (d, a, b) => {
      if (d.isBig) return wrap(d, (a as bigint) >> BigInt(count(d, b)));
      return wrap(d, d.kind === "int" ? (a as N) >> count(d, b) : (a as N) >>> count(d, b));
    },
  },
  /**
   * The dot product of two pairs of int16, each pair in one word. It wraps where all four are -32768, like
   * the instructions for it: x86 has pmaddwd, WebAssembly i32x4.dot_i16x8_s.
   */
  DOT2: {
    ...binary,
    on: "int32",
    commutative: true,
    evaluate: (_, x, y) => {
      const [a, b] = [x as N, y as N];
      return (((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16)) | 0;
    },
    decompose: (a, x, y) => {
      const [[low, high], [below, above]] = [halves(a, x), halves(a, y)];
      return a.alu("ADD", a.alu("MUL", low, below), a.alu("MUL", high, above));
    },
    gradient: flat,
  },

  WHERE: {
    group: "TernaryOps",
    arity: 3,
    result: "same",
    padSafe: true,
    evaluate: (_, c, a, b) => (c ? a : b),
    gradient: (a, g, _, c) => {
      const zero = a.constant(a.dtypeOf(g), 0);
      return [undefined, a.alu("WHERE", c, g, zero), a.alu("WHERE", c, zero, g)];
    },
  },
  MULACC: {
    group: "TernaryOps",
    arity: 3,
    result: "same",
    padSafe: true,
    leavesRange: true,
    evaluate: (d, a, b, c) => add(d, mul(d, a, b), c),
    decompose: (a, x, y, z) => a.alu("ADD", a.alu("MUL", x, y), z),
    gradient: (a, g, _, x, y) => [a.alu("MUL", g, y), a.alu("MUL", g, x), g],
  },
} as const satisfies Readonly<Record<AluOp, OpRecord>>;

export const OPS: Readonly<Record<AluOp, OpRecord>> = RECORDS;

/** Ops that can be expressed through others. */
type DecomposedOp = {
  [K in AluOp]: (typeof RECORDS)[K] extends { readonly decompose: unknown } ? K : never;
}[AluOp];
/**
 * Ops that every target has to spell itself: a table of NativeOps without one of them fails the type check.
 */
type RequiredOp = Exclude<AluOp, DecomposedOp>;
/** How a target spells the ops it has; what is missing is decomposed. */
export type NativeOps<S> = Readonly<Record<RequiredOp, S>> & Readonly<Partial<Record<DecomposedOp, S>>>;

/**
 * A function of C's library that is expressed through other ops where it is missing, or would be called lane
 * by lane.
 */
export const isLibraryFunction = (op: AluOp): boolean =>
  OPS[op].library !== undefined && OPS[op].decompose !== undefined;

export const opRecord = (op: AluOp): OpRecord => OPS[op];
/** What computing the op once takes, in plain operations: an estimate that choices are made by. */
export const opCost = (op: AluOp): number => OPS[op].cost ?? 1;
/** Whether the op means something on values of this type. */
export function isDefinedOn(op: AluOp, d: DType): boolean {
  const { on } = OPS[op];
  if (on === "int32") return d === dtypes.int32;
  return on === undefined || (on === "floats") === d.isFloat;
}
export const isAluOp = (op: string): op is AluOp => Object.hasOwn(OPS, op);

const group = <K extends AluOp>(g: OpRecord["group"]) =>
  Object.fromEntries(
    Object.keys(OPS)
      .filter((k) => opRecord(k as AluOp).group === g)
      .map((k) => [k, k]),
  ) as {
    readonly [P in K]: P;
  };

// Names as tinygrad groups them: `BinaryOps.ADD` is the string "ADD".
export const UnaryOps = { ...group<UnaryOp>("UnaryOps"), CAST: "CAST", BITCAST: "BITCAST" } as const;
export const BinaryOps = group<BinaryOp>("BinaryOps");
export const TernaryOps = group<TernaryOp>("TernaryOps");
/** MAX has a binary twin, so the reduce is spelt out. */
export const ReduceOps = { SUM: "SUM", MAX: "REDUCE_MAX", PROD: "PROD" } as const;
export const LoadOps = {
  EMPTY: "EMPTY",
  CONST: "CONST",
  ARANGE: "ARANGE",
  COPY: "COPY",
  CONTIGUOUS: "CONTIGUOUS",
  CUSTOM: "CUSTOM",
  SCAN: "SCAN",
  ASSIGN: "ASSIGN",
} as const;
export const BufferOps = { LOAD: "LOAD", CONST: "CONST", STORE: "STORE", VIEW: "VIEW" } as const;

export type ReduceOp = (typeof ReduceOps)[keyof typeof ReduceOps];
export type LoadOp = keyof typeof LoadOps;
export const isLoadOp = (op: string): op is LoadOp => Object.hasOwn(LoadOps, op);
export const isReduceOp = (op: string): op is ReduceOp => Object.hasOwn(REDUCE, op);

/** How two partial results of a reduce combine, and the value it starts from. */
export const REDUCE: Record<ReduceOp, { readonly combine: AluOp; readonly identity: (d: DType) => Value }> = {
  SUM: { combine: "ADD", identity: (d) => (d.isBig ? 0n : 0) },
  REDUCE_MAX: { combine: "MAX", identity: (d) => bounds(d)[0] },
  PROD: { combine: "MUL", identity: (d) => (d.isBig ? 1n : 1) },
};

/** The type of the result, given the types of the sources. */
export const resultDType = (op: AluOp, last: DType): DType =>
  opRecord(op).result === "bool" ? dtypes.bool.vec(last.count) : last;

const SPECIAL: ReadonlySet<Value> = new Set([0, 1, -1, Number.NaN, Infinity, -Infinity]);
/** Whether a float constant is none of those that rules look for: x * 1 folds, x * 2.5 does not. */
export const isOrdinary = (value: Value): value is number => typeof value === "number" && !SPECIAL.has(value);
