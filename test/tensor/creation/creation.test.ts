// Tensors out of nothing: values and types as torch has them, options, no kernel before they are used, and
// what bad arguments are told.

import { ArgumentError, type DTypeLike, dtypes, ShapeError, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { deviceTest, has, read } from "../../device/harness.ts";
import { kernels, ready } from "../../schedule/count.ts";

describe("constants", () => {
  test("zeros, ones and full take sizes, a shape, and options behind either", async () => {
    expect(await Tensor.zeros(2, 1).tolist()).toEqual([[0], [0]]);
    expect(await Tensor.zeros([2, 1]).tolist()).toEqual([[0], [0]]);
    const ones = Tensor.ones(2, { dtype: "int64", requiresGrad: false });
    expect(await ones.tolist()).toEqual([1n, 1n]);
    const leaf = Tensor.ones([2, 2], { requiresGrad: true, device: "JS" });
    expect([leaf.requiresGrad, leaf.device, leaf.dtype]).toEqual([true, "JS", dtypes.float32]);
    expect(Tensor.zeros().shape).toEqual([]);
    expect(await Tensor.full([2], true).tolist()).toEqual([true, true]);
    expect(Tensor.full([2], 1.5).dtype).toBe(dtypes.float32);
    expect(Tensor.full(3, 7).shape).toEqual([3]);
    expect(await Tensor.full([2], 6, { dtype: "bool" }).tolist()).toEqual([true, true]);
    expect(Tensor.empty(2, 3, { dtype: "uint8" }).shape).toEqual([2, 3]);
  });
  test("like another tensor: its shape, type and place unless told otherwise", async () => {
    const t = new Tensor([[1, 2, 3]], { dtype: "int16", device: "JS" });
    for (const like of [t.zerosLike(), Tensor.onesLike(t), t.fullLike(9), Tensor.emptyLike(t)]) {
      expect([like.shape, like.dtype, like.device]).toEqual([[1, 3], dtypes.int16, "JS"]);
    }
    const other = Tensor.zerosLike(t, { dtype: "float64", device: "WASM", requiresGrad: true });
    expect([other.dtype, other.device, other.requiresGrad]).toEqual([dtypes.float64, "WASM", true]);
    expect(await t.fullLike(2).tolist()).toEqual([[2, 2, 2]]);
  });
});

describe("ranges", () => {
  deviceTest("arange counts like torch, forwards and backwards, in integers and floats", async (device) => {
    const values = async (...args: [number, number?, number?]) =>
      read(Tensor.arange(...(args as [number, number, number]), { device }));
    expect(await values(4)).toEqual([0, 1, 2, 3]);
    expect(await values(2, 5)).toEqual([2, 3, 4]);
    expect(await values(5, 0, -2)).toEqual([5, 3, 1]);
    expect(await values(3, 3)).toEqual([]);
    expect(await values(0, 1, 0.25)).toEqual([0, 0.25, 0.5, 0.75]);
    expect(await values(-0.5, 2)).toEqual([-0.5, 0.5, 1.5]);
    expect(await values(0, 1.1, 0.5)).toEqual([0, 0.5, 1]);
  });
  test("the type of arange", () => {
    expect(Tensor.arange(4).dtype).toBe(dtypes.int32);
    expect(Tensor.arange(4.5).dtype).toBe(dtypes.float32);
    expect(Tensor.arange(4, { dtype: "float16" }).dtype).toBe(dtypes.float16);
    expect(Tensor.arange(1, 4, { dtype: "int64" }).shape).toEqual([3]);
  });
  deviceTest("linspace meets both ends, in any type, from numbers and tensors", async (device) => {
    const space = (a: number | Tensor, b: number | Tensor, n: number, dtype: DTypeLike = "float32") =>
      read(Tensor.linspace(a, b, n, { device, dtype }));
    expect(await space(0, 1, 3)).toEqual([0, 0.5, 1]);
    expect(await space(1, 0, 3)).toEqual([1, 0.5, 0]);
    expect(await space(5, 9, 1)).toEqual([5]);
    expect(await space(5, 9, 0)).toEqual([]);
    if (has(device, dtypes.float64)) expect(await space(0, 7, 4, "int32")).toEqual([0, 2, 4, 7]);
    expect(await space(new Tensor(-2, { device }), new Tensor(2.5, { device }), 4)).toEqual([
      -2, -0.5, 1, 2.5,
    ]);
    expect((await space(0.1, 0.7, 50)).at(-1)).toBe(Math.fround(0.7));
  });
  test("logspace is a power of linspace", async () => {
    const got = await read(Tensor.logspace(0, 3, 4));
    for (const [i, x] of [1, 10, 100, 1000].entries()) expect(Number(got[i]) / x).toBeCloseTo(1, 5);
    expect(await read(Tensor.logspace(0, 4, 5, 2))).toEqual([1, 2, 4, 8, 16]);
  });
});

describe("matrices", () => {
  deviceTest("eye and tri of every shape", async (device) => {
    for (const [n, m] of [
      [1, 1],
      [2, 3],
      [3, 2],
      [0, 2],
      [2, 0],
    ] as const) {
      const want = (f: (i: number, j: number) => boolean) =>
        Array.from({ length: n }, (_, i) => Array.from({ length: m }, (_, j) => Number(f(i, j))));
      expect(await Tensor.eye(n, m, { device }).tolist()).toEqual(want((i, j) => i === j));
      expect(await Tensor.tri(n, m, -1, { device }).tolist()).toEqual(want((i, j) => j <= i - 1));
    }
    expect(await Tensor.eye(2, { dtype: "bool", device }).tolist()).toEqual([
      [true, false],
      [false, true],
    ]);
  });
});

describe("cost", () => {
  test("what is made of nothing is computed where it is used", () => {
    const x = ready([6]);
    expect(kernels(x.add(Tensor.arange(6)))).toBe(1);
    expect(kernels(x.mul(Tensor.arange(0, 3, 0.5)))).toBe(1);
    expect(kernels(x.add(Tensor.linspace(0, 1, 6)))).toBe(1);
    expect(kernels(x.sub(Tensor.ones(6)))).toBe(1);
    expect(kernels(ready([3, 4]).add(Tensor.eye(3, 4)))).toBe(1);
    // an arange that is only looked at through views has no memory either
    expect(kernels(ready([6, 4]).add(Tensor.arange(6).reshape(6, 1)))).toBe(1);
  });
});

describe("bad arguments", () => {
  test("say what came and what was expected", () => {
    expect(() => Tensor.zeros(2, -1)).toThrow(ShapeError);
    expect(() => Tensor.zeros(2, -1)).toThrow("zeros: [2, -1] is not a shape; sizes are integers from 0 up");
    expect(() => Tensor.full([1.5], 0)).toThrow("full: [1.5] is not a shape");
    expect(() => Tensor.arange(0, 5, 0)).toThrow(ArgumentError);
    expect(() => Tensor.arange(0, 5, -1)).toThrow("arange: from 0 to 5 in steps of -1 never gets there");
    expect(() => Tensor.arange(Number.NaN)).toThrow(ArgumentError);
    expect(() => Tensor.linspace(0, 1, -2)).toThrow("linspace: steps is -2, expected an integer from 0 up");
    expect(() => Tensor.linspace(new Tensor([1, 2]), 1, 2)).toThrow("got shape [2]");
    expect(() => Tensor.eye(-1)).toThrow("eye: [-1, -1] is not a shape");
  });
});
