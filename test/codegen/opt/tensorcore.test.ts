// Products of matrices on GPUs: operands through shared memory (SHARED), and warps that multiply matrices in
// one step (TC), run by JS. Small integers make every sum exact, so that the order in which a step adds does
// not matter: results equal those of loops.

import { ArgumentError, dtypes, Tensor, withEnv } from "gradloom";
import { CUDARenderer } from "gradloom/render";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Kernel, toFastKernel } from "../../../src/codegen/kernel.ts";
import { MMA } from "../../../src/codegen/opt/mma.ts";
import { type OptOp, showOpts } from "../../../src/codegen/opt/opts.ts";
import type { Gpu } from "../../../src/codegen/target.ts";
import type { DType, Pointer, Value } from "../../../src/dtype.ts";
import { env } from "../../../src/env.ts";
import { range } from "../../../src/helpers.ts";
import { opRecord } from "../../../src/ops.ts";
import { Device } from "../../../src/runtime/registry.ts";
import type { UOp } from "../../../src/uop/node.ts";
import { expectValues, tensor } from "../../device/harness.ts";
import { Random } from "../../shape/random.ts";
import { gpuTarget, lastItem, lowered, opsIn, opt, runKernel, trips } from "../kernels.ts";

const { float32 } = dtypes;
await Device.open("JS");

const matrix = (type: DType, shape: readonly number[], seed: number): Tensor => {
  const random = new Random(seed);
  const values: Value[] = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => random.int(-3, 3));
  return tensor("JS", type, values, shape);
};

async function check(t: Tensor, opts: readonly OptOp[]): Promise<Kernel> {
  const item = await lastItem(t);
  const kernel = lowered(item, opts, { ...gpuTarget(32), sharedMax: 2 ** 18 });
  const want = await runKernel(item, lowered(item));
  const what = `${kernel.name} with ${showOpts(opts)}`;
  expectValues(item.outputs[0]?.dtype as DType, await runKernel(item, kernel), want, what, {
    zeros: "equal",
  });
  return kernel;
}

/** A (m × k) by B (k × n), each as it is or as the transpose of what is in memory. */
const product = (
  type: DType,
  [m, k, n]: readonly [number, number, number],
  transA = false,
  transB = false,
): Tensor => {
  const a = transA ? matrix(type, [k, m], 1).T : matrix(type, [m, k], 1);
  const b = transB ? matrix(type, [n, k], 2).T : matrix(type, [k, n], 2);
  return a.dot(b);
};
const WAYS = [
  [false, false],
  [false, true],
  [true, false],
  [true, true],
] as const;

/** Indexes as each thread of the first warp has them, in the first iteration of all loops. */
const indexesOf = (kernel: Kernel): ReadonlyMap<UOp, Value>[] =>
  range(32).map((thread) => {
    const known = new Map<UOp, Value>();
    for (const u of kernel.uops) {
      if (u.op === "CONST") known.set(u, u.value);
      else if (u.op === "DEFINE_ACC") known.set(u, u.initial);
      else if (u.op === "LOOP") known.set(u, 0);
      else if (u.op === "SPECIAL") known.set(u, u.arg[1] === "lidx0" ? thread : 0);
      else if (u.op === "ALU" && u.srcs.every((s) => known.has(s))) {
        const values = u.srcs.map((s) => known.get(s) as Value);
        known.set(u, opRecord(u.arg).evaluate(u.srcs.at(-1)?.dtype as DType, ...values));
      }
    }
    return known;
  });
/**
 * How many of the eight groups of four banks eight threads touch that are served at once, at worst.
 */
function banks(access: UOp, indexes: readonly ReadonlyMap<UOp, Value>[]): number {
  const { base } = (access.srcs[0] as UOp).dtype as Pointer;
  const places = indexes.map((known) => Number(known.get(access.srcs[1] as UOp)) * base.itemsize);
  const eighths = range(4).map((e) => new Set(places.slice(8 * e, 8 * e + 8).map((p) => (p % 128) >> 4)));
  return Math.min(...eighths.map((s) => s.size));
}

