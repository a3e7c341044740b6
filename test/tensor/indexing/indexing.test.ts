// Indexing against plain arrays (indexmodel.ts), gradients against finite differences, and what the compiler
// makes of it: a read by index is one indexed load, never a loop over the table.

import { createSchedule, dtypes, Tensor, toKernel } from "gradloom";
import { ClangRenderer } from "gradloom/render";
import { describe, expect, it } from "vitest";
import { addresses, gradientGap, type Plain, type PlainIndex } from "./indexmodel.ts";

const iota = (...shape: number[]): Tensor => {
  const n = shape.reduce((a, b) => a * b, 1);
  return new Tensor(Float32Array.from({ length: n }, (_, i) => i)).reshape(shape).realizeSync();
};
const ints = (...xs: number[]): Tensor => new Tensor(xs, { dtype: "int32" }).realizeSync();

function kernelsOf(...ts: readonly Tensor[]) {
  return createSchedule(ts.map((t) => t.contiguous().lazydata))
    .filter((si) => si.ast[0]?.op === "STORE")
    .map((si) => toKernel(si.ast, [], ClangRenderer));
}
/** [loops, loads] of the kernel that computes a tensor; those before it compute what it reads. */
function cost(t: Tensor, before = 0): [number, number] {
  const kernels = kernelsOf(t);
  expect(kernels.length).toBe(1 + before);
  const count = (op: string) => [...(kernels[before]?.uops ?? [])].filter((u) => u.op === op).length;
  return [count("LOOP"), count("LOAD")];
}

// ---- a stream of random indices ----

function random(seed: number): (n: number) => number {
  let s = seed;
  return (n) => {
    s = (s * 1103515245 + 12345) % 2147483648;
    return Math.floor((s / 2147483648) * n);
  };
}
function randomIndex(shape: readonly number[], pick: (n: number) => number): PlainIndex[] {
  const out: PlainIndex[] = [];
  const common = [[3], [2, 1], [2, 3], []][pick(4)] as number[];
  for (const n of shape) {
    if (pick(6) === 0) out.push(null);
    const kind = pick(7);
    if (kind === 0) out.push(pick(2 * n) - n);
    else if (kind <= 3) {
      const end = () => (pick(3) === 0 ? null : pick(2 * n + 4) - n - 2);
      const step = [null, 1, 2, 3, -1, -2][pick(6)] as number | null;
      out.push([end(), end(), step]);
    } else if (kind === 4) {
      const s = pick(2) === 0 ? common : common.map((c) => (pick(2) === 0 ? 1 : c));
      const count = s.reduce((a, b) => a * b, 1);
      out.push({ shape: s, data: Array.from({ length: count }, () => pick(2 * n) - n) });
    } else if (kind === 5 && !out.includes("...")) {
      out.push("...");
      break;
    } else out.push([]);
  }
  return out;
}
const ours = (i: PlainIndex): number | null | "..." | readonly [number?, number?, number?] | Tensor => {
  if (typeof i === "object" && i !== null && "data" in i) {
    return new Tensor([...(i as Plain).data], { dtype: "int32" }).reshape((i as Plain).shape);
  }
  return i as readonly [number?, number?, number?];
};

