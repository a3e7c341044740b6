// Numbers that are easily lost: long sums, small integers that multiply, scalars that do not fit their type.

import { ArgumentError, createSchedule, Tensor, toKernel, Variable } from "gradloom";
import { WASMRenderer } from "gradloom/render";
import { describe, expect, test } from "vitest";

describe("long sums of floats go in blocks", () => {
  // 4099 and 1000003 are prime: their last block is not full
  test.each([4096, 4097, 4099, 100_000, 1_000_000, 1_000_003])("%i numbers", async (n) => {
    const x = new Tensor(Float32Array.from({ length: n }, (_, i) => (i % 1000) + 0.5));
    let exact = 0;
    for (let i = 0; i < n; i++) exact += (i % 1000) + 0.5;
    expect(Math.abs(((await x.sum().item()) as number) / exact - 1)).toBeLessThan(2e-6);
    expect(Math.abs(((await x.mean().item()) as number) / (exact / n) - 1)).toBeLessThan(2e-6);
  });
  test("a total beyond 2^24 goes on growing", async () => {
    expect(await Tensor.ones(20_000_000).sum().item()).toBe(20_000_000);
  });
  test("behind a mask, and over a symbolic size", async () => {
    const n = 2_000_000;
    const x = new Tensor(new Float32Array(n).fill(0.1));
    const near = async (t: Tensor, wanted: number) =>
      expect(Math.abs((await t.item()) / wanted - 1)).toBeLessThan(3e-5);
    await near(Tensor.arange(n).ge(0).where(x, 0).sum(), n / 10);
    await near(x.reshape(2000, 1000).tril().sum(), (1000 * 1001) / 20 + 1000 * 100);
    await near(x.shrink([[0, Variable("n", 1, n).bind(n - 1)]]).sum(), (n - 1) / 10);
    await near(x.shrink([[0, Variable("n", 1, n).bind(5)]]).sum(), 0.5);
  });
  test("a sum that picks one term of a long table is one load, not a loop", async () => {
    const table = new Tensor(Float32Array.from({ length: 100_000 }, (_, i) => i)).reshape(50_000, 2);
    const rows = table.indexSelect(0, new Tensor([49_999, 7]));
    const [item] = createSchedule([rows.lazydata]).filter((si) => si.ast[0]?.op === "STORE");
    expect(toKernel(item?.ast ?? [], [], WASMRenderer).ops).toBeLessThan(100);
    expect(await rows.tolist()).toEqual([
      [99_998, 99_999],
      [14, 15],
    ]);
  });
  test("over some dims, in any order", async () => {
    const x = new Tensor(Float32Array.from({ length: 6 * 5000 }, (_, i) => i % 7)).reshape(3, 5000, 2);
    const wanted = [0, 0];
    for (let i = 0; i < 30000; i++) wanted[i % 2] = (wanted[i % 2] as number) + (i % 7);
    expect(await x.sum([0, 1]).tolist()).toEqual(wanted);
    expect(await x.permute(1, 2, 0).sum([0, 2]).tolist()).toEqual(wanted);
  });
});

test("small integers multiply in the type that they add up in", async () => {
  for (const dtype of ["int8", "uint8", "int16", "uint16"] as const) {
    const x = new Tensor([100, 100], { dtype });
    expect(await x.dot(x).item()).toBe(20000);
  }
  const wide = new Tensor([60000, 60000], { dtype: "uint16" });
  expect(await wide.dot(wide).item()).toBe(7_200_000_000 % 2 ** 32);
});

describe("a number that does not fit the type of the tensor is refused", () => {
  const u8 = new Tensor([5, 255], { dtype: "uint8" });
  const i32 = new Tensor([5]);
  test.each([
    ["lt", () => u8.lt(256), /^lt: 256 does not fit uint8 \(0 to 255\); use a wider type, or a cast/],
    ["eq", () => u8.eq(-1), /^eq: -1 does not fit uint8/],
    ["maximum", () => u8.maximum(1000), /^maximum: 1000 does not fit uint8/],
    ["add", () => i32.add(3e9), /^add: 3000000000 does not fit int32/],
    [
      "Tensor",
      () => new Tensor([1, 300], { dtype: "uint8" }),
      /^Tensor: 300 does not fit uint8 \(0 to 255\)/,
    ],
    ["Tensor of a number", () => new Tensor(NaN, { dtype: "int32" }), /^Tensor: NaN does not fit int32/],
    ["full", () => Tensor.full([2], 200, { dtype: "int8" }), /^full: 200 does not fit int8/],
    ["fullLike", () => i32.fullLike(3e9), /^fullLike: 3000000000 does not fit int32/],
    ["fill", () => u8.fill(256), /^fill: 256 does not fit uint8/],
    ["add a bigint", () => i32.add(2n ** 40n), /^add: 1099511627776 does not fit int32/],
  ] as const)("%s", (_, f, message) => {
    expect(f).toThrow(ArgumentError);
    expect(f).toThrow(message);
  });
  test("adding a negative number to an unsigned one subtracts", async () => {
    expect(await u8.add(-1).tolist()).toEqual([4, 254]);
    expect(await new Tensor([-1], { dtype: "uint8" }).tolist()).toEqual([255]); // as in torch
  });
});

test("filling with a number that does not fit is refused too", () => {
  const t = new Tensor([1, 2], { dtype: "int8" });
  expect(() => t.maskedFill(new Tensor([true, false]), 1000)).toThrow(/^maskedFill: 1000 does not fit int8/);
  expect(() => t.add("1" as unknown as number)).toThrow(
    /^add: x is the string "1", expected a number or a Tensor/,
  );
});
