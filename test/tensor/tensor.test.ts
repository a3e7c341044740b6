// Making tensors and reading them: arrays of every kind, what type they get, that nothing is shared with the
// caller, what comes back for each dtype, moves between devices, and graphs that are
// deeper and wider than a stack.

import { inspect } from "node:util";
import { Device, type DTypeName, dtypes, GlobalCounters, Tensor } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import { kernels, opsOf, ready } from "../schedule/count.ts";

beforeAll(() => Device.open("JS"));

test("console.log shows a tensor and its node as one line each", () => {
  const t = new Tensor([1, 2]);
  expect(inspect(t)).toBe("<Tensor [2] int32 on WASM: [1, 2]>");
  expect(inspect({ lb: t.lazydata })).toBe(`{ lb: ${t.lazydata} }`);
});

describe("making a tensor", () => {
  test("rows that are typed arrays keep their values", () => {
    const rows = [BigUint64Array.of(2n ** 64n - 1n), BigUint64Array.of(1n)];
    expect(new Tensor(rows).tolistSync()).toEqual([[2n ** 64n - 1n], [1n]]);
    expect(
      new Tensor([Float32Array.of(1, 2), Float32Array.of(3, 4)], { dtype: "int32" }).tolistSync(),
    ).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });
  const SHAPES: readonly (readonly [string, unknown, readonly number[], DTypeName])[] = [
    ["a number", 3, [], "int32"],
    ["a fraction", 3.5, [], "float32"],
    ["minus zero", -0, [], "float32"],
    ["NaN", NaN, [], "float32"],
    ["a boolean", true, [], "bool"],
    ["a bigint", 3n, [], "int64"],
    ["integers", [1, 2, 3], [3], "int32"],
    ["integers and a fraction", [1, 2.5], [2], "float32"],
    ["integers beyond 32 bits", [1, 2 ** 40], [2], "float32"],
    ["the largest and smallest int32", [2 ** 31 - 1, -(2 ** 31)], [2], "int32"],
    ["one past the largest int32", [2 ** 31], [1], "float32"],
    ["booleans", [true, false], [2], "bool"],
    ["booleans and integers", [true, 2], [2], "int32"],
    ["bigints", [1n, 2n], [2], "int64"],
    ["bigints and integers", [1n, 2], [2], "int64"],
    ["nothing", [], [0], "float32"],
    ["rows that are typed arrays", [Float32Array.of(1, 2), Float32Array.of(3, 4)], [2, 2], "float32"],
    ["typed rows of two types", [Int8Array.of(1), Int16Array.of(3)], [2, 1], "int16"],
    ["typed rows two deep", [[Uint8Array.of(1, 2)]], [1, 1, 2], "uint8"],
    ["empty typed rows", [new BigInt64Array(0)], [1, 0], "int64"],
    ["a typed and a plain row", [Float64Array.of(0.1), [2]], [2, 1], "float64"],
    ["empty rows", [[], []], [2, 0], "float32"],
    [
      "a matrix",
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
      [2, 3],
      "int32",
    ],
    ["four dims", [[[[1], [2]]]], [1, 1, 2, 1], "int32"],
    ["Float32Array", new Float32Array([1, 2]), [2], "float32"],
    ["Float64Array", new Float64Array([1, 2]), [2], "float64"],
    ["Int8Array", new Int8Array([1, 2]), [2], "int8"],
    ["Uint8Array", new Uint8Array([1, 2]), [2], "uint8"],
    ["Uint8ClampedArray", new Uint8ClampedArray([1, 2]), [2], "uint8"],
    ["Int16Array", new Int16Array([1, 2]), [2], "int16"],
    ["Uint16Array", new Uint16Array([1, 2]), [2], "uint16"],
    ["Int32Array", new Int32Array([1, 2]), [2], "int32"],
    ["Uint32Array", new Uint32Array([1, 2]), [2], "uint32"],
    ["BigInt64Array", new BigInt64Array([1n, 2n]), [2], "int64"],
    ["BigUint64Array", new BigUint64Array([1n, 2n]), [2], "uint64"],
  ];
  for (const [name, data, shape, dtype] of SHAPES) {
    test(`${name}: [${shape}] ${dtype}`, () => {
      const t = new Tensor(data as number[]);
      expect(t.shape).toEqual(shape);
      expect(t.ndim).toBe(shape.length);
      expect(t.size).toBe(shape.reduce((a, b) => a * b, 1));
      expect(t.dtype.name).toBe(dtype);
      expect(t.device).toBe("WASM");
      const list = [...t.dataSync()].map(Number);
      const flat = (x: unknown): unknown[] =>
        ArrayBuffer.isView(x) ? [...(x as Uint8Array)] : Array.isArray(x) ? x.flatMap(flat) : [x];
      expect(list).toEqual(flat(data).map(Number));
    });
  }
  test("an explicit dtype wins, whatever the data", () => {
    expect(new Tensor([1.9, -1.9, 100], { dtype: "int8" }).tolistSync()).toEqual([1, -1, 100]);
    expect(new Tensor(new Float64Array([1.9, -1.9]), { dtype: dtypes.int64 }).tolistSync()).toEqual([
      1n,
      -1n,
    ]);
    expect(new Tensor([0, 2, -1], { dtype: "bool" }).tolistSync()).toEqual([false, true, true]);
    expect(new Tensor([1n, 2n], { dtype: "float32" }).tolistSync()).toEqual([1, 2]);
    expect(new Tensor(7, { dtype: "float16" }).itemSync()).toBe(7);
  });
  test("a typed array that is a window on a larger one", () => {
    const whole = new Float32Array([0, 1, 2, 3, 4]);
    expect(new Tensor(whole.subarray(1, 4)).tolistSync()).toEqual([1, 2, 3]);
    const bytes = new Uint8Array([9, 1, 2, 3, 9]);
    expect(new Tensor(bytes.subarray(1, 4)).tolistSync()).toEqual([1, 2, 3]);
  });
  test("changing the source afterwards changes nothing", () => {
    const typed = new Float32Array([1, 2, 3]);
    const nested = [
      [1, 2],
      [3, 4],
    ];
    const ext = new Tensor(typed, { device: "EXT" });
    const [a, b] = [new Tensor(typed), new Tensor(nested)];
    const later = a.add(1);
    typed.fill(99);
    nested[0] = [7, 7];
    (nested[1] as number[])[0] = 8;
    expect(a.tolistSync()).toEqual([1, 2, 3]);
    expect(later.tolistSync()).toEqual([2, 3, 4]);
    expect(ext.tolistSync()).toEqual([1, 2, 3]);
    expect(b.tolistSync()).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });
  test("what was read is the caller's own", () => {
    for (const t of [
      new Tensor([1, 2, 3]),
      new Tensor([1, 2, 3], { device: "EXT" }),
      new Tensor([1, 2, 3]).add(0),
    ]) {
      const data = t.dataSync() as Int32Array;
      data.fill(0);
      expect(t.tolistSync()).toEqual([1, 2, 3]);
    }
  });
  test("constants: full, zeros, ones", () => {
    expect(Tensor.zeros(2, 2).tolistSync()).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(Tensor.ones([3]).tolistSync()).toEqual([1, 1, 1]);
    expect(Tensor.zeros(2).dtype.name).toBe("float32");
    expect(Tensor.full([2], 3).dtype.name).toBe("int32");
    expect(Tensor.full([2], true).tolistSync()).toEqual([true, true]);
    expect(Tensor.full([2], 2n ** 62n).tolistSync()).toEqual([2n ** 62n, 2n ** 62n]);
    expect(Tensor.full([], 4).itemSync()).toBe(4);
    expect(Tensor.full([0, 3], 4).tolistSync()).toEqual([]);
    expect(Tensor.empty([5]).dataSync()).toHaveLength(5);
  });
  test("a million elements in nested arrays", () => {
    const rows = Array.from({ length: 1000 }, (_, i) => Array.from({ length: 1000 }, (_, j) => i * 1000 + j));
    const t = new Tensor(rows);
    expect(t.shape).toEqual([1000, 1000]);
    expect(
      t
        .shrink([
          [999, 1000],
          [998, 1000],
        ])
        .tolistSync(),
    ).toEqual([[999_998, 999_999]]);
  });
});

