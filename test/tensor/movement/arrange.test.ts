// Joining, splitting and rearranging against plain arrays; views cost no kernel and a join costs one.

import { createSchedule, dtypes, GlobalCounters, Tensor } from "gradloom";
import { describe, expect, it } from "vitest";
import { coordinates, flatAt, gradientGap } from "../indexing/indexmodel.ts";

const iota = (...shape: number[]): Tensor => {
  const n = shape.reduce((a, b) => a * b, 1);
  return new Tensor(Float32Array.from({ length: n }, (_, i) => i)).reshape(shape).realizeSync();
};
/** A tensor made element by element of places in iota(shape); -1 is a zero. */
const made = (shape: readonly number[], place: (at: number[]) => number): number[] =>
  coordinates(shape).map((at) => Math.max(0, place(at)));
const flat = async (t: Tensor): Promise<number[]> => [...(await t.data())].map(Number);
const kernels = (...ts: readonly Tensor[]): number =>
  createSchedule(ts.map((t) => t.contiguous().lazydata)).filter((si) => si.ast[0]?.op === "STORE").length;
const lists = (ts: readonly Tensor[]) => Promise.all(ts.map((t) => t.tolist()));

describe("views", () => {
  const x = iota(4, 6);
  const views: Record<string, () => Tensor> = {
    roll: () => x.roll([1, -2], [0, 1]),
    "roll of all": () => x.roll(5),
    repeat: () => x.repeat(2, 1, 3),
    unfold: () => x.unfold(1, 3, 2),
    diagonal: () => x.diagonal(1),
    diagEmbed: () => x.diagEmbed(-1),
    rot90: () => x.rot90(3),
    movedim: () => x.reshape(2, 2, 6).movedim([0, 2], [2, 0]),
    unflatten: () => x.unflatten(1, [2, -1]),
    narrow: () => x.narrow(1, 2, 3),
    select: () => x.select(0, -1),
    "circular pad": () => x.pad([2, 1, 1, 3], "circular"),
    "zero pad with cuts": () => x.pad([-2, 1, 1, -1]),
    "a chain": () =>
      x.t().flip(0).unfold(0, 2, 1).roll(1, 1).squeeze().repeat(1, 2, 1).get(0, [null, null, -1]),
    "a part of a split": () => x.split(4, 1)[1] as Tensor,
    "a chunk of a chunk": () => (x.chunk(2, 1)[1] as Tensor).chunk(3, 0)[1] as Tensor,
  };
  for (const [name, make] of Object.entries(views)) {
    it(`${name} costs no kernel`, () => {
      const t = make();
      expect(t.lazydata.base).toBe(x.lazydata.base);
      expect(createSchedule([t.lazydata])).toEqual([]);
    });
  }
  it("realising a chain of views launches nothing", async () => {
    const before = GlobalCounters.kernelCount;
    await x.roll(1, 0).t().unfold(0, 2, 2).diagonal(0, 0, 2).realize();
    expect(GlobalCounters.kernelCount).toBe(before);
  });
});

describe("joins", () => {
  it("cat, stack and block structures are one kernel", () => {
    const [a, b] = [iota(2, 3), iota(2, 3)];
    expect(kernels(Tensor.cat([a, b, a.flip(0), b.t().reshape(2, 3)], 1))).toBe(1);
    expect(kernels(Tensor.stack(Array.from({ length: 40 }, () => iota(3))))).toBe(1);
    expect(kernels(Tensor.blockDiag([a, b]))).toBe(1);
    expect(kernels(a.reshape(1, 2, 3).pad([1, 1, 1, 0], "reflect"))).toBe(1);
    expect(kernels(a.pad([1, 1, 1, 0], "replicate"))).toBe(1);
  });
  it("keep every bit: NaN, infinities and the sign of zero", async () => {
    const t = new Tensor([NaN, -0, Infinity]).cat(new Tensor([-Infinity, -0, 1.5]));
    const got = await t.data();
    expect([...got]).toEqual([NaN, -0, Infinity, -Infinity, -0, 1.5]);
    expect(Object.is(got[1], -0) && Object.is(got[4], -0)).toBe(true);
  });
  it("promote, and skip empty vectors", async () => {
    const t = Tensor.cat([new Tensor([1]), new Tensor([0.5]), new Tensor([true])]);
    expect(t.dtype).toBe(dtypes.float32);
    expect(await t.tolist()).toEqual([1, 0.5, 1]);
    expect(await new Tensor([]).cat(new Tensor([[1, 2]]), 1).tolist()).toEqual([[1, 2]]);
    expect(Tensor.cat([iota(0, 3), iota(2, 3)]).shape).toEqual([2, 3]);
  });
  it("meshgrid and cartesianProd", async () => {
    const [a, b] = [new Tensor([1, 2]), new Tensor([3, 4, 5])];
    const [x, y] = Tensor.meshgrid([a, b], "xy") as [Tensor, Tensor];
    expect(await x.tolist()).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ]);
    expect(await y.tolist()).toEqual([
      [3, 3],
      [4, 4],
      [5, 5],
    ]);
    expect(Tensor.cartesianProd([a, b]).shape).toEqual([6, 2]);
    expect(await Tensor.block([[a.reshape(1, 2), a.reshape(1, 2)], [iota(2, 4)]]).tolist()).toEqual([
      [1, 2, 1, 2],
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
  });
  it("have gradients", async () => {
    expect(await gradientGap([2, 3], (x) => Tensor.cat([x, iota(2, 2), x.mul(2)], 1))).toBeLessThan(1e-2);
    expect(await gradientGap([2, 3], (x) => Tensor.stack([x, x.mul(3)], 1))).toBeLessThan(1e-2);
    expect(await gradientGap([2, 3], (x) => Tensor.blockDiag([x, x]))).toBeLessThan(1e-2);
    expect(await gradientGap([4], (x) => Tensor.cartesianProd([x, iota(2)]))).toBeLessThan(1e-2);
  });
  it("say what is wrong", () => {
    expect(() => iota(2, 3).cat(iota(3, 2))).toThrow("cat: cannot join [2, 3] and [3, 2] along dim 0");
    expect(() => new Tensor(1).cat(new Tensor(2))).toThrow("cat: a tensor of shape [] has no dim");
    expect(() => iota(2).stack(iota(3))).toThrow(
      "stack: the tensors have shapes [2] and [3], expected equal",
    );
    expect(() => Tensor.cat([])).toThrow("cat: got an empty list");
    expect(() => Tensor.meshgrid([iota(2, 2)])).toThrow("meshgrid: shape [2, 2] is not a vector");
  });
});

