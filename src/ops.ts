// The ops, one record each: group, arity, result type, meaning on one value, what it does to zero padding,
// and how to express it through other ops where a target lacks it. Adding an op is adding a record here.
// LazyBuffers, the schedule's LazyOps and the UOps all speak these names.

import { bounds, type DType, dtypes, type Value, wrap } from "./dtype.ts";
import { exp2, log2, sin } from "./transcendental.ts";

/** The algebra in which decompositions are written: `T` is a UOp in codegen. */
export interface Algebra<T> {
  alu(op: AluOp, ...srcs: readonly T[]): T;
  constant(dtype: DType, value: Value): T;
  cast(x: T, dtype: DType): T;
  bitcast(x: T, dtype: DType): T;
  dtypeOf(x: T): DType;
}

export type UnaryOp = "NEG" | "EXP2" | "LOG2" | "SIN" | "SQRT" | "RECIP" | "TRUNC";
export type BinaryOp =
  | "ADD"
  | "SUB"
  | "MUL"
  | "DIV"
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
  | "SHR";
export type TernaryOp = "WHERE" | "MULACC";
export type AluOp = UnaryOp | BinaryOp | TernaryOp;

export interface OpRecord {
  readonly group: "UnaryOps" | "BinaryOps" | "TernaryOps";
  readonly arity: 1 | 2 | 3;
  /** same: the type of the last source; bool: a comparison */
  readonly result: "same" | "bool";
  readonly commutative?: true;
  /** op(0, …, 0) is 0, so a zero padding may be moved from the result to the sources */
  readonly padSafe: boolean;
  /** `d` is the type of the sources (of the last one for WHERE) */
  readonly evaluate: (d: DType, ...xs: Value[]) => Value;
  readonly decompose?: <T>(a: Algebra<T>, ...xs: T[]) => T;
}

// Number and bigint are never mixed within one call: both branches are the same expression on purpose.
type N = number;
const float = (f: (x: number) => number) => (d: DType, x: Value) => wrap(d, f(Number(x)));
const compare = (f: (a: Value, b: Value) => boolean) => (_: DType, a: Value, b: Value) => (f(a, b) ? 1 : 0);
const bitwise =
  (small: (a: N, b: N) => N, big: (a: bigint, b: bigint) => bigint) => (d: DType, a: Value, b: Value) =>
    wrap(d, d.isBig ? big(a as bigint, b as bigint) : small(a as N, b as N));
/** The shift counts modulo the width of the type, as WebAssembly and Java do. */
const count = (d: DType, b: Value): N => (typeof b === "bigint" ? Number(b & 63n) : b & (d.itemsize * 8 - 1));

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
/** NaN wins, as in torch; which zero wins is not specified. */
const max = (_: DType, a: Value, b: Value): Value => (Number.isNaN(a) || a > b ? a : b);

const unary = { group: "UnaryOps", arity: 1, result: "same", padSafe: true } as const;
const binary = { group: "BinaryOps", arity: 2, result: "same", padSafe: true } as const;
const comparison = { ...binary, result: "bool" } as const;

