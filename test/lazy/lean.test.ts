// What a node costs: an op on contiguous sources shares their ShapeTracker, and readers of a node are found,
// whether it has one or many.

import { ShapeTracker, Tensor } from "gradloom";
import { expect, test } from "vitest";
import { nodesMade } from "../../src/lazy/lazybuffer.ts";

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

test("a movement that was made before gives the same tracker, whatever became of its argument", () => {
  const plain = ShapeTracker.fromShape([4, 6]);
  expect(ShapeTracker.fromShape([4, 6])).toBe(plain);
  const axes = [1, 0];
  const turned = plain.permute(axes);
  axes.reverse();
  expect(plain.permute([1, 0])).toBe(turned);
  expect(plain.permute(axes)).toBe(plain);
  const cut: [number, number] = [0, 2];
  const part = plain.shrink([cut, [0, 6]]);
  cut[1] = 3;
  expect(plain.shrink([cut, [0, 6]]).shape).toEqual([3, 6]);
  expect([
    plain.shrink([
      [0, 2],
      [0, 6],
    ]),
    part.shape,
  ]).toEqual([part, [2, 6]]);
  expect(
    plain.pad([
      [0, 2],
      [0, 6],
    ]).shape,
  ).toEqual([6, 12]);
  expect(turned.add(part).key).toBe(
    turned.add(
      plain.shrink([
        [0, 2],
        [0, 6],
      ]),
    ).key,
  );
});

test("an op on numbers makes a node for itself, one for each number, and a view of it", () => {
  const a = ready(4);
  const before = nodesMade();
  a.add(1).mul(2);
  expect(nodesMade() - before).toBe(6);
  expect(a.add(1).lazydata.sources[1]?.st).toBe(a.mul(2).lazydata.sources[1]?.st);
});