describe("splits", () => {
  it("split, chunk, tensorSplit", async () => {
    const x = iota(7);
    expect(await lists(x.split(3))).toEqual([[0, 1, 2], [3, 4, 5], [6]]);
    expect((await lists(x.chunk(3))).length).toBe(3);
    expect(x.chunk(4).map((t) => t.size)).toEqual([2, 2, 2, 1]);
    expect(
      iota(4)
        .chunk(3)
        .map((t) => t.size),
    ).toEqual([2, 2]);
    expect(x.tensorSplit(3).map((t) => t.size)).toEqual([3, 2, 2]);
    expect(x.tensorSplit([2, -1, 99]).map((t) => t.size)).toEqual([2, 4, 1, 0]);
    expect(x.tensorSplit([5, 2]).map((t) => t.size)).toEqual([5, 0, 5]);
    expect(
      iota(0)
        .split(2)
        .map((t) => t.size),
    ).toEqual([0]);
    expect(() => x.split([1, 2])).toThrow("splitWithSizes: [1,2] adds up to 3, dim 0 of [7] has 7");
    expect(() => x.split(0)).toThrow("split: the size of a part is 0");
    expect(() => x.select(0, 7)).toThrow(
      "select: index 7 is out of range for dim 0 of [7]; expected -7 to 6",
    );
    expect(() => x.narrow(0, 5, 3)).toThrow("narrow: 3 elements from 5 do not lie in dim 0 of [7]");
  });
});