describe("get", () => {
  it("reads what plain arrays read, for random indices", async () => {
    const pick = random(7);
    for (let round = 0; round < 150; round++) {
      const shape = [[5], [4, 3], [2, 3, 4], [3, 1, 2, 2]][pick(4)] as number[];
      const index = randomIndex(shape, pick);
      const { shape: want, flat } = addresses(shape, index);
      const got = iota(...shape).get(...index.map(ours));
      expect({ index, shape: got.shape }).toEqual({ index, shape: want });
      expect({ index, data: [...(await got.data())] }).toEqual({ index, data: flat });
    }
  });
  it("costs no kernel without tensors", () => {
    const x = iota(4, 6);
    const y = x.get([1, 3], null, [null, null, -2]);
    expect(y.lazydata.base).toBe(x.lazydata.base);
    expect(createSchedule([y.lazydata])).toEqual([]);
  });
  it("is one indexed load with tensors", () => {
    const x = iota(5, 12);
    expect(cost(x.get(ints(1, 4, 2)))).toEqual([2, 2]);
    expect(cost(x.get(ints(1, 4, 2), ints(0, 7, 9)))).toEqual([1, 3]);
    expect(cost(x.get([null, null, 2], ints(-1, 3)))).toEqual([2, 2]);
  });
  it("has gradients, also for places named twice", async () => {
    expect(await gradientGap([3, 4], (x) => x.get(ints(0, 2, 0), [null, null, -2]))).toBeLessThan(1e-2);
    expect(await gradientGap([3, 4], (x) => x.get(ints(0, 2, 0), ints(1, 3, 1)))).toBeLessThan(1e-2);
    expect(await gradientGap([3, 4], (x) => x.get("...", [3, null, -2], null))).toBeLessThan(1e-2);
  });
  it("counts masks in the async form", async () => {
    const x = iota(2, 3);
    const mask = x.gt(2);
    expect(await (await x.getAsync(mask)).tolist()).toEqual([3, 4, 5]);
    expect(await (await x.getAsync(0, new Tensor([true, false, true]))).tolist()).toEqual([0, 2]);
    expect(await (await x.getAsync(x.lt(0))).shape).toEqual([0]);
    expect(() => x.get(mask)).toThrow(/get: how many elements a bool mask picks.*getAsync/);
  });
  it("says what is wrong", () => {
    const x = iota(2, 3);
    expect(() => x.get(2)).toThrow("get: index 2 is out of range for dim 0 of [2, 3]; expected -2 to 1");
    expect(() => x.get(0, 0, 0)).toThrow("get: 3 indices for shape [2, 3]; expected at most 2");
    expect(() => x.get("...", "...")).toThrow(/and 2 "\.\.\."/);
    expect(() => x.get([0, 2, 0])).toThrow("get: [0,2,0] is not a slice");
    expect(() => x.get(new Tensor([0.5]))).toThrow("get: the index is float32, expected integers");
    expect(() => x.get(ints(0, 1), ints(0, 1, 2))).toThrow("do not broadcast");
  });
});