export const OPS: Readonly<Record<AluOp, OpRecord>> = {
  NEG: {
    ...unary,
    evaluate: (d, x) => wrap(d, d.isBig ? -(x as bigint) : d.isInt ? -(x as N) | 0 : -(x as N)),
  },
  EXP2: { ...unary, padSafe: false, evaluate: float((x) => 2 ** x), decompose: exp2 },
  LOG2: { ...unary, padSafe: false, evaluate: float(Math.log2), decompose: log2 },
  SIN: { ...unary, evaluate: float(Math.sin), decompose: sin },
  SQRT: { ...unary, evaluate: float(Math.sqrt) },
  RECIP: {
    ...unary,
    padSafe: false,
    evaluate: float((x) => 1 / x),
    decompose: (a, x) => a.alu("DIV", a.constant(a.dtypeOf(x), 1), x),
  },
  TRUNC: { ...unary, evaluate: float(Math.trunc) },

  ADD: { ...binary, commutative: true, evaluate: add },
  SUB: {
    ...binary,
    evaluate: (d, a, b) => wrap(d, d.isBig ? (a as bigint) - (b as bigint) : (a as N) - (b as N)),
  },
  MUL: { ...binary, commutative: true, evaluate: mul },
  DIV: { ...binary, padSafe: false, evaluate: (d, a, b) => wrap(d, (a as N) / (b as N)) },
  IDIV: { ...binary, evaluate: idiv },
  MOD: { ...binary, padSafe: false, evaluate: mod },
  MAX: { ...binary, commutative: true, evaluate: max },
  CMPLT: { ...comparison, evaluate: compare((a, b) => a < b) },
  CMPEQ: { ...comparison, commutative: true, padSafe: false, evaluate: compare((a, b) => a === b) },
  CMPNE: { ...comparison, commutative: true, evaluate: compare((a, b) => a !== b) },
  AND: {
    ...binary,
    commutative: true,
    evaluate: bitwise(
      (a, b) => a & b,
      (a, b) => a & b,
    ),
  },
  OR: {
    ...binary,
    commutative: true,
    evaluate: bitwise(
      (a, b) => a | b,
      (a, b) => a | b,
    ),
  },
  XOR: {
    ...binary,
    commutative: true,
    evaluate: bitwise(
      (a, b) => a ^ b,
      (a, b) => a ^ b,
    ),
  },
  SHL: {
    ...binary,
    evaluate: (d, a, b) => wrap(d, d.isBig ? (a as bigint) << BigInt(count(d, b)) : (a as N) << count(d, b)),
  },
  /** arithmetic on signed types, logical on unsigned ones */
  SHR: {
    ...binary,
    evaluate: (d, a, b) => {
      if (d.isBig) return wrap(d, (a as bigint) >> BigInt(count(d, b)));
      return wrap(d, d.kind === "int" ? (a as N) >> count(d, b) : (a as N) >>> count(d, b));
    },
  },

  WHERE: {
    group: "TernaryOps",
    arity: 3,
    result: "same",
    padSafe: true,
    evaluate: (_, c, a, b) => (c ? a : b),
  },
  MULACC: {
    group: "TernaryOps",
    arity: 3,
    result: "same",
    padSafe: true,
    evaluate: (d, a, b, c) => add(d, mul(d, a, b), c),
    decompose: (a, x, y, z) => a.alu("ADD", a.alu("MUL", x, y), z),
  },
};

export const opRecord = (op: AluOp): OpRecord => OPS[op];
export const isAluOp = (op: string): op is AluOp => Object.hasOwn(OPS, op);

const group = <K extends AluOp>(g: OpRecord["group"]) =>
  Object.fromEntries(
    Object.keys(OPS)
      .filter((k) => opRecord(k as AluOp).group === g)
      .map((k) => [k, k]),
  ) as {
    readonly [P in K]: P;
  };

// The seeds' spelling: `BinaryOps.ADD` is the string "ADD".
export const UnaryOps = { ...group<UnaryOp>("UnaryOps"), CAST: "CAST", BITCAST: "BITCAST" } as const;
export const BinaryOps = group<BinaryOp>("BinaryOps");
export const TernaryOps = group<TernaryOp>("TernaryOps");
/** MAX has a binary twin, so the reduce is spelt out. */
export const ReduceOps = { SUM: "SUM", MAX: "REDUCE_MAX" } as const;
export const LoadOps = {
  EMPTY: "EMPTY",
  CONST: "CONST",
  COPY: "COPY",
  CONTIGUOUS: "CONTIGUOUS",
  CUSTOM: "CUSTOM",
  ASSIGN: "ASSIGN",
} as const;
export const BufferOps = { LOAD: "LOAD", CONST: "CONST", STORE: "STORE", VIEW: "VIEW" } as const;

export type ReduceOp = (typeof ReduceOps)[keyof typeof ReduceOps];
export type LoadOp = keyof typeof LoadOps;
export type BufferOp = keyof typeof BufferOps;
export const isLoadOp = (op: string): op is LoadOp => Object.hasOwn(LoadOps, op);
export const isReduceOp = (op: string): op is ReduceOp => op === "SUM" || op === "REDUCE_MAX";

/** How two partial results of a reduce combine, and the value it starts from. */
export const REDUCE: Record<ReduceOp, { readonly combine: AluOp; readonly identity: (d: DType) => Value }> = {
  SUM: { combine: "ADD", identity: (d) => (d.isBig ? 0n : 0) },
  REDUCE_MAX: { combine: "MAX", identity: (d) => bounds(d)[0] },
};

/** The type of the result, given the types of the sources. */
export const resultDType = (op: AluOp, last: DType): DType =>
  opRecord(op).result === "bool" ? dtypes.bool.vec(last.count) : last;
