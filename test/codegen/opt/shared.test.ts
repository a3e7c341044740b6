// Convolutions and their gradients through shared memory (SHARED), run by JS, which finds races: parts of
// buffers that are windows, loops inside and outside of the one that fetches, ranges that go backwards. Small
// whole numbers: sums are exact.

import { ArgumentError, dtypes, type Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { fitting, type Kernel, prepare } from "../../../src/codegen/kernel.ts";
import { type OptOp, showOpts } from "../../../src/codegen/opt/opts.ts";
import { layoutOf } from "../../../src/codegen/opt/shared.ts";
import type { Gpu, Renderer } from "../../../src/codegen/target.ts";
import { Device } from "../../../src/runtime/registry.ts";
import type { ScheduleItem } from "../../../src/schedule/schedule.ts";
import type { UOp } from "../../../src/uop/node.ts";
import { expectValues } from "../../device/harness.ts";
import { Random } from "../../shape/random.ts";
import { gpuTarget, lastItem, lowered, opsIn, opt, runKernel, trips, wholeFloats } from "../kernels.ts";

await Device.open("JS");
const TARGET = gpuTarget(32);
/** A GPU whose hardware does not copy by itself. */
const REGISTERS: Renderer = { ...TARGET, gpu: { ...(TARGET.gpu as Gpu), hasAsyncCopy: false } };
const inStages = (opts: readonly OptOp[], most: number): OptOp[] =>
  opts.map((o) => (o.op === "SHARED" ? { ...o, stages: Math.min(o.stages, most) } : o));

/** With asynchronous copies, whose kernel it gives, and with copies through registers. */
async function check(item: ScheduleItem, opts: readonly OptOp[], seed = 0): Promise<Kernel> {
  const kernel = lowered(item, opts, TARGET);
  const what = `seed ${seed}: ${kernel.name} with ${showOpts(opts)}`;
  const want = await runKernel(item, lowered(item));
  expectValues(dtypes.float32, await runKernel(item, kernel), want, what, { zeros: "equal" });
  const copied = lowered(item, inStages(opts, 2), REGISTERS);
  expect(opsIn(copied, "ASYNC")).toEqual([]);
  const through = `${what}, through registers`;
  expectValues(dtypes.float32, await runKernel(item, copied), want, through, { zeros: "equal" });
  return kernel;
}
const whole = (shape: readonly number[], seed: number): Tensor =>
  wholeFloats("JS", shape, new Random(seed)).contiguous();
/** What is read from global memory other than by copies. */
const direct = (kernel: Kernel): number =>
  opsIn(kernel, "LOAD").filter((u) => u.buffer.op === "DEFINE_GLOBAL").length;

test("how a tile is laid out follows from the target's vectors and banks", () => {
  const row = { of: 0, size: 32, stride: 1, kind: "lane" } as const;
  const rows = { of: 1, size: 8, stride: 32, kind: "tile" } as const;
  const laid = (vectorBytes: number, sharedRate: number) =>
    layoutOf([row, rows], [], 4, { vectorBytes, sharedRate }, "swizzled");
  expect(laid(16, 128)).toMatchObject({ vector: 4, swizzle: { unit: 4, pieces: 8, every: 32 } });
  expect(laid(8, 64)).toMatchObject({ vector: 2, swizzle: { unit: 2, pieces: 8, every: 32 } });
  expect(laid(8, 256)).toMatchObject({ vector: 2, swizzle: { unit: 2, pieces: 16, every: 64 } });
});

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

describe("copies through registers", () => {
  const product = () => lastItem(whole([64, 48], 10).dot(whole([48, 64], 11)));
  const list = [opt("UPCAST", 0, 4), opt("LOCAL", 0, 8), opt("UPCAST", 1, 4), opt("LOCAL", 1, 8)];
  const tiled = (stages: number) => [...list, opt("UNROLL", 2, 8), opt("SHARED", 2, stages)];

  test("two stages: loads come before the arithmetic of an iteration, stores after it, one barrier", async () => {
    const item = await product();
    await check(item, tiled(2));
    const { uops } = lowered(item, tiled(2), REGISTERS);
    const all = uops.uops;
    const body = all.slice(
      all.findIndex((u) => u.op === "LOOP"),
      all.findIndex((u) => u.op === "ENDLOOP"),
    );
    const places = (is: (u: UOp) => boolean): number[] => body.flatMap((u, i) => (is(u) ? [i] : []));
    const copies = places((u) => u.op === "LOAD" && u.buffer.op === "DEFINE_GLOBAL");
    const reads = places((u) => u.op === "LOAD" && u.buffer.op === "DEFINE_LOCAL");
    const stores = places((u) => u.op === "STORE");
    expect(copies.length).toBeGreaterThan(0);
    expect(stores).toHaveLength(copies.length);
    expect(Math.max(...copies)).toBeLessThan(Math.min(...reads));
    expect(Math.max(...reads)).toBeLessThan(Math.min(...stores));
    expect(places((u) => u.op === "BARRIER")).toHaveLength(1);
  });
  test("one stage takes half the memory and a second barrier", async () => {
    const item = await product();
    await check(item, tiled(1));
    const [one, two] = [1, 2].map((stages) => lowered(item, tiled(stages), REGISTERS)) as [Kernel, Kernel];
    const room = (k: Kernel): number => opsIn(k, "DEFINE_LOCAL").reduce((n, u) => n + u.elements, 0);
    expect(room(two)).toBe(2 * room(one));
    expect(opsIn(one, "BARRIER")).toHaveLength(2);
  });
  test("refused: more stages than registers can fill, and targets without shared memory", async () => {
    const item = await product();
    expect(() => lowered(item, tiled(3), REGISTERS)).toThrow(/SHARED.*through registers, in up to 2 stages/);
    const bare = { ...TARGET, gpu: undefined };
    expect(() => lowered(item, tiled(2), bare)).toThrow(/SHARED.*has no shared memory/);
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
