// Chains of movements: linear to build, and short enough to compile.

import { expect, test } from "vitest";
import { kernels, ready } from "../schedule/count.ts";

test("views that merge stay few, however many movements there were", () => {
  let x = ready([4, 4]).reshape(16);
  for (let i = 0; i < 999; i++) x = x.reshape(4, 4).permute([1, 0]).reshape(16);
  expect(x.lazydata.st.views.length).toBeLessThanOrEqual(8);
  expect(kernels(x.add(1))).toBe(1);
});

test("values behind many views that do not merge are stored on the way", () => {
  const order = Array.from({ length: 30 }, (_, i) => i);
  let x = ready([30]);
  const before = x.tolistSync() as number[];
  let expected = order;
  for (let i = 0; i < 100; i++) {
    const [rows, columns] = i % 2 === 0 ? [3, 10] : [2, 15];
    x = x.reshape(rows, columns).permute([1, 0]).flip(0).reshape(30);
    const at = (k: number): number => (k % rows) * columns + (columns - 1 - Math.floor(k / rows));
    const last = expected;
    expected = order.map((k) => last[at(k)] as number);
    expect(x.lazydata.st.views.length).toBeLessThan(16);
  }
  expect(x.tolistSync()).toEqual(expected.map((k) => before[k]));
});
