// What console.log, the REPL and JSON.stringify show of a tensor: the values where they are known, and never
// by computing something.

import { inspect } from "node:util";
import { dtypes, GlobalCounters, Tensor } from "gradloom";
import { expect, test } from "vitest";

test("values are shown where they are known", async () => {
  expect(
    inspect(
      new Tensor([
        [1, 2],
        [3, 4],
      ]),
    ),
  ).toBe("<Tensor [2, 2] int32 on WASM: [[1, 2], [3, 4]]>");
  expect(inspect(new Tensor([0.1, 2.5]))).toBe("<Tensor [2] float32 on WASM: [0.1, 2.5]>");
  expect(inspect(new Tensor([true, false]))).toBe("<Tensor [2] bool on WASM: [true, false]>");
  const sum = new Tensor([1, 2]).add(1);
  GlobalCounters.reset();
  expect(inspect(sum)).toBe("<Tensor [2] int32 on WASM>");
  expect(GlobalCounters.kernelCount).toBe(0);
  await sum.realize();
  expect(inspect({ sum })).toBe("{ sum: <Tensor [2] int32 on WASM: [2, 3]> }");
  expect(
    inspect(
      new Tensor([
        [1, 2],
        [3, 4],
      ]).T,
    ),
  ).toBe("<Tensor [2, 2] int32 on WASM>");
  expect(inspect(Tensor.zeros(200).contiguous())).toBe("<Tensor [200] float32 on WASM>");
  expect(String(new Tensor([1, 2]))).toBe("<Tensor [2] int32 on WASM>");
});

test("JSON has shape, type, device, and values that are known", async () => {
  expect(JSON.parse(JSON.stringify({ t: new Tensor([[1.5, 2]]) }))).toEqual({
    t: { shape: [1, 2], dtype: "float32", device: "WASM", values: [1.5, 2] },
  });
  expect(JSON.parse(JSON.stringify(new Tensor([2n ** 60n]))).values).toEqual([String(2n ** 60n)]);
  expect(JSON.parse(JSON.stringify(new Tensor([1, 2]).mul(3)))).toEqual({
    shape: [2],
    dtype: "int32",
    device: "WASM",
  });
});

test("a type is shown by its name", () => {
  expect([String(dtypes.float32), inspect(dtypes.float32), JSON.stringify(dtypes.float32)]).toEqual([
    "dtypes.float",
    "dtypes.float",
    '"float32"',
  ]);
});
