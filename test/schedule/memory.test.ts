// The memory planner: values that are live at the same time never overlap, and the arena is little longer
// than the peak of live bytes.

import { describe, expect, test } from "vitest";
import {
  ALIGN,
  type LiveRange,
  orderForMemory,
  peakBytes,
  planMemory,
  type StepAccess,
} from "../../src/schedule/memory.ts";

function dice(seed: number): (n: number) => number {
  let s = seed;
  return (n) => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
    return Math.floor((s / 2 ** 32) * n);
  };
}

/** Pairs that share memory while both are live. */
function clashes(lives: readonly LiveRange[], offsets: readonly number[]): [number, number][] {
  const found: [number, number][] = [];
  lives.forEach((a, i) => {
    lives.slice(i + 1).forEach((b, k) => {
      const j = i + 1 + k;
      const together = a.first <= b.last && b.first <= a.last;
      const [x, y] = [offsets[i] as number, offsets[j] as number];
      if (together && x < y + b.nbytes && y < x + a.nbytes) found.push([i, j]);
    });
  });
  return found;
}

describe("which gap a value takes", () => {
  /** size, first and last step of each value */
  const lives = (rows: readonly (readonly [number, number, number])[]): LiveRange[] =>
    rows.map(([size, first, last]) => ({ nbytes: size * ALIGN, first, last }));
  const TIGHTEST = lives([
    [4, 4, 5],
    [1, 8, 11],
    [6, 1, 6],
    [2, 1, 5],
    [4, 3, 4],
    [8, 6, 10],
    [4, 4, 8],
    [9, 3, 3],
    [7, 5, 9],
    [7, 4, 8],
  ]);
  const LOWEST = lives([
    [1, 7, 8],
    [6, 4, 6],
    [5, 1, 5],
    [4, 6, 10],
    [4, 5, 10],
    [8, 2, 4],
    [8, 7, 8],
    [6, 9, 13],
  ]);
  test.each([
    ["the tightest", TIGHTEST],
    ["the lowest", LOWEST],
  ])("%s, where the other needs more than is alive at once", (_, all) => {
    const { offsets, nbytes } = planMemory(all);
    expect(clashes(all, offsets)).toEqual([]);
    expect(nbytes).toBe(peakBytes(all));
  });
});

describe("the order of steps", () => {
  /** What each value would be if a step wrote a mix of what it reads. */
  function results(steps: readonly StepAccess[], order: readonly number[], values: number): number[] {
    const memory = Array.from({ length: values }, (_, i) => i + 1);
    for (const i of order) {
      const { reads, writes } = steps[i] as StepAccess;
      const mixed = reads.reduce((sum, v) => (Math.imul(sum, 31) + (memory[v] as number)) | 0, i + 7);
      for (const v of writes) memory[v] = (mixed + v) | 0;
    }
    return memory;
  }
  function lives(
    steps: readonly StepAccess[],
    order: readonly number[],
    bytes: readonly number[],
  ): LiveRange[] {
    const at = (v: number) =>
      order.flatMap((i, place) => {
        const { reads, writes } = steps[i] as StepAccess;
        return reads.includes(v) || writes.includes(v) ? [place] : [];
      });
    return bytes.flatMap((nbytes, v) => {
      const places = at(v);
      return nbytes === 0 || places.length === 0
        ? []
        : [{ nbytes, first: places[0] as number, last: places.at(-1) as number }];
    });
  }
  test("the step that frees most runs first, and results stay the same", () => {
    // two large activations, each needed by a small gradient that came last
    const steps = [
      { reads: [], writes: [0] },
      { reads: [0], writes: [1] },
      { reads: [1], writes: [2] },
      { reads: [2], writes: [3] },
      { reads: [0, 2], writes: [4] },
      { reads: [1, 2], writes: [5] },
    ];
    const order = orderForMemory(steps, [1000, 1000, 1000, 1000, 1, 1]);
    expect(order.indexOf(4)).toBeLessThan(order.indexOf(3));
    expect(order.indexOf(5)).toBeLessThan(order.indexOf(3));
  });
  test("1,000 random programs: the same results, never more memory", () => {
    for (let seed = 0; seed < 1000; seed++) {
      const roll = dice(seed);
      const values = 2 + roll(12);
      const pick = (n: number) => Array.from({ length: n }, () => roll(values));
      const steps = Array.from({ length: 1 + roll(25) }, () => ({
        reads: pick(roll(4)),
        writes: pick(1 + roll(2)),
      }));
      const bytes = Array.from({ length: values }, () => roll(3) * 100);
      const order = orderForMemory(steps, bytes);
      const plain = steps.map((_, i) => i);
      expect(peakBytes(lives(steps, order, bytes))).toBeLessThanOrEqual(
        peakBytes(lives(steps, plain, bytes)),
      );
      expect([...order].sort((a, b) => a - b)).toEqual(plain);
      expect(results(steps, order, values), `seed ${seed}`).toEqual(results(steps, plain, values));
    }
  });
});