describe("SHARED", () => {
  const tile = [
    opt("UPCAST", 0, 2),
    opt("LOCAL", 0, 4),
    opt("UPCAST", 1, 4),
    opt("LOCAL", 1, 4),
    opt("UNROLL", 2, 4),
  ];
  test.each(WAYS)("operands in any order, 1 to 4 iterations ahead (%s, %s)", async (transA, transB) => {
    for (const stages of [1, 2, 3, 4]) {
      const kernel = await check(product(float32, [16, 24, 32], transA, transB), [
        ...tile,
        opt("SHARED", 2, stages),
      ]);
      const read = opsIn(kernel, "LOAD").map((u) => u.buffer.op);
      expect(new Set(read), "nothing else is read from global memory").toEqual(new Set(["DEFINE_LOCAL"]));
      expect(opsIn(kernel, "BARRIER")).toHaveLength(stages === 1 ? 2 : 1);
    }
  });
  test("lanes that lie a workgroup apart, and a reduce without a loop", async () => {
    const far = [opt("UPCAST", 1, 2), opt("LOCAL", 1, 4), opt("UPCAST", 1, 2), opt("LOCAL", 0, 4)];
    await check(product(float32, [8, 24, 32]), [...far, opt("UNROLL", 2, 8), opt("SHARED", 2, 2)]);
    const flat = await check(product(float32, [8, 8, 32]), [
      ...far,
      opt("UNROLL", 2, 8),
      opt("SHARED", 2, 2),
    ]);
    expect(trips(flat)).toEqual([]);
  });
  test("fewer iterations than are fetched ahead", async () => {
    await check(product(float32, [16, 8, 16]), [...tile, opt("SHARED", 2, 4)]);
  });
  test("a batch, and an epilogue", async () => {
    const batch = matrix(float32, [3, 8, 12], 3).dot(matrix(float32, [3, 12, 16], 4));
    await check(batch, [opt("LOCAL", 1, 4), opt("LOCAL", 2, 8), opt("UNROLL", 3, 4), opt("SHARED", 3, 2)]);
    const bias = product(float32, [16, 24, 32])
      .add(matrix(float32, [32], 5))
      .relu();
    await check(bias, [...tile, opt("SHARED", 2, 2)]);
  });
  test("a long sum stays one loop", async () => {
    const kernel = await check(product(float32, [4, 8192, 8]), [
      opt("LOCAL", 0, 4),
      opt("LOCAL", 1, 8),
      opt("UNROLL", 2, 16),
      opt("SHARED", 2, 2),
    ]);
    expect(trips(kernel)).toEqual([512]);
  });
  test("refused: nothing to share, no such axis, too much, twice, an operand that is not a box", async () => {
    const item = await lastItem(product(float32, [8, 8, 8]));
    const refusal = (...list: OptOp[]) =>
      expect(() => lowered(item, [opt("LOCAL", 0, 4), ...list], gpuTarget(32)));
    expect(() => lowered(item, [opt("SHARED", 2, 2)], gpuTarget(32))).toThrow(
      /SHARED\(2, stages=2\).*expected LOCAL/,
    );
    refusal(opt("SHARED", 0, 2)).toThrow(
      /SHARED\(0, stages=2\): axis 0 is an output axis.*takes a reduce axis/,
    );
    refusal(opt("SHARED", 2, 0)).toThrow(
      /SHARED\(2, stages=0\): stages is 0; expected a whole number, 1 or more/,
    );
    refusal(opt("SHARED", 2, 2), opt("SHARED", 2, 3)).toThrow(
      /SHARED\(2, stages=2\) SHARED\(2, stages=3\): expected one/,
    );
    refusal(opt("LOCAL", 1, 8), opt("SHARED", 2, 9999)).toThrow(
      /SHARED\(2, stages=9999\): .* bytes .* GPU32 has 49152/,
    );
    const padded = await lastItem(
      matrix(float32, [6, 8], 6)
        .pad([[1, 1], null])
        .dot(matrix(float32, [8, 8], 7)),
    );
    const kernel = lowered(
      padded,
      [opt("LOCAL", 0, 4), opt("LOCAL", 1, 4), opt("SHARED", 2, 2)],
      gpuTarget(32),
    );
    expect(opsIn(kernel, "DEFINE_LOCAL"), "zeros are written around the padded one").toHaveLength(2);
  });
});

