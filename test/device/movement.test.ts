// Movement ops, broadcasting, tensors of zero elements and of zero dims, on every device: each op by itself
// against arrays written out, and the ways in which views meet computing (random
// chains are in random.test.ts).

import { DTypeError, dtypes, ShapeError, SymbolicError, Tensor, Variable } from "gradloom";
import { describe, expect, test } from "vitest";
import { deviceTest, expectValues, read, tensor } from "./harness.ts";

const { float32, int32, bool } = dtypes;
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

describe("each movement", () => {
  deviceTest("reshape, permute, transpose, squeeze and unsqueeze", async (device) => {
    const t = tensor(device, int32, range(6), [2, 3]);
    expect(await t.reshape(3, -1).tolist()).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
    expect(await t.permute(1, 0).tolist()).toEqual([
      [0, 3],
      [1, 4],
      [2, 5],
    ]);
    expect(await t.T.flatten().tolist()).toEqual([0, 3, 1, 4, 2, 5]);
    expect(t.unsqueeze(-1).shape).toEqual([2, 3, 1]);
    expect(t.unsqueeze(0).squeeze(0).shape).toEqual([2, 3]);
    expect(t.reshape(1, 2, 1, 3).squeeze().shape).toEqual([2, 3]);
    const cube = tensor(device, int32, range(24), [2, 3, 4]);
    const turned = range(24).map((i) => {
      const [a, b, c] = [Math.floor(i / 6), Math.floor(i / 3) % 2, i % 3];
      return b * 12 + c * 4 + a; // [4, 2, 3] out of [2, 3, 4]
    });
    expect(await read(cube.permute(2, 0, 1))).toEqual(turned);
  });
  deviceTest("expand, shrink, flip and stride", async (device) => {
    const t = tensor(device, int32, range(6), [2, 3]);
    expect(await tensor(device, int32, [1, 2], [2, 1]).expand(2, 3).tolist()).toEqual([
      [1, 1, 1],
      [2, 2, 2],
    ]);
    expect(await t.shrink([null, [1, 3]]).tolist()).toEqual([
      [1, 2],
      [4, 5],
    ]);
    expect(await t.flip([0, 1]).tolist()).toEqual([
      [5, 4, 3],
      [2, 1, 0],
    ]);
    expect(await t.stride(1, 2).tolist()).toEqual([
      [0, 2],
      [3, 5],
    ]);
    expect(await t.stride(-1, -2).tolist()).toEqual([
      [5, 3],
      [2, 0],
    ]);
  });
  deviceTest("pad with zeros and with a value", async (device) => {
    const t = tensor(device, int32, [1, 2, 3, 4], [2, 2]);
    expect(await t.pad([[1, 0], null]).tolist()).toEqual([
      [0, 0],
      [1, 2],
      [3, 4],
    ]);
    expect(
      await t
        .pad(
          [
            [0, 1],
            [1, 0],
          ],
          7,
        )
        .tolist(),
    ).toEqual([
      [7, 1, 2],
      [7, 3, 4],
      [7, 7, 7],
    ]);
    const f = tensor(device, float32, [NaN, -0], [2]);
    expectValues(float32, await read(f.pad([[1, 1]])), [0, NaN, -0, 0], "NaN and -0 inside a padding");
    expectValues(float32, await read(f.pad([[1, 1]], -Infinity)), [-Infinity, NaN, -0, -Infinity], "-inf");
  });
  deviceTest("what does not fit is refused", async (device) => {
    const t = tensor(device, int32, range(6), [2, 3]);
    expect(() => t.reshape(4, 2)).toThrow(ShapeError);
    expect(() => t.reshape(-1, -1)).toThrow(ShapeError);
    expect(() => t.reshape(4, -1)).toThrow(/cannot infer/);
    expect(() => t.permute(0, 0)).toThrow(ShapeError);
    expect(() => t.permute(0)).toThrow(ShapeError);
    expect(() => t.expand(4, 3)).toThrow(/only size 1 expands/);
    expect(() => t.expand(3)).toThrow(ShapeError);
    expect(() => t.shrink([[0, 3], null])).toThrow(ShapeError);
    expect(() => t.shrink([[0, 1]])).toThrow(ShapeError);
    expect(() => t.pad([[-3, 0], null])).toThrow(/cuts more than/); // negative amounts cut off
    expect(() => t.stride(0, 1)).toThrow(ShapeError);
    expect(() => t.stride(1)).toThrow(ShapeError);
    expect(() => t.flip(2)).toThrow(ShapeError);
  });
});

