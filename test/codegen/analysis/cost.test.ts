// What a kernel says it costs: operations on values with all loops counted, and the bytes of each buffer's
// part that is touched, once. Addresses, casts and copies are not operations.

import { createSchedule, dtypes, GlobalCounters, Tensor, toKernel } from "gradloom";
import { WASMRenderer } from "gradloom/render";
import { describe, expect, test } from "vitest";
import type { OptOp } from "../../../src/codegen/opt/opts.ts";
import { Variable } from "../../../src/shape/symbolic.ts";
import { tensor } from "../../device/harness.ts";
import { gridTarget, lastItem, lowered } from "../kernels.ts";

const { float32, float64, int8, int32 } = dtypes;
const zeros = (shape: readonly number[], d = float32): Tensor =>
  tensor(
    "JS",
    d,
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 0),
    shape,
  );

async function cost(t: Tensor, opts: readonly OptOp[] = []): Promise<{ ops: number; bytes: number }> {
  const { ops, bytes } = lowered(await lastItem(t), opts);
  return { ops, bytes };
}

describe("elementwise", () => {
  test("one op an element, every buffer once", async () => {
    const [a, b] = [zeros([10, 100]), zeros([10, 100])];
    expect(await cost(a.add(b))).toEqual({ ops: 1000, bytes: 12000 });
    expect(await cost(a.mul(b).add(a).neg())).toEqual({ ops: 3000, bytes: 12000 });
    expect(await cost(alu(a, b))).toEqual({ ops: 2000, bytes: 12000 });
    expect(await cost(a.add(1))).toEqual({ ops: 1000, bytes: 8000 });
  });
  const alu = (a: Tensor, b: Tensor) => a.mulacc(b, a);
  test("types count with their size", async () => {
    expect(await cost(zeros([100], float64).mul(2))).toEqual({ ops: 100, bytes: 1600 });
    expect(await cost(zeros([100], int8).add(1))).toEqual({ ops: 100, bytes: 200 });
    expect(await cost(zeros([100], int8).lt(1))).toEqual({ ops: 100, bytes: 200 });
  });
  test("a copy, a cast and a view cost no operations", async () => {
    const t = zeros([10, 20]);
    expect(await cost(t.T.contiguous())).toEqual({ ops: 0, bytes: 1600 });
    expect(await cost(t.cast(int32))).toEqual({ ops: 0, bytes: 1600 });
    expect(await cost(t.flip(0).contiguous())).toEqual({ ops: 0, bytes: 1600 });
  });
  test("what is expanded is read once, what is cut off not at all", async () => {
    const row = zeros([1, 20]);
    expect(await cost(row.expand(10, 20).add(zeros([10, 20])))).toEqual({ ops: 200, bytes: 80 + 1600 });
    expect(
      await cost(
        zeros([10, 20])
          .shrink([[0, 2], null])
          .add(1),
      ),
    ).toEqual({ ops: 40, bytes: 320 });
    expect(
      (
        await cost(
          zeros([4])
            .pad([[2, 2]])
            .add(1),
        )
      ).bytes,
    ).toBe(16 + 32);
  });
});

describe("reduces", () => {
  test("an op for each element that is reduced", async () => {
    expect(await cost(zeros([1000]).sum())).toEqual({ ops: 1000, bytes: 4004 });
    expect(await cost(zeros([10, 100]).max(1))).toEqual({ ops: 1000, bytes: 4040 });
    // the square, the sum, and a division at the end
    expect(await cost(zeros([10, 100]).square().sum(1).mul(0.5))).toEqual({ ops: 2010, bytes: 4040 });
  });
  test("a matmul is two operations for each product", async () => {
    const [n, k, m] = [8, 12, 6];
    const product = zeros([n, k]).dot(zeros([k, m]));
    const want = { ops: 2 * n * k * m, bytes: 4 * (n * k + k * m + n * m) };
    expect(await cost(product)).toEqual(want);
    expect(await cost(product, [{ op: "UPCAST", axis: 0, lanes: 4 }])).toEqual(want);
    expect(await cost(product, [{ op: "UNROLL", axis: 2, factor: 4 }])).toEqual(want);
    expect(
      await cost(product, [
        { op: "SWAP", axis: 0, with: 1 },
        { op: "LOCAL", axis: 1, threads: 3 },
      ]),
    ).toEqual(want);
  });
  test("a grid counts as the loops it stands for", async () => {
    const item = await lastItem(zeros([8, 12]).dot(zeros([12, 6])));
    const opts = [{ op: "LOCAL", axis: 0, threads: 4 }] as const;
    expect(lowered(item, opts, gridTarget()).ops).toBe(2 * 8 * 12 * 6);
  });
  test("a fused softmax counts every pass", async () => {
    const [n, m] = [4, 6];
    const { ops, bytes } = await cost(zeros([n, m]).softmax());
    // max: 1; sum: x - max, * 1/ln 2, exp2, + 1; the result: the same three and a product; a reciprocal a row
    expect(ops).toBe(n * m * (1 + 4 + 4) + n);
    expect(bytes).toBe(2 * 4 * n * m);
  });
});

describe("at run time", () => {
  test("the counters add up what ran", async () => {
    const [a, b] = [zeros([8, 12]), zeros([12, 6])];
    await Tensor.realize(a, b);
    GlobalCounters.reset();
    await a.dot(b).realize();
    expect(GlobalCounters.globalOps).toBe(2 * 8 * 12 * 6);
    expect(GlobalCounters.globalMem).toBe(4 * (96 + 72 + 48));
    expect(GlobalCounters.kernelCount).toBe(1);
  });
  test("a symbolic size counts with its largest value", async () => {
    const n = Variable("n", 1, 10).bind(3);
    const t = zeros([10]).shrink([[0, n]]);
    expect(lowered(await lastItem(t.sum())).ops).toBe(10);
  });
});

test("a loop over an expression of a symbolic size counts its largest number of iterations", () => {
  const n = Variable("n", 1, 16);
  const x = Tensor.empty([16, 2]).shrink([[0, n.bind(4)], null]);
  const [item] = createSchedule([x.sum().lazydata]).filter((si) => si.ast[0]?.op === "STORE");
  expect(toKernel(item?.ast ?? [], [], WASMRenderer).ops).toBe(32);
});
