// FOLD: each rule fires where it says, does not where it would change a value (NaN, infinities, -0), and
// whatever is folded means the same as before. An expression is written once against Algebra and read twice:
// as UOps, which fold, and as functions of values, which do not.

import { describe, expect, test } from "vitest";
import { bitcastValue, castValue, type DType, dtypes, type Value, wrap } from "../../src/dtype.ts";
import { type Algebra, type AluOp, opRecord, resultDType } from "../../src/ops.ts";
import { UOpArena } from "../../src/uop/arena.ts";
import { FOLD } from "../../src/uop/fold.ts";
import { UOpGraph } from "../../src/uop/list.ts";
import type { Expr } from "../../src/uop/node.ts";
import { edges, opsOf, showValues } from "../device/harness.ts";
import { Random } from "../shape/random.ts";

const { bool, int8, uint8, int32, uint32, int64, float16, float32, float64 } = dtypes;
const ALL = dtypes.all;
const INTS = ALL.filter((d) => d.isInt);
const FLOATS = ALL.filter((d) => d.isFloat);
const EXACT = ALL.filter((d) => !d.isFloat);

type Expression = <T>(a: Algebra<T>, x: T, y: T, c: (v: number, d?: DType) => T) => T;

/** A value as a function of x and y, with its type. */
interface Meaning {
  readonly d: DType;
  readonly at: (x: Value, y: Value) => Value;
}
const meaning: Algebra<Meaning> = {
  alu: (op, ...srcs) => {
    const last = srcs.at(-1) as Meaning;
    const at = (x: Value, y: Value) => opRecord(op).evaluate(last.d, ...srcs.map((s) => s.at(x, y)));
    return { d: resultDType(op, last.d), at };
  },
  constant: (d, v) => ({ d, at: () => wrap(d, v) }),
  cast: (s, d) => ({ d, at: (x, y) => castValue(d, s.at(x, y), s.d) }),
  bitcast: (s, d) => ({ d, at: (x, y) => bitcastValue(d, s.at(x, y), s.d) }),
  dtypeOf: (s) => s.d,
};

/** Two values in memory, which no rule can know. */
function symbols(d: DType): { arena: UOpArena; x: Expr; y: Expr } {
  const arena = new UOpArena();
  const load = (at: number) => arena.load(arena.global(d, at, false), arena.int(0));
  return { arena, x: load(1), y: load(2) };
}

/** What a folded graph means. */
function evaluate(u: Expr, x: Expr, y: Expr, values: readonly [Value, Value]): Value {
  const at = (s: Expr): Value => {
    if (s === x) return values[0];
    if (s === y) return values[1];
    switch (s.op) {
      case "CONST":
        return wrap(s.dtype, s.value);
      case "ALU":
        return opRecord(s.fn).evaluate(s.operandType, ...s.operands.map(at));
      case "CAST":
        return castValue(s.dtype, at(s.operand), s.operand.dtype);
      case "BITCAST":
        return bitcastValue(s.dtype, at(s.operand), s.operand.dtype);
      default:
        throw new Error(`${s.op} has no value here`);
    }
  };
  return at(u);
}

function build(e: Expression, d: DType): { folded: Expr; x: Expr; y: Expr } {
  const { arena, x, y } = symbols(d);
  return { folded: e(arena, x, y, (v, t = d) => arena.constant(t, t.isBig ? BigInt(v) : v)), x, y };
}

/** Every pair of edge values gives the same, folded or not. */
function expectSameMeaning(e: Expression, d: DType, what: string): void {
  const { folded, x, y } = build(e, d);
  const variable = (k: 0 | 1): Meaning => ({ d, at: (...xs) => xs[k] as Value });
  const plain = e(meaning, variable(0), variable(1), (v, t = d) =>
    meaning.constant(t, t.isBig ? BigInt(v) : v),
  );
  const bad: string[] = [];
  for (const a of edges(d)) {
    for (const b of edges(d)) {
      const [got, want] = [evaluate(folded, x, y, [a, b]), plain.at(a, b)];
      if (!Object.is(got, want))
        bad.push(`(${showValues([a, b])}): ${showValues([got])} for ${showValues([want])}`);
    }
  }
  expect(bad.slice(0, 5), `${what} on ${d.name}`).toEqual([]);
}

type Result = "x" | "y" | number | ((folded: Expr, x: Expr, y: Expr) => boolean);
interface Case {
  readonly e: Expression;
  /** what it becomes on these types; on the others of `defined` it stays */
  readonly fires: readonly DType[];
  readonly becomes: Result;
  readonly stays?: readonly DType[];
}
const is = (op: AluOp) => (u: Expr) => u.op === "ALU" && u.fn === op && u.srcs.some((s) => s.op === "CONST");