describe("rearranging", () => {
  it("unfold takes all windows", async () => {
    for (const [n, size, step] of [
      [10, 3, 2],
      [7, 7, 1],
      [6, 1, 4],
      [5, 2, 3],
      [8, 0, 3],
    ] as const) {
      const t = iota(2, n, 2).unfold(1, size, step);
      const count = Math.floor((n - size) / step) + 1;
      expect(t.shape).toEqual([2, count, 2, size]);
      const want = made(t.shape, ([a, w, b, i]) =>
        flatAt([2, n, 2], [a as number, (w as number) * step + (i as number), b as number]),
      );
      expect(await flat(t)).toEqual(want);
    }
    expect(() => iota(3).unfold(0, 4, 1)).toThrow("unfold: windows of 4, 1 apart, do not fit dim 0 of [3]");
  });
  it("diagonals there and back", async () => {
    for (const offset of [-3, -1, 0, 2, 9]) {
      const t = iota(3, 4, 5).diagonal(offset, 2, 0);
      const [top, left] = [Math.max(0, -offset), Math.max(0, offset)];
      const want = made(t.shape, ([j, d]) =>
        flatAt([3, 4, 5], [(d as number) + left, j as number, (d as number) + top]),
      );
      expect(await flat(t)).toEqual(want);
      const back = iota(2, 3).add(1).diagEmbed(offset, 0, -1);
      expect(await back.diagonal(offset, 0, -1).tolist()).toEqual([
        [1, 2, 3],
        [4, 5, 6],
      ]);
      expect(await back.sum().item()).toBe(21);
    }
  });
  it("pads in every mode as the index arithmetic says", async () => {
    const n = 5;
    const inside: Record<string, (i: number) => number> = {
      reflect: (i) => (i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i),
      replicate: (i) => Math.min(n - 1, Math.max(0, i)),
      circular: (i) => (i + n) % n,
    };
    for (const [mode, place] of Object.entries(inside)) {
      for (const [before, after] of [
        [1, 3],
        [4, 0],
        [0, 2],
        [-1, 2],
        [2, -3],
        [-2, -1],
      ] as const) {
        if (mode === "circular" && (before < 0 || after < 0)) continue;
        const t = iota(2, n).pad([before, after], mode as "reflect");
        const want = made(t.shape, ([r, i]) => flatAt([2, n], [r as number, place((i as number) - before)]));
        expect({ mode, before, after, data: await flat(t) }).toEqual({ mode, before, after, data: want });
      }
    }
    // the other end is that of what is left
    expect(await iota(5).pad([2, -1], "circular").tolist()).toEqual([2, 3, 0, 1, 2, 3]);
    expect(
      await iota(2)
        .pad([[1, 1]], 7)
        .tolist(),
    ).toEqual([7, 0, 1, 7]);
    expect(await iota(2).pad([1, -1], "constant", 7).tolist()).toEqual([7, 0]);
    expect(() => iota(3).pad([3, 0], "reflect")).toThrow(
      "mode reflect cannot add 3 elements to dim 0 of [3]",
    );
    expect(() => iota(3).pad([1], "reflect")).toThrow("pad: got 1 amounts for shape [3]");
    expect(() => iota(3).pad([1, 1], "mirror" as "reflect")).toThrow('pad: mode "mirror" is not known');
    expect(() => iota(3).pad([-2, -2])).toThrow("pad: [-2, -2] cuts more than the 3 elements");
  });
  it("turns and moves", async () => {
    const x = iota(2, 3);
    for (let k = -4; k <= 4; k++) {
      const back = x.rot90(k).rot90(-k);
      expect(await back.tolist()).toEqual([
        [0, 1, 2],
        [3, 4, 5],
      ]);
    }
    expect(iota(2, 3, 4, 5).movedim([3, 0], [0, -1]).shape).toEqual([5, 3, 4, 2]);
    expect(iota(1, 2, 1).squeeze([0, 1]).shape).toEqual([2, 1]);
    expect(iota(1, 2, 1).squeeze([]).shape).toEqual([1, 2, 1]);
    expect(new Tensor(3).squeeze(-1).shape).toEqual([]);
    expect(await x.roll([1, 1], [1, 1]).tolist()).toEqual(await x.roll(2, 1).tolist());
    expect(() => x.movedim([0], [0, 1])).toThrow("movedim: 1 dims (0) cannot go to 2 places (0,1)");
    expect(() => x.roll([1, 2], 0)).toThrow("roll: got 2 shifts (1,2) for 1 dims (0)");
    expect(() => x.unflatten(1, [2, 2])).toThrow(
      "unflatten: dim 1 of [2, 3] has 3 elements and cannot become [2,2]",
    );
    expect(() => iota(2, 2, 2).t()).toThrow("t: shape [2, 2, 2] has 3 dims");
  });
  it("triangles leave no NaN behind and fuse with what is around them", async () => {
    const x = new Tensor([
      [1, NaN],
      [Infinity, 4],
    ]);
    expect(await x.tril().tolist()).toEqual([
      [1, 0],
      [Infinity, 4],
    ]);
    expect(await x.triu(1).tolist()).toEqual([
      [0, NaN],
      [0, 0],
    ]);
    expect(
      await new Tensor([
        [true, true],
        [true, true],
      ])
        .tril(-1)
        .tolist(),
    ).toEqual([
      [false, false],
      [true, false],
    ]);
    expect(kernels(iota(3, 4, 4).add(1).tril().mul(2))).toBe(1);
    expect(() => iota(3).tril()).toThrow("tril: shape [3] is not a matrix");
  });
  it("has gradients", async () => {
    const forms: ((x: Tensor) => Tensor)[] = [
      (x) => x.roll([1, 1], [0, 1]),
      (x) => x.unfold(1, 2, 1),
      (x) => x.unfold(0, 2, 2),
      (x) => x.repeat(2, 1, 2),
      (x) => x.diagonal(1),
      (x) => x.diagEmbed(1, 0, 2),
      (x) => x.pad([2, 1, 1, 2], "reflect"),
      (x) => x.pad([2, 1, 1, 2], "replicate"),
      (x) => x.pad([2, 1, 1, 2], "circular"),
      (x) => x.pad([-1, 1, 1, -1], "constant", 3),
      (x) => x.tril().add(x.triu(1).mul(2)),
      (x) => x.rot90(1),
      (x) => x.expandAs(iota(2, 3, 4)),
    ];
    for (const f of forms) expect(await gradientGap([3, 4], f)).toBeLessThan(1e-2);
  });
});
