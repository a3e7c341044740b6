// What a target lacks, made of what it has: guarded divisions and saturating casts mean what the ops' records
// say on every edge value, and are left alone where they cannot go wrong.

import { dtypes, Variable } from "gradloom";
import { describe, expect, test } from "vitest";
import { decompose } from "../../../src/codegen/passes/decompose.ts";
import type { Target } from "../../../src/codegen/target.ts";
import { bounds, castValue, type DType, floatToIntVia, type Value, wrap } from "../../../src/dtype.ts";
import { toposort } from "../../../src/helpers.ts";
import { type AluOp, opRecord } from "../../../src/ops.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { UOpArena } from "../../../src/uop/arena.ts";
import type { Expr, UOp } from "../../../src/uop/node.ts";
import { edges } from "../../device/harness.ts";
import { rendererOf } from "../kernels.ts";

await Device.open("JS");
const { int32, uint32, float32 } = dtypes;
const target = (lacks: Partial<Target>): Target => ({ ...rendererOf("JS"), ...lacks });

/** What decompose makes of the value that is stored. */
function decomposed(a: UOpArena, value: Expr, lacks: Partial<Target>): Expr {
  const sink = a.sink([a.store(a.global(value.dtype, 0, true), a.int(0), value)]);
  const [store] = decompose(sink, target(lacks), a).stores;
  if (store === undefined) throw new Error("the store is gone");
  return store.value;
}
/** Thrown where a machine would trap, or the result be undefined. */
class Trap extends Error {}
/** What the expression is on a machine that traps; `given` has the values of what is loaded. */
function run(u: Expr, given: ReadonlyMap<Expr, Value>): Value {
  const known = given.get(u);
  if (known !== undefined) return known;
  if (u.op === "CONST") return wrap(u.dtype, u.value);
  if (u.op === "CAST") {
    const x = run(u.operand, given);
    if (u.operand.dtype.isFloat && u.dtype.isInt) {
      const [low, high] = bounds(floatToIntVia(u.dtype)).map(Number) as [number, number];
      if (!(Number(x) > low - 1 && Number(x) <= high)) throw new Trap(`${u.dtype.name} of ${x}`);
    }
    return castValue(u.dtype, x, u.operand.dtype);
  }
  if (u.op !== "ALU") throw new Error(`${u.op} has no value here`);
  const xs = u.operands.map((o) => run(o, given));
  const divisor = Number(xs.at(-1));
  const isDivision = (u.fn === "IDIV" || u.fn === "MOD") && !u.operandType.isFloat;
  if (isDivision && (divisor === 0 || divisor === -1)) throw new Trap(`${u.fn} by ${divisor}`);
  return opRecord(u.fn).evaluate(u.operandType, ...xs);
}
const loaded = (a: UOpArena, d: DType, at: number): Expr => a.load(a.global(d, at, false), a.int(0));

describe("divisions", () => {
  const INTS = dtypes.all.filter((d) => d.isInt);
  for (const fn of ["IDIV", "MOD"] as const) {
    test.each(INTS.map((d) => [d.name, d] as const))(`${fn} of %s never traps`, (_, d) => {
      const a = new UOpArena();
      const [n, m] = [loaded(a, d, 1), loaded(a, d, 2)];
      const made = decomposed(a, a.alu(fn, n, m), { safeDivision: false });
      const more = d.kind === "int" ? [0, -1, 3] : [0, 3];
      const values = [...edges(d), ...more.map((x) => wrap(d, d.isBig ? BigInt(x) : x))];
      for (const x of values) {
        for (const y of values) {
          const given = new Map([
            [n, x],
            [m, y],
          ]);
          expect(run(made, given), `${x} ${fn} ${y}`).toEqual(opRecord(fn).evaluate(d, x, y));
        }
      }
    });
  }
  test("by what is above 0 they are left alone", () => {
    const a = new UOpArena();
    const n = loaded(a, int32, 1);
    const divide = (fn: AluOp, m: Expr): boolean => {
      const u = a.alu(fn, n, m);
      return decomposed(a, u, { safeDivision: false }) === u;
    };
    expect(divide("IDIV", a.int(7))).toBe(true);
    expect(divide("MOD", a.variable(Variable("positive", 1, 9)))).toBe(true);
    expect(divide("IDIV", a.variable(Variable("maybe", 0, 9)))).toBe(false);
    expect(divide("MOD", loaded(a, int32, 2))).toBe(false);
    const u = a.alu("IDIV", n, loaded(a, int32, 2));
    expect(decomposed(a, u, {}), "a target that divides safely").toBe(u);
  });
});

describe("casts from float to integer", () => {
  const CASES = dtypes.all.filter((d) => d.isInt).map((d) => [d.name, d] as const);
  test.each(CASES)("to %s stop at the ends, then wrap", (_, to) => {
    const a = new UOpArena();
    const x = loaded(a, float32, 1);
    const made = decomposed(a, a.cast(x, to), { saturatingCast: false });
    for (const value of [...edges(float32), NaN, -0.5, 2.75, 300.5, 2 ** 31, -(2 ** 31), 2 ** 63, 2 ** 64]) {
      const given = new Map([[x, value]]);
      expect(run(made, given), `${to.name} of ${value}`).toEqual(castValue(to, value, float32));
    }
  });
  test("other casts are left alone", () => {
    const a = new UOpArena();
    for (const u of [
      a.cast(loaded(a, int32, 1), float32),
      a.cast(loaded(a, int32, 1), uint32),
      a.cast(loaded(a, float32, 1), dtypes.bool),
    ]) {
      expect(decomposed(a, u, { saturatingCast: false })).toBe(u);
    }
    const u = a.cast(loaded(a, float32, 1), int32);
    expect(decomposed(a, u, {}), "a target whose casts stop by themselves").toBe(u);
  });
});

test("an op that the target lacks is made of others; one that cannot be is refused by name", () => {
  const a = new UOpArena();
  const x = loaded(a, float32, 1);
  const lacks = (op: AluOp) => ({ name: "LACKING", has: (o: AluOp) => o !== op });
  const inverse = decomposed(a, a.alu("RECIP", x), lacks("RECIP"));
  const fns = a.nodes(inverse).flatMap((u) => (u.op === "ALU" ? [u.fn] : []));
  expect(fns).toEqual(["DIV"]);
  for (const value of [1, -4, 0]) expect(run(inverse, new Map([[x, value]])), `1 / ${value}`).toBe(1 / value);
  expect(() => decomposed(a, a.alu("ADD", x, x), lacks("ADD"))).toThrow(
    /ADD: LACKING cannot do it on float32; cast the operands first/,
  );
});

test("angles are reduced in float64; on a target without it in integers", () => {
  const lacks: Partial<Target> = {
    name: "SMALL",
    has: (op) => op !== "SIN" && op !== "COS",
    support: (d) => (d === dtypes.float64 ? "none" : "native"),
  };
  for (const op of ["SIN", "COS"] as const) {
    const a = new UOpArena();
    const x = a.load(a.global(float32, 1, false), a.int(0));
    const types = (lacking: Partial<Target>): (string | undefined)[] =>
      toposort<UOp>([decomposed(a, a.alu(op, x), lacking)], (u) => u.srcs).map((u) => u.dtype?.toString());
    expect(types({ ...lacks, support: () => "native" })).toContain(String(dtypes.float64));
    expect(types(lacks)).not.toContain(String(dtypes.float64));
  }
});