describe("views and computing", () => {
  // an op that makes something of zero must not reach into the padding, in whatever order they come
  deviceTest("a padding around ops of zero that are not zero", async (device) => {
    const t = tensor(device, float32, [1, 2, 4]);
    const want = (f: (x: number) => number) => [0, f(1), f(2), f(4), 0];
    const pads = [[1, 1]] as const;
    expectValues(
      float32,
      await read(t.reciprocal().pad(pads)),
      want((x) => 1 / x),
      "pad of reciprocal",
    );
    expectValues(
      float32,
      await read(t.exp2().pad(pads)),
      want((x) => 2 ** x),
      "pad of exp2",
    );
    expectValues(float32, await read(t.log2().pad(pads)), want(Math.log2), "pad of log2");
    expectValues(bool, await read(t.eq(t).pad(pads)), [0, 1, 1, 1, 0], "pad of ==");
    expectValues(
      float32,
      await read(t.add(1).pad(pads)),
      want((x) => x + 1),
      "pad of +1",
    );
    const inner = t.pad(pads).add(1).exp2().sum();
    expectValues(float32, await read(inner), [2 + 4 + 8 + 32 + 2], "ops on a padding, summed");
    const outer = t.exp2().pad(pads).add(1).sum();
    expectValues(float32, await read(outer), [1 + 3 + 5 + 17 + 1], "a padding of ops, summed");
    expectValues(float32, await read(t.lt(3).where(5, t).pad(pads)), [0, 5, 5, 4, 0], "pad of where");
    expectValues(int32, await read(t.cast(int32).bitwiseXor(-1).pad(pads)), [0, -2, -3, -5, 0], "pad of xor");
  });
  // outside of the outer padding nothing of the inner one shows
  deviceTest("paddings of paddings", async (device) => {
    const t = tensor(device, float32, [1, 3]);
    const twice = t
      .exp2()
      .pad([[1, 0]])
      .exp2()
      .pad([[0, 3]]);
    expectValues(float32, await read(twice), [1, 4, 256, 0, 0, 0], "pad of exp2 of pad of exp2");
    const other = t
      .exp2()
      .pad([[0, 2]])
      .exp2()
      .pad([[4, 0]])
      .flip(0);
    expectValues(float32, await read(other), [1, 1, 256, 4, 0, 0, 0, 0], "and from the other side");
    // shifted by one to the right and by two to the left: no larger than before, so it stays in one kernel
    const four = tensor(device, float32, [0, 1, 2, 3]);
    const right = four
      .exp2()
      .pad([[1, 0]])
      .shrink([[0, 4]]);
    const left = right
      .exp2()
      .pad([[0, 2]])
      .shrink([[2, 6]]);
    expectValues(float32, await read(left), [4, 16, 0, 0], "shifted there and back");
  });
  deviceTest("a padding of a reduce, and a reduce of a padding", async (device) => {
    const t = tensor(device, float32, range(6), [2, 3]);
    expectValues(float32, await read(t.sum(1).pad([[1, 2]])), [0, 3, 12, 0, 0], "pad of a sum");
    expectValues(
      float32,
      await read(
        t
          .sub(9)
          .pad([null, [1, 0]])
          .max(1),
      ),
      [0, 0],
      "max of a padding",
    );
    expectValues(
      float32,
      await read(
        t
          .max(1)
          .exp2()
          .pad([[1, 0]]),
      ),
      [0, 4, 32],
      "pad of exp2 of a max",
    );
    expectValues(float32, await read(t.sum(0).flip(0).mul(2)), [14, 10, 6], "flip of a sum");
    const again = t.sum(1, true).expand(2, 3).add(t).permute(1, 0).sum(1);
    expectValues(
      float32,
      await read(again),
      [15 + 3, 15 + 5, 15 + 7],
      "a sum expanded, moved and summed again",
    );
  });
  deviceTest("one tensor seen in two ways", async (device) => {
    const t = tensor(device, int32, range(9), [3, 3]);
    expect(await t.add(t.T).tolist()).toEqual([
      [0, 4, 8],
      [4, 8, 12],
      [8, 12, 16],
    ]);
    expect(await t.sub(t.flip(0)).sum(1).tolist()).toEqual([-18, 0, 18]);
    const shifted = t.shrink([[1, 3], null]).pad([[0, 1], null]);
    expect(await t.mul(shifted).sum(0).tolist()).toEqual([0 * 3 + 3 * 6, 1 * 4 + 4 * 7, 2 * 5 + 5 * 8]);
  });
  // the index of a flipped, expanded and flattened view is a remainder of something that falls below zero
  deviceTest("an index that counts down through a remainder", async (device) => {
    const row = tensor(device, int32, range(6), [2, 3]).stride(-2, 1);
    const t = row.expand(2, 3).neg().flip([0, 1]).reshape(6);
    expect(await read(t)).toEqual([-5, -4, -3, -5, -4, -3]);
    const quotient = tensor(device, int32, range(4)).reshape(4, 1).expand(4, 3).neg().reshape(12).flip(0);
    expect(await read(quotient.add(0))).toEqual([-3, -3, -3, -2, -2, -2, -1, -1, -1, 0, 0, 0]);
  });
  // a reduce over elements that are all the same does not depend on its own loop
  deviceTest("reduces of what is expanded", async (device) => {
    const t = tensor(device, int32, [3, 5], [2, 1]).expand(2, 3);
    const low = t.max([0, 1], true).expand(2, 3);
    const sum = t.add(low);
    const back = sum.add(sum.sum([0, 1], true).expand(2, 3));
    expect(await back.sum([0, 1]).item()).toBe((8 * 3 + 10 * 3) * 7);
    expect(await t.sum(1).tolist()).toEqual([9, 15]);
  });
  deviceTest("views of constants", async (device) => {
    const c = Tensor.full([2], 3, { device });
    expect(await c.pad([[1, 1]]).tolist()).toEqual([0, 3, 3, 0]);
    expect(
      await c
        .pad([[1, 1]])
        .cast(float32)
        .add(0.5)
        .tolist(),
    ).toEqual([0.5, 3.5, 3.5, 0.5]);
    expect(
      await c
        .pad([[1, 1]])
        .eq(0)
        .tolist(),
    ).toEqual([true, false, false, true]);
    expect(
      await c
        .pad([[0, 1]])
        .sum()
        .item(),
    ).toBe(6);
    expect(await c.expand(2).reshape(1, 2).expand(2, 2).tolist()).toEqual([
      [3, 3],
      [3, 3],
    ]);
  });
  // folding may leave an input that no element reads: the others must keep their places
  deviceTest("an operand that drops out", async (device) => {
    const a = tensor(device, int32, [1, 2, 3]);
    const b = tensor(device, int32, [10, 20, 30]);
    const c = tensor(device, int32, [7, 7, 7]);
    expect(await a.mul(0).add(b).tolist()).toEqual([10, 20, 30]);
    expect(await a.sub(a).add(b).mul(c).tolist()).toEqual([70, 140, 210]);
    expect(await a.lt(2).where(b, b).add(c).tolist()).toEqual([17, 27, 37]);
    expect(await a.bitwiseAnd(0).bitwiseOr(b.bitwiseXor(c)).tolist()).toEqual([13, 19, 25]);
    const outside = a.pad([[3, 0]]).shrink([[0, 3]]); // only padding is left
    expect(await outside.add(b).tolist()).toEqual([10, 20, 30]);
    expect(await a.mul(0).tolist()).toEqual([0, 0, 0]);
  });
});

