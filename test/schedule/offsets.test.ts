// Kernels that differ only in where their loads begin: compiled once, and right at every offset.

import { Tensor, TinyJit } from "gradloom";
import { describe, expect, test } from "vitest";
import { astKey } from "../../src/schedule/lazyop.ts";
import { deviceTest } from "../device/harness.ts";
import { itemsOf } from "./count.ts";

/** Rows of different numbers: [0, 1, …]. */
const matrix = (rows: number, columns: number, options: { device?: string } = {}): Tensor =>
  Tensor.arange(rows * columns, options)
    .cast("float32")
    .reshape(rows, columns)
    .contiguous();
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const kinds = (ts: readonly Tensor[]): number => new Set(itemsOf(...ts).map((si) => astKey(si.ast))).size;

describe("kernels that differ in offsets", () => {
  test("are as many as there are alignments", () => {
    const x = matrix(64, 4).realizeSync();
    expect(kinds(range(64).map((i) => x.select(0, i).sum()))).toBeLessThanOrEqual(4);
    expect(kinds(range(64).map((i) => x.narrow(0, i, 1).mul(2)))).toBeLessThanOrEqual(4);
  });
  test("also of rows that are padded, cut and flipped, as augmented pictures are", () => {
    const x = matrix(64, 16).realizeSync().reshape(64, 4, 4);
    const crop = (i: number, at: number): Tensor =>
      x
        .select(0, i)
        .pad([[1, 1], [1, 1]]) // biome-ignore format: a pair for each dim
        .narrow(0, at, 4)
        .flip(1);
    const crops = range(60).map((i) => crop(i + 1, i % 3));
    expect(kinds(crops.map((t) => t.mul(2)))).toBeLessThanOrEqual(3 + 3 * 3);
    const later = range(63).map((i) => crop(63 - i, i % 3).mul(2));
    expect(kinds(later)).toBeLessThanOrEqual(3 * 3);
  });
  test("a few are compiled as they are", () => {
    const x = matrix(8, 5).realizeSync();
    for (const item of itemsOf(...range(3).map((i) => x.select(0, i).square().sum())))
      expect(item.varVals.size).toBe(0);
  });
  test("also of different calls", async () => {
    const x = matrix(40, 8).realizeSync();
    for (const i of range(20)) await x.narrow(0, i, 3).max().realize();
    expect(itemsOf(x.narrow(0, 37, 3).max())[0]?.varVals.size).toBe(1);
  });

  deviceTest("values, of one and of several loads, flipped and padded", async (device) => {
    const x = await matrix(40, 6, { device }).realize();
    const at = (i: number, j: number): number => 6 * i + j;
    const sums = range(39).map((i) =>
      x
        .select(0, i)
        .sub(x.select(0, i + 1))
        .sum(),
    );
    const cells = range(36).map((i) =>
      x
        .select(0, i)
        .narrow(0, i % 5, 2)
        .mul(2),
    );
    const turned = range(20).map((i) =>
      x
        .select(0, i)
        .flip(0)
        .add(x.select(0, 39 - i)),
    );
    const padded = range(20).map((i) =>
      x
        .select(0, i)
        .narrow(0, 1, 2)
        .pad([[1, 1]])
        .add(1),
    );
    const crops = range(24).map((i) =>
      x
        .reshape(40, 2, 3)
        .select(0, i)
        .pad([[1, 1], [1, 0]]) // biome-ignore format: a pair for each dim
        .narrow(0, i % 3, 2)
        .flip(1)
        .add(1),
    );
    await Tensor.realize(...sums, ...cells, ...turned, ...padded, ...crops);
    const pixel = (i: number, y: number, j: number): number =>
      y < 0 || y > 1 || j < 0 ? 1 : at(i, 3 * y + j) + 1;
    for (const [i, t] of crops.entries())
      expect(await t.tolist()).toEqual(
        range(2).map((y) => range(4).map((j) => pixel(i, y - 1 + (i % 3), 2 - j))),
      );
    for (const t of sums) expect(await t.item()).toBe(-36);
    for (const [i, t] of cells.entries())
      expect(await t.tolist()).toEqual([2 * at(i, i % 5), 2 * at(i, (i % 5) + 1)]);
    for (const [i, t] of turned.entries())
      expect(await t.tolist()).toEqual(range(6).map((j) => at(i, 5 - j) + at(39 - i, j)));
    for (const [i, t] of padded.entries())
      expect(await t.tolist()).toEqual([1, at(i, 1) + 1, at(i, 2) + 1, 1]);
  });

  test("a captured function keeps them", async () => {
    const f = new TinyJit(async (x: Tensor) => {
      const rows = range(10).map((i) => x.select(0, i).mul(i).sum());
      await Tensor.realize(...rows);
      return rows;
    });
    for (const k of range(4)) {
      const x = await matrix(10, 4).realizeSync().add(k).realize();
      const rows = await f(x);
      for (const i of range(10)) expect(await rows[i]?.item()).toBe(i * (16 * i + 6 + 4 * k));
    }
  });
});