describe("reading a tensor", () => {
  const KINDS: readonly (readonly [DTypeName, string, unknown])[] = [
    ["bool", "Uint8Array", true],
    ["int8", "Int8Array", 1],
    ["uint8", "Uint8Array", 1],
    ["int16", "Int16Array", 1],
    ["uint16", "Uint16Array", 1],
    ["int32", "Int32Array", 1],
    ["uint32", "Uint32Array", 1],
    ["int64", "BigInt64Array", 1n],
    ["uint64", "BigUint64Array", 1n],
    ["float16", "Float32Array", 1],
    ["bfloat16", "Float32Array", 1],
    ["float32", "Float32Array", 1],
    ["float64", "Float64Array", 1],
  ];
  for (const [dtype, array, one] of KINDS) {
    test(`${dtype}: data() is a ${array}, elements are ${typeof one}s`, async () => {
      const t = new Tensor([1, 0, 1], { dtype });
      const [data, sync] = [await t.data(), t.dataSync()];
      expect(data.constructor.name).toBe(array);
      expect(sync).toEqual(data);
      const list = (await t.tolist()) as unknown[];
      expect(list).toEqual(t.tolistSync());
      expect(list[0]).toBe(one);
      expect(await new Tensor([[1]], { dtype }).item()).toBe(one);
      expect(new Tensor([[1]], { dtype }).itemSync()).toBe(one);
    });
  }
  test("nested lists have the shape of the tensor", async () => {
    const t = new Tensor([1, 2, 3, 4, 5, 6]);
    expect(await t.reshape(1, 3, 2).tolist()).toEqual([
      [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
    ]);
    expect(await t.sum().tolist()).toBe(21);
    expect(await t.shrink([[2, 2]]).tolist()).toEqual([]);
    expect(
      await t
        .reshape(2, 3)
        .shrink([null, [1, 1]])
        .tolist(),
    ).toEqual([[], []]);
    expect(
      await t
        .reshape(2, 3)
        .shrink([[1, 1], null])
        .tolist(),
    ).toEqual([]);
  });
  test("views are read as they are seen", () => {
    const t = new Tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]).realizeSync();
    expect([...t.T.dataSync()]).toEqual([1, 4, 2, 5, 3, 6]);
    expect([...t.flip(1).dataSync()]).toEqual([3, 2, 1, 6, 5, 4]);
    expect([
      ...t
        .shrink([
          [1, 2],
          [0, 2],
        ])
        .dataSync(),
    ]).toEqual([4, 5]);
    expect([...t.pad([[0, 1], null], 9).dataSync()]).toEqual([1, 2, 3, 4, 5, 6, 9, 9, 9]);
    expect([...new Tensor(5).expand(2, 2).dataSync()]).toEqual([5, 5, 5, 5]);
  });
  test("toString says shape, type and place", () => {
    expect(String(new Tensor([[1, 2]]))).toBe("<Tensor [1, 2] int32 on WASM>");
  });
});