/** Of the cores, tf32 alone has to be allowed. */
const allowed = env as { ALLOW_TF32: number };
describe.each(MMA.map((core, i) => [core.name, i] as const))("TC: %s", (_, number) => {
  const core = MMA[number] as (typeof MMA)[number];
  beforeAll(() => {
    allowed.ALLOW_TF32 = core.ignored > 0 ? 1 : 0;
  });
  afterAll(() => {
    allowed.ALLOW_TF32 = 0;
  });
  const size = [32, 4 * core.k, 32] as const;
  const warps = [opt("UPCAST", 0, 2), opt("LOCAL", 1, 2), opt("UPCAST", 1, 2)];
  test.each(WAYS)("element by element (%s, %s)", async (transA, transB) => {
    const kernel = await check(product(core.from, size, transA, transB), [opt("TC", 2, number)]);
    expect(opsIn(kernel, "WMMA")).toHaveLength(1);
    expect([kernel.globalSize, kernel.localSize]).toEqual([[4, 2], [32]]);
  });
  test.each(WAYS)(
    "through shared memory, several warps with several results each (%s, %s)",
    async (transA, transB) => {
      for (const stages of [1, 2, 3]) {
        const list = [opt("TC", 2, number), ...warps, opt("UNROLL", 2, 2), opt("SHARED", 2, stages)];
        const kernel = await check(product(core.from, size, transA, transB), list);
        expect(opsIn(kernel, "WMMA")).toHaveLength(8);
        expect(kernel.localSize).toEqual([32, 2]);
        const hasMatrixLoads = core.from.itemsize === 2 || (!transA && transB);
        if (hasMatrixLoads)
          expect(opsIn(kernel, "LOAD").filter((u) => u.buffer.op === "DEFINE_GLOBAL")).toEqual([]);
      }
    },
  );
  test.each(WAYS)(
    "what is read or copied at once lies in different banks (%s, %s)",
    async (transA, transB) => {
      for (const unroll of [1, 2, 4]) {
        const list = [opt("TC", 2, number), ...warps, opt("UNROLL", 2, unroll), opt("SHARED", 2, 2)];
        // a block that is as wide as the matrix, and one of several
        const item = await lastItem(product(core.from, [32, 8 * core.k, 32 * unroll], transA, transB));
        const kernel = lowered(item, list, gpuTarget(32));
        const indexes = indexesOf(kernel);
        const isMatrix = core.from.itemsize === 2 || (!transA && transB);
        const copies = opsIn(kernel, "ASYNC").filter((u) => isMatrix && u.arg === 16 / core.from.itemsize);
        const reads = opsIn(kernel, "LDMATRIX");
        if (isMatrix) expect(Math.min(reads.length, copies.length)).toBeGreaterThan(0);
        for (const u of [...reads, ...copies]) expect(banks(u, indexes)).toBe(8);
      }
    },
  );
  test("matrices are read four at once, by iterations ahead of those that multiply them", async () => {
    const list = [opt("TC", 2, number), ...warps, opt("UNROLL", 2, 2), opt("SHARED", 2, 3)];
    const kernel = await check(product(core.from, [32, 6 * core.k, 32], false, true), list);
    const [loop] = opsIn(kernel, "LOOP") as [UOp];
    const at = (u: UOp): number => kernel.uops.indexOf(u);
    const reads = opsIn(kernel, "LDMATRIX");
    expect(reads.every((u) => u.dtype === dtypes.uint32.vec(4))).toBe(true);
    // 2 of a and 1 of b for each of 2 lanes, and those of the first lane before the loop
    expect(reads).toHaveLength(9);
    expect(reads.filter((u) => at(u) < at(loop))).toHaveLength(3);
    const products = opsIn(kernel, "WMMA");
    const last = products.at(-1) as UOp;
    expect(reads.every((u) => at(u) < at(last))).toBe(true);
    const barrier = opsIn(kernel, "BARRIER").at(-1) as UOp;
    expect(products.filter((u) => at(u) > at(barrier)).length, "what can go on beyond the barrier").toBe(4);
    expect(kernel.ops, "addresses and copies do not count").toBe(2 * 32 * 6 * core.k * 32);
  });
  test("one warp copies a few rows at a time: the pieces of each of them change places in another way", async () => {
    const shape = [32, 8 * core.k, 16] as const;
    const list = [opt("TC", 2, number), opt("UPCAST", 0, 2), opt("UPCAST", 1, 2)];
    for (const [transA, transB] of WAYS) {
      for (const unroll of [2, 4])
        await check(product(core.from, shape, transA, transB), [
          ...list,
          opt("UNROLL", 2, unroll),
          opt("SHARED", 2, 2),
        ]);
    }
  });
  test("random lists", async () => {
    const random = new Random(100 + number);
    for (let i = 0; i < 4; i++) {
      const [lanesM, lanesN] = [random.pick([1, 2, 3]), random.pick([1, 2, 3, 4])];
      const [warpsM, warpsN] = [random.pick([1, 2]), random.pick([1, 2])];
      const [unroll, iterations, stages] = [random.pick([1, 2, 3, 4]), random.int(1, 4), random.int(1, 4)];
      const shape = [16 * lanesM * warpsM, core.k * unroll * iterations, 8 * lanesN * warpsN] as const;
      const list = [
        opt("TC", 2, number),
        opt("UPCAST", 0, lanesM),
        opt("LOCAL", 0, warpsM),
        opt("UPCAST", 1, lanesN),
        opt("LOCAL", 1, warpsN),
        opt("UNROLL", 2, unroll),
        opt("SHARED", 2, stages),
      ];
      await check(product(core.from, shape, random.pick([true, false]), random.pick([true, false])), list);
    }
  });
  test("an epilogue, a batch, a sum without a loop", async () => {
    const bias = product(core.from, size)
      .cast(float32)
      .add(matrix(float32, [32], 5))
      .relu();
    await check(bias, [opt("TC", 2, number), ...warps, opt("SHARED", 2, 2)]);
    const batch = matrix(core.from, [2, 16, core.k], 3).dot(matrix(core.from, [2, core.k, 8], 4));
    await check(batch, [opt("TC", 3, number)]);
  });
  test("refused: other types, sums of other things", async () => {
    const t = gpuTarget(32);
    const list = [opt("TC", 2, number)];
    const odd = await lastItem(product(core.from, [24, core.k, 8]));
    const other = await lastItem(product(dtypes.float64, size));
    expect(() => lowered(other, list, t)).toThrow(
      /adds up products.*float32.*SUM of MUL as float64; name another/,
    );
    const wrong = await lastItem(product(float32, size));
    const refusesFloats = () => lowered(wrong, list, t);
    if (core.from !== float32) {
      const what = `${core.name} does not fit, it multiplies ${core.from.name} and the factors are float32; name another`;
      expect(refusesFloats).toThrow(what);
    }
    const sum = await lastItem(matrix(float32, [32, 32, 64], 8).sum(2));
    expect(() => lowered(sum, list, t)).toThrow(ArgumentError);
    expect(() => lowered(odd, [opt("TC", 2, 99)], t)).toThrow("m16n8k16 bf16");
    expect(() => lowered(wrong, [...list, opt("TC", 2, 0)], t)).toThrow(
      /TC\(2, core=0\): expected one TC in a list/,
    );
  });
});

