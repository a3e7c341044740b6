// Whole numbers in plain arrays: their type, sums, squares and means that would wrap, times that would lose
// digits, and gradients that they cannot have.

import { DTypeError, dtypes, Tensor } from "gradloom";
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
  test("is a float in means and variances", async () => {
    const data = [2e9, 2e9, 2e9, 1e9];
    expect(await new Tensor(data).mean().item()).toBe(1.75e9);
    expect(await new Tensor(new Int32Array(data)).mean().item()).toBe(1.75e9);
    expect(await new Tensor(data).var().item()).toBeCloseTo(2.5e17, -11);
    const column = new Tensor(data).reshape(2, 2).mean(0);
    expect(await column.tolist()).toEqual([2e9, 1.5e9]);
  });
});

test("a gradient needs floats, and says so at once", () => {
  expect(() => new Tensor([1, 2], { requiresGrad: true })).toThrow(
    /requiresGrad: .*int32.*gradients need floats/,
  );
  const t = new Tensor([1, 2]);
  expect(() => {
    t.requiresGrad = true;
  }).toThrow(DTypeError);
  expect(t.requiresGrad).toBe(false);
});