describe("moving between devices", () => {
  test("round trips keep every value", async ({ skip }) => {
    const why = await Device.open("CLANG").then(
      () => "",
      (e: Error) => e.message,
    );
    skip(why !== "", why);
    const data = new Float32Array([1.5, -0, NaN, Infinity, 1e-40]);
    const there = new Tensor(data).to("JS").to("CLANG").to("WASM:1").to("EXT").to("WASM");
    expect(there.device).toBe("WASM");
    const back = await there.data();
    data.forEach((x, i) => void expect(Object.is(back[i], x), `element ${i}`).toBe(true));
  });
  test("to the device where it is costs nothing", () => {
    const t = ready([4]);
    expect(t.to("WASM").lazydata).toBe(t.lazydata);
    expect(t.to("wasm:0").lazydata).toBe(t.lazydata);
    expect(opsOf(t.to("WASM"))).toEqual([]);
  });
  test("names are the same in any case, and :0 is the first", () => {
    expect(new Tensor([1], { device: "js:0" }).device).toBe("JS");
    expect(new Tensor([1]).to("wasm:1").device).toBe("WASM:1");
  });
  test("a constant moves without a copy, and can be held by the host", () => {
    const c = Tensor.full([3], 2);
    expect(opsOf(c.to("JS").add(1))).toEqual(["STORE"]);
    expect(c.to("JS").add(1).tolistSync()).toEqual([3, 3, 3]);
    expect(c.to("EXT").tolistSync()).toEqual([2, 2, 2]);
    expect(new Tensor(5).to("EXT").itemSync()).toBe(5);
  });
  test("Device.DEFAULT is where new tensors are", () => {
    const before = Device.DEFAULT;
    try {
      Device.DEFAULT = "js";
      const t = new Tensor([1, 2]);
      expect(t.device).toBe("JS");
      expect(Tensor.zeros(2).device).toBe("JS");
      expect(t.add(1).tolistSync()).toEqual([2, 3]);
    } finally {
      Device.DEFAULT = before;
    }
    expect(new Tensor([1]).device).toBe("WASM");
  });
});

