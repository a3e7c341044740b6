// assign writes into memory that others may still want to read. The rule: a node that depends on the old
// value gets the old value or a StaleError, never a wrong number. Here case by case; assignrandom.test.ts
// tests it at random.

import {
  ArgumentError,
  Device,
  DeviceError,
  DTypeError,
  GlobalCounters,
  ShapeError,
  StaleError,
  Tensor,
  withEnv,
} from "gradloom";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { LazyBuffer } from "../../src/lazy/lazybuffer.ts";
import { collect } from "../runtime/gc.ts";
import { kernels, opsOf, ready } from "./count.ts";

const ints = (data: number[] | number[][], device = "WASM"): Tensor =>
  new Tensor(data, { dtype: "int32", device }).realizeSync();
beforeAll(() => Device.open("JS"));
const ran = (f: () => void): number => {
  const before = GlobalCounters.kernelCount;
  f();
  return GlobalCounters.kernelCount - before;
};

describe("old readers come first", () => {
  test("in one call, whatever the order of the outputs", () => {
    for (const flipped of [false, true]) {
      const a = ints([1, 2, 3]);
      const old = a.mul(10);
      const sum = a.sum();
      a.assign(a.add(1));
      Tensor.realizeSync(...(flipped ? [a, sum, old] : [old, sum, a]));
      expect([a.tolistSync(), old.tolistSync(), sum.itemSync()]).toEqual([[2, 3, 4], [10, 20, 30], 6]);
    }
  });
  test("in a later call: a loss that is read after its weights were changed", async () => {
    const w = ints([1, 2, 3]);
    const loss = w.mul(w).sum();
    w.assign(w.sub(1));
    await w.realize();
    expect(await w.tolist()).toEqual([0, 1, 2]);
    expect(await loss.item()).toBe(14);
  });
  test("through several nodes and two kernels", () => {
    const w = ints([1, 2, 3]);
    const deep = w.add(1).mul(2).sum().expand(3).add(w).contiguous().mul(100);
    w.assign(new Tensor([7, 7, 7])).realizeSync();
    expect(deep.tolistSync()).toEqual([1900, 2000, 2100]);
  });
  test("readers on another device", () => {
    const w = ints([1, 2, 3, 4]);
    const [whole, part, turned] = [w.to("JS"), w.shrink([[1, 3]]).to("JS"), w.flip(0).to("JS").add(1)];
    w.assign(w.add(10)).realizeSync();
    expect(whole.tolistSync()).toEqual([1, 2, 3, 4]);
    expect(part.tolistSync()).toEqual([2, 3]);
    expect(turned.tolistSync()).toEqual([5, 4, 3, 2]);
    expect(w.tolistSync()).toEqual([11, 12, 13, 14]);
  });
  test("a read that was started before the assign and ends after it", async () => {
    const w = ints([1, 2, 3]);
    const reading = [w.data(), w.add(1).data(), w.flip(0).data()];
    w.assign(w.mul(5));
    const writing = w.realize();
    expect((await Promise.all(reading)).map((d) => [...d])).toEqual([
      [1, 2, 3],
      [2, 3, 4],
      [3, 2, 1],
    ]);
    expect(await (await writing).tolist()).toEqual([5, 10, 15]);
  });
  test("readers of the new value are not computed with it", () => {
    const w = ints([1, 2, 3]);
    w.assign(w.add(1));
    const [later, total] = [w.mul(2), w.sum()];
    expect(ran(() => w.realizeSync())).toBe(1);
    expect([later.tolistSync(), total.itemSync()]).toEqual([[4, 6, 8], 9]);
  });
  test("a step on the way to something that has run is not computed again", () => {
    const w = ints([1, 2, 3]);
    const hidden = w.mul(3);
    const loss = hidden.relu().sum();
    expect(ran(() => loss.realizeSync())).toBe(1);
    expect(ran(() => w.assign(w.sub(1)).realizeSync())).toBe(1);
    // nobody asked for it in time: an error, not a number
    expect(() => hidden.tolistSync()).toThrow(StaleError);
    expect(loss.itemSync()).toBe(18);
  });
});