describe("reads by index", () => {
  it("gather, indexSelect, take and embedding are indexed loads", () => {
    const x = iota(5, 12);
    const at = new Tensor([
      [1, 2, 0],
      [4, 4, 3],
    ]).realizeSync();
    expect(cost(x.gather(0, at))).toEqual([2, 2]);
    expect(cost(x.gather(1, at))).toEqual([2, 2]);
    expect(cost(x.take(at))).toEqual([1, 2]);
    expect(cost(x.indexSelect(0, ints(3, 3)))).toEqual([2, 2]);
    expect(cost(x.indexSelect(1, ints(3, 3)))).toEqual([2, 2]);
    expect(cost(at.embedding(x))).toEqual([2, 2]);
  });
  it("the gradient of a scatter is an indexed load too", () => {
    const src = iota(3).detach();
    src.requiresGrad = true;
    const out = Tensor.zeros(8).scatterAdd(0, ints(5, 1, 5), src);
    out.mul(iota(8)).sum().backward();
    // the gradient of the sum is computed first, then looked up
    expect(cost(src.grad as Tensor, 1)).toEqual([1, 2]);
  });
  it("reads zero beyond the end, where only the device knows the index", async () => {
    const from = iota(3).add(1);
    expect(await from.take(ints(0, 3, 99, -1).add(0)).tolist()).toEqual([1, 0, 0, 3]);
    expect(await from.gather(0, ints(2, 7).add(0)).tolist()).toEqual([3, 0]);
  });
  it("takes every kind of integer and element", async () => {
    const x = new Tensor([true, false, true]);
    expect(await x.gather(0, new Tensor([1, 0], { dtype: "uint8" })).tolist()).toEqual([false, true]);
    expect(await x.take(new Tensor([-1n, 1n])).tolist()).toEqual([true, false]);
    const half = new Tensor([1.5, 2.5], { dtype: "float16" });
    expect(await half.indexSelect(0, ints(1, 1)).tolist()).toEqual([2.5, 2.5]);
    expect(await new Tensor([1, 2], { dtype: "int8" }).take(ints(1)).tolist()).toEqual([2]);
    expect(new Tensor([1, 2], { dtype: "int8" }).take(ints(1)).dtype).toBe(dtypes.int8);
  });
  it("embedding: padding, frequency and norm", async () => {
    const run = async (options: object): Promise<unknown> => {
      const w = new Tensor(
        [
          [3, 4],
          [1, 0],
          [0, 2],
        ],
        { dtype: "float32" },
      ).detach();
      w.requiresGrad = true;
      const out = ints(0, 1, 0).embedding(w, options);
      out.sum().backward();
      return [await out.tolist(), await (w.grad as Tensor).tolist()];
    };
    const rows = [
      [3, 4],
      [1, 0],
      [3, 4],
    ];
    expect(await run({})).toEqual([
      rows,
      [
        [2, 2],
        [1, 1],
        [0, 0],
      ],
    ]);
    expect(await run({ paddingIdx: 0 })).toEqual([
      rows,
      [
        [0, 0],
        [1, 1],
        [0, 0],
      ],
    ]);
    expect(await run({ paddingIdx: -3 })).toEqual([
      rows,
      [
        [0, 0],
        [1, 1],
        [0, 0],
      ],
    ]);
    expect(await run({ scaleGradByFreq: true })).toEqual([
      rows,
      [
        [1, 1],
        [1, 1],
        [0, 0],
      ],
    ]);
    const [scaled] = (await run({ maxNorm: 2.5 })) as [number[][]];
    expect(scaled[0]?.[0]).toBeCloseTo(1.5, 5);
    expect(scaled[1]).toEqual([1, 0]);
  });
  it("masks: select, nonzero", async () => {
    const x = iota(2, 2);
    expect(await (await x.maskedSelect(new Tensor([true, false]))).tolist()).toEqual([0, 2]);
    expect(await (await x.nonzero()).tolist()).toEqual([
      [0, 1],
      [1, 0],
      [1, 1],
    ]);
    expect((await new Tensor(0).nonzero()).shape).toEqual([0, 0]);
    const leaf = iota(3).detach();
    leaf.requiresGrad = true;
    (await leaf.maskedSelect(leaf.gt(0))).sum().backward();
    expect(await (leaf.grad as Tensor).tolist()).toEqual([0, 1, 1]);
    expect(() => x.maskedFill(x, 1)).toThrow("maskedFill: the mask is float32, expected bool");
  });
  it("searchsorted and bucketize", async () => {
    const borders = new Tensor([
      [1, 3, 5, 7],
      [2, 4, 6, 8],
    ]);
    const values = new Tensor([
      [3, 6],
      [3, 6],
    ]);
    expect(await borders.searchsorted(values).tolist()).toEqual([
      [1, 3],
      [1, 2],
    ]);
    expect(await borders.searchsorted(values, { right: true }).tolist()).toEqual([
      [2, 3],
      [1, 3],
    ]);
    expect(await new Tensor(4).bucketize(new Tensor([1, 3, 5])).item()).toBe(2);
  });
});