test("how many workgroups share a multiprocessor is said where registers are what they share", async () => {
  const text = async (t: Tensor): Promise<string> =>
    CUDARenderer.render("k", toFastKernel((await lastItem(t)).ast, hopper, false).uops).code;
  const hopper = { ...CUDARenderer, sharedMax: 232448 };
  const of = (type: DType, n: number): Tensor => Tensor.empty([n, n], { device: "JS", dtype: type });
  expect(await text(of(dtypes.bfloat16, 4096).dot(of(dtypes.bfloat16, 4096)))).toContain(
    "bounds__(256, 1) k(",
  );
  expect(await text(of(float32, 4096).dot(of(float32, 4096)))).toContain("bounds__(256, 2) k(");
  expect(await text(of(float32, 1024).dot(of(float32, 1024)))).toContain("bounds__(256) k(");
});
test("a block that is larger where shared memory and the result are", async () => {
  const block = async (m: number, n: number, sharedMax: number): Promise<number[]> => {
    const of = (...shape: number[]): Tensor => Tensor.empty(shape, { device: "JS", dtype: dtypes.bfloat16 });
    const item = await lastItem(of(m, 1024).dot(of(1024, n)));
    const { globalSize } = toFastKernel(item.ast, { ...CUDARenderer, sharedMax }, false);
    return [m / Number(globalSize[1]), n / Number(globalSize[0])];
  };
  expect(await block(4096, 4096, 232448)).toEqual([128, 256]);
  expect(await block(2048, 2048, 232448), "128 of 132 compute units").toEqual([128, 256]);
  expect(await block(4096, 4096, 101376)).toEqual([128, 128]);
  expect(await block(4096, 4096, 49152)).toEqual([128, 128]);
  expect(await block(4096, 128, 232448)).toEqual([64, 64]);
});