describe("chains and exchanges", () => {
  test("several assigns in a row, each with readers of its own", () => {
    const a = ints([1, 2]);
    const seen: Tensor[] = [];
    for (let i = 0; i < 5; i++) {
      seen.push(a.mul(100));
      a.assign(a.add(1));
    }
    seen.push(a.mul(100));
    a.realizeSync();
    expect(a.tolistSync()).toEqual([6, 7]);
    expect(seen.map((t) => t.tolistSync())).toEqual([1, 2, 3, 4, 5, 6].map((k) => [k * 100, k * 100 + 100]));
  });
  test("two tensors change places", () => {
    const [a, b] = [ints([1, 2, 3]), ints([4, 5, 6])];
    const old = a.add(0);
    a.assign(b);
    b.assign(old);
    Tensor.realizeSync(a, b);
    expect([a.tolistSync(), b.tolistSync()]).toEqual([
      [4, 5, 6],
      [1, 2, 3],
    ]);
  });
  test("two tensors change places, computing on the way", () => {
    const [a, b] = [ints([1, 2, 3]), ints([4, 5, 6])];
    const [na, nb] = [b.mul(2), a.flip(0).add(1)];
    a.assign(na);
    b.assign(nb);
    b.realizeSync();
    expect([a.tolistSync(), b.tolistSync()]).toEqual([
      [8, 10, 12],
      [4, 3, 2],
    ]);
  });
  test("three tensors go round", () => {
    const ts = [ints([1]), ints([2]), ints([3])] as const;
    const old = ts.map((t) => t.add(0));
    ts.forEach((t, i) => void t.assign(old[(i + 1) % 3] as Tensor));
    Tensor.realizeSync(...ts);
    expect(ts.map((t) => t.tolistSync())).toEqual([[2], [3], [1]]);
  });
  test("an exchange that needs a copy nobody made is refused, not guessed", () => {
    const [a, b] = [ints([1, 2, 3]), ints([4, 5, 6])];
    const alias = a.reshape(3); // the same memory, not the old value
    a.assign(b);
    b.assign(alias);
    expect(() => Tensor.realizeSync(a, b)).toThrow(StaleError);
    expect(() => Tensor.realizeSync(a, b)).toThrow(
      /before an assign and after it; realize what reads the old value/,
    );
  });
  test("old and new value in one expression", () => {
    const a = ints([1, 2, 3]);
    const double = a.mul(2);
    a.assign(a.add(10));
    expect(double.add(a).tolistSync()).toEqual([13, 16, 19]);
    expect(a.tolistSync()).toEqual([11, 12, 13]);
  });
  test("one assign feeds another", () => {
    const [m, w] = [ints([1, 1, 1]), ints([10, 20, 30])];
    const g = w.mul(2);
    m.assign(m.mul(3).add(g));
    w.assign(w.sub(m));
    expect(kernels(w)).toBe(1);
    expect(withEnv({ FUSE: 0 }, () => kernels(w))).toBe(2);
    w.realizeSync();
    expect([m.tolistSync(), w.tolistSync()]).toEqual([
      [23, 43, 63],
      [-13, -23, -33],
    ]);
  });
});

