// Tiles that are computed as they are copied to shared memory: sides that blocks do not divide, zeros around
// an operand, casts, scales and masks, a convolution as a product of matrices. JS runs every thread. Small
// integers make sums exact.

import { dtypes, Tensor } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Kernel, toKernel } from "../../../src/codegen/kernel.ts";
import { MMA } from "../../../src/codegen/opt/mma.ts";
import { type OptOp, showOpts } from "../../../src/codegen/opt/opts.ts";
import type { DType, Value } from "../../../src/dtype.ts";
import { env } from "../../../src/env.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { expectValues, tensor } from "../../device/harness.ts";
import { Random } from "../../shape/random.ts";
import { gpuTarget, lastItem, lowered, opsIn, opt, runKernel } from "../kernels.ts";

const { float32, bfloat16 } = dtypes;
await Device.open("JS");
const target = { ...gpuTarget(32), sharedMax: 2 ** 18 };

const matrix = (type: DType, shape: readonly number[], seed: number): Tensor => {
  const random = new Random(seed);
  const values: Value[] = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => random.int(-3, 3));
  return tensor("JS", type, values, shape);
};
async function check(t: Tensor, ...lists: OptOp[][]): Promise<Kernel[]> {
  const item = await lastItem(t);
  const want = await runKernel(item, lowered(item));
  const kernels = lists.map((list) => toKernel(item.ast, list, target));
  for (const k of kernels) {
    const what = `${k.name} with ${showOpts(k.opts)}`;
    expectValues(item.outputs[0]?.dtype as DType, await runKernel(item, k), want, what, { zeros: "equal" });
  }
  return kernels;
}
const sharesBoth = (k: Kernel): boolean =>
  opsIn(k, "WMMA").length > 0 && opsIn(k, "DEFINE_LOCAL").length === 2;
const tc = (core = 0): OptOp => opt("TC", 2, core);
const warps = [opt("UPCAST", 0, 2), opt("LOCAL", 0, 2), opt("UPCAST", 1, 2), opt("UNROLL", 2, 2)];

const allowed = env as { ALLOW_TF32: number };
describe.each(MMA.map((core, i) => [core.name, i] as const))("TC on any sides: %s", (_, number) => {
  const core = MMA[number] as (typeof MMA)[number];
  beforeAll(() => {
    allowed.ALLOW_TF32 = core.ignored > 0 ? 1 : 0;
  });
  afterAll(() => {
    allowed.ALLOW_TF32 = 0;
  });
  test("random sides and transposes, from memory and through shared memory", async () => {
    const r = new Random(7 + number);
    for (let i = 0; i < 2; i++) {
      const [m, k, n] = [r.int(17, 50), r.int(2, 3 * core.k), r.int(9, 30)];
      const a = r.int(0, 1) > 0 ? matrix(core.from, [k, m], 1).T : matrix(core.from, [m, k], 1);
      const b = r.int(0, 1) > 0 ? matrix(core.from, [n, k], 2).T : matrix(core.from, [k, n], 2);
      const shared = [tc(number), opt("SHARED", 2, r.int(1, 3))];
      const [, one] = await check(a.dot(b), [tc(number)], shared);
      expect(one && sharesBoth(one), `${m} x ${k} x ${n}`).toBe(true);
    }
  });
  test("several warps with several matrices each, and a batch", async () => {
    const [m, k, n] = [66, 2 * core.k + 1, 17];
    const list = [tc(number), ...warps, opt("SHARED", 2, 3)];
    await check(matrix(core.from, [m, k], 1).dot(matrix(core.from, [k, n], 2)), list);
    const batch = matrix(core.from, [2, 18, k], 3).dot(matrix(core.from, [2, k, 11], 4));
    await check(batch, [opt("TC", 3, number), opt("SHARED", 3, 2)]);
  });
});

describe("operands", () => {
  const shared = [tc(), ...warps, opt("SHARED", 2, 2)];
  const b = (): Tensor => matrix(bfloat16, [64, 32], 2);
  test("zeros around them, a part of them, backwards", async () => {
    const padded = matrix(bfloat16, [60, 61], 1).pad([
      [3, 1],
      [2, 1],
    ]);
    const [k] = await check(padded.dot(b()), shared);
    expect(k && sharesBoth(k)).toBe(true);
    await check(
      matrix(bfloat16, [70, 70], 3)
        .shrink([
          [3, 67],
          [5, 69],
        ])
        .dot(b()),
      shared,
    );
    await check(matrix(bfloat16, [64, 64], 4).flip(1).dot(b()), shared);
  });
  test("rows that start at whole vectors are copied by the hardware, with zeros beyond the end", async () => {
    const [k] = await check(matrix(bfloat16, [50, 64], 1).dot(b()), shared);
    const copies = k ? opsIn(k, "ASYNC") : [];
    expect(copies.length).toBeGreaterThan(0);
    expect(copies.some((c) => c.inside !== undefined && c.elements === 8)).toBe(true);
    expect(k && opsIn(k, "LOAD").every((u) => u.buffer.op === "DEFINE_LOCAL")).toBe(true);
  });
  test("computed: casts, a scale for each column, a mask; every element once for a workgroup", async () => {
    const x = matrix(float32, [64, 64], 5);
    const scale = matrix(bfloat16, [64], 6);
    const mask = Tensor.ones([64, 64], { device: "JS", dtype: bfloat16 }).tril();
    // one kernel: the product is written as an expression over whole operands
    const sums = (left: Tensor, right: Tensor): Tensor =>
      left
        .reshape(64, 64, 1)
        .cast(float32)
        .mul(right.reshape(1, 64, 32).cast(float32))
        .sum(1);
    for (const left of [
      x.cast(bfloat16),
      matrix(bfloat16, [64, 64], 7).mul(scale),
      matrix(bfloat16, [64, 64], 8).mul(mask),
    ]) {
      const [k] = await check(sums(left, b()), shared);
      expect(k && sharesBoth(k), "both operands come through shared memory").toBe(true);
    }
  });
  test("without tensor cores: a gated operand is shared too", async () => {
    const t = matrix(float32, [19, 23], 1).dot(matrix(float32, [23, 27], 2));
    const list = [opt("UPCAST", 0, 2), opt("LOCAL", 0, 4), opt("UPCAST", 1, 2), opt("LOCAL", 1, 4)];
    const [k] = await check(t, [...list, opt("UNROLL", 2, 4), opt("SHARED", 2, 2)]);
    expect(k && opsIn(k, "DEFINE_LOCAL")).toHaveLength(2);
  });
});

describe("a convolution as a product", () => {
  /** [picture, output, row, column] under [input, tap, tap] become [output, pixels] under [terms]. */
  const collapse = [
    opt("COLLAPSE", 3, 0),
    opt("COLLAPSE", 2, 1),
    opt("COLLAPSE", 2, 3),
    opt("COLLAPSE", 2, 3),
  ];
  test.each([
    [2, 1, 0, 1],
    [3, 1, 1, 1],
    [3, 2, 1, 1],
    [2, 1, 1, 2],
  ])("filters of %s, stride %s, padding %s, dilation %s", async (size, stride, padding, dilation) => {
    const x = matrix(bfloat16, [2, 5, 9, 8], 1);
    const w = matrix(bfloat16, [18, 5, size, size], 2);
    const t = x.conv2d(w, undefined, { stride, padding, dilation });
    const list = [...collapse, tc(), opt("UPCAST", 1, 2), opt("UNROLL", 2, 2), opt("SHARED", 2, 2)];
    const [k] = await check(t, list, [...collapse, tc()]);
    expect(k && sharesBoth(k)).toBe(true);
  });
});
