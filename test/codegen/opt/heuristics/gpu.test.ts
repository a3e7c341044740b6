// What the heuristic for GPUs makes of kernels, run by JS, which fails on a race: the values are those of the
// kernel without any OptOp. Random kernels with its lists, and with lists that somebody made up.

import { ArgumentError, createSchedule, dtypes, runSchedule, type Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { toFastKernel } from "../../../../src/codegen/kernel.ts";
import { type OptOp, showOpts } from "../../../../src/codegen/opt/opts.ts";
import { Device } from "../../../../src/runtime/registry.ts";
import { expectValues } from "../../../device/harness.ts";
import { makeProgram } from "../../../device/program.ts";
import { Random } from "../../../shape/random.ts";
import { compare, floats, ints } from "../../gpuchecks.ts";
import { gpuTarget, lastItem, lowered, opt, runKernel } from "../../kernels.ts";

const { float32 } = dtypes;
await Device.open("JS");

describe("the heuristic", () => {
  const CASES: Readonly<Record<string, [() => Tensor, ulps?: number]>> = {
    "two vectors": [() => ints([4096], 40).mul(ints([4096], 41))],
    "a size that nothing divides": [() => ints([1009], 42).add(3)],
    "a transposed copy": [() => ints([40, 24], 43).T.add(1)],
    "five axes": [() => ints([2, 3, 4, 3, 5], 44).permute(4, 2, 0, 3, 1).add(1)],
    "a full sum": [() => ints([3000], 45).sum()],
    "a sum of rows": [() => ints([6, 500], 46).sum(1)],
    "a sum of columns": [() => ints([500, 6], 47).sum(0)],
    "a sum of short rows": [() => ints([300, 4], 48).sum(1)],
    channels: [() => ints([8, 4, 5, 5], 49).sum([0, 2, 3])],
    "a matmul": [() => ints([32, 24], 50).dot(ints([24, 40], 51))],
    "a matmul of odd sizes": [() => ints([13, 7], 52).dot(ints([7, 11], 53))],
    "a matrix and a vector": [() => ints([40, 64], 54).dot(ints([64], 55))],
    "a batch of products": [() => ints([3, 8, 8], 56).dot(ints([3, 8, 8], 57))],
    "a convolution": [() => ints([2, 3, 8, 8], 58).conv2d(ints([4, 3, 3, 3], 59), undefined, { padding: 1 })],
    "the gradient of a convolution's weights": [
      () => {
        const w = floats([4, 2, 3, 3], 71);
        w.requiresGrad = true;
        const y = floats([40, 2, 8, 8], 72).conv2d(w);
        y.backward(floats(y.shape as number[], 73));
        return w.grad as Tensor;
      },
    ],
    "a pooling": [() => ints([2, 3, 8, 8], 60).maxPool2d([2, 2])],
    "a softmax": [() => floats([5, 64], 61).softmax(), 6],
    "a softmax of odd rows": [() => floats([5, 77], 62).softmax(), 8],
    "a softmax of columns": [() => floats([16, 12], 63).softmax(0), 4],
    "a layer norm": [
      () => floats([4, 96], 64).layerNorm([96], { weight: floats([96], 65), bias: floats([96], 66) }),
      16,
    ],
    "a variance": [() => floats([4, 100], 67).var(1), 8],
    "a cumulative sum": [() => ints([4, 20], 68).cumsum(1)],
    "half precision": [() => ints([64], 69).cast("float16").contiguous().mul(2)],
    "one element": [() => ints([1], 70).add(1)],
  };
  test.each(Object.entries(CASES))("%s", async (_, [make, ulps]) => {
    const item = await lastItem(make());
    const want = await runKernel(item, lowered(item));
    for (const warp of [1, 32])
      await compare(item, toFastKernel(item.ast, gpuTarget(warp), false), want, ulps);
  });
});

describe("random kernels", () => {
  const guess = (r: Random, name: string): OptOp[] => {
    const sizes = name.replace(/n\d+$/, "").split("_").slice(1).map(Number);
    return Array.from({ length: r.int(1, 4) }, () =>
      opt(
        r.pick(["LOCAL", "LOCAL", "GROUPTOP", "GROUPTOP", "GROUPTOP", "UPCAST", "UNROLL", "GROUP", "SWAP"]),
        r.int(0, sizes.length - 1),
        r.pick([2, 2, 3, 4, 4, 5, 8]),
      ),
    );
  };
  test("lists of the heuristic, and lists that somebody made up", async () => {
    let [ran, shared] = [0, 0];
    for (let seed = 1; seed <= 300; seed++) {
      const program = await makeProgram(seed + 9000, "JS", 5 + (seed % 16));
      const r = new Random(seed);
      const target = gpuTarget(r.pick([1, 2, 4, 32]));
      for (const item of createSchedule([(program.nodes.at(-1) as { t: Tensor }).t.lazydata])) {
        if (item.ast[0]?.op === "STORE" && item.outputs[0]?.size !== 0) {
          const plain = lowered(item);
          const want = await runKernel(item, plain);
          const kernels = [toFastKernel(item.ast, target, false)];
          for (let k = 0; k < 10; k++) {
            try {
              kernels.push(lowered(item, guess(r, plain.name), target));
            } catch (e) {
              if (!(e instanceof ArgumentError)) throw e;
            }
          }
          for (const kernel of kernels) {
            ran++;
            if (kernel.opts.some((o) => o.op === "GROUPTOP")) shared++;
            const type = item.outputs[0]?.dtype ?? float32;
            const what = `seed ${seed} ${program.text()}${kernel.name} with ${showOpts(kernel.opts)}`;
            expectValues(type, await runKernel(item, kernel), want, what, { zeros: "equal" });
          }
        }
        await runSchedule([item]);
      }
    }
    expect([ran > 400, shared > 40]).toEqual([true, true]);
  });
});
