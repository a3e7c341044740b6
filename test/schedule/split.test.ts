// What is stored in spite of fusion: the cost rule on both sides of its threshold, by its numbers and by the
// resulting kernels; and devices with few buffers per kernel: all kernels are within the limit and give the
// same results.

import { createSchedule, type ScheduleItem, Tensor as T, type Tensor, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";
import { runScheduleSync } from "../../src/engine/realize.ts";
import { isBetterStored } from "../../src/schedule/split.ts";
import { makeProgram } from "../device/program.ts";
import { itemsOf, kernels, ready, totalOps, worst } from "./count.ts";

const MANY = 1 << 20;
const big = ready([1024, MANY / 1024]);
const small = ready([8, 16]);
const plain = <R>(f: () => R): R => withEnv({ FUSE: 0 }, f);

describe("the cost rule", () => {
  /** A float32 computed from another one by `ops` operations, needed at `places` places. */
  const work = (n: number, ops: number, places: number) => ({
    ops: ops * n,
    bytesRead: 4 * n,
    elements: n,
    itemsize: 4,
    evaluated: places * n,
  });
  test("at two places 32 operations cost as much as a write and two reads; a kernel costs extra", () => {
    // fused 2 (4 + ops / 4), stored 4 + ops / 4 + 12 bytes per element
    expect(isBetterStored(work(MANY, 32, 2))).toBe(false);
    expect(isBetterStored(work(MANY, 33, 2))).toBe(true);
    // an eighth of the elements: 65536 bytes correspond to two more operations, and equal costs do not store
    expect(isBetterStored(work(MANY / 8, 34, 2))).toBe(false);
    expect(isBetterStored(work(MANY / 8, 35, 2))).toBe(true);
  });
  test("the more places, the cheaper the value that is stored", () => {
    const least = (places: number): number => {
      for (let ops = 0; ; ops++) if (isBetterStored(work(MANY, ops, places))) return ops;
    };
    expect([2, 3, 5, 9].map(least)).toEqual([33, 17, 9, 5]);
  });
  test("what is computed once stays fused, whatever it costs", () => {
    expect(isBetterStored(work(MANY, 1e6, 1))).toBe(false);
  });
  test("what reads many inputs is stored sooner", () => {
    const from = (buffers: number) => ({ ...work(MANY, 8, 2), bytesRead: 4 * MANY * buffers });
    expect(isBetterStored(from(2))).toBe(false);
    expect(isBetterStored(from(3))).toBe(true);
  });
});

/** name, what is built from h, kernels if h is cheap, kernels if it is expensive */
const CASES: readonly (readonly [string, (h: Tensor) => readonly Tensor[], number, number])[] = [
  ["sums over different axes", (h) => [h.sum(0), h.sum(1)], 2, 3],
  ["two sums over the same axis share their loop", (h) => [h.sum(1), h.mul(2).sum(1)], 1, 1],
  ["two results of the same shape share theirs", (h) => [h.add(1), h.mul(3)], 1, 1],
  ["seen from both sides", (h) => [h.add(h.flip(0))], 1, 2],
  ["neighbours", (h) => [h.shrink([[1, 1024], null]).sub(h.shrink([[0, 1023], null]))], 1, 2],
  ["padded at either end", (h) => [h.pad([[1, 0], null]).add(h.pad([[0, 1], null]))], 1, 2],
  ["two halves that meet", (h) => [h.shrink([[0, 512], null]).add(h.shrink([[512, 1024], null]))], 1, 1],
  ["a sum and what it is a sum of, one kernel", (h) => [h.sub(h.mean(1, true))], 1, 1],
  ["a softmax", (h) => [h.softmax()], 1, 1],
];
describe("kernels on both sides of the threshold", () => {
  test.each(CASES)("%s", (_, build, cheap, costly) => {
    expect(kernels(...build(big.mul(2)))).toBe(cheap);
    expect(kernels(...build(big.sin()))).toBe(costly);
    // the rules of the seeds ignore costs
    expect(plain(() => kernels(...build(big.sin())))).toBe(plain(() => kernels(...build(big.mul(2)))));
  });
  test("a small value is recomputed: another kernel would take longer", () => {
    const both = (h: Tensor) => [h.sum(0), h.sum(1)];
    expect(kernels(...both(small.sin()))).toBe(2);
  });
  test("nothing costly is computed twice, and the values are the same", () => {
    const h = () => big.sin();
    const t = h();
    // a sine counts as one operation, and so does adding it up
    expect(totalOps(h().sum(0)) + totalOps(h().sum(1))).toBe(4 * MANY);
    expect(totalOps(t.sum(0), t.sum(1))).toBe(3 * MANY);
    const build = () => {
      const e = h();
      return e.add(e.flip(0)).sum(1);
    };
    expect(
      worst(
        build().dataSync(),
        plain(() => build().dataSync()),
      ),
    ).toBeLessThan(1e-5);
  });
});

describe("a device that takes few buffers", () => {
  const sizes = (items: readonly ScheduleItem[]): number[] =>
    items.filter((si) => si.ast[0]?.op === "STORE").map((si) => si.outputs.length + si.inputs.length);
  /** The value with at most this many buffers per kernel; checks that all kernels are within the limit. */
  const within = (most: number, t: Tensor): ArrayLike<number | bigint> => {
    const items = createSchedule([t.lazydata], 0, () => most);
    expect(Math.max(...sizes(items))).toBeLessThanOrEqual(most);
    runScheduleSync(items);
    return t.dataSync();
  };
  const many = Array.from({ length: 20 }, (_, i) => ready([8, 16], {}, i + 1));
  const SHAPES: Readonly<Record<string, () => Tensor>> = {
    "a long sum": () => many.reduce((a, b) => a.add(b)),
    "a tree of sums": () => {
      let level: Tensor[] = many.slice(0, 16);
      while (level.length > 1)
        level = Array.from({ length: level.length / 2 }, (_, i) =>
          (level[2 * i] as Tensor).mul(level[2 * i + 1] as Tensor),
        );
      return level[0] as Tensor;
    },
    "a softmax of a sum, weighted": () =>
      many
        .slice(0, 9)
        .reduce((a, b) => a.add(b))
        .softmax()
        .mul(many[10] as Tensor)
        .add(many[11] as Tensor)
        .sum(1),
    "a join of many": () => T.cat(many, 0),
    "a choice": () =>
      (many[0] as Tensor).gt(0).where(many[1] as Tensor, (many[2] as Tensor).mul(many[3] as Tensor)),
  };
  test.each(Object.entries(SHAPES))("%s", (_, build) => {
    const want = build().dataSync();
    expect(Math.max(...sizes(itemsOf(build())))).toBeGreaterThan(4);
    for (const most of [4, 5, 8, 16]) expect(worst(within(most, build()), want)).toBeLessThan(1e-5);
  });
  test("20 terms in kernels of 8 buffers: the fewest kernels possible", () => {
    const items = createSchedule([(SHAPES["a long sum"] as () => Tensor)().lazydata], 0, () => 8);
    expect(sizes(items)).toEqual([8, 8, 8, 3]);
  });
  test("outputs over the same elements stay separate where one kernel would have too many buffers", () => {
    const pair = () =>
      [many[0] as Tensor, many[1] as Tensor].map((t) => t.add(many[2] as Tensor).mul(many[3] as Tensor));
    const count = (most: number) =>
      createSchedule(
        pair().map((t) => t.lazydata),
        0,
        () => most,
      ).length;
    expect([count(8), count(4)]).toEqual([1, 2]);
  });
  test("random programs", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const program = await makeProgram(seed + 900, "JS", 5 + (seed % 20));
      const { t } = program.nodes.at(-1) as { t: Tensor };
      const again = (await makeProgram(seed + 900, "JS", 5 + (seed % 20))).nodes.at(-1) as { t: Tensor };
      const items = createSchedule([t.lazydata], 0, () => 4);
      expect(Math.max(0, ...sizes(items)), program.text()).toBeLessThanOrEqual(4);
      runScheduleSync(items);
      expect(worst(t.dataSync(), again.t.dataSync()), program.text()).toBeLessThan(1e-5);
    }
  });
});