describe("broadcasting", () => {
  deviceTest("shapes meet at their ends", async (device) => {
    const row = tensor(device, int32, [1, 2, 3]);
    const column = tensor(device, int32, [10, 20], [2, 1]);
    expect(await row.add(column).tolist()).toEqual([
      [11, 12, 13],
      [21, 22, 23],
    ]);
    const scalar = new Tensor(5, { device });
    expect(await scalar.mul(row).tolist()).toEqual([5, 10, 15]);
    expect(
      await row
        .reshape(1, 1, 3)
        .lt(column.reshape(2, 1, 1).sub(8))
        .tolist(),
    ).toEqual([[[true, false, false]], [[true, true, true]]]);
    const chosen = tensor(device, bool, [1, 0], [2, 1]).where(row, column);
    expect(await chosen.tolist()).toEqual([
      [1, 2, 3],
      [20, 20, 20],
    ]);
    const fused = tensor(device, int32, [2], [1]).mulacc(column, row);
    expect(await fused.tolist()).toEqual([
      [21, 22, 23],
      [41, 42, 43],
    ]);
    expect(() => row.add(tensor(device, int32, [1, 2]))).toThrow(/do not broadcast/);
    expect(() => row.where(1, 2)).toThrow(DTypeError);
  });
  deviceTest("zero-sized dims broadcast too", async (device) => {
    const none = tensor(device, float32, [], [0, 3]);
    const row = tensor(device, float32, [1, 2, 3]);
    expect(none.add(row).shape).toEqual([0, 3]);
    expect(await none.add(row).tolist()).toEqual([]);
    expect(await tensor(device, float32, [1], [1, 1]).expand(0, 1).mul(2).tolist()).toEqual([]);
    expect(() => none.add(tensor(device, float32, [1, 2], [2, 1]))).toThrow(ShapeError);
  });
});

