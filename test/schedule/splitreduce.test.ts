// Split reductions: two kernels on a GPU whose compute units would be idle, one kernel elsewhere. Tests which
// axis is split, which reductions stay whole, and that the values are the same.

import { createSchedule, Device, type ScheduleItem, Tensor, TinyJit, withEnv } from "gradloom";
import { CUDARenderer } from "gradloom/render";
import { beforeAll, describe, expect, test } from "vitest";
import { open as openNull } from "../../src/devices/null.ts";
import { cudaFor } from "../../src/render/languages.ts";
import { registerOracle } from "../devices/oracle.ts";
import { Random } from "../shape/random.ts";

const UNITS = 6;
/** As many elements as make a second kernel worth while there. */
const MANY = UNITS * 2 ** 15;
const GPU = registerOracle("GPUUNITS", cudaFor(CUDARenderer, 90, { computeUnits: UNITS }));
const LARGE = registerOracle("GPULARGE", CUDARenderer);
beforeAll(() => Promise.all([GPU, LARGE].map((device) => Tensor.ones([1], { device }).realize())));

/** Never computed, so its size costs nothing. */
const empty = (shape: readonly number[], device = GPU): Tensor => Tensor.empty(shape, { device });
const kernelsOf = (...ts: readonly Tensor[]): ScheduleItem[] =>
  createSchedule(ts.map((t) => t.lazydata)).filter((i) => i.ast[0]?.op === "STORE");
/** Elements of each output of each kernel. */
const sizes = (...ts: readonly Tensor[]): number[][] =>
  kernelsOf(...ts).map((i) => i.outputs.map((b) => b.size));

/** Elements of the first output of each kernel. */
const outputs = (t: Tensor): number[] => sizes(t).map(([n]) => n as number);

describe("two kernels", () => {
  test("for a sum per channel: the first axis with suitable divisors is split", () => {
    const x = empty([64, 3, MANY / 192]);
    expect(sizes(x.sum([0, 2]))).toEqual([[3 * 4], [3]]);
    // 9 has no divisor from 4 to 7
    expect(sizes(empty([9, 3, 2 ** 13]).sum([0, 2]))).toEqual([[3 * 4], [3]]);
  });
  test("on a GPU, not elsewhere, and not with FUSE=0", () => {
    const sum = (device: string): number => kernelsOf(empty([64, 3, MANY / 192], device).sum([0, 2])).length;
    expect([sum(GPU), sum("JS")]).toEqual([2, 1]);
    expect(withEnv({ FUSE: 0 }, () => sum(GPU))).toBe(1);
  });
  test("not with enough results, few elements, or no axis with suitable divisors", () => {
    const enough = UNITS / 2 + 1;
    expect(sizes(empty([64, enough, MANY / 128]).sum([0, 2]))).toEqual([[enough]]);
    expect(sizes(empty([64, 3, MANY / 192 - 1]).sum([0, 2]))).toEqual([[3]]);
    expect(sizes(empty([11, 3, 65_537]).sum([0, 2]))).toEqual([[3]]);
  });
  test("for several sums of one array at once: partial results of each, then all totals", () => {
    const x = empty([64, 3, MANY / 192]);
    const y = empty([64, 3, MANY / 192]);
    expect(sizes(x.sum([0, 2]), x.mul(y).sum([0, 2]), x.max([0, 2]))).toEqual([
      [12, 12, 12],
      [3, 3, 3],
    ]);
  });
  test("for each of several dependent reductions", () => {
    const x = empty([64, 3, MANY / 192]);
    const mean = x.mean([0, 2], true);
    expect(sizes(mean, x.sub(mean).square().mean([0, 2]))).toEqual([[12], [3], [12], [3]]);
    const rows = empty([3, 2 ** 16]);
    const sum = rows.sum(1, true);
    expect(sizes(sum, rows.sub(sum).square().sum(1))).toEqual([[12], [3], [12], [3]]);
    // the maxima are computed twice, for two readers
    const more = empty([3, 3 * 2 ** 15]);
    const exps = more.sub(more.max(1, true)).exp().sum(1);
    expect(sizes(more.max(1), exps)).toEqual([[12, 12], [3, 3], [12], [3]]);
  });
  test("read only the inputs that they need", () => {
    const x = empty([64, 3, MANY / 192]);
    const [scale, shift] = [empty([1, 3, 1]), empty([3])];
    const [parts, rest] = kernelsOf(x.mul(scale).sum([0, 2]).add(shift)) as [ScheduleItem, ScheduleItem];
    expect([parts.inputs.length, rest.inputs.length]).toEqual([2, 2]);
    expect(rest.inputs).toContain(parts.outputs[0]);
    expect([parts.lazies, rest.lazies.length]).toEqual([[], 1]);
  });
});

