// INTERCHANGE: the sum's loop is around the loop over its results, which stand
// in an array. Random sums with random lists compute what the plain kernel does; what cannot change places is
// refused. And when the heuristic wants it: a row times a matrix that comes from memory.

import { ArgumentError, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { toFastKernel } from "../../../src/codegen/kernel.ts";
import { type OptOp, showOpts } from "../../../src/codegen/opt/opts.ts";
import { WASMRenderer } from "../../../src/render/wasm/renderer.ts";
import { Random } from "../../shape/random.ts";
import { gridTarget, lastItem, lowered, opsIn, opt, rendererOf, trips, wholeFloats } from "../kernels.ts";
import { axesOf, testRandomLists } from "./randomlists.ts";

function program(r: Random, device: string): Tensor {
  const x = (...shape: number[]): Tensor => wholeFloats(device, shape, r);
  const [m, k, n] = [r.int(1, 6), r.int(2, 17), r.int(2, 24)];
  const kinds = [
    () => x(1, k).matmul(x(k, n)),
    () => x(m, k).matmul(r.chance(50) ? x(n, k).T : x(k, n)),
    () => x(m, k, n).sum(r.pick([[0], [1], [0, 1], [2]])),
    () => x(m, k, n).max(1),
    () => x(k, n).sub(3).square().mean(0),
    () => x(k, n).add(x(1, n)).sum(0),
    () => x(k, n).softmax(0),
    () => x(1, 2, 6, 7).conv2d(x(3, 2, 2, 3)),
  ];
  const t = r.pick(kinds)();
  return r.chance(40) ? t.mul(0.5).add(1).relu() : t;
}

testRandomLists({
  program,
  ends(kernel) {
    const [outputs, sums] = [axesOf(kernel, "output"), axesOf(kernel, "reduce")];
    if (outputs.length === 0 || sums.length === 0) return undefined;
    return (r) => [opt("INTERCHANGE", r.pick(outputs), r.pick(sums))];
  },
  listsPerProgram: 5,
  ulps: 16,
  least: { clang: 12, others: 150 },
});

describe("what it does", () => {
  const r = new Random(1);
  const x = (...shape: number[]): Tensor => wholeFloats("JS", shape, r);

  test("whole rows of a matrix are added up one after the other", async () => {
    const item = await lastItem(x(1, 12).matmul(x(12, 16)).add(x(16)));
    expect(trips(lowered(item))).toEqual([16, 12]);
    const kernel = lowered(item, [opt("INTERCHANGE", 0, 1)]);
    // zeros, then for each row all columns, then what is done with the sums
    expect(trips(kernel)).toEqual([16, 12, 16, 16]);
    expect(opsIn(kernel, "DEFINE_LOCAL").map((u) => u.arg)).toEqual([["sums0_0", 16]]);
    expect(opsIn(kernel, "DEFINE_ACC")).toEqual([]);
  });
  test("of a loop that LOCAL made two of, the inner one goes inside; lanes lie side by side", async () => {
    const item = await lastItem(x(1, 12).matmul(x(12, 32)));
    const opts = [opt("UPCAST", 0, 4), opt("LOCAL", 0, 4), opt("UNROLL", 1, 3), opt("INTERCHANGE", 0, 1)];
    const kernel = lowered(item, opts, WASMRenderer);
    expect(trips(kernel)).toEqual([2, 4, 4, 4, 4]);
    expect(opsIn(kernel, "DEFINE_LOCAL").map((u) => u.arg)).toEqual([["sums0_0", 16]]);
    const inArray = [...opsIn(kernel, "LOAD"), ...opsIn(kernel, "STORE")].filter(
      (u) => u.srcs[0]?.op === "DEFINE_LOCAL",
    );
    for (const u of inArray)
      expect(String((u.op === "LOAD" ? u : u.srcs[2])?.dtype)).toBe("dtypes.float.vec(4)");
  });
  test("is refused where there is no such loop, no room, a grid, or a sum that goes in blocks", async () => {
    const item = await lastItem(x(8, 12).matmul(x(12, 6)));
    const target = rendererOf("JS");
    const refused = (opts: OptOp[], why: RegExp, t = target) => {
      expect(() => lowered(item, opts, t)).toThrow(ArgumentError);
      expect(() => lowered(item, opts, t)).toThrow(why);
    };
    refused([opt("INTERCHANGE", 2, 0)], /output axes 0 to 1/);
    refused([opt("INTERCHANGE", 0, 3)], /no sum has this reduce axis/);
    refused([opt("UPCAST", 0, 8), opt("INTERCHANGE", 0, 2)], /no loop over this axis/);
    refused([opt("UNROLL", 2, 12), opt("INTERCHANGE", 0, 2)], /no sum has this reduce axis/);
    refused([opt("INTERCHANGE", 0, 2), opt("INTERCHANGE", 1, 2)], /no sum has this reduce axis/);
    refused([opt("PACK", 0), opt("INTERCHANGE", 0, 2)], /has loops inside/);
    refused([opt("INTERCHANGE", 0, 2)], /a grid/, gridTarget());
    refused([opt("INTERCHANGE", 0, 2)], /room for 31 bytes/, { ...target, sharedMax: 31 });
    const long = await lastItem(x(5000, 3).sum(0));
    expect(() => lowered(long, [opt("INTERCHANGE", 0, 1)])).toThrow(/goes in blocks/);
    expect(() => lowered(long, [opt("UNROLL", 1, 2), opt("INTERCHANGE", 0, 1)])).not.toThrow();
    const rows = await lastItem(x(4, 5).sub(x(4, 5).mean(1, true)));
    expect(() => lowered(rows, [opt("INTERCHANGE", 1, 2)])).toThrow(ArgumentError);
  });
});

describe("the heuristic", () => {
  const empty = (...shape: number[]): Tensor => Tensor.empty(shape, { device: "JS" });
  const chosen = async (t: Tensor, inPlace = false): Promise<string> =>
    showOpts(toFastKernel((await lastItem(t)).ast, WASMRenderer, inPlace).opts);
  test("a row times a matrix from memory: rows, several at once, in parts for the threads", async () => {
    expect(await chosen(empty(1, 768).matmul(empty(768, 3072)))).toBe(
      "UPCAST(0, lanes=16) LOCAL(0, threads=48) UNROLL(1, factor=8) INTERCHANGE(0, reduce=1) THREAD(0)",
    );
    expect(await chosen(empty(1, 768).matmul(empty(768, 2304)).add(empty(2304)).relu())).toContain(
      "INTERCHANGE",
    );
  });
  test("not where the matrix is small, its rows are used again, or it is read along its rows anyway", async () => {
    expect(await chosen(empty(1, 256).matmul(empty(256, 256)))).not.toContain("INTERCHANGE");
    expect(await chosen(empty(64, 768).matmul(empty(768, 3072)))).not.toContain("INTERCHANGE");
    expect(await chosen(empty(1, 768).matmul(empty(3072, 768).T))).not.toContain("INTERCHANGE");
    expect(await chosen(empty(1, 768).matmul(empty(768, 3072)), true)).not.toContain("INTERCHANGE");
  });
});