describe("a tensor that is assigned from itself", () => {
  const square = [
    [1, 2, 3],
    [4, 5, 6],
    [7, 8, 9],
  ];
  test("elementwise: one kernel, in place", () => {
    const a = ints(square);
    const { buffer } = a.lazydata;
    a.assign(a.mul(2).add(a).sub(1));
    expect(ran(() => a.realizeSync())).toBe(1);
    expect(a.lazydata.buffer).toBe(buffer);
    expect(a.tolistSync()).toEqual(square.map((r) => r.map((n) => n * 3 - 1)));
  });
  test("with a reduce of something else: one kernel, in place", () => {
    const [a, b] = [ints([1, 2, 3]), ints(square)];
    a.assign(a.add(b.sum(1)));
    expect(ran(() => a.realizeSync())).toBe(1);
    expect(a.tolistSync()).toEqual([7, 17, 27]);
  });

  const n = (f: (i: number, j: number) => number) => square.map((r, i) => r.map((_, j) => f(i, j)));
  const at = (i: number, j: number): number => square[i]?.[j] ?? 0;
  const total = 45;
  /** name, the value, the expected result, kernels */
  const MOVED: readonly (readonly [string, (a: Tensor) => Tensor, number[][], number])[] = [
    ["itself", (a) => a, square, 1],
    ["transposed", (a) => a.T, n((i, j) => at(j, i)), 2],
    ["transposed and added", (a) => a.T.add(a), n((i, j) => at(i, j) + at(j, i)), 2],
    ["flipped", (a) => a.flip(0), n((i, j) => at(2 - i, j)), 2],
    ["flipped both ways", (a) => a.flip([0, 1]).mul(2), n((i, j) => 2 * at(2 - i, 2 - j)), 2],
    ["shifted down", (a) => a.shrink([[0, 2], null]).pad([[1, 0], null]), n((i, j) => at(i - 1, j)), 2],
    [
      "shifted and added",
      (a) =>
        a
          .pad([null, [0, 1]])
          .shrink([null, [1, 4]])
          .add(a),
      n((i, j) => at(i, j) + at(i, j + 1)),
      2,
    ],
    ["one row everywhere", (a) => a.shrink([[2, 3], null]).expand(3, 3), n((_, j) => at(2, j)), 2],
    ["its sum", (a) => a.sum().expand(3, 3), n(() => total), 2],
    ["itself minus its sum", (a) => a.sub(a.sum()), n((i, j) => at(i, j) - total), 2],
    [
      "minus the sum of each column",
      (a) => a.sub(a.sum(0, true)),
      n((i, j) => at(i, j) - at(0, j) - at(1, j) - at(2, j)),
      2,
    ],
    [
      "its matrix square",
      (a) => a.dot(a),
      n((i, j) => [0, 1, 2].reduce((s, k) => s + at(i, k) * at(k, j), 0)),
      2,
    ],
    ["stored by hand", (a) => a.T.contiguous(), n((i, j) => at(j, i)), 2],
  ];
  for (const [name, value, expected, count] of MOVED) {
    test(`${name}: right, in ${count} kernels`, () => {
      const a = ints(square);
      a.assign(value(a));
      expect(ran(() => a.realizeSync())).toBe(count);
      expect(a.tolistSync()).toEqual(expected);
    });
    test(`${name}: right after an assign that has not run`, () => {
      const a = ints(n(() => 0));
      a.assign(new Tensor(square, { dtype: "int32" }));
      a.assign(value(a));
      expect(a.tolistSync()).toEqual(expected);
    });
  }
  test("a deep graph under an assign does not overflow the stack", () => {
    const a = ints([1, 2, 3]);
    let t = a.sum().expand(3).flip(0);
    for (let i = 0; i < 20_000; i++) t = t.add(1);
    a.assign(t).realizeSync();
    expect(a.tolistSync()).toEqual([20_006, 20_006, 20_006]);
  });
  test("a graph that doubles at every node is looked at once", () => {
    const [a, b] = [ints([1, 2, 3]), ints([0, 0, 1])];
    let t = b.add(0);
    for (let i = 0; i < 60; i++) t = t.add(t.flip(0)).mul(i % 2);
    a.assign(t.flip(0)).realizeSync();
    expect(a.tolistSync()).toEqual([0, 0, 0]);
  });
});

describe("across devices", () => {
  test("a value that comes from another device", () => {
    const [a, b] = [ints([1, 2, 3]), ints([4, 5, 6], "JS")];
    const before = a.mul(2);
    a.assign(b.mul(3).to("WASM").add(a));
    a.realizeSync();
    expect([a.tolistSync(), before.tolistSync()]).toEqual([
      [13, 17, 21],
      [2, 4, 6],
    ]);
  });
  test("round trips through another device", () => {
    const a = ints([1, 2, 3]);
    for (let i = 0; i < 5; i++) a.assign(a.to("JS").add(1).to("WASM:1").mul(2).to("WASM"));
    a.realizeSync();
    expect(a.tolistSync()).toEqual([94, 126, 158]);
  });
  test("several copies to another device are all taken before the source changes", () => {
    const w = ints([1, 2, 3]);
    const copies = Array.from({ length: 6 }, (_, i) =>
      i % 2 === 0 ? w.to("JS") : w.to("JS").mul(i).to("WASM:1"),
    );
    w.assign(w.add(10));
    Tensor.realizeSync(w, ...copies);
    expect(copies.map((t) => t.tolistSync())).toEqual(
      copies.map((_, i) => [1, 2, 3].map((n) => (i % 2 === 0 ? n : n * i))),
    );
    expect(w.tolistSync()).toEqual([11, 12, 13]);
  });
  test("two devices that write each other's values", () => {
    const [a, b] = [ints([1, 2]), ints([10, 20], "JS")];
    const [na, nb] = [b.to("WASM").add(a), a.to("JS").add(b)];
    a.assign(na);
    b.assign(nb);
    Tensor.realizeSync(b, a);
    expect([a.tolistSync(), b.tolistSync()]).toEqual([
      [11, 22],
      [11, 22],
    ]);
  });
});