const CASES: Readonly<Record<string, readonly Case[]>> = {
  constants: [
    { e: (a, _, __, c) => a.alu("ADD", c(2), c(3)), fires: EXACT.slice(1).concat(FLOATS), becomes: 5 },
    { e: (a, _, __, c) => a.alu("CMPLT", c(0), c(1)), fires: ALL, becomes: 1 },
    { e: (a, _, __, c) => a.alu("WHERE", c(1, bool), c(7), c(3)), fires: INTS, becomes: 7 },
    { e: (a, _, __, c) => a.alu("SQRT", c(9)), fires: FLOATS, becomes: 3 },
    { e: (a, _, __, c) => a.alu("DIV", c(1), c(0)), fires: FLOATS, becomes: Infinity },
    { e: (a, _, __, c) => a.alu("IDIV", c(1), c(0)), fires: INTS, becomes: 0 },
    { e: (a, _, __, c) => a.alu("ADD", c(200), c(100)), fires: [uint8, int8], becomes: 44 },
  ],
  "cast of a constant": [
    { e: (a, _, __, c) => a.cast(c(300.7, float64), uint8), fires: [int32], becomes: 44 },
    { e: (a, _, __, c) => a.cast(c(0.1, float64), float16), fires: [int32], becomes: 0.0999755859375 },
  ],
  "bitcast of a constant": [
    { e: (a, _, __, c) => a.bitcast(c(1, float32), int32), fires: [int32], becomes: 0x3f800000 },
  ],
  "bitcast of a bitcast": [
    { e: (a, x) => a.bitcast(a.bitcast(x, float32), int32), fires: [int32], becomes: "x" },
    {
      e: (a, x) => a.bitcast(a.bitcast(x, int32), uint32),
      fires: [float32],
      becomes: (u, x) => u.op === "BITCAST" && u.operand === x,
    },
    // a byte loses its upper bits as a bool
    { e: (a, x) => a.bitcast(a.bitcast(x, bool), uint8), fires: [], becomes: "x", stays: [uint8, int8] },
  ],
  "n + 0 = n": [
    { e: (a, x, _, c) => a.alu("ADD", x, c(0)), fires: EXACT, becomes: "x", stays: FLOATS },
    { e: (a, x, _, c) => a.alu("ADD", c(0), x), fires: EXACT, becomes: "x", stays: FLOATS },
  ],
  "x + (-0.0) = x": [
    { e: (a, x, _, c) => a.alu("ADD", x, c(-0)), fires: FLOATS, becomes: "x" },
    { e: (a, x, _, c) => a.alu("ADD", c(-0), x), fires: FLOATS, becomes: "x" },
  ],
  "x - 0 = x": [
    { e: (a, x, _, c) => a.alu("SUB", x, c(0)), fires: ALL, becomes: "x" },
    { e: (a, x, _, c) => a.alu("SUB", x, c(-0)), fires: [], becomes: "x", stays: FLOATS },
    { e: (a, x, _, c) => a.alu("SUB", c(0), x), fires: [], becomes: "x", stays: ALL },
  ],
  "n - n = 0": [{ e: (a, x) => a.alu("SUB", x, x), fires: EXACT, becomes: 0, stays: FLOATS }],
  "x * 1 = x": [
    { e: (a, x, _, c) => a.alu("MUL", x, c(1)), fires: ALL, becomes: "x" },
    { e: (a, x, _, c) => a.alu("MUL", c(1), x), fires: ALL, becomes: "x" },
  ],
  "n * 0 = 0": [
    { e: (a, x, _, c) => a.alu("MUL", x, c(0)), fires: EXACT, becomes: 0, stays: FLOATS },
    { e: (a, x, _, c) => a.alu("MUL", c(0), x), fires: EXACT, becomes: 0, stays: FLOATS },
  ],
  "x / 1 = x": [
    { e: (a, x, _, c) => a.alu("DIV", x, c(1)), fires: FLOATS, becomes: "x" },
    { e: (a, x, _, c) => a.alu("DIV", c(1), x), fires: [], becomes: "x", stays: FLOATS },
  ],
  "x // 1 = x": [
    { e: (a, x, _, c) => a.alu("IDIV", x, c(1)), fires: INTS, becomes: "x" },
    { e: (a, x) => a.alu("IDIV", x, x), fires: [], becomes: 1, stays: INTS },
  ],
  "n % 1 = 0": [{ e: (a, x, _, c) => a.alu("MOD", x, c(1)), fires: INTS, becomes: 0, stays: FLOATS }],
  "0 // x = 0": [{ e: (a, x, _, c) => a.alu("IDIV", c(0), x), fires: INTS, becomes: 0 }],
  "0 % x = 0": [{ e: (a, x, _, c) => a.alu("MOD", c(0), x), fires: INTS, becomes: 0, stays: FLOATS }],
  "--x = x": [{ e: (a, x) => a.alu("NEG", a.alu("NEG", x)), fires: ALL, becomes: "x" }],
  "max(x, x) = x": [
    { e: (a, x) => a.alu("MAX", x, x), fires: ALL, becomes: "x" },
    { e: (a, x, y) => a.alu("MAX", x, y), fires: [], becomes: "x", stays: ALL },
  ],
  "x < x = false": [{ e: (a, x) => a.alu("CMPLT", x, x), fires: ALL, becomes: 0 }],
  "n != n = false": [{ e: (a, x) => a.alu("CMPNE", x, x), fires: EXACT, becomes: 0, stays: FLOATS }],
  "x | 0 = x": [{ e: (a, x, _, c) => a.alu("OR", c(0), x), fires: EXACT, becomes: "x" }],
  "x ^ 0 = x": [{ e: (a, x, _, c) => a.alu("XOR", x, c(0)), fires: EXACT, becomes: "x" }],
  "x ^ x = 0": [{ e: (a, x) => a.alu("XOR", x, x), fires: EXACT, becomes: 0 }],
  "x & 0 = 0": [{ e: (a, x, _, c) => a.alu("AND", x, c(0)), fires: EXACT, becomes: 0 }],
  "x & x = x": [{ e: (a, x) => a.alu("AND", x, x), fires: EXACT, becomes: "x" }],
  "b & true = b": [{ e: (a, x, _, c) => a.alu("AND", c(1), x), fires: [bool], becomes: "x", stays: INTS }],
  "b | true = true": [{ e: (a, x, _, c) => a.alu("OR", x, c(1)), fires: [bool], becomes: 1, stays: INTS }],
  "x << 0 = x": [
    { e: (a, x, _, c) => a.alu("SHL", x, c(0)), fires: INTS, becomes: "x" },
    { e: (a, x, _, c) => a.alu("SHL", c(0), x), fires: [], becomes: 0, stays: INTS },
  ],
  "x >> 0 = x": [{ e: (a, x, _, c) => a.alu("SHR", x, c(0)), fires: INTS, becomes: "x" }],
  "true ? x : y = x": [{ e: (a, x, y, c) => a.alu("WHERE", c(1, bool), x, y), fires: ALL, becomes: "x" }],
  "false ? x : y = y": [{ e: (a, x, y, c) => a.alu("WHERE", c(0, bool), x, y), fires: ALL, becomes: "y" }],
  "c ? x : x = x": [{ e: (a, x, y) => a.alu("WHERE", a.alu("CMPLT", x, y), x, x), fires: ALL, becomes: "x" }],
  "(n ADD c1) ADD c2": [
    { e: (a, x, _, c) => a.alu("ADD", a.alu("ADD", x, c(2)), c(3)), fires: INTS, becomes: is("ADD") },
    { e: (a, x, _, c) => a.alu("ADD", c(3), a.alu("ADD", c(2), x)), fires: INTS, becomes: is("ADD") },
    {
      e: (a, x, _, c) => a.alu("ADD", a.alu("ADD", x, c(0.1)), c(0.2)),
      fires: [],
      becomes: "x",
      stays: FLOATS,
    },
    { e: (a, x, _, c) => a.alu("ADD", a.alu("ADD", x, c(5)), c(-5)), fires: INTS, becomes: "x" },
  ],
  "(n MUL c1) MUL c2": [
    { e: (a, x, _, c) => a.alu("MUL", c(5), a.alu("MUL", x, c(7))), fires: INTS, becomes: is("MUL") },
    {
      e: (a, x, _, c) => a.alu("MUL", a.alu("MUL", x, c(3)), c(0.1)),
      fires: [],
      becomes: "x",
      stays: FLOATS,
    },
  ],
};
/** The ops under a rule that has no value to compare: see below. */
const OTHERS = ["a load if true", "a load if false"];

