// Joined tensors: where all parts begin and end at multiples of a block, the kernel loads whole vectors; the
// values are those of FUSE=0, also where the parts do not fit a block.

import { Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { inBlocks } from "../../../src/codegen/lower/blocks.ts";
import type { LazyOp } from "../../../src/schedule/lazyop.ts";
import { deviceTest } from "../../device/harness.ts";
import { itemsOf, ready } from "../../schedule/count.ts";

const kernelOf = (t: Tensor): readonly LazyOp[] =>
  itemsOf(t).find((si) => si.ast[0]?.op === "STORE")?.ast ?? [];
const parts = (...sizes: number[]): Tensor[] => sizes.map((n, i) => ready([3, n], {}, i));
const shapeOf = (t: Tensor): readonly unknown[] => inBlocks(kernelOf(t), 4)[0]?.shape ?? [];

describe("dims", () => {
  test("of parts that begin at multiples of a block are two", () => {
    expect(shapeOf(Tensor.cat(parts(8, 16, 8), 1))).toEqual([3, 4, 8]);
    expect(
      shapeOf(
        ready([8, 8])
          .pad([
            [4, 4],
            [8, 0],
          ])
          .contiguous(),
      ),
    ).toEqual([4, 4, 2, 8]);
  });
  test("stay one where no block holds whole vectors, and where nothing is masked", () => {
    expect(shapeOf(Tensor.cat(parts(8, 6, 2), 1))).toEqual([3, 16]);
    expect(shapeOf(ready([3, 16]).add(1))).toEqual([3, 16]);
    expect(
      shapeOf(
        ready([3, 16])
          .pad([[1, 1], null])
          .contiguous(),
      ),
    ).toEqual([5, 16]);
  });
  test("of a kernel that sums stay as they are", () => {
    const ast = kernelOf(Tensor.cat(parts(8, 8), 1).exp().sum(1));
    expect(inBlocks(ast, 4)).toBe(ast);
  });
});

deviceTest("joins have the values of their parts", async (device) => {
  for (const sizes of [
    [8, 16, 8],
    [128, 128],
    [4, 4, 4, 4],
    [5, 3, 8],
    [64, 12],
  ]) {
    const data = sizes.map((n, i) =>
      Array.from({ length: 6 }, (_, r) => Array.from({ length: n }, (_, c) => i * 1000 + r * 100 + (c % 97))),
    );
    const got = await Tensor.cat(
      data.map((d) => new Tensor(d, { device })),
      1,
    )
      .mul(2)
      .tolist();
    const want = Array.from({ length: 6 }, (_, r) =>
      data.flatMap((d) => (d[r] as number[]).map((x) => 2 * x)),
    );
    expect(got).toEqual(want);
  }
});