describe("what is not memory of its own", () => {
  test("a tensor that has not been computed simply becomes the value", () => {
    const a = new Tensor([1, 2, 3]).add(1);
    const before = a.mul(2);
    a.assign(new Tensor([7, 8, 9]));
    expect(opsOf(a)).toEqual(["COPY"]);
    expect([a.tolistSync(), before.tolistSync()]).toEqual([
      [7, 8, 9],
      [4, 6, 8],
    ]);
  });
  test("a constant becomes the value", () => {
    const m = Tensor.zeros(3);
    for (let i = 0; i < 3; i++) {
      m.assign(m.add(1));
      m.realizeSync();
    }
    expect(m.tolistSync()).toEqual([3, 3, 3]);
  });
  test("a part or another view of a tensor is refused: the tensor would not change", () => {
    const a = ints([1, 2, 3, 4]);
    const nine = new Tensor([9, 9]);
    const refused = /^assign: \[2\] int32 on WASM is a part .* of shape \[4\], .*whole tensor.*setitem/;
    expect(() => a.shrink([[1, 3]]).assign(nine)).toThrow(ArgumentError);
    expect(() => a.shrink([[1, 3]]).assign(nine)).toThrow(refused);
    expect(() => a.reshape(2, 2).T.assign(a.reshape(2, 2))).toThrow(ArgumentError);
    expect(() => new Tensor([1, 2, 3, 4]).shrink([[0, 2]]).assign(nine)).toThrow(refused);
    expect(a.tolistSync()).toEqual([1, 2, 3, 4]);
    a.assign(a.add(1));
    expect(() => a.shrink([[0, 2]]).assign(nine)).toThrow(refused);
    expect(a.tolistSync()).toEqual([2, 3, 4, 5]);
  });
  test("a tensor that was given a view keeps taking values", () => {
    const [a, b] = [new Tensor([1, 2, 3]), ints([4, 5, 6])];
    a.assign(b.flip(0));
    a.assign(a.add(1));
    expect([a.tolistSync(), b.tolistSync()]).toEqual([
      [7, 6, 5],
      [4, 5, 6],
    ]);
    const c = new Tensor([1, 2, 3]).assign(b.flip(0));
    c.assign(b);
    expect(c.tolistSync()).toEqual([4, 5, 6]);
  });
  test("a copy of a part is a tensor of its own", () => {
    const a = ints([1, 2, 3, 4]);
    const part = a.shrink([[1, 3]]).contiguous();
    part.assign(new Tensor([9, 9]));
    expect([a.tolistSync(), part.tolistSync()]).toEqual([
      [1, 2, 3, 4],
      [9, 9],
    ]);
  });
  test("two names of one memory go separate ways", () => {
    const a = ints([1, 2, 3]);
    const b = a.reshape(3);
    a.assign(new Tensor([4, 4, 4]));
    b.assign(new Tensor([5, 5, 5]));
    Tensor.realizeSync(a, b);
    expect([a.tolistSync(), b.tolistSync()]).toEqual([
      [4, 4, 4],
      [5, 5, 5],
    ]);
    a.assign(a.add(1)).realizeSync();
    b.assign(b.add(1)).realizeSync();
    expect([a.tolistSync(), b.tolistSync()]).toEqual([
      [5, 5, 5],
      [6, 6, 6],
    ]);
  });
  test("shape, dtype and device must agree, and the message shows both sides", () => {
    const a = ints([1, 2, 3]);
    const cases = [
      [ints([1, 2]), ShapeError],
      [ints([[1, 2, 3]]), ShapeError],
      [new Tensor([1.5, 2, 3]), DTypeError],
      [ints([1, 2, 3], "JS"), DeviceError],
    ] as const;
    for (const [bad, type] of cases) {
      expect(() => a.assign(bad)).toThrow(type);
      expect(() => a.assign(bad)).toThrow(
        /assign: cannot put \[.*\] .* into \[3\] int32 on WASM; the .* must be equal/,
      );
    }
    expect(a.tolistSync()).toEqual([1, 2, 3]);
  });
});

describe("stale values", () => {
  test("a view of memory that was overwritten is refused, however it is read", () => {
    const a = ints([1, 2, 3]);
    const views = [a.reshape(3), a.reshape(3, 1), a.stride(2), a.shrink([[0, 2]]), a.expand(2, 3)];
    a.assign(a.add(1)).realizeSync();
    for (const v of views) {
      expect(() => v.tolistSync()).toThrow(StaleError);
      expect(() => v.add(1).realizeSync()).toThrow(StaleError);
      expect(() => v.sum().realizeSync()).toThrow(StaleError);
      expect(() => v.to("JS").realizeSync()).toThrow(
        /overwritten since; realize it before the assign, or take it from/,
      );
    }
    expect(a.flip(0).tolistSync()).toEqual([4, 3, 2]);
  });
  test("a node that takes old and new memory at once is refused; the assign itself is not", () => {
    const a = ints([1, 2, 3]);
    const alias = a.reshape(3);
    a.assign(a.add(1));
    const both = alias.add(a);
    const other = both.mul(2);
    a.realizeSync();
    expect(a.tolistSync()).toEqual([2, 3, 4]);
    expect(() => both.tolistSync()).toThrow(StaleError);
    expect(() => other.tolistSync()).toThrow(StaleError);
    expect(a.mul(2).tolistSync()).toEqual([4, 6, 8]);
  });
  test("a stale tensor that is still held stops nobody else", () => {
    const [a, b] = [ints([1, 2, 3]), ints([4, 5, 6])];
    const alias = a.reshape(3);
    a.assign(a.add(1));
    const both = alias.add(a).add(b);
    a.realizeSync();
    b.assign(b.add(1)).realizeSync();
    a.assign(a.add(b)).realizeSync();
    expect([a.tolistSync(), b.tolistSync()]).toEqual([
      [7, 9, 11],
      [5, 6, 7],
    ]);
    expect(() => both.realizeSync()).toThrow(StaleError);
  });
});

