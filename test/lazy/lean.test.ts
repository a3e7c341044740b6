// What a node costs: an op on contiguous sources shares their ShapeTracker, and readers of a node are found,
// whether it has one or many.

import { Tensor } from "gradloom";
import { expect, test } from "vitest";

const ready = (n: number): Tensor => Tensor.zeros(n).contiguous().realizeSync();

test("elementwise ops share the ShapeTracker of a contiguous source", () => {
  const a = ready(4).lazydata;
  const flipped = a.stride([-1]);
  expect(a.e("ADD", a).st).toBe(a.st);
  expect(flipped.e("ADD", a).st).toBe(a.st);
  expect(flipped.e("ADD", flipped).st.contiguous).toBe(true);
  expect(a.e("ADD", a).e("MUL", a).st).toBe(a.st);
});

test("a node knows one reader, two and many, each once", () => {
  const a = ready(4).lazydata;
  expect(a.readersKept).toBe(0);
  const first = a.e("ADD", a);
  expect([a.readersKept, a.pendingReaders()]).toEqual([1, [first]]);
  const second = a.e("MUL", a);
  expect(a.pendingReaders()).toEqual([first, second]);
  const many = Array.from({ length: 40 }, () => a.e("MAX", a));
  expect(a.pendingReaders()).toEqual([first, second, ...many]);
  first.markRealized();
  expect(a.pendingReaders()).toEqual([second, ...many]);
});
