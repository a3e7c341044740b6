// PACK: operands are copied before its loop and read from the array, in one loop where
// they can be. Random products, convolutions and sums with random lists compute what the plain kernel does;
// what cannot be packed is refused.

import { ArgumentError, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { toFastKernel } from "../../../src/codegen/kernel.ts";
import type { OptOp } from "../../../src/codegen/opt/opts.ts";
import { WASMRenderer } from "../../../src/render/wasm/renderer.ts";
import { Random } from "../../shape/random.ts";
import {
  gridTarget,
  lastItem,
  lowered,
  opsIn,
  opt,
  rendererOf,
  runKernel,
  trips,
  wholeFloats,
} from "../kernels.ts";
import { axesOf, testRandomLists } from "./randomlists.ts";

/** A product of something that is not the same along every axis. */
function program(r: Random, device: string): Tensor {
  const x = (...shape: number[]): Tensor => wholeFloats(device, shape, r);
  const [m, k, n] = [r.int(1, 13), r.int(2, 17), r.int(1, 13)];
  const bent = (t: Tensor): Tensor => (r.chance(40) ? t.relu().add(1) : t);
  const product = (): Tensor => {
    const a = r.chance(30) ? x(k, m).T : x(m, k);
    const b = r.chance(30) ? x(n, k).T : x(k, n);
    return bent(a).matmul(bent(b));
  };
  const batched = (): Tensor => x(r.int(1, 3), m, k).matmul(r.chance(50) ? x(k, n) : x(1, k, n));
  const padded = (): Tensor =>
    x(m, k)
      .pad([null, [1, 2]])
      .matmul(x(k + 3, n));
  const conv = (): Tensor =>
    x(r.int(1, 2), 3, r.int(4, 8), r.int(4, 9)).conv2d(
      x(r.int(2, 6), 3, r.int(1, 3), r.int(1, 3)),
      undefined,
      {
        padding: r.int(0, 1),
        stride: r.int(1, 2),
      },
    );
  const t = r.pick([product, product, batched, padded, conv])();
  return r.chance(40) ? t.mul(0.5).add(1).relu() : t;
}

testRandomLists({
  program,
  ends(kernel) {
    const outputs = axesOf(kernel, "output");
    if (outputs.length === 0) return undefined;
    return (r) => [opt("PACK", r.pick(outputs)), opt("PACK", r.pick(outputs))].slice(0, r.int(1, 2));
  },
  listsPerProgram: 4,
  ulps: 0,
  least: { clang: 8, others: 100 },
});

describe("what it does", () => {
  const r = new Random(1);
  const x = (...shape: number[]): Tensor => wholeFloats("JS", shape, r);

  test("columns are copied once for all rows, and their loop goes outside", async () => {
    const item = await lastItem(x(8, 12).matmul(x(12, 6)));
    expect(trips(lowered(item))).toEqual([8, 6, 12]);
    const kernel = lowered(item, [opt("PACK", 0)]);
    expect(trips(kernel)).toEqual([6, 12, 8, 12]);
    const [array] = opsIn(kernel, "DEFINE_LOCAL");
    expect(array?.arg).toEqual(["pack0_0", 12]);
    expect(opsIn(kernel, "LOAD").filter((u) => u.srcs[0] === array)).toHaveLength(1);
    // lanes lie side by side in the array, whatever they do in memory
    for (const b of [x(12, 8), x(8, 12).T]) {
      const tiled = lowered(
        await lastItem(x(8, 12).matmul(b)),
        [opt("UPCAST", 1, 8), opt("PACK", 0)],
        WASMRenderer,
      );
      expect(opsIn(tiled, "DEFINE_LOCAL")[0]?.arg).toEqual(["pack0_0", 96]);
      const reads = opsIn(tiled, "LOAD").filter((u) => u.buffer.op === "DEFINE_LOCAL");
      expect(reads.map((u) => String(u.dtype))).toEqual(["dtypes.float.vec(4)", "dtypes.float.vec(4)"]);
    }
  });
  test("what is done to an operand is done before it is copied", async () => {
    const columns = x(1, 12, 6).expand(8, 12, 6).relu();
    const item = await lastItem(x(8, 12, 1).mul(columns).sum(1));
    const kernel = lowered(item, [opt("PACK", 0)]);
    const list = kernel.uops.uops;
    const copied = list.findIndex((u) => u.op === "STORE");
    const maxima = list.flatMap((u, i) => (u.op === "ALU" && u.arg === "MAX" ? [i] : []));
    expect(maxima).toHaveLength(1);
    expect(maxima[0]).toBeLessThan(copied);
  });
  test("a convolution reads its array in one loop", async () => {
    const item = await lastItem(x(2, 3, 6, 7).conv2d(x(4, 3, 3, 2)));
    expect(trips(lowered(item))).toEqual([2, 4, 4, 6, 3, 3, 2]);
    expect(trips(lowered(item, [opt("PACK", 1)]))).toEqual([2, 4, 6, 3, 3, 2, 4, 18]);
    // weights packed for a row: the image still needs all three
    expect(trips(lowered(item, [opt("PACK", 2)]))).toEqual([4, 3, 3, 2, 2, 4, 6, 3, 3, 2]);
  });
  test("a sum that goes in blocks reads the array in blocks", async () => {
    const item = await lastItem(x(2, 5000).matmul(x(5000, 2)));
    const kernel = lowered(item, [opt("PACK", 0)]);
    expect(await runKernel(item, kernel)).toEqual(await runKernel(item, lowered(item)));
  });
  test("is refused where there is nothing to pack, no room, or a grid", async () => {
    const item = await lastItem(x(8, 12).matmul(x(12, 6)));
    const target = rendererOf("JS");
    const refused = (opts: OptOp[], t = target) =>
      expect(() => lowered(item, opts, t)).toThrow(ArgumentError);
    refused([opt("PACK", 0), opt("PACK", 0)]);
    refused([opt("UNROLL", 2, 12), opt("PACK", 0)]);
    refused([opt("PACK", 0)], gridTarget());
    refused([opt("PACK", 0)], { ...target, sharedMax: 63 });
    expect(() => lowered(item, [opt("PACK", 0)], { ...target, sharedMax: 64 })).not.toThrow();
    const sums = await lastItem(x(8, 12).sum(1));
    expect(() => lowered(sums, [opt("PACK", 0)])).toThrow(/no sum reads the same/);
  });
});

describe("the heuristic", () => {
  const empty = (...shape: number[]): Tensor => Tensor.empty(shape, { device: "JS" });
  const packed = async (t: Tensor, target = WASMRenderer): Promise<number | undefined> => {
    const kernel = toFastKernel((await lastItem(t)).ast, target, false);
    return kernel.opts.find((o) => o.op === "PACK")?.axis;
  };
  test("packs the columns of a large product for its rows, transposed or not", async () => {
    expect(await packed(empty(256, 256).matmul(empty(256, 256)))).toBe(0);
    expect(await packed(empty(256, 256).matmul(empty(256, 256).T))).toBe(0);
    expect(await packed(empty(256, 256).T.matmul(empty(256, 256)))).toBe(0);
  });
  test("packs the image of a convolution for its channels", async () => {
    expect(await packed(empty(8, 32, 56, 56).conv2d(empty(64, 32, 3, 3)))).toBe(1);
  });
  test("packs nothing that is small, read by few rows, or too much for the array", async () => {
    expect(await packed(empty(32, 32).matmul(empty(32, 32)))).toBeUndefined();
    expect(await packed(empty(4, 512).matmul(empty(512, 512)))).toBeUndefined();
    expect(await packed(empty(1, 512).matmul(empty(512, 512)))).toBeUndefined();
    expect(
      await packed(empty(256, 256).matmul(empty(256, 256)), { ...WASMRenderer, sharedMax: 1024 }),
    ).toBeUndefined();
  });
  test("packs nothing where the result overwrites what is read", async () => {
    const { ast } = await lastItem(empty(256, 256).matmul(empty(256, 256)));
    expect(toFastKernel(ast, WASMRenderer, true).opts.some((o) => o.op === "PACK")).toBe(false);
  });
  test("threads share the loop around the packing", async () => {
    const { ast } = await lastItem(empty(256, 256).matmul(empty(256, 256)));
    expect(toFastKernel(ast, WASMRenderer, false).opts.at(-1)).toEqual(opt("THREAD", 1));
  });
});
