// Random steps that any program may take from a node: elementwise, movement, reduction, cast, storing.
// Each gives the node to go on from; a step that the reference does not take leaves the program where it was.

import type { Arg, TypeName } from "../language.ts";
import { isFloat, isInt, promote, TYPES } from "../reference/types.ts";
import { type Builder, ref } from "./builder.ts";

const SAFE_FUNCTIONS =
  "sin cos tanh sigmoid exp atan erf abs neg square relu silu softsign sign floor ceil trunc round".split(
    " ",
  );
const POSITIVE_FUNCTIONS = "sqrt log log2 rsqrt reciprocal log1p".split(" ");
export const ACTIVATIONS =
  "relu relu6 leakyRelu elu selu silu mish gelu softplus logsigmoid softsign tanhshrink hardshrink softshrink hardtanh hardsigmoid hardswish tanh sigmoid".split(
    " ",
  );
const MORE_FUNCTIONS =
  "expm1 exp2 sinh cosh tan asinh erfc log10 deg2rad rad2deg isnan isfinite isinf signbit logicalNot frac".split(
    " ",
  );
const FLOAT_BINARY = "add sub mul div maximum minimum rsub".split(" ");
const INT_BINARY =
  "add sub mul maximum minimum idiv fmod remainder floorDivide bitwiseAnd bitwiseOr bitwiseXor lshift rshift rsub gcd".split(
    " ",
  );
const COMPARE = "lt gt le ge eq ne".split(" ");
const BOOL_BINARY = "bitwiseAnd bitwiseOr bitwiseXor logicalAnd logicalOr logicalXor add mul".split(" ");
export const ALL_TYPES = Object.keys(TYPES) as TypeName[];
export const FLOATS: readonly TypeName[] = [
  "float32",
  "float32",
  "float32",
  "float32",
  "float64",
  "float16",
  "bfloat16",
];
export const INTS: readonly TypeName[] =
  "int8 uint8 int16 uint16 int32 int32 int32 uint32 int64 int64 uint64".split(" ") as TypeName[];

const isPositive = (b: Builder, i: number): boolean => b.at(i).v.every((e) => e > 0);
const typeOf = (b: Builder, i: number): TypeName => b.at(i).d;

export function unaryStep(b: Builder, i: number): number {
  const d = typeOf(b, i);
  const r = b.dice;
  if (d === "bool") return b.step("logicalNot", i);
  if (isInt(d)) return b.step(r.pick(["neg", "abs", "bitwiseNot", "sign", "square", "relu"]), i);
  if (isPositive(b, i) && r.chance(40)) return b.step(r.pick(POSITIVE_FUNCTIONS), i);
  return b.step(r.chance(70) ? r.pick(SAFE_FUNCTIONS) : r.pick([...ACTIVATIONS, ...MORE_FUNCTIONS]), i);
}
/** Nodes that broadcast with node i. */
export function partners(b: Builder, i: number): number[] {
  const { s } = b.at(i);
  return b.nodes.flatMap((y, j) => {
    const fits = y.s.every((n, k) => {
      const m = s[k - y.s.length + s.length] ?? 1;
      return n === m || n === 1 || m === 1;
    });
    return fits ? [j] : [];
  });
}
function constant(b: Builder, d: TypeName): Arg {
  const r = b.dice;
  if (d === "bool") return r.chance(50);
  if (isInt(d)) return r.pick(TYPES[d].kind === "uint" ? [1, 2, 3, 5, 7] : [1, 2, 3, -1, -2, 5, 7, 0]);
  return r.pick([0.5, 1, 2, -1, 3, 0.25, -1.5, 1.25, 10]);
}
export function binaryStep(b: Builder, i: number): number {
  const r = b.dice;
  const number = r.chance(30);
  const j = r.pick(partners(b, i));
  const d = number ? typeOf(b, i) : promote(typeOf(b, i), typeOf(b, j));
  const other: Arg = number ? constant(b, d) : ref(j);
  if (r.chance(15)) return b.step(r.pick(COMPARE), i, other);
  const names = isFloat(d) ? FLOAT_BINARY : isInt(d) ? INT_BINARY : BOOL_BINARY;
  const name = r.pick(names);
  if (name === "div" && !number && b.at(j).v.some((e) => Math.abs(Number(e)) < 0.1))
    return b.step("mul", i, other);
  return b.step(name, i, other);
}
export function whereStep(b: Builder, i: number, names: readonly string[] = COMPARE): number {
  const j = b.dice.pick(partners(b, i));
  const c = b.call(b.dice.pick(names), i, ref(j));
  return c === undefined
    ? i
    : b.step("where", c, ref(i), b.dice.chance(50) ? ref(j) : constant(b, typeOf(b, i)));
}

// ---- movement ----