test("how many products a contraction must have to be split depends on the compute units", () => {
  const kernels = (device: string, terms: number): number =>
    kernelsOf(empty([32, terms], device).matmul(empty([terms, 32], device))).length;
  const few = UNITS * 2 ** 9; // 32 * 32 * few products: 2^19 for each of these units
  expect([kernels(GPU, few), kernels(GPU, few - UNITS)]).toEqual([2, 1]);
  expect(kernels(LARGE, few)).toBe(1);
});

describe("one kernel", () => {
  test("for a one-hot sum: it becomes a load only if it is not split", () => {
    const table = empty([2 ** 17]);
    const numbers = Tensor.arange(2 ** 17, { device: GPU });
    const pick = (at: Tensor): Tensor => numbers.eq(at.reshape(2, 1)).where(table, 0).sum(1);
    const at = Tensor.empty([2], { device: GPU, dtype: "int32" });
    expect(sizes(pick(at))).toEqual([[2]]);
  });
  test("but an ARANGE along another axis does not matter", () => {
    const x = empty([64, 3, MANY / 192]);
    const numbers = Tensor.arange(MANY / 192, { device: GPU });
    const at = Tensor.empty([64, 3, 1], { device: GPU, dtype: "int32" });
    expect(sizes(numbers.eq(at).where(x, 0).sum([0, 2]))).toEqual([[12], [3]]);
    // the terms of the first row, and zeros
    const some = numbers.reshape(1, 1, MANY / 192).pad([[0, 63], null, null]);
    expect(sizes(some.eq(at).where(x, 0).sum([0, 2]))).toEqual([[3]]);
  });
  test("for reductions that depend on one another in it, or run along other axes", () => {
    // small enough to stay in one kernel, large enough to be split
    const x = empty([3, 2 ** 16]);
    expect(sizes(x.sum(1))).toEqual([[12], [3]]);
    expect(sizes(x.var(1))).toEqual([[3]]);
    expect(sizes(x.softmax(1))).toEqual([[3 * 2 ** 16]]);
    const both = x.sub(x.max(1, true)).sub(x.max(0, true));
    expect(sizes(both)).toEqual([[3 * 2 ** 16]]);
  });
});

describe("values", () => {
  const waves = (device: string, shape: readonly number[], speed: number): Tensor =>
    new Tensor(
      Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i * speed)),
      { device },
    ).reshape(...shape);
  const close = (got: Float32Array, want: Float32Array, what: string): void =>
    want.forEach(
      (v, i) =>
        void expect(Math.abs((got[i] as number) - v), what).toBeLessThan(1e-4 * Math.max(1, Math.abs(v))),
    );

  test("of random sums, means, maxima and variances through random views", async () => {
    const r = new Random(3);
    let cut = 0;
    for (let i = 0; i < 4; i++) {
      const channels = r.int(1, UNITS / 2);
      const [n, k] = [r.pick([24, 32, 45, 64]), r.pick([64, 96, 100])];
      const rows = Math.ceil(MANY / (n * k * channels));
      const results = (device: string): Tensor[] => {
        const x = waves(device, [n, rows, k, channels], 0.37).permute(0, 3, 1, 2);
        const seen = i % 2 === 0 ? x : x.flip(0);
        const y = waves(device, [channels], 1).reshape(channels, 1, 1);
        return [
          seen.mul(y).mean([0, 2, 3]),
          seen.max([0, 2, 3]),
          seen.sub(y).square().mean([0, 2, 3]).sqrt().add(y.reshape(channels)),
        ];
      };
      const got = results(GPU);
      cut += kernelsOf(...got).filter((item) => item.lazies.length === 0).length;
      await Tensor.realize(...got);
      const want = results("WASM");
      for (const [j, t] of got.entries())
        close((await t.data()) as Float32Array, (await want[j]?.data()) as Float32Array, `${i}: ${j}`);
    }
    expect(cut).toBeGreaterThanOrEqual(4);
  }, 120_000);

  test("of a captured step, which keeps the partial results in its arena", async () => {
    const shape = [64, 3, MANY / 192];
    const step = new TinyJit((x: Tensor) => x.mul(2).sum([0, 2]));
    const inputs = [0.3, 0.5, 0.7].map((speed) => waves(GPU, shape, speed));
    for (const [i, x] of inputs.entries()) {
      await x.realize();
      const got = (await step(x)) as Tensor;
      const want = waves("WASM", shape, [0.3, 0.5, 0.7][i] as number)
        .mul(2)
        .sum([0, 2]);
      close((await got.data()) as Float32Array, (await want.data()) as Float32Array, `${i}`);
    }
    expect(step.jitCache).toHaveLength(2);
  }, 60_000);
});