describe("200 steps of an optimiser", () => {
  const STEPS = 200;
  const init = [0.5, -1.25, 2, 3.5];
  const target = [1, 2, -3, 0.25];

  test("equal a plain model; kernels a step and memory stay the same", async () => {
    const w = new Tensor(init);
    const m = Tensor.zeros(4).contiguous();
    const goal = new Tensor(target);
    await Tensor.realize(w, m, goal);
    const model = { w: Float32Array.from(init), m: new Float32Array(4) };
    const f = Math.fround;
    const counts = new Set<number>();
    let held = 0;
    for (let step = 0; step < STEPS; step++) {
      const before = GlobalCounters.kernelCount;
      const error = w.sub(goal);
      const loss = error.square().sum();
      const grad = error.mul(2);
      m.assign(m.mul(0.5).add(grad));
      w.assign(w.sub(m.mul(0.125)));
      await Tensor.realize(w, m);
      const value = Number(await loss.item());
      counts.add(GlobalCounters.kernelCount - before);
      let expected = 0;
      for (let i = 0; i < 4; i++) {
        const e = f((model.w[i] as number) - (target[i] as number));
        expected = f(expected + f(e * e));
        model.m[i] = f(f((model.m[i] as number) * 0.5) + f(e * 2));
        model.w[i] = f((model.w[i] as number) - f((model.m[i] as number) * 0.125));
      }
      expect(value, `loss at step ${step}`).toBeCloseTo(expected, 5);
      if (step === 20) {
        await collect();
        held = GlobalCounters.memUsed;
      }
    }
    expect([...(await w.data())].map(Number)).toEqual([...model.w]);
    expect([...(await m.data())].map(Number)).toEqual([...model.m]);
    expect([...counts]).toEqual([2]); // the loss; m and w
    await collect();
    expect(GlobalCounters.memUsed).toBeLessThanOrEqual(held + 256);
  });

  test("the same steps without a wait between them", () => {
    const w = new Tensor(init).realizeSync();
    const goal = new Tensor(target).realizeSync();
    const model = Float32Array.from(init);
    const f = Math.fround;
    for (let step = 0; step < STEPS; step++) {
      w.assign(w.sub(w.sub(goal).mul(0.125)));
      for (let i = 0; i < 4; i++)
        model[i] = f((model[i] as number) - f(f((model[i] as number) - (target[i] as number)) * 0.125));
    }
    expect(kernels(w)).toBe(STEPS);
    expect([...w.dataSync()]).toEqual([...model]);
  });
});

test("a value may have more readers than a call takes arguments", () => {
  const x = ints([1, 2]).realizeSync();
  const reader = x.add(1);
  reader.mul(2).realizeSync(); // computes it on the way: nobody asks for it
  const readers = vi
    .spyOn(LazyBuffer.prototype, "pendingReaders")
    .mockReturnValue(Array<LazyBuffer>(300_000).fill(reader.lazydata));
  try {
    expect(x.assign(x.mul(3)).tolistSync()).toEqual([3, 6]);
    expect(readers).toHaveBeenCalled();
  } finally {
    readers.mockRestore();
  }
});

test("a value that only an unwanted gradient reads is computed before an assign to what it is made of", async () => {
  const w = ready([10]);
  w.requiresGrad = true;
  // the gradient of a quotient with respect to the divisor reads the quotient, and nobody wants it
  const loss = w.mul(3).sum().div(10);
  loss.backward();
  const expected = w.dataSync().reduce((a, b) => a + 3 * b, 0) / 10;
  const step = Tensor.noGrad(() => w.assign(w.sub((w.grad as Tensor).mul(0.1))));
  await step.realize();
  expect(await loss.item()).toBeCloseTo(expected, 5);
});