/** Another shape with as many elements. */
export function regrouped(b: Builder, s: readonly number[]): number[] {
  const r = b.dice;
  const dims = [...s];
  for (let k = 0; k < 3; k++) {
    const at = r.int(0, Math.max(0, dims.length - 1));
    if (dims.length > 1 && at < dims.length - 1 && r.chance(50))
      dims.splice(at, 2, (dims[at] as number) * (dims[at + 1] as number));
    const from = r.int(0, Math.max(0, dims.length - 1));
    const n = dims[from] ?? 1;
    const factors = [2, 3, 4, 5].filter((f) => n % f === 0);
    if (dims.length > 0 && dims.length < 5 && factors.length > 0 && r.chance(60)) {
      const f = r.pick(factors);
      dims.splice(from, 1, ...(r.chance(50) ? [f, n / f] : [n / f, f]));
    }
    if (dims.length < 5 && r.chance(15)) dims.splice(r.int(0, dims.length), 0, 1);
    const one = dims.indexOf(1);
    if (one >= 0 && r.chance(30)) dims.splice(one, 1);
  }
  return dims;
}
type Move = (b: Builder, i: number, s: readonly number[]) => number;
const anyDim = (b: Builder, s: readonly number[]): number =>
  b.dice.int(0, s.length - 1) - (b.dice.chance(25) ? s.length : 0);
const MOVES: Readonly<Record<string, Move>> = {
  reshape: (b, i, s) => b.step("reshape", i, regrouped(b, s)),
  permute: (b, i, s) => b.step("permute", i, b.dice.shuffled(s.map((_, k) => k))),
  expand: (b, i, s) => {
    const wide = s.map((n) => (n === 1 && b.dice.chance(60) ? b.dice.int(2, 3) : n));
    return b.step("expand", i, b.dice.chance(30) ? [b.dice.int(1, 3), ...wide] : wide);
  },
  pad: (b, i, s) => {
    const amounts = s.map((): Arg => (b.dice.chance(50) ? [b.dice.int(0, 2), b.dice.int(0, 2)] : [0, 0]));
    if (b.dice.chance(70)) return b.step("pad", i, amounts);
    return b.step("pad", i, amounts, "constant", isFloat(typeOf(b, i)) ? 1.5 : 1);
  },
  around: (b, i, s) => {
    const amounts = s.map(
      (n): Arg => (n > 1 && b.dice.chance(50) ? [b.dice.int(0, 1), b.dice.int(0, 1)] : [0, 0]),
    );
    return b.step("pad", i, amounts, b.dice.pick(["reflect", "replicate", "circular"]));
  },
  shrink: (b, i, s) =>
    b.step(
      "shrink",
      i,
      s.map((n): Arg => {
        if (b.dice.chance(40)) return null;
        const from = b.dice.int(0, n - 1);
        return [from, b.dice.int(from + 1, n)];
      }),
    ),
  flip: (b, i, s) => b.step("flip", i, b.dice.some(s.map((_, k) => k))),
  stride: (b, i, s) =>
    b.step(
      "stride",
      i,
      s.map(() => (b.dice.chance(50) ? 1 : b.dice.pick([-3, -2, -1, 2, 3]))),
    ),
  get: (b, i, s) => b.step("get", i, ...sliceOf(b, s)),
  transpose: (b, i, s) => (s.length < 2 ? i : b.step("transpose", i, anyDim(b, s), anyDim(b, s))),
  unsqueeze: (b, i, s) => b.step("unsqueeze", i, b.dice.int(0, s.length)),
  squeeze: (b, i) => b.step("squeeze", i),
  flatten: (b, i) => b.step("flatten", i),
  cat: (b, i, s) => {
    const same = b.nodes.flatMap((y, j) => (y.s.join() === s.join() ? [j] : []));
    return b.step("cat", i, [ref(b.dice.pick(same))], anyDim(b, s));
  },
  stack: (b, i, s) => {
    const same = b.nodes.flatMap((y, j) => (y.s.join() === s.join() && y.d === typeOf(b, i) ? [j] : []));
    return b.step("stack", i, [ref(b.dice.pick(same))], b.dice.int(0, s.length));
  },
  repeat: (b, i, s) =>
    b.step(
      "repeat",
      i,
      s.map(() => b.dice.int(1, 2)),
    ),
  roll: (b, i, s) => b.step("roll", i, b.dice.int(-3, 3), anyDim(b, s)),
  tril: (b, i) => b.step(b.dice.pick(["tril", "triu"]), i, b.dice.int(-1, 2)),
  diagonal: (b, i) => b.step("diagonal", i, b.dice.int(-1, 1)),
  unfold: (b, i, s) => {
    const at = b.dice.int(0, s.length - 1);
    return b.step("unfold", i, at, b.dice.int(1, s[at] as number), b.dice.int(1, 2));
  },
  narrow: (b, i, s) => {
    const at = b.dice.int(0, s.length - 1);
    const start = b.dice.int(0, (s[at] as number) - 1);
    return b.step("narrow", i, at, start, b.dice.int(1, (s[at] as number) - start));
  },
  select: (b, i, s) => {
    const at = b.dice.int(0, s.length - 1);
    return b.step("select", i, at, b.dice.int(-(s[at] as number), (s[at] as number) - 1));
  },
  split: (b, i, s) => {
    const at = b.dice.int(0, s.length - 1);
    const n = s[at] as number;
    if (n < 2) return i;
    const first = b.dice.int(1, n - 1);
    const made = b.call("split", i, [first, n - first], at);
    return made === undefined ? i : made + b.dice.int(0, 1);
  },
  movedim: (b, i, s) => b.step("movedim", i, anyDim(b, s), anyDim(b, s)),
  repeatInterleave: (b, i, s) => b.step("repeatInterleave", i, 2, b.dice.int(0, s.length - 1)),
  rot90: (b, i, s) => (s.length < 2 ? i : b.step("rot90", i, b.dice.int(-1, 3))),
};
const MOVE_NAMES = [
  "reshape",
  "reshape",
  "permute",
  "permute",
  "expand",
  "pad",
  "shrink",
  ...Object.keys(MOVES),
];

