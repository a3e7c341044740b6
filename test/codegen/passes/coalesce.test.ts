// Loads and stores of neighbours become one of a vector, where memory is aligned to it.

import { dtypes } from "gradloom";
import { expect, test } from "vitest";
import type { Kernel } from "../../../src/codegen/kernel.ts";
import type { DType } from "../../../src/dtype.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { check, ints } from "../gpuchecks.ts";
import { opsIn, opt } from "../kernels.ts";

const { int32 } = dtypes;
await Device.open("JS");

const types = (kernel: Kernel, op: "LOAD" | "STORE"): DType[] =>
  op === "LOAD" ? opsIn(kernel, op).map((u) => u.dtype) : opsIn(kernel, op).map((u) => u.value.dtype);

test("neighbours are one load and one store", async () => {
  const kernel = await check(ints([32], 30).add(ints([32], 31)), [opt("UPCAST", 0, 8)]);
  const four = int32.vec(4);
  expect([types(kernel, "LOAD"), types(kernel, "STORE")]).toEqual([
    [four, four, four, four],
    [four, four],
  ]);
});
test("16 bytes of narrower types, 8 elements of 64 bits are four", async () => {
  const half = await check(ints([32], 32).cast("int16").contiguous().add(1), [opt("UPCAST", 0, 8)]);
  expect(types(half, "LOAD")).toEqual([dtypes.int16.vec(8)]);
  const long = await check(ints([32], 33).cast("int64").contiguous().add(1), [opt("UPCAST", 0, 8)]);
  expect(types(long, "LOAD")).toEqual(new Array(4).fill(dtypes.int64.vec(2)));
});
test("not where a row starts anywhere", async () => {
  const kernel = await check(
    ints([4, 9], 34)
      .shrink([null, [0, 8]])
      .add(1),
    [opt("UPCAST", 1, 4)],
  );
  expect(new Set(types(kernel, "LOAD"))).toEqual(new Set([int32]));
  expect(new Set(types(kernel, "STORE"))).toEqual(new Set([int32.vec(4)]));
});
test("a padded read is a vector where it is one condition", async () => {
  const kernel = await check(
    ints([4, 8], 35)
      .pad([[1, 1], null])
      .add(1),
    [opt("UPCAST", 1, 4)],
  );
  expect(types(kernel, "LOAD")).toEqual([int32.vec(4)]);
});