test("the workgroups of a large product go through it in strips of rows", async () => {
  const item = await lastItem(product(dtypes.bfloat16, [16 * 16, 16, 8 * 3]));
  const with_ = (units: number): Kernel =>
    lowered(item, [opt("TC", 2, 0)], {
      ...gpuTarget(32),
      gpu: { ...(gpuTarget(32).gpu as Gpu), computeUnits: units },
    });
  const [strips, rows] = [with_(11), with_(12)];
  expect([strips.globalSize, rows.globalSize]).toEqual([
    [3, 16],
    [3, 16],
  ]);
  expect(opsIn(strips, "ALU").length).toBe(opsIn(rows, "ALU").length + 8);
  expect(await runKernel(item, strips)).toEqual(await runKernel(item, lowered(item)));
});
test("what a step computes: exact products, added one after the other, rounded to float32 each time", async () => {
  const big = 2 ** 24;
  const a: Value[] = Array.from({ length: 16 * 16 }, (_, i) => (i % 16 === 0 ? big : 1));
  const x = tensor("JS", dtypes.bfloat16, a, [16, 16]);
  const y = tensor("JS", dtypes.bfloat16, new Array(16 * 8).fill(1), [16, 8]);
  const item = await lastItem(x.cast(float32).dot(y.cast(float32)));
  const kernel = lowered(item, [opt("TC", 2, 0)], gpuTarget(32));
  // 2^24 + 1 is 2^24 in float32, fifteen times
  expect(new Set(await runKernel(item, kernel))).toEqual(new Set([big]));
});

test("tf32 does not look at the last 13 bits", async () => {
  const x = tensor("JS", float32, new Array(16 * 8).fill(1 + 2 ** -11), [16, 8]);
  const y = tensor("JS", float32, new Array(8 * 8).fill(1), [8, 8]);
  const item = await lastItem(x.dot(y));
  const tf32 = (): Kernel => lowered(item, [opt("TC", 2, 2)], gpuTarget(32));
  expect((await runKernel(item, withEnv({ ALLOW_TF32: 1 }, tf32)))[0]).toBe(8);
  expect(tf32, "a list from elsewhere").toThrow(
    "TC(2, core=2): m16n8k8 tf32 ignores the last 13 bits of its factors; expected a tensor core that is " +
      "exact. Set ALLOW_TF32=1, or leave TC out",
  );
  expect((await runKernel(item, toFastKernel(item.ast, gpuTarget(32), false)))[0]).toBeGreaterThan(8);
});
