// Whole numbers in plain arrays: their type, sums, squares and means that would wrap, times that would lose
// digits, and gradients that they cannot have.

import { DTypeError, dtypes, type NestedArray, Tensor, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";

describe("whole numbers in an array", () => {
  test("are int32, whatever they are", () => {
    for (const data of [[1], [100_000], [-(2 ** 31), 2 ** 31 - 1]]) {
      expect(new Tensor(data).dtype).toBe(dtypes.int32);
    }
  });
  test("are refused where neither int32 nor float32 holds them", async () => {
    const now = 1_763_304_000_123;
    expect(() => new Tensor([1, now])).toThrow(DTypeError);
    expect(() => new Tensor(now)).toThrow(
      /1763304000123 fits neither int32 nor float32.*"int64" \} or "float64"/,
    );
    expect(await new Tensor([now], { dtype: "float64" }).tolist()).toEqual([now]);
    expect(await new Tensor([now], { dtype: "int64" }).tolist()).toEqual([BigInt(now)]);
    expect(new Tensor([1e10, 3e9]).dtype).toBe(dtypes.float32); // exact there
    expect(new Tensor([now, 0.5], { dtype: "float32" }).dtype).toBe(dtypes.float32);
  });
});

describe("what would wrap", () => {
  test("is refused where the array shows it", async () => {
    expect(() => new Tensor([100_000]).square()).toThrow(
      /square: 10000000000 does not fit int32.*dtype: "float32"/,
    );
    expect(() => new Tensor([2e9, 2e9]).sum()).toThrow(/sum: 4000000000 does not fit int32/);
    expect(await new Tensor([2e9, -2e9]).sum().item()).toBe(0);
    expect(await new Tensor([40_000]).square().item()).toBe(1_600_000_000);
    expect(await new Tensor([100_000], { dtype: "float32" }).square().item()).toBe(1e10);
  });
  const int32 = (data: NestedArray) => new Tensor(data, { dtype: "int32" });
  test.each<[string, () => Tensor, RegExp]>([
    ["a sum along a dim", () => int32([[2 ** 31 - 1, 1]]).sum(1), /sum: 2147483648 does not fit int32/],
    [
      "a sum along two dims",
      () =>
        int32([
          [
            [2e9, 0],
            [2e9, 0],
          ],
        ]).sum([0, 1]),
      /sum: 4000000000/,
    ],
    ["a typed array", () => new Tensor(new Int32Array([2e9, 2e9])).sum(), /sum: 4000000000/],
    ["another shape", () => int32([2e9, 2e9, 1, 1]).reshape(2, 2).sum(-1), /sum: 4000000000/],
    ["a running sum", () => int32([2e9, 2e9, -2e9]).cumsum(0), /cumsum: 4000000000/],
    ["numbers in steps", () => Tensor.arange(100_000).sum(), /sum: 4999950000 does not fit int32/],
    ["their squares", () => Tensor.arange(0, 100_000, 10).square(), /square: 9998000100/],
    ["one number many times", () => Tensor.full([100_000], 100_000).sum(), /sum: 10000000000/],
    ["along one dim", () => Tensor.full([4, 30_000], 100_000).sum(1), /sum: 3000000000/],
    ["a product", () => int32([2e9, 2e9, 4]).prod(), /prod: 16000000000000000000 does not fit int64/],
    ["a running product", () => int32([2e9, 2e9, 4]).cumprod(0), /cumprod: 16000000000000000000/],
    ["a dot product", () => int32([1e5]).dot(int32([1e5])), /dot: 10000000000 does not fit int32/],
    [
      "a matmul",
      () =>
        int32([[1e5, 1]]).matmul(
          int32([
            [0, 1e5],
            [0, 1],
          ]),
        ),
      /matmul: 10000000001/,
    ],
  ])("is refused in %s", (_, run, text) => {
    expect(run).toThrow(DTypeError);
    expect(run).toThrow(text);
  });
  test("is not refused where it fits, also with large numbers", async () => {
    const data = int32([
      [2e9, -2e9],
      [147_483_647, -147_483_648],
    ]);
    expect(await data.sum(0).tolist()).toEqual([2 ** 31 - 1, -(2 ** 31)]);
    expect(await data.sum(1).tolist()).toEqual([0, -1]);
    expect(await int32([2e9, -2e9, 2e9]).cumsum(0).tolist()).toEqual([2e9, 0, 2e9]);
    expect(
      await int32([[1e5, 1e5]])
        .matmul(int32([[1e5], [-1e5]]))
        .tolist(),
    ).toEqual([[0]]);
    expect(await int32([2e9, 2e9]).prod().item<bigint>()).toBe(4_000_000_000_000_000_000n);
  });
  test("of numbers in steps and of one number", async () => {
    expect(await Tensor.arange(60_000).sum().item()).toBe(1_799_970_000);
    expect(await Tensor.arange(-60_000, 60_000).sum().item()).toBe(-60_000);
    expect(await Tensor.full([3], 700_000_000).sum().item()).toBe(2_100_000_000);
    expect(await Tensor.full([3], 1000).prod().item<bigint>()).toBe(1_000_000_000n);
    expect(await Tensor.full([2, 2], 100_000).mean().item()).toBe(100_000);
  });
  test("CHECK=1 refuses what the device adds up", async () => {
    const twice = () => int32([2e9, 2e9]).add(0).sum();
    expect(await twice().item()).toBe(4e9 - 2 ** 32);
    await withEnv({ CHECK: 1 }, async () => {
      await expect(twice().item()).rejects.toThrow("sum: 4000000000 does not fit int32");
      expect(await int32([2e9, 2]).add(0).sum().item()).toBe(2e9 + 2);
    });
  });
  test("is a float in means and variances", async () => {
    const data = [2e9, 2e9, 2e9, 1e9];
    expect(await new Tensor(data).mean().item()).toBe(1.75e9);
    expect(await new Tensor(new Int32Array(data)).mean().item()).toBe(1.75e9);
    const big = new Tensor(new BigInt64Array([2n ** 62n, 2n ** 62n]));
    expect(await big.mean().item()).toBe(2 ** 62);
    expect(await new Tensor(data).var().item()).toBeCloseTo(2.5e17, -11);
    const column = new Tensor(data).reshape(2, 2).mean(0);
    expect(await column.tolist()).toEqual([2e9, 1.5e9]);
  });
});

test("a gradient needs floats, and says so at once", () => {
  expect(() => new Tensor([1, 2], { requiresGrad: true })).toThrow(
    /requiresGrad: .*int32.*has no gradients; give/,
  );
  const t = new Tensor([1, 2]);
  expect(() => {
    t.requiresGrad = true;
  }).toThrow(DTypeError);
  expect(t.requiresGrad).toBe(false);
});

test("a number below 0 wraps into unsigned types of every width", async () => {
  for (const dtype of ["uint8", "uint16", "uint32", "uint64"] as const) {
    const most = 2n ** BigInt(dtype.slice(4)) - 1n;
    const two = new Tensor([2], { dtype });
    const made = [two.mul(-1), two.add(-3), new Tensor(-2, { dtype }), new Tensor([-2], { dtype })];
    const values = await Promise.all(made.map(async (t) => BigInt((await t.data())[0] as number)));
    expect(values, dtype).toEqual([most - 1n, most, most - 1n, most - 1n]);
    // a number that is written where it does not fit is refused: fits.test.ts
    expect(() => Tensor.full([1], -2, { dtype })).toThrow(`full: -2 does not fit ${dtype}`);
  }
});