describe("scatter", () => {
  it("the last source stays, and it alone gets the gradient", async () => {
    const src = new Tensor([5, 6, 7], { dtype: "float32" }).detach();
    src.requiresGrad = true;
    const out = Tensor.zeros(4).scatter(0, ints(2, 0, 2), src);
    expect(await out.tolist()).toEqual([6, 0, 7, 0]);
    out
      .mul(new Tensor([1, 2, 3, 4]))
      .sum()
      .backward();
    expect(await (src.grad as Tensor).tolist()).toEqual([0, 1, 3]);
  });
  it("has gradients for the tensor and the source", async () => {
    const at = new Tensor([
      [1, 0, 2],
      [0, 2, 2],
    ]);
    for (const dim of [0, 1]) {
      expect(await gradientGap([3, 4], (x) => x.scatter(dim, at, iota(2, 3)))).toBeLessThan(1e-2);
      expect(await gradientGap([2, 3], (s) => iota(3, 4).scatter(dim, at, s))).toBeLessThan(1e-2);
      expect(await gradientGap([2, 4], (s) => iota(3, 4).scatterAdd(dim, at, s))).toBeLessThan(1e-2);
      for (const reduce of ["sum", "prod", "mean", "amax", "amin"] as const) {
        for (const includeSelf of [true, false]) {
          const into = (x: Tensor, s: Tensor) => x.scatterReduce(dim, at, s, reduce, { includeSelf });
          expect(await gradientGap([3, 4], (x) => into(x, iota(2, 3).mul(0.3)))).toBeLessThan(2e-2);
          expect(await gradientGap([2, 3], (s) => into(iota(3, 4).mul(0.3), s))).toBeLessThan(2e-2);
        }
      }
    }
  });
  it("products survive zeros", async () => {
    const src = new Tensor([0, 3, 0, 0], { dtype: "float32" }).detach();
    src.requiresGrad = true;
    const out = new Tensor([2, 5], { dtype: "float32" }).scatterReduce(0, ints(0, 0, 1, 1), src, "prod");
    expect(await out.tolist()).toEqual([0, 0]);
    out.sum().backward();
    expect(await (src.grad as Tensor).tolist()).toEqual([6, 0, 0, 0]);
  });
  it("rounds integer means down", async () => {
    const x = new Tensor([-3, 0]);
    expect(await x.scatterReduce(0, ints(0), ints(0), "mean").tolist()).toEqual([-2, 0]);
  });
  it("says what is wrong", () => {
    const x = iota(3, 4);
    expect(() => x.scatter(0, ints(0), iota(1))).toThrow(
      /scatter: cannot write \[1\] float32 by an index of shape \[1\]/,
    );
    expect(() => x.scatterReduce(0, ints(0), iota(1), "max" as "amax")).toThrow(
      'scatterReduce: "max" is not known',
    );
    expect(() => x.scatterAdd(0, new Tensor([[0]]), new Tensor([[1]]))).toThrow("the types equal");
  });
});

describe("writes by index", () => {
  it("indexPut with several tensors, replacing and adding", async () => {
    const x = Tensor.zeros(2, 3);
    const [i, j] = [ints(0, 1, 0), ints(2, 0, 2)];
    expect(await x.indexPut([i, j], new Tensor([1, 2, 4]).cast("float32")).tolist()).toEqual([
      [0, 0, 4],
      [2, 0, 0],
    ]);
    const sums = x.indexPut([i, j], new Tensor([1, 2, 4]).cast("float32"), { accumulate: true });
    expect(await sums.tolist()).toEqual([
      [0, 0, 5],
      [2, 0, 0],
    ]);
    expect(await x.indexPut([null, ints(1)], 7).tolist()).toEqual([
      [0, 7, 0],
      [0, 7, 0],
    ]);
    expect(
      await x.indexPut([new Tensor([false, true])], new Tensor([1, 2, 3]).cast("float32")).tolist(),
    ).toEqual([
      [0, 0, 0],
      [1, 2, 3],
    ]);
  });
  it("have gradients", async () => {
    const [i, j] = [ints(0, 1, 0), ints(2, 0, 2)];
    for (const accumulate of [true, false]) {
      expect(await gradientGap([2, 3], (x) => x.indexPut([i, j], iota(3), { accumulate }))).toBeLessThan(
        1e-2,
      );
      expect(await gradientGap([3], (v) => iota(2, 3).indexPut([i, j], v, { accumulate }))).toBeLessThan(
        1e-2,
      );
      expect(
        await gradientGap([3, 2], (v) => iota(2, 3).indexPut([null, i], v.t(), { accumulate })),
      ).toBeLessThan(1e-2);
      expect(await gradientGap([3], (v) => iota(2, 3).put(ints(5, -6, 5), v, { accumulate }))).toBeLessThan(
        1e-2,
      );
    }
    const mask = new Tensor([
      [true, false, true],
      [false, true, false],
    ]);
    expect(await gradientGap([4], (v) => iota(2, 3).maskedScatter(mask, v))).toBeLessThan(1e-2);
    expect(await gradientGap([2, 3], (x) => x.maskedScatter(mask, iota(4)))).toBeLessThan(1e-2);
    expect(await gradientGap([3], (v) => iota(2, 3).indexPut([mask], v))).toBeLessThan(1e-2);
    expect(await gradientGap([2, 3], (x) => x.repeatInterleave([2, 0, 1], 1))).toBeLessThan(1e-2);
    expect(await gradientGap([2, 3], (x) => x.take(ints(0, 5, 0)))).toBeLessThan(1e-2);
    expect(await gradientGap([2, 3], (x) => x.indexFill(1, ints(0, 2), 3))).toBeLessThan(1e-2);
  });
  it("repeatInterleave by a tensor of counts", async () => {
    const x = new Tensor([1, 2, 3]);
    expect(await x.repeatInterleave(ints(2, 0, 1), 0, { outputSize: 3 }).tolist()).toEqual([1, 1, 3]);
    expect(() => x.repeatInterleave(ints(2, 0, 1))).toThrow("the size of the result must be given");
    expect(() => x.repeatInterleave([1, 2])).toThrow("got 2 counts for 3 elements");
  });
});

