// Indexes of views of 2^31 elements and more: they are computed in 64 bits where something is divided,
// compared or returned that 32 bits cannot hold, and in 32 bits everywhere else. Values on every device,
// texts for every language, and a refusal by name where a language has no 64-bit integers.

import { createSchedule, type DType, dtypes, type Renderer, Tensor } from "gradloom";
import {
  ClangRenderer,
  CUDARenderer,
  HIPRenderer,
  MetalRenderer,
  OpenCLRenderer,
  WGSLRenderer,
} from "gradloom/render";
import { describe, expect, test } from "vitest";
import type { Support } from "../../../src/codegen/target.ts";
import { optimized } from "../../../src/engine/compiler.ts";
import { ShapeError } from "../../../src/errors.ts";
import { deviceTest, read } from "../../device/harness.ts";

const { int64 } = dtypes;
const END = 2 ** 31;

describe("views of 2^31 elements and more", () => {
  deviceTest("arange, its ends, turned round and cut apart", async (device) => {
    const numbers = Tensor.arange(END + 2, { dtype: int64, device });
    const near = [-1n, 0n, 1n].map((k) => BigInt(END) + k);
    expect(numbers.dtype).toBe(int64);
    expect(await read(numbers.shrink([[END - 1, END + 2]]))).toEqual(near);
    expect(await numbers.get(END + 1).item()).toBe(near[2]);
    expect(await read(numbers.flip(0).shrink([[0, 3]]))).toEqual(near.toReversed());
    const table = Tensor.arange(3e9, { dtype: int64, device }).reshape(3, 1e9).transpose(0, 1);
    const corner = table.shrink([
      [1e9 - 1, 1e9],
      [0, 3],
    ]);
    expect(await read(corner)).toEqual([999999999n, 1999999999n, 2999999999n]);
  });
  deviceTest("padding, expanding and indexing", async (device) => {
    const padded = Tensor.ones([3], { device }).pad([[2.5e9, 10]]);
    expect(await read(padded.shrink([[2.5e9 - 1, 2.5e9 + 4]]))).toEqual([0, 1, 1, 1, 0]);
    const column = new Tensor([1.5, 2.5, 3.5], { device }).reshape(3, 1);
    const wide = column.expand(3, 1e9).reshape(3e9);
    expect(await wide.get(2999999999).item()).toBe(3.5);
    const index = new Tensor(BigInt64Array.of(0n, 1000000000n, 2999999999n, -1n), { device });
    expect(await read(wide.get(index))).toEqual([1.5, 2.5, 3.5, 3.5]);
    expect(await read(wide.shrink([[1e9 - 1, 1e9 + 1]]))).toEqual([1.5, 2.5]);
  });
  deviceTest("random numbers are those of a shorter tensor, and go on", async (device) => {
    const drawn = (n: number) => {
      Tensor.manualSeed(5);
      return Tensor.rand([n], { device });
    };
    const first = await read(drawn(8));
    expect(await read(drawn(END + 4).shrink([[0, 8]]))).toEqual(first);
    expect(new Set(await read(drawn(END + 4).shrink([[END - 4, END + 4]]))).size).toBe(8);
  });
  deviceTest("oneHot", async (device) => {
    const hot = new Tensor(BigInt64Array.of(3999999998n, 5n), { device }).oneHot(4e9);
    const ends = (from: number) =>
      hot.shrink([
        [0, 2],
        [from, from + 4],
      ]);
    expect((await read(ends(4e9 - 4))).map(Number)).toEqual([0, 0, 1, 0, 0, 0, 0, 0]);
    expect((await read(ends(3))).map(Number)).toEqual([0, 0, 0, 0, 0, 0, 1, 0]);
  });
});

/** The kernels of a tensor in a language. */
function texts(t: Tensor, renderer: Renderer): string[] {
  return createSchedule([t.lazydata]).flatMap(({ ast }) => {
    if (ast[0]?.op !== "STORE") return [];
    const { name, uops } = optimized(ast, renderer, false);
    return [String(renderer.render(name, uops).code)];
  });
}
const LANGUAGES = { ClangRenderer, CUDARenderer, HIPRenderer, MetalRenderer, OpenCLRenderer } as const;
const LONG = /\blong\b/;
/** Elements in the middle of a view of this many, of two: their indexes are divided. */
const strided = (n: number): Tensor =>
  Tensor.empty([2], { device: "JS" })
    .reshape(2, 1)
    .expand(2, n / 2)
    .reshape(n)
    .shrink([[n / 2 - 5, n / 2 + 4]])
    .add(1);

describe.each(Object.entries(LANGUAGES))("%s", (_, renderer) => {
  test("what fits is in 32 bits, what does not is in 64", () => {
    expect(texts(strided(END), renderer).some((t) => LONG.test(t))).toBe(false);
    expect(texts(strided(2 * END), renderer).some((t) => LONG.test(t))).toBe(true);
  });
  test("a loop of more iterations counts in 64 bits", () => {
    const loops = (n: number) => {
      const numbers = Tensor.arange(n, { device: "JS", dtype: int64 });
      return texts(numbers.mul(numbers).max(), renderer).join("\n");
    };
    expect(loops(1000)).not.toMatch(/for \(long[ \w]* ridx/);
    expect(loops(END + 11)).toMatch(/long/);
  });
});

test("a language has 64-bit integers of its own, of two words, or refuses by name", () => {
  expect(texts(strided(END), WGSLRenderer)).toHaveLength(1);
  expect(texts(strided(2 * END), WGSLRenderer).join("\n")).toMatch(/mul64|add64/);
  const support = (d: DType): Support => (d.isBig ? "none" : WGSLRenderer.support(d));
  const make = () => texts(strided(2 * END), { ...WGSLRenderer, support });
  expect(make).toThrow(ShapeError);
  expect(make).toThrow(/needs 64-bit integers, which \w+ does not have; split the tensor/);
});