describe("no elements and no dims", () => {
  deviceTest("empty tensors go through everything", async (device) => {
    const t = tensor(device, float32, [], [2, 0, 3]);
    expect(t.size).toBe(0);
    expect((await t.data()).length).toBe(0);
    expect(await t.tolist()).toEqual([[], []]);
    expect(await t.add(1).exp2().cast(int32).tolist()).toEqual([[], []]);
    expect(t.permute(2, 0, 1).shape).toEqual([3, 2, 0]);
    expect(await t.reshape(0, 6).tolist()).toEqual([]);
    expect(
      await t
        .pad([null, [1, 1], null], 4)
        .sum()
        .item(),
    ).toBe(48);
    expect(await t.flip([0, 1, 2]).contiguous().tolist()).toEqual([[], []]);
    expect(
      await tensor(device, float32, [1, 2, 3])
        .shrink([[1, 1]])
        .tolist(),
    ).toEqual([]);
    expect(
      await tensor(device, float32, [1, 2])
        .shrink([[1, 1]])
        .pad([[2, 0]])
        .tolist(),
    ).toEqual([0, 0]);
    expect(await new Tensor([], { device }).tolist()).toEqual([]);
    expect(await t.eq(t).tolist()).toEqual([[], []]);
    await t.mul(2).realize();
    expect(() => t.itemSync()).toThrow(/0 elements/);
  });
  deviceTest("0-d tensors", async (device) => {
    const t = new Tensor(2.5, { device });
    expect(t.shape).toEqual([]);
    expect(t.ndim).toBe(0);
    expect(await t.item()).toBe(2.5);
    expect(await t.tolist()).toBe(2.5);
    expect(await read(t)).toEqual([2.5]);
    expect(await t.add(t).mul(2).item()).toBe(10);
    expect(await t.reshape(1, 1).tolist()).toEqual([[2.5]]);
    expect(await t.expand(3).tolist()).toEqual([2.5, 2.5, 2.5]);
    expect(await t.cast(int32).item()).toBe(2);
    expect(await t.lt(3).item()).toBe(true);
    const loaded = tensor(device, float32, [7], []);
    expect(await loaded.item()).toBe(7);
    expect(await loaded.neg().item()).toBe(-7);
    expect(await loaded.permute([]).pad([]).shrink([]).item()).toBe(7);
    expect(await tensor(device, float32, [1, 2], [2]).sum().add(loaded).item()).toBe(10);
    expect(t.flatten().shape).toEqual([1]);
    expect(t.T.shape).toEqual([]);
    expect(await t.sum(0).item()).toBe(2.5); // a 0-d tensor takes dim 0 and -1, as in torch
    expect(() => t.sum(1)).toThrow(ShapeError);
  });
});

describe("Variables with the names that the compiler gives its own", () => {
  deviceTest("are not confused with these", async (device) => {
    const x = await tensor(device, int32, range(32), [8, 4]).realize();
    // the ranges of the loops and offsets below, so that nothing but the name tells them apart
    for (const [name, max] of [
      ["r0", 3],
      ["b0", 3],
      ["dim0", 3],
      ["dim1", 3],
      ["offset0", 7],
    ] as const) {
      const at = Variable(name, 0, max).bind(2);
      const row = x.shrink([[at, at.add(1)], null]).reshape(4);
      expect(await row.sum().item()).toBe(8 + 9 + 10 + 11);
      for (let i = 3; i < 8; i++) expect(await row.add(x.get(i)).sum().item()).toBe(44 + 16 * i);
    }
  });
  test("which no user can give", () => {
    expect(() => Variable("~r0", 0, 3)).toThrow(SymbolicError);
  });
});
