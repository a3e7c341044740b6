// The address space of devices whose memory is one piece: blocks never overlap, neighbours join when freed,
// memory is used again before more is asked for, and after everything is freed nothing is left over.

import { describe, expect, test } from "vitest";
import { AddressSpace } from "../../src/runtime/addressspace.ts";
import { Random } from "../shape/random.ts";

const START = 64;

describe("AddressSpace", () => {
  test("starts where it is told, rounded up to its alignment", () => {
    expect(new AddressSpace(1).alloc(1).at).toBe(64);
    expect(new AddressSpace(64).alloc(1).at).toBe(64);
    expect(new AddressSpace(65).alloc(1).at).toBe(128);
  });
  test("blocks are aligned and even an empty one has an address of its own", () => {
    const space = new AddressSpace(START);
    const blocks = [0, 1, 63, 64, 65, 0].map((n) => space.alloc(n).at);
    expect(blocks.every((at) => at % 64 === 0)).toBe(true);
    expect(new Set(blocks).size).toBe(blocks.length);
    expect(space.top).toBe(START + 64 * 7);
  });
  test("says whether memory was used before", () => {
    const space = new AddressSpace(START);
    const a = space.alloc(100);
    space.alloc(100);
    expect(a.fresh).toBe(true);
    space.free(a.at, 100);
    expect(space.alloc(100)).toEqual({ at: a.at, fresh: false });
  });
  test("the smallest block that fits is taken", () => {
    const space = new AddressSpace(START);
    const sizes = [1024, 64, 256, 64, 512, 64];
    const at = sizes.map((n) => space.alloc(n).at);
    for (const i of [0, 2, 4]) space.free(at[i] as number, sizes[i] as number);
    expect(space.alloc(200).at).toBe(at[2]);
    expect(space.alloc(300).at).toBe(at[4]);
    expect(space.alloc(1000).at).toBe(at[0]);
  });
  test("what is left of a block stays usable", () => {
    const space = new AddressSpace(START);
    const big = space.alloc(1024).at;
    space.alloc(64);
    const { top } = space;
    space.free(big, 1024);
    const parts = Array.from({ length: 16 }, () => space.alloc(64).at);
    expect(parts.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, i) => big + i * 64));
    expect(space.top).toBe(top);
  });
  test("neighbours join in every order of freeing", () => {
    for (const order of [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ]) {
      const space = new AddressSpace(START);
      const at = [0, 1, 2].map(() => space.alloc(128).at);
      const wall = space.alloc(64).at;
      for (const i of order) space.free(at[i] as number, 128);
      expect(space.alloc(384).at, `freed in order ${order}`).toBe(at[0]);
      space.free(at[0] as number, 384);
      space.free(wall, 64);
      expect(space.top).toBe(START);
    }
  });
  test("freeing the last block lowers the top, with the free blocks below it", () => {
    const space = new AddressSpace(START);
    const at = [0, 1, 2].map(() => space.alloc(64).at);
    space.free(at[1] as number, 64);
    expect(space.top).toBe(START + 192);
    space.free(at[2] as number, 64);
    expect(space.top).toBe(START + 64);
  });

  test("random use: no overlap, reuse before growth, and empty again at the end", () => {
    for (let seed = 1; seed <= 60; seed++) {
      const r = new Random(seed);
      const space = new AddressSpace(START);
      const live = new Map<number, number>();
      let used = 0;
      let peak = 0;
      const must = (holds: boolean, what: string): void => {
        if (!holds) throw new Error(`seed ${seed}: ${what}`);
      };
      for (let step = 0; step < 300; step++) {
        if (live.size > 0 && r.chance(live.size > 40 ? 70 : 45)) {
          const at = r.pick([...live.keys()]);
          const n = live.get(at) as number;
          live.delete(at);
          used -= AddressSpace.rounded(n);
          space.free(at, n);
        } else {
          const n = r.chance(20) ? r.int(0, 100_000) : r.int(0, 700);
          const { at } = space.alloc(n);
          const end = at + AddressSpace.rounded(n);
          must(at % 64 === 0 && at >= START && end <= space.top, `block at ${at} is out of place`);
          for (const [a, m] of live)
            must(a >= end || at >= a + AddressSpace.rounded(m), `${at} overlaps ${a}`);
          live.set(at, n);
          used += AddressSpace.rounded(n);
        }
        peak = Math.max(peak, used);
        must(space.top - START >= used, "the top is below what is in use");
        must(space.top - START <= 2 * peak + 100_064, "memory is fragmented");
      }
      for (const at of r.shuffled([...live.keys()])) space.free(at, live.get(at) as number);
      expect(space.top, `seed ${seed}: something was left`).toBe(START);
    }
  });
  test("ten thousand blocks of one size come and go quickly", () => {
    const space = new AddressSpace(START);
    const at = Array.from({ length: 10_000 }, () => space.alloc(4096).at);
    for (let i = 0; i < at.length; i += 2) space.free(at[i] as number, 4096);
    const { top } = space;
    for (let i = 0; i < at.length; i += 2) space.alloc(4096);
    expect(space.top).toBe(top);
  });
});
