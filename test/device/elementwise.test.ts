// Every op on every type over all pairs of edge values (NaN, infinities, -0, ends of the integers, division
// by zero, shifts by more than the width), on every device. The reference is `evaluate` of the op's record;
// exp2, log2 and sin are compared with Math within 2 ulp.

import { Device, type DType, dtypes, Tensor } from "gradloom";
import { describe } from "vitest";
import { type Value, wrap } from "../../src/dtype.ts";
import { type AluOp, isLibraryFunction, OPS, opRecord, resultDType } from "../../src/ops.ts";
import {
  alu,
  type Column,
  deviceTest,
  edges,
  expectValues,
  inRange,
  opsOf,
  read,
  rows,
  showValues,
  tensor,
  typesOn,
} from "./harness.ts";

/** exp2, log2, sin: right to a few ulps. */
const FUNCTIONS = (Object.keys(OPS) as AluOp[]).filter(isLibraryFunction);
/** pow has a test of its own (power.test.ts) */
const OF_ONE = FUNCTIONS.filter((op) => opRecord(op).arity === 1);

/** All pairs of edges, a third operand and a condition that go through theirs at another pace. */
function operands(d: DType): { a: Value[]; b: Value[]; c: Value[]; cond: Value[] } {
  const xs = edges(d);
  const pairs = xs.flatMap((a) => xs.map((b) => [a, b] as const));
  return {
    a: pairs.map(([a]) => a),
    b: pairs.map(([, b]) => b),
    c: pairs.map((_, i) => xs[(i * 7 + Math.floor(i / xs.length)) % xs.length] as Value),
    cond: pairs.map((_, i) => (i * 5 + (i >> 3)) & 1),
  };
}

/** The operands of an op, in the order in which its record takes them. */
function pick<T>(op: AluOp, { a, b, c, cond }: { a: T; b: T; c: T; cond: T }): T[] {
  if (op === "WHERE") return [cond, a, b];
  return [a, b, c].slice(0, opRecord(op).arity);
}

async function check(device: string, d: DType, ops: readonly AluOp[]): Promise<void> {
  const columns = operands(d);
  const input = (["a", "b", "c"] as const).map((k): Column => ({ dtype: d, values: columns[k] }));
  const got = await rows(
    device,
    [...input, { dtype: dtypes.bool, values: columns.cond }],
    ops.map((op) => (a, b, c, cond) => alu(op, ...pick(op, { a, b, c, cond }))),
  );
  ops.forEach((op, k) => {
    const args = pick(op, columns);
    const want = columns.a.map((_, i) => opRecord(op).evaluate(d, ...args.map((xs) => xs[i] as Value)));
    const what = (i: number) => `${op}(${showValues(args.map((xs) => xs[i] as Value))})`;
    expectValues(resultDType(op, d), got[k] as Value[], want, what, op === "MAX" ? { zeros: "equal" } : {});
  });
}

describe("edge values", () => {
  for (const d of dtypes.all) {
    const arithmetic = opsOf(d).filter((op) => opRecord(op).result === "same" && !FUNCTIONS.includes(op));
    deviceTest(`arithmetic on ${d.name}`, (device) => check(device, d, arithmetic), d);
    const comparisons = opsOf(d).filter((op) => opRecord(op).result === "bool");
    deviceTest(`comparison on ${d.name}`, (device) => check(device, d, comparisons), d);
  }
});

/** The edges, and a grid over the interesting range of each function. */
function inputs(d: DType): Value[] {
  const grid = Array.from({ length: 1500 }, (_, i) => (i - 750) * 0.2017);
  const powers = Array.from({ length: 300 }, (_, i) => 2 ** (i - 150) * 1.2345);
  return [...edges(d), ...inRange([...grid, ...powers].map((x) => wrap(d, x)))];
}

describe("functions", () => {
  for (const d of dtypes.all.filter((x) => x.isFloat)) {
    const body = async (device: string): Promise<void> => {
      const xs = inputs(d);
      const got = await rows(
        device,
        [{ dtype: d, values: xs }],
        OF_ONE.map((op) => (x) => alu(op, x)),
      );
      OF_ONE.forEach((op, k) => {
        const want = xs.map((x) => Number(opRecord(op).evaluate(dtypes.float64, Number(x))));
        // Math in double is itself off by up to one ulp of float64
        const usual = d === dtypes.float64 ? 3 : 2;
        // WGSL promises 3 + 2|x| ulp, and its own exp2 is taken
        const ofItself = op === "EXP2" && Device.get(device).renderer?.ieee === false;
        const ulps = ofItself ? (i: number) => 3 + 2 * Math.abs(Number(xs[i])) : usual;
        expectValues(d, got[k] as Value[], want, (i) => `${op}(${xs[i]})`, { ulps });
      });
    };
    deviceTest(`${OF_ONE.join(", ")} on ${d.name}`, body, d);
  }
});

deviceTest("a constant 0 divided by 0 or NaN is NaN, multiplied with infinity too", async (device) => {
  for (const d of typesOn(device, [dtypes.float32, dtypes.float16, dtypes.bfloat16])) {
    const x = tensor(device, d, [0, 2, NaN, -4, Infinity]);
    const constant = Tensor.full([5], 0, { device, dtype: d });
    expectValues(d, await read(constant.div(x)), [NaN, 0, NaN, -0, 0], "0 / x");
    expectValues(d, await read(constant.mul(x)), [0, 0, NaN, -0, NaN], "0 * x");
  }
});