describe("each rule", () => {
  test("has a case here", () => {
    const tested = [...Object.keys(CASES), ...OTHERS].sort();
    expect(tested).toEqual(FOLD.rules.map((r) => r.name).sort());
  });
  for (const [name, cases] of Object.entries(CASES)) {
    test(name, () => {
      cases.forEach(({ e, fires, becomes, stays = [] }, i) => {
        for (const d of fires) {
          const { folded, x, y } = build(e, d);
          const what = `case ${i} on ${d.name}: ${folded.op} ${String(folded.arg)}`;
          if (becomes === "x") expect(folded, what).toBe(x);
          else if (becomes === "y") expect(folded, what).toBe(y);
          else if (typeof becomes === "number") {
            expect(folded.op, what).toBe("CONST");
            expect(Number(folded.arg), what).toBe(becomes);
          } else expect(becomes(folded, x, y), what).toBe(true);
          expectSameMeaning(e, d, `${name}, case ${i}`);
        }
        for (const d of stays) {
          const { folded, x, y } = build(e, d);
          const same = folded === x || folded === y || folded.op === "CONST";
          expect(same, `case ${i} must stay on ${d.name}`).toBe(false);
          expectSameMeaning(e, d, `${name}, case ${i}`);
        }
      });
    });
  }

  test("regrouped constants wrap in the type", () => {
    const { folded } = build((a, x, _, c) => a.alu("ADD", a.alu("ADD", x, c(100)), c(100)), int8);
    expect(folded.srcs.map((s) => s.op)).toEqual(["LOAD", "CONST"]);
    expect(folded.srcs[1]?.arg).toBe(-56);
    const { folded: big } = build((a, x, _, c) => a.alu("MUL", a.alu("MUL", x, c(3)), c(5)), int64);
    expect(big.srcs[1]?.arg).toBe(15n);
  });

  test("loads with a known gate", () => {
    const { arena, x, y } = symbols(float32);
    if (x.op !== "LOAD") throw new Error(`a load became ${x.op}`);
    const gated = (gate: Expr) => arena.load(x.buffer, x.index, { gate, otherwise: y });
    expect(gated(arena.constant(bool, 1))).toBe(x);
    expect(gated(arena.constant(bool, 0))).toBe(y);
    const open = arena.alu("CMPLT", x, y);
    expect(gated(open).srcs).toHaveLength(4);
  });
});