describe("by hand", () => {
  test("nothing takes nothing", () => {
    expect(planMemory([])).toEqual({ offsets: [], nbytes: 0, unshared: 0 });
  });
  test("a chain needs two offsets", () => {
    const lives = Array.from({ length: 10 }, (_, i) => ({ nbytes: 256, first: i, last: i + 1 }));
    const { nbytes, unshared, offsets } = planMemory(lives);
    expect([nbytes, unshared]).toEqual([512, 2560]);
    expect(new Set(offsets)).toEqual(new Set([0, 256]));
  });
  test("a value that ends where another begins does not share with it", () => {
    const { offsets } = planMemory([
      { nbytes: 64, first: 0, last: 3 },
      { nbytes: 64, first: 3, last: 5 },
    ]);
    expect(offsets[0]).not.toBe(offsets[1]);
  });
  test("small values go into the gap that a large one leaves", () => {
    const lives = [
      { nbytes: 1024, first: 0, last: 2 },
      { nbytes: 512, first: 3, last: 5 },
      { nbytes: 512, first: 3, last: 5 },
    ];
    expect(planMemory(lives).nbytes).toBe(1024);
  });
  test("offsets are aligned, and an empty value has one, too", () => {
    const { offsets, nbytes } = planMemory([
      { nbytes: 1, first: 0, last: 1 },
      { nbytes: 0, first: 0, last: 1 },
      { nbytes: 65, first: 0, last: 1 },
    ]);
    expect(offsets.every((o) => o % ALIGN === 0)).toBe(true);
    expect(nbytes).toBe(4 * ALIGN);
  });
});

test("1,000 random programs: no clash, and never below the peak of live bytes", () => {
  for (let seed = 0; seed < 1000; seed++) {
    const roll = dice(seed);
    const lives = Array.from({ length: 1 + roll(40) }, () => {
      const first = roll(50);
      return { nbytes: roll(5000), first, last: first + roll(20) };
    });
    const { offsets, nbytes, unshared } = planMemory(lives);
    expect(clashes(lives, offsets), `seed ${seed}`).toEqual([]);
    expect(nbytes).toBeGreaterThanOrEqual(peakBytes(lives));
    expect(nbytes).toBeLessThanOrEqual(unshared);
    lives.forEach((l, i) => {
      expect((offsets[i] as number) + l.nbytes).toBeLessThanOrEqual(nbytes);
    });
  }
});

test("forward and backward of a deep network: within a tenth of the lower bound", () => {
  const depth = 40;
  const roll = dice(5);
  const lives: LiveRange[] = [];
  for (let i = 0; i < depth; i++) {
    const nbytes = 1000 * (1 + roll(30));
    lives.push({ nbytes, first: i, last: 2 * depth - i }); // an activation waits for its backward step
    lives.push({ nbytes, first: 2 * depth - i - 1, last: 2 * depth - i + 1 }); // a gradient is used at once
    lives.push({ nbytes: nbytes * 2, first: i, last: i + 1 }); // scratch
  }
  const { nbytes } = planMemory(lives);
  expect(nbytes).toBeLessThan(1.1 * peakBytes(lives));
});
