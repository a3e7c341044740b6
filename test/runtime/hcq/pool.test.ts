// Pools: small blocks in few chunks, used again when freed, given back when empty. What may still be in use
// is freed only after its mark (retired.ts).

import { describe, expect, test } from "vitest";
import { type MemoryBlock, type MemoryKind, Pool } from "../../../src/runtime/hcq/pool.ts";
import { type Mark, Retired } from "../../../src/runtime/hcq/retired.ts";

function source() {
  const live = new Set<MemoryBlock>();
  let next = 4096;
  return {
    live,
    alloc(nbytes: number, kind: MemoryKind): MemoryBlock {
      const bytes = kind === "device" ? undefined : new Uint8Array(nbytes);
      const memory = { va: next, size: nbytes, kind, bytes };
      next += 2 * nbytes;
      live.add(memory);
      return memory;
    },
    free: (memory: MemoryBlock) => void live.delete(memory),
  };
}

describe("a pool", () => {
  test("cuts blocks of one chunk that do not overlap, at multiples of 256", () => {
    const memory = source();
    const pool = new Pool(memory, "host", 4096);
    const blocks = [1, 256, 300, 1000].map((n) => pool.alloc(n));
    expect(memory.live.size).toBe(1);
    expect(blocks.map((b) => b.size)).toEqual([256, 256, 512, 1024]);
    expect(blocks.map((b) => b.va - 4096)).toEqual([0, 256, 512, 1024]);
    blocks.forEach((b, i) => void b.words?.fill(i));
    expect(blocks.map((b) => b.words?.length)).toEqual([64, 64, 128, 256]);
    expect(blocks.every((b, i) => b.words?.every((w) => w === i))).toBe(true);
  });
  test("uses what was freed again, and takes another chunk only when it is full", () => {
    const memory = source();
    const pool = new Pool(memory, "device", 1024);
    const [a, b] = [pool.alloc(512), pool.alloc(512)];
    expect(a.words).toBeUndefined();
    pool.free(a);
    expect(pool.alloc(512).va).toBe(a.va);
    expect(memory.live.size).toBe(1);
    const c = pool.alloc(5000);
    expect([...memory.live].map((m) => m.size)).toEqual([1024, 5120]);
    pool.free(b);
    pool.free(c);
    pool.trim();
    expect([...memory.live].map((m) => m.size)).toEqual([1024]);
  });
});

test("a tail of zeros ends every chunk, also behind a block that is larger than a chunk", () => {
  const memory = source();
  const dirty = {
    ...memory,
    alloc(nbytes: number, kind: MemoryKind) {
      const made = memory.alloc(nbytes, kind);
      made.bytes?.fill(7);
      return made;
    },
  };
  const pool = new Pool(dirty, "visible", 4096, 1024);
  for (const n of [2048, 1024, 256, 9000]) pool.alloc(n).words?.fill(-1);
  const chunks = [...memory.live];
  expect(chunks.map((m) => m.size)).toEqual([4096, 4096, 9216 + 1024]);
  for (const { bytes, size } of chunks) {
    expect(bytes?.subarray(size - 1024).every((x) => x === 0)).toBe(true);
  }
});

describe("what is retired", () => {
  test("is freed after its mark, and one mark serves many", () => {
    let now = 0;
    let marks = 0;
    const mark = (): Mark => {
      const at = ++marks;
      return () => now >= at;
    };
    const retired = new Retired(mark);
    const freed: number[] = [];
    for (let i = 0; i < 3; i++) retired.add(() => void freed.push(i));
    retired.reclaim();
    expect([freed, marks]).toEqual([[], 1]);
    retired.add(() => void freed.push(3));
    retired.reclaim();
    expect([freed, marks]).toEqual([[], 1]); // a second mark is worth it only for many
    now = 1;
    retired.reclaim();
    expect([freed, marks]).toEqual([[0, 1, 2], 2]);
    retired.drain(() => {
      now = marks;
    });
    expect(freed).toEqual([0, 1, 2, 3]);
  });
});