describe("together", () => {
  test("UOpGraph.add folds as the seed shows: 199 + 200", () => {
    const g = new UOpGraph();
    const sum = g.add("ALU", int32, [g.add("CONST", int32, [], 199), g.add("CONST", int32, [], 200)], "ADD");
    expect([sum.op, sum.arg]).toEqual(["CONST", 399]);
    expect(g.uops.at(-1)).toBe(sum);
  });
  test("vectors are left alone", () => {
    const a = new UOpArena();
    const two = a.make("CONST", float32.vec(4), [], 2);
    expect(a.alu("ADD", two, two).op).toBe("ALU");
  });

  const CONSTANTS = [0, -0, 1, -1, 2, 3, 7, 0.5, 31, 255];
  /** A random tree over x, y and constants, its types kept right. */
  function randomTree(r: Random, d: DType, depth: number): Expression {
    if (depth === 0 || r.chance(15)) {
      const pick = r.int(0, 3);
      const v = d.isFloat ? r.pick(CONSTANTS) : Math.trunc(r.pick(CONSTANTS)) + 0;
      return <T>(_: Algebra<T>, x: T, y: T, c: (v: number) => T) => (pick === 0 ? y : pick === 1 ? c(v) : x);
    }
    const op = r.pick(opsOf(d).filter((o) => opRecord(o).result === "same"));
    const [p, q, s] = [0, 1, 2].map(() => randomTree(r, d, depth - 1)) as [
      Expression,
      Expression,
      Expression,
    ];
    if (op === "WHERE") {
      const compare = r.pick(["CMPLT", "CMPEQ", "CMPNE"] as const);
      return (a, x, y, c) =>
        a.alu("WHERE", a.alu(compare, p(a, x, y, c), q(a, x, y, c)), q(a, x, y, c), s(a, x, y, c));
    }
    return (a, x, y, c) => a.alu(op, ...[p, q, s].slice(0, opRecord(op).arity).map((f) => f(a, x, y, c)));
  }
  test("1500 random expressions mean the same as unfolded ones", () => {
    for (let seed = 1; seed <= 1500; seed++) {
      const r = new Random(seed);
      const d = r.pick(ALL);
      expectSameMeaning(randomTree(r, d, r.int(1, 4)), d, `seed ${seed}`);
    }
  });
});

test("rules on vectors take the constants of their lanes", () => {
  const a = new UOpArena();
  for (const d of EXACT) {
    const v = d.vec(4);
    const x = a.load(a.global(d, 0, false), a.int(0), { lanes: 4 });
    for (const op of ["ADD", "MUL"] as const) {
      const folded = a.alu(op, a.alu(op, x, a.constant(v, 1)), a.constant(v, 1));
      expect(folded.dtype, `${op} ${d}`).toBe(v);
    }
    const three = a.alu("ADD", a.alu("ADD", x, a.constant(v, 100)), a.constant(v, 100));
    expect(three.op === "ALU" && three.operands[1]).toBe(a.constant(v, wrap(d, d.isBig ? 200n : 200)));
  }
});
