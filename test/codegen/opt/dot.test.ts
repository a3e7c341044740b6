// DOT: sums of products of integers of up to 16 bits, two terms in each step. Random products and
// convolutions of random types with random lists compute what the plain kernel does, on every device; what is
// too wide or odd is refused.

import { type DType, dtypes, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { prepare, toFastKernel } from "../../../src/codegen/kernel.ts";
import { dotted } from "../../../src/codegen/opt/dot.ts";
import { bounds } from "../../../src/dtype.ts";
import { CUDARenderer, clangRenderer } from "../../../src/render/languages.ts";
import { WASMRenderer } from "../../../src/render/wasm/renderer.ts";
import { Random } from "../../shape/random.ts";
import { lastItem, lowered, opsIn, opt, rendererOf, runKernel, trips } from "../kernels.ts";
import { axesOf, testRandomLists } from "./randomlists.ts";

const { int8, uint8, int16, uint16, int32 } = dtypes;

/** Values of a type, its ends among them. */
function ofType(device: string, dtype: DType, shape: readonly number[], r: Random): Tensor {
  const [least, greatest] = bounds(dtype).map(Number) as [number, number];
  const n = shape.reduce((a, b) => a * b, 1);
  const values = Array.from({ length: n }, () =>
    r.chance(20) ? r.pick([least, greatest]) : r.int(least, greatest),
  );
  return new Tensor(values, { dtype, device }).reshape([...shape]);
}

/** A factor as quantised models have it: with or without a zero point. */
function factor(device: string, shape: readonly number[], r: Random): Tensor {
  const dtype = r.pick([int8, uint8, int16]);
  const x = ofType(device, dtype, shape, r);
  if (dtype === int16 || r.chance(30)) return x.cast(int32);
  const zero = ofType(device, dtype, [1], r);
  return r.chance(50) ? x.cast(int16).sub(zero.cast(int16)).cast(int32) : x.cast(int32).sub(zero.cast(int32));
}

function program(r: Random, device: string): Tensor {
  const x = (...shape: number[]): Tensor => factor(device, shape, r);
  const [m, k, n] = [r.int(1, 13), 2 * r.int(1, 9), r.int(1, 13)];
  const product = (): Tensor => {
    const a = r.chance(30) ? x(k, m).T : x(m, k);
    return a.matmul(r.chance(30) ? x(n, k).T : x(k, n));
  };
  const batched = (): Tensor => x(r.int(1, 3), m, k).matmul(r.chance(50) ? x(k, n) : x(1, k, n));
  const conv = (): Tensor =>
    x(r.int(1, 2), 4, r.int(4, 8), r.int(4, 9)).conv2d(
      x(r.int(2, 6), 4, r.int(1, 3), r.int(1, 3)),
      undefined,
      {
        padding: r.int(0, 1),
        stride: r.int(1, 2),
      },
    );
  const t = r.pick([product, product, batched, conv])();
  return r.chance(40) ? t.cast("float32").mul(0.5).add(1) : t;
}

testRandomLists({
  program,
  ends(kernel) {
    const axes = axesOf(kernel, "reduce");
    return axes.length === 0 ? undefined : (r) => [opt("DOT", r.pick(axes))];
  },
  listsPerProgram: 4,
  ulps: 0,
  least: { clang: 6, others: 100 },
});

const r = new Random(1);
const x = (dtype: DType, ...shape: number[]): Tensor => ofType("JS", dtype, shape, r);
const wide = (dtype: DType, ...shape: number[]): Tensor => x(dtype, ...shape).cast(int32);
/** On the cpu of this process no list is chosen: the product of a of [8, 12] and b of [12, 6]. */
const product = (a: Tensor, b: Tensor) => lastItem(a.matmul(b));

describe("what it does", () => {
  test("the loop has half as many steps, and each is one DOT2", async () => {
    const item = await product(wide(int8, 8, 12), wide(uint8, 12, 6));
    expect(trips(lowered(item))).toEqual([8, 6, 12]);
    const kernel = lowered(item, [opt("DOT", 2)]);
    expect(trips(kernel)).toEqual([8, 6, 6]);
    expect(opsIn(kernel, "ALU").filter((u) => u.fn === "DOT2")).toHaveLength(1);
    expect(await runKernel(item, kernel)).toEqual(await runKernel(item, lowered(item)));
  });
  test("words are packed, not what they are made of", async () => {
    const item = await product(wide(int8, 8, 12), wide(uint8, 12, 6));
    const kernel = lowered(item, [opt("DOT", 2), opt("PACK", 0)]);
    const [array] = opsIn(kernel, "DEFINE_LOCAL");
    expect([array?.elements, array?.dtype.base]).toEqual([6, int32]);
    expect(await runKernel(item, kernel)).toEqual(await runKernel(item, lowered(item)));
  });
  test("exact at the ends of the types", async () => {
    for (const [a, b] of [
      [int16, int16],
      [uint8, uint8],
      [int8, uint8],
    ] as const) {
      const ends = (d: DType, i: number): Tensor =>
        Tensor.full([2, 64], Number(bounds(d)[i]), { dtype: d, device: "JS" })
          .contiguous()
          .cast(int32);
      for (const i of [0, 1]) {
        const item = await lastItem(ends(a, i).matmul(ends(b, i).T));
        const kernel = lowered(item, [opt("DOT", 2)]);
        expect(await runKernel(item, kernel), `${a.name} ${b.name}`).toEqual(
          await runKernel(item, lowered(item)),
        );
      }
    }
  });
});

describe("is refused", () => {
  const refused = async (a: Tensor, b: Tensor, why: RegExp) => {
    const item = await product(a, b);
    expect(() => lowered(item, [opt("DOT", 2)])).toThrow(why);
  };
  test("where a factor may not fit 16 bits", async () => {
    const why = /DOT\(2\): no sum of products of integers of 16 bits/;
    await refused(wide(int8, 8, 12), wide(uint16, 12, 6), why);
    await refused(wide(int8, 8, 12), x(int32, 12, 6), why);
    await refused(wide(int16, 8, 12).add(wide(int8, 1, 1)), wide(int8, 12, 6), why);
    await refused(x(int8, 8, 12).cast("float32"), x(int8, 12, 6).cast("float32"), why);
  });
  test("on an odd axis, or after another op on it", async () => {
    await refused(
      wide(int8, 8, 9),
      wide(int8, 9, 6),
      /axis 2 is a reduce axis of size 9; DOT takes .* an even size/,
    );
    const item = await product(wide(int8, 8, 12), wide(uint8, 12, 6));
    expect(() => lowered(item, [opt("UNROLL", 2, 2), opt("DOT", 2)])).toThrow(/DOT\(2\)/);
  });
  test("where the target lacks the instruction", async () => {
    const item = await product(wide(int8, 8, 12), wide(uint8, 12, 6));
    expect(() => lowered(item, [opt("DOT", 2)], CUDARenderer)).toThrow(/CUDA has no instruction for it/);
  });
});

describe("the heuristic", () => {
  const empty = (d: DType, ...shape: number[]): Tensor => Tensor.empty(shape, { dtype: d, device: "JS" });
  const vectors = clangRenderer({ widths: [8, 4], accumulators: 12, registers: 16, fused: true });
  const list = async (t: Tensor, target = WASMRenderer): Promise<string[]> =>
    toFastKernel((await lastItem(t)).ast, target, false).opts.map((o) => o.op);
  test("takes it for products of quantised matrices, and packs their words", async () => {
    const [a, b] = [empty(uint8, 256, 256).cast(int32), empty(int8, 256, 256).cast(int32)];
    expect(await list(a.matmul(b))).toEqual(expect.arrayContaining(["DOT", "UPCAST", "PACK"]));
    const kernel = toFastKernel((await lastItem(a.matmul(b))).ast, vectors, false);
    expect(kernel.opts.map((o) => o.op)).toContain("DOT");
  });
  test("takes a convolution along its channels", async () => {
    const t = empty(int8, 1, 16, 30, 30)
      .cast(int32)
      .conv2d(empty(int8, 32, 16, 3, 3).cast(int32));
    expect(await list(t)).toContain("DOT");
  });
  test("leaves floats and wide integers alone", async () => {
    expect(await list(empty(int32, 64, 64).matmul(empty(int32, 64, 64)))).not.toContain("DOT");
    expect(await list(empty(dtypes.float32, 64, 64).matmul(empty(dtypes.float32, 64, 64)))).not.toContain(
      "DOT",
    );
  });
  test("sees the kernel with half the steps", async () => {
    const item = await lastItem(
      empty(int8, 8, 12)
        .cast(int32)
        .matmul(empty(int8, 12, 6).cast(int32)),
    );
    const plain = prepare(item.ast, [], WASMRenderer);
    expect(dotted(plain, WASMRenderer)?.opt).toEqual(opt("DOT", 2));
    expect(dotted(prepare(item.ast, [], rendererOf("JS")), rendererOf("JS"))).toBeUndefined();
  });
});