function weightGradient(device: string, batch: number, from: number, to: number, side: number): Tensor {
  const w = empty([to, from, 3, 3], device);
  w.requiresGrad = true;
  const y = empty([batch, from, side, side], device).conv2d(w);
  y.backward(empty(y.shape as number[], device));
  return w.grad as Tensor;
}

describe("contractions with few results", () => {
  test("are split on a GPU, at least one part per compute unit, and nowhere else", () => {
    const results = 64 * 64 * 9;
    const [partial, total, ...more] = outputs(weightGradient(LARGE, 512, 64, 64, 8));
    expect([total, more]).toEqual([results, []]);
    const parts = (partial as number) / results;
    expect(512 % parts).toBe(0);
    expect(parts * (results / 2 ** 14)).toBeGreaterThanOrEqual(132);
    expect(outputs(weightGradient("JS", 512, 64, 64, 8))).toEqual([results]);
  });
  test("but not with little work, or with enough independent work", () => {
    expect(outputs(weightGradient(LARGE, 8, 16, 16, 8))).toEqual([16 * 16 * 9]);
    expect(outputs(empty([2048, 1024], LARGE).dot(empty([1024, 2048], LARGE)))).toEqual([2048 * 2048]);
    // each operand is read once: there is no tile of results to compute at once
    expect(
      outputs(
        empty([4096, 2 ** 15], LARGE)
          .mul(empty([4096, 2 ** 15], LARGE))
          .sum(1),
      ),
    ).toEqual([4096]);
  });
  test("nor where a part would have few terms, or where nothing is summed", () => {
    const square = (k: number): number[] => outputs(empty([512, k], LARGE).dot(empty([k, 512], LARGE)));
    expect(square(768)).toEqual([2 ** 18]);
    expect(square(1024)).toEqual([4 * 2 ** 18, 2 ** 18]);
    const [a, b] = [empty([64, 1, 2 ** 15], LARGE), empty([1, 64, 2 ** 15], LARGE)];
    expect(outputs(a.mul(b).sum(2))).toHaveLength(2);
    expect(outputs(a.mul(b).max(2))).toEqual([64 * 64]);
  });
  test("a product of matrices with a long sum", () => {
    const sizes = outputs(empty([64, 2 ** 17], LARGE).dot(empty([2 ** 17, 64], LARGE)));
    expect(sizes).toHaveLength(2);
    expect(sizes[1]).toBe(64 * 64);
  });
  test("an odd batch has equal parts", () => {
    const results = 64 * 64 * 9;
    for (const batch of [11, 15, 45]) {
      const [partial, total, ...more] = outputs(weightGradient(LARGE, batch, 64, 64, 30));
      expect([total, more], `${batch}`).toEqual([results, []]);
      // 11 is prime: the rows of the pictures are split instead
      expect((batch === 11 ? 28 : batch) % ((partial as number) / results), `${batch}`).toBe(0);
    }
  });
  test("also in the first call of a jit, which opens the GPU", async () => {
    const device = "GPUCLOSED";
    const closed = { ...openNull(device), renderer: CUDARenderer };
    Device.register({ [device]: { storage: "memory", load: () => ({ open: () => closed }) } });
    const [x, g] = [empty([512, 64, 8, 8], device), empty([512, 64, 6, 6], device)];
    const step = new TinyJit(async () => {
      const w = Tensor.zeros([64, 64, 3, 3], { device }).contiguous();
      w.requiresGrad = true;
      x.conv2d(w).backward(g);
      return (w.grad as Tensor).realize();
    });
    for (let i = 0; i < 3; i++) await step();
    expect(step.jitCache).toHaveLength(2);
  });
});
