// How many threads share a kernel: all while it pays, fewer while helpers keep the owner waiting, and all
// again some time later. The clock is the test's own.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Governor } from "../../../src/devices/wasm/governor.ts";
import { LAYOUT } from "../../../src/devices/wasm/layout.ts";
import { device, ints, launch, ramp } from "./kernels.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

/** A governor over words of its own. */
function fresh() {
  const words = new Int32Array(LAYOUT.executors);
  const governor = new Governor(LAYOUT);
  return {
    width: (most: number) => governor.width(words, most),
    /** a kernel of 8 parts, half of them done by the owner in 4 ms */
    count: (waited: number, helpers = 1) =>
      governor.count(words, { helpers, parts: 8, mine: 4, part: 1, own: 4, waited }),
    governor,
    words,
  };
}
const pass = (ms: number) => vi.setSystemTime(Date.now() + ms);

describe("the width of a shared kernel", () => {
  test("is all threads while sharing saves time", () => {
    const { width, count } = fresh();
    for (let i = 0; i < 1000; i++) {
      expect(width(2)).toBe(2);
      count(i % 4); // waiting for less than the helper's four parts took
    }
  });

  test("falls at a loss, and comes back after a pause that doubles with each failure", () => {
    const { width, count } = fresh();
    const pauses: number[] = [];
    for (let i = 0; i < 12; i++) {
      count(20);
      expect(width(2)).toBe(1);
      let waited = 0;
      while (width(2) === 1) {
        pass(1);
        waited++;
      }
      pauses.push(waited);
    }
    expect(pauses).toEqual([4, 8, 16, 32, 64, 128, 256, 256, 256, 256, 256, 256]);
  });

  test("forgets losses when there were none for eight times as long as the pause, again and again", () => {
    const { width, count, words } = fresh();
    for (let i = 0; i < 3; i++) {
      count(20);
      pass(1024);
      expect(width(2)).toBe(2);
    }
    for (let i = 0; i < 10; i++) {
      pass(8 * 1024);
      expect(width(2)).toBe(2);
    }
    expect(words[LAYOUT.pause]).toBe(0);
  });

  test("gains pay for a loss, but not for many", () => {
    const { width, count } = fresh();
    for (let i = 0; i < 100; i++) count(0);
    count(8); // four milliseconds more than without the helper
    expect(width(2)).toBe(2);
    count(8);
    expect(width(2)).toBe(1);
  });

  test("an owner that was interrupted has lost, too", () => {
    const { width, governor, words } = fresh();
    for (let i = 0; i < 3; i++)
      governor.count(words, { helpers: 1, parts: 8, mine: 2, part: 1, own: 12, waited: 0 });
    expect(width(2)).toBe(1);
  });

  test("falls by one of many, and half of those left out are tried at a time", () => {
    const { width, count } = fresh();
    for (let i = 0; i < 8; i++) count(30, 15);
    expect(width(16)).toBe(8);
    for (const expected of [12, 14, 15, 16]) {
      pass(1024);
      expect(width(16)).toBe(expected);
    }
  });

  test("neither helpers that end at different times count as a loss, nor a job that nobody came to", () => {
    const { width, governor, words } = fresh();
    for (let i = 0; i < 1000; i++) {
      governor.count(words, { helpers: 15, parts: 64, mine: 4, part: 1, own: 4.1, waited: 1 });
      governor.count(words, { helpers: 0, parts: 8, mine: 8, part: 1, own: 8, waited: 0.5 });
    }
    expect(width(16)).toBe(16);
  });

  test("the clock may wrap around", () => {
    const { width, count } = fresh();
    vi.setSystemTime(2 ** 31 * 797 - 2); // Date.now() | 0 turns negative in two milliseconds
    count(20);
    pass(3);
    expect(width(2)).toBe(1);
    pass(1);
    expect(width(2)).toBe(2);
  });
});

test("a helper that the system holds up is left out of the next kernel, and comes back after a pause", () => {
  const d = device("WASM:59");
  const { host, memory, sharing, workers } = d.hardware;
  const { words } = memory;
  const [owner, helper] = [0, 1].map((id) => LAYOUT.executors + id * LAYOUT.executorWords) as [
    number,
    number,
  ];
  const program = ramp(d, "late");
  const generation = words[(program.at >>> 2) + LAYOUT.generation] as number;
  let parts: number[][] = [];
  // the only helper is made here: it comes while this thread does its first part, and stays until it is late
  host.adopt(program.at, generation, (_: number, begin: number, end: number) => {
    if (parts.push([begin, end]) > 1 || end === 64) return;
    Atomics.sub(words, owner + LAYOUT.jobSeats, 1);
    Atomics.store(words, helper + LAYOUT.helping, 1);
  });
  let waits = 0;
  sharing?.whileLate(() => {
    waits++;
    Atomics.store(words, helper + LAYOUT.helping, 0);
  });
  const partsOfNext = (): number => {
    parts = [];
    launch(program, [ints("WASM:59", [0])], { size: 64, worth: false });
    expect(parts.reduce((sum, [begin, end]) => sum + (end as number) - (begin as number), 0)).toBe(64);
    return parts.length;
  };
  words[LAYOUT.executorCount] = 2;
  words[LAYOUT.threads] = 2;
  try {
    expect([partsOfNext(), waits]).toEqual([8, 1]);
    expect([partsOfNext(), partsOfNext(), waits]).toEqual([1, 1, 1]);
    pass(4);
    expect([partsOfNext(), waits]).toEqual([8, 2]);
    pass(7);
    expect([partsOfNext(), waits]).toEqual([1, 2]);
  } finally {
    words[LAYOUT.executorCount] = 1;
    words[LAYOUT.threads] = 1;
    sharing?.whileLate(() => workers.reap());
  }
});