describe("setitem", () => {
  it("writes what plain arrays write, for random indices", async () => {
    const pick = random(11);
    for (let round = 0; round < 80; round++) {
      const shape = [[5], [4, 3], [2, 3, 4]][pick(3)] as number[];
      const index = randomIndex(shape, pick);
      const { shape: region, flat } = addresses(shape, index);
      const want = [...(await iota(...shape).data())].map(Number);
      const values = flat.map((_, i) => 100 + i);
      flat.forEach((at, i) => {
        want[at] = values[i] as number;
      });
      const x = iota(...shape)
        .add(0)
        .realizeSync();
      x.setitem(index.map(ours), new Tensor(values, { dtype: "float32" }).reshape(region));
      expect({ index, data: [...(await x.data())] }).toEqual({ index, data: want });
    }
  });
  it("broadcasts, casts and takes masks", async () => {
    const x = iota(2, 3).add(0).realizeSync();
    x.setitem([[], 1], 9).setitem([0], new Tensor([[7, 8, 9]]));
    expect(await x.tolist()).toEqual([
      [7, 8, 9],
      [3, 9, 5],
    ]);
    x.setitem([x.gt(8)], 0);
    expect(await x.tolist()).toEqual([
      [7, 8, 0],
      [3, 0, 5],
    ]);
    x.setitem([x.eq(0)], new Tensor([1, 2]));
    expect(await x.tolist()).toEqual([
      [7, 8, 1],
      [3, 2, 5],
    ]);
  });
  it("writes into the same memory in one kernel", async () => {
    const x = iota(4, 4).add(0).realizeSync();
    const { buffer } = x.lazydata.base;
    x.setitem(
      [
        [1, 3],
        [0, 2],
      ],
      5,
    );
    expect(createSchedule([x.lazydata]).length).toBe(1);
    await x.realize();
    expect(x.lazydata.base.buffer).toBe(buffer);
    expect(await x.select(0, 2).tolist()).toEqual([5, 5, 10, 11]);
  });
  it("passes gradients to what is left and to what is written", async () => {
    const leaf = (...xs: number[]): Tensor => {
      const t = new Tensor(xs, { dtype: "float32" }).detach();
      t.requiresGrad = true;
      return t;
    };
    const [a, b] = [leaf(1, 2, 3), leaf(4)];
    const x = a.mul(2);
    x.setitem([1], b.mul(3));
    expect(await x.tolist()).toEqual([2, 12, 6]);
    x.mul(new Tensor([1, 10, 100]))
      .sum()
      .backward();
    expect(await (a.grad as Tensor).tolist()).toEqual([2, 0, 200]);
    expect(await (b.grad as Tensor).tolist()).toEqual([30]);
    expect(() => a.setitem([0], 1)).toThrow("setitem: this is a leaf with requiresGrad");
    expect(await Tensor.noGrad(() => a.setitem([0], 9)).tolist()).toEqual([9, 2, 3]);
  });
});
