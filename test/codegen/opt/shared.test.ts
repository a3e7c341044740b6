// Convolutions and their gradients through shared memory (SHARED), run by JS, which finds races: parts of
// buffers that are windows, loops inside and outside of the one that fetches, ranges that go backwards. Small
// whole numbers: sums are exact.

import { ArgumentError, dtypes, type Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { fitting, type Kernel, prepare } from "../../../src/codegen/kernel.ts";
import { type OptOp, showOpts } from "../../../src/codegen/opt/opts.ts";
import { Device } from "../../../src/runtime/registry.ts";
import type { ScheduleItem } from "../../../src/schedule/schedule.ts";
import { expectValues } from "../../device/harness.ts";
import { Random } from "../../shape/random.ts";
import { gpuTarget, lastItem, lowered, opsIn, opt, runKernel, trips, wholeFloats } from "../kernels.ts";

await Device.open("JS");
const TARGET = gpuTarget(32);

async function check(item: ScheduleItem, opts: readonly OptOp[], seed = 0): Promise<Kernel> {
  const kernel = lowered(item, opts, TARGET);
  const what = `seed ${seed}: ${kernel.name} with ${showOpts(opts)}`;
  const want = await runKernel(item, lowered(item));
  expectValues(dtypes.float32, await runKernel(item, kernel), want, what, { zeros: "equal" });
  return kernel;
}
const whole = (shape: readonly number[], seed: number): Tensor =>
  wholeFloats("JS", shape, new Random(seed)).contiguous();
/** What is read from global memory other than by copies. */
const direct = (kernel: Kernel): number =>
  opsIn(kernel, "LOAD").filter((u) => u.buffer.op === "DEFINE_GLOBAL").length;

/** The gradient of a convolution's weight. */
function weightGradient(x: Tensor, w: Tensor, seed: number, options = {}): Tensor {
  w.requiresGrad = true;
  const y = x.conv2d(w, null, options);
  y.mul(whole(y.shape as number[], seed))
    .sum()
    .backward();
  return w.grad as Tensor;
}
/** The convolution that the gradient of its input is: weights turned round. */
const turned = (g: Tensor, w: Tensor): Tensor => g.conv2d(w.permute(1, 0, 2, 3).flip([2, 3]));

describe("windows", () => {
  test("a convolution: pictures and weights are read from shared memory only", async () => {
    const item = await lastItem(whole([2, 6, 10, 10], 1).conv2d(whole([8, 6, 3, 3], 2)));
    for (const stages of [1, 2, 3]) {
      const kernel = await check(item, [
        opt("UPCAST", 3, 4),
        opt("UPCAST", 1, 4),
        opt("LOCAL", 3, 2),
        opt("LOCAL", 2, 4),
        opt("LOCAL", 1, 2),
        opt("UNROLL", 6, 3),
        opt("SHARED", 4, stages),
      ]);
      expect(direct(kernel)).toBe(0);
      expect(trips(kernel), "the channels, and the rows of the window inside").toEqual([6, 3]);
      const [picture, weights] = opsIn(kernel, "DEFINE_LOCAL").map((u) => u.elements);
      expect(picture, "rows 0 to 5 of all 10 columns").toBe(60 * stages);
      expect(weights, "4 channels for each of 9, twice").toBe(4 * 9 * 2 * stages);
      // 6 neighbours of a row that starts at an even place; 4 channels for each of 3 columns
      const counts = opsIn(kernel, "LOAD").map((u) => (u.dtype as { count: number }).count);
      expect(counts.sort()).toEqual([2, 2, 2, 4, 4, 4]);
    }
  });
  test("a gradient of the weights: pictures are fetched row by row, inside the loop over them", async () => {
    const item = await lastItem(weightGradient(whole([3, 4, 8, 8], 3), whole([8, 4, 3, 3], 4), 5));
    const list = [opt("UPCAST", 3, 3), opt("UPCAST", 1, 4), opt("LOCAL", 0, 4), opt("LOCAL", 1, 2)];
    const unrolled = [...list, opt("LOCAL", 2, 3), opt("UNROLL", 6, 6)];
    for (const stages of [1, 2, 3]) {
      const kernel = await check(item, [...unrolled, opt("SHARED", 5, stages)]);
      expect(direct(kernel)).toBe(0);
      expect(trips(kernel)).toEqual([3, 6]);
      expect(opsIn(kernel, "BARRIER"), "the memory is used again for each picture").toHaveLength(
        stages === 1 ? 3 : 2,
      );
      const pictures = await check(item, [...list, opt("UNROLL", 6, 2), opt("SHARED", 4, stages)]);
      expect(direct(pictures)).toBe(0);
      expect(trips(pictures)).toEqual([3, 6, 3]);
    }
  });
  test("weights that are turned round", async () => {
    const item = await lastItem(turned(whole([2, 4, 8, 8], 6), whole([4, 8, 3, 3], 7)));
    const kernel = await check(item, [
      opt("UPCAST", 1, 4),
      opt("LOCAL", 1, 2),
      opt("LOCAL", 3, 6),
      opt("UNROLL", 6, 3),
      opt("SHARED", 4, 2),
    ]);
    expect(direct(kernel)).toBe(0);
  });
  test("refused: an axis without a loop where others have one", async () => {
    const item = await lastItem(whole([2, 4, 8, 8], 8).conv2d(whole([4, 4, 3, 3], 9)));
    const list = [opt("LOCAL", 1, 4), opt("LOCAL", 3, 6), opt("UNROLL", 6, 3), opt("SHARED", 6, 2)];
    expect(() => lowered(item, list, TARGET)).toThrow(ArgumentError);
  });
});

/** Ops on any axes, by amounts that divide them, and SHARED on an axis of the sum. */
function randomList(r: Random, item: ScheduleItem): OptOp[] {
  const { axes } = prepare(item.ast, [], TARGET);
  const left = axes.map((a) => Number(a.size));
  const list: OptOp[] = [];
  for (let n = r.int(2, 7); n > 0; n--) {
    const { id, of, kind } = r.pick(axes);
    const factors = [2, 3, 4, 5, 8].filter((f) => (left[id] as number) % f === 0);
    const isSum = kind === "reduce";
    if (factors.length === 0 || (isSum && r.chance(40))) continue;
    const op = isSum ? (r.chance(15) ? "GROUPTOP" : "UNROLL") : r.chance(60) ? "LOCAL" : "UPCAST";
    const amount = r.pick(factors);
    left[id] = (left[id] as number) / amount;
    list.push(opt(op, of, amount));
  }
  const sums = axes.filter((a) => a.kind === "reduce");
  return [...list, opt("SHARED", r.pick(sums).of, r.int(1, 3))];
}

function randomConvolution(r: Random, seed: number): Tensor {
  const groups = r.chance(25) ? 2 : 1;
  const [stride, dilation] = [r.pick([1, 1, 2, 3]), r.pick([1, 1, 2])];
  const padding = r.pick([0, 0, 0, 1]);
  const [k, from, to] = [r.int(1, 4), r.int(1, 4), r.int(1, 6)];
  const [high, wide] = [r.int(8, 13), r.int(8, 13)];
  const x = whole([r.int(1, 3), from * groups, high, wide], seed);
  const options = { stride, dilation, padding, groups };
  const w = whole([to * groups, from, k, r.int(1, 4)], seed + 1);
  if (r.chance(40)) return weightGradient(x, w, seed + 2, options);
  if (r.chance(20) && groups === 1) return turned(whole([2, to, high, wide], seed), w);
  return x.conv2d(w, null, options);
}

test("random convolutions with random lists", async () => {
  const first = 1000;
  let taken = 0;
  for (let seed = first; seed < first + 70; seed++) {
    const r = new Random(seed);
    const item = await lastItem(randomConvolution(r, seed));
    const plain = prepare(item.ast, [], TARGET).axes;
    if (!plain.some((a) => a.kind === "reduce")) continue;
    for (let n = 0; n < 3; n++) {
      const list = randomList(r, item);
      if (fitting(item.ast, list, TARGET) === undefined) continue;
      await check(item, list, seed);
      taken++;
    }
  }
  expect(taken, "lists that were not refused").toBeGreaterThan(40);
});