describe("large graphs", () => {
  const one = ready([4], { dtype: "int32" }).mul(0).realizeSync();
  const chain = (n: number): Tensor => {
    let t = one;
    for (let i = 0; i < n; i++) t = t.add(1);
    return t;
  };
  test("2,000 elementwise ops in a row: a handful of kernels", () => {
    const t = chain(2000);
    expect(kernels(t)).toBeLessThan(10);
    expect(t.tolistSync()).toEqual([2000, 2000, 2000, 2000]);
  });
  test("20,000 elementwise ops in a row do not overflow the stack", () => {
    expect(chain(20_000).tolistSync()).toEqual([20_000, 20_000, 20_000, 20_000]);
  });
  test("500 reductions, each expanded again, one after another", () => {
    let t = one;
    for (let i = 0; i < 500; i++) t = t.sum().expand(4).add(1).minimum(1000);
    expect(kernels(t)).toBeLessThan(500);
    expect(t.tolistSync()).toEqual([1000, 1000, 1000, 1000]);
  });
  test("20,000 views in a row are one view", () => {
    let t: Tensor = ready([2, 3], { dtype: "int32" });
    for (let i = 0; i < 10_000; i++) t = t.T.flip(0);
    expect(t.lazydata.st.views).toHaveLength(1);
    expect(kernels(t)).toBe(0);
    expect(t.shape).toEqual([2, 3]);
  });
  test("60 doublings are 60 nodes, not 2^60", () => {
    let t: Tensor = new Tensor([1, 2], { dtype: "int64" }).realizeSync();
    for (let i = 0; i < 60; i++) t = t.add(t);
    expect(kernels(t)).toBe(1);
    expect(t.tolistSync()).toEqual([2n ** 60n, 2n ** 61n]);
  });
  const inputs = (n: number): Tensor[] =>
    Array.from({ length: n }, (_, i) => new Tensor([i, 1]).realizeSync());
  test("the sum of 300 tensors is one kernel", () => {
    const t = inputs(300).reduce((a, b) => a.add(b));
    expect(kernels(t)).toBe(1);
    expect(t.tolistSync()).toEqual([(300 * 299) / 2, 300]);
  });
  test("the sum of 2,000 tensors as a tree: more than a kernel can take is cut", () => {
    let level = inputs(2000);
    while (level.length > 1) {
      const pairs = Array.from({ length: level.length >> 1 }, (_, i) =>
        (level[2 * i] as Tensor).add(level[2 * i + 1] as Tensor),
      );
      level = level.length % 2 === 0 ? pairs : [...pairs, level.at(-1) as Tensor];
    }
    const [t] = level as [Tensor];
    expect(kernels(t)).toBeLessThan(12);
    GlobalCounters.reset();
    expect(t.tolistSync()).toEqual([(2000 * 1999) / 2, 2000]);
  });
  test("one tensor with 500 readers, all asked for at once", () => {
    const x = ready([3], { dtype: "int32" }).mul(0).add(2).realizeSync();
    const all = Array.from({ length: 500 }, (_, i) => x.mul(i));
    Tensor.realizeSync(...all);
    expect(all.map((t) => t.tolistSync())).toEqual(all.map((_, i) => [2 * i, 2 * i, 2 * i]));
  });
});