/** An index without tensors. */
export function sliceOf(b: Builder, s: readonly number[]): Arg[] {
  const r = b.dice;
  return s.slice(0, r.int(1, s.length)).map((n): Arg => {
    if (r.chance(25)) return r.int(-n, n - 1);
    if (r.chance(20)) return [];
    const step = r.pick([1, 1, 2, -1, -2]);
    return [r.chance(40) ? null : r.int(-n, n), r.chance(40) ? null : r.int(-n, n), step];
  });
}
export function moveStep(b: Builder, i: number): number {
  const { s } = b.at(i);
  if (s.length === 0) return b.step("reshape", i, b.dice.chance(50) ? [1] : [1, 1]);
  const j = (MOVES[b.dice.pick(MOVE_NAMES)] as Move)(b, i, s);
  return b.at(j).v.length === 0 ? i : j;
}

// ---- reductions ----

const FLOAT_REDUCE = "sum sum mean max min prod var std logsumexp amax amin argmax argmin any all".split(" ");
const INT_REDUCE = "sum sum max min prod any all argmax argmin countNonzero mean".split(" ");
export function reduceStep(b: Builder, i: number, names?: readonly string[]): number {
  const r = b.dice;
  const { s, d } = b.at(i);
  const name = r.pick(names ?? (isFloat(d) ? FLOAT_REDUCE : INT_REDUCE));
  const one = name.startsWith("arg");
  const dims = r.some(s.map((_, k) => k));
  const dim: Arg = one || (dims.length === 1 && r.chance(50)) ? (dims[0] ?? 0) : dims;
  if (name === "countNonzero") return b.step(name, i, dim);
  if (s.length > 0 && !one && r.chance(15)) return b.step(name, i);
  return b.step(name, i, dim, r.chance(50));
}
/** A reduction that meets its own input again, as in softmax and variance. */
export function backStep(b: Builder, i: number): number {
  const { s } = b.at(i);
  if (s.length === 0) return i;
  const low = b.call(b.dice.pick(["sum", "max", "mean", "min"]), i, b.dice.some(s.map((_, k) => k)), true);
  if (low === undefined) return i;
  const op = b.at(i).d === "bool" ? "mul" : b.dice.pick(["sub", "add", "mul", "maximum"]);
  return b.step(op, i, ref(low));
}
export function castStep(b: Builder, i: number, types: readonly TypeName[] = ALL_TYPES): number {
  return b.step("cast", i, b.dice.pick(types));
}
export function storeStep(b: Builder, i: number): number {
  if (b.dice.chance(50)) return b.step("contiguous", i);
  b.realize(i);
  return i;
}

/** Any step. */
export function anyStep(b: Builder, i: number): number {
  const steps = [
    unaryStep,
    binaryStep,
    binaryStep,
    moveStep,
    moveStep,
    reduceStep,
    backStep,
    whereStep,
    castStep,
    storeStep,
  ] as const;
  return (b.dice.pick(steps) as (b: Builder, i: number) => number)(b, i);
}
/** A few steps of any kind, for what a class hands on. */
export function someSteps(b: Builder, i: number, most: number): number {
  let at = i;
  for (let k = b.dice.int(0, most); k > 0; k--) {
    const next = anyStep(b, at);
    if (b.at(next).v.length > 0) at = next;
  }
  return at;
}
