// The records of the OptOps: each says what a page of the docs needs, takes what it should and refuses what
// it should with a text that names the op, what came and what was expected; its candidates are ops that
// lowering accepts; its graph does what plain loops do.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ArgumentError, dtypes, type OptOp, type Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { prepare, toKernel } from "../../../src/codegen/kernel.ts";
import { CPU_OPS, GRID_OPS } from "../../../src/codegen/opt/cpuops.ts";
import { type OptOpName, showOpts } from "../../../src/codegen/opt/opts.ts";
import type { Param } from "../../../src/codegen/opt/record.ts";
import { OPT_OPS } from "../../../src/codegen/opt/registry.ts";
import type { Renderer } from "../../../src/codegen/target.ts";
import { WASMRenderer } from "../../../src/render/wasm/renderer.ts";
import type { ScheduleItem } from "../../../src/schedule/schedule.ts";
import { expectValues } from "../../device/harness.ts";
import { Random } from "../../shape/random.ts";
import { gpuTarget, lastItem, lowered, opt, rendererOf, runKernel, wholeFloats } from "../kernels.ts";

const NAMES = OPT_OPS.map((r) => r.name);
const x = (...shape: number[]): Tensor => wholeFloats("JS", shape, new Random(1));
/** What a product of quantised matrices takes. */
const bytes = (...shape: number[]): Tensor =>
  x(...shape)
    .cast("int8")
    .contiguous()
    .cast("int32");
const product = (): Promise<ScheduleItem> => lastItem(x(16, 32).matmul(x(32, 8)));
const softmax = (): Promise<ScheduleItem> => lastItem(x(4, 64).mul(0.1).softmax(1));

describe.each(OPT_OPS)("$name", ({ name, textbook, summary, picture, params, expected, takes }) => {
  test("says what it is", () => {
    expect(textbook).not.toBe("");
    expect(summary).toMatch(/\.$/);
    expect(expected).not.toBe("");
    expect(picture.trim().split("\n")).toHaveLength(4);
    for (const line of picture.split("\n")) expect(line.length).toBeLessThanOrEqual(90);
    expect(picture, "the picture shows the op").toContain(name);
  });
  test("names its parameters, the axis first", () => {
    const list: [string, Param][] = Object.entries(params);
    const first = list.map(([p]) => p)[0];
    if (takes === undefined) expect(first, "it is about the whole kernel").not.toBe("axis");
    else expect(first).toBe("axis");
    for (const [, { meaning, least }] of list) {
      expect(meaning).not.toBe("");
      expect(least).toBeGreaterThanOrEqual(0);
    }
  });
  test("refuses parameters that are not whole numbers, missing or unknown, and says which", async () => {
    const item = await product();
    const plain = opt(name, ...Object.values<Param>(params).map((p) => p.least));
    const refused = (o: object, why: RegExp) => {
      expect(() => lowered(item, [o as OptOp], gpuTarget(32))).toThrow(ArgumentError);
      expect(() => lowered(item, [o as OptOp], gpuTarget(32))).toThrow(why);
    };
    for (const [p, { least }] of Object.entries<Param>(params)) {
      refused({ ...plain, [p]: least - 1 }, new RegExp(`${p} is ${least - 1}; expected a whole number`));
      refused({ ...plain, [p]: least + 0.5 }, new RegExp(`${p} is ${least}\\.5; expected a whole number`));
      refused({ ...plain, [p]: "1" }, /expected a whole number/);
      const { [p as "op"]: _, ...without } = plain;
      refused(without, new RegExp(`${p} is undefined`));
    }
    refused({ ...plain, amount: 4 }, new RegExp(`there is no parameter amount; ${name} takes`));
  });
});

test("no two have the same name, and pictures differ", () => {
  expect(new Set(NAMES).size).toBe(NAMES.length);
  expect(new Set(OPT_OPS.map((r) => r.picture)).size).toBe(NAMES.length);
});

test("a target of loops has no ops for workgroups or matrices, and says what it has", async () => {
  const names = CPU_OPS.map((r) => r.name);
  expect(NAMES.filter((n) => !names.includes(n))).toEqual(["GROUPTOP", "COLLAPSE", "TC", "SHARED"]);
  expect(GRID_OPS.map((r) => r.name)).toEqual([...names, "GROUPTOP"]);
  const item = await product();
  const refused = () => toKernel(item.ast, [opt("TC", 2, 0)], WASMRenderer);
  expect(refused).toThrow(`OptOp TC(2, core=0): WASM does not have it; expected one of ${names.join(", ")}`);
});

test("what compiles for WASM does not import what only GPUs need", () => {
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    const imports = readFileSync(file, "utf8").matchAll(
      /^(?:import|export) (?!type\b)[^;]*? from "(\.[^"]*)";/gm,
    );
    for (const [, path = ""] of imports) visit(join(dirname(file), path));
  };
  const files = ["src/codegen/kernel.ts", "src/codegen/tuning/node.ts", "src/render/wasm/renderer.ts"];
  for (const file of files) visit(file);
  expect([...seen]).toContain("src/codegen/opt/upcast.ts");
  const gpu =
    /opt\/(tensorcore|shared|grouptop|mma|gpuops|registry|heuristics\/(gpu|products|convolutions))\.ts$/;
  // GROUPTOP is a few lines, beside the ops of a CPU
  expect([...seen].filter((f) => gpu.test(f))).toEqual(["src/codegen/opt/grouptop.ts"]);
});

/** An axis of the wrong kind, or an op that does not fit a product of 16x32 by 32x8 or the softmax of 64. */
const REFUSED: Readonly<Record<OptOpName, readonly [OptOp, RegExp][]>> = {
  UPCAST: [
    [opt("UPCAST", 0, 3), /axis 0 is an output axis with 16 left; UPCAST takes an output axis and a divisor/],
    [opt("UPCAST", 2, 2), /axis 2 is a reduce axis with 32 left; UPCAST takes an output axis/],
  ],
  UNROLL: [
    [opt("UNROLL", 2, 5), /with 32 left; UNROLL takes a reduce axis and a divisor of what is left/],
    [opt("UNROLL", 0, 2), /axis 0 is an output axis with 16 left; UNROLL takes a reduce axis/],
  ],
  GROUP: [
    [opt("GROUP", 2, 7), /with 32 left; GROUP takes a reduce axis and a divisor/],
    [opt("GROUP", 1, 2), /axis 1 is an output axis/],
  ],
  LOCAL: [
    [opt("LOCAL", 0, 17), /with 16 left; LOCAL takes an output axis/],
    [opt("LOCAL", 2, 2), /axis 2 is a reduce axis/],
  ],
  GROUPTOP: [
    [opt("GROUPTOP", 2, 33), /with 32 left; GROUPTOP takes a reduce axis/],
    [opt("GROUPTOP", 0, 2), /axis 0 is an output axis/],
  ],
  NOLOCALS: [],
  THREAD: [[opt("THREAD", 2), /axis 2 is a reduce axis/]],
  PADTO: [
    [opt("PADTO", 0, 17), /with 16 left; PADTO takes an output axis and a multiple up to its size/],
    [opt("PADTO", 2, 4), /axis 2 is a reduce axis/],
  ],
  SWAP: [
    [opt("SWAP", 0, 2), /the output axes 0 to 1; SWAP takes two of them/],
    [opt("SWAP", 2, 0), /the output axes 0 to 1/],
  ],
  COLLAPSE: [
    [opt("COLLAPSE", 0, 0), /axes 0 to 1 are left here; COLLAPSE takes two output axes, or two axes of one/],
    [opt("COLLAPSE", 1, 2), /axes 2 to 2 are left here/],
  ],
  INTERCHANGE: [
    [opt("INTERCHANGE", 0, 2), /a grid in place of the loop; INTERCHANGE takes/],
    [opt("INTERCHANGE", 2, 0), /the output axes 0 to 1; INTERCHANGE takes one of them and a reduce axis/],
  ],
  KEEP: [
    [opt("KEEP", 2, 32), /no loop after this one computes anything costly/],
    [opt("KEEP", 0, 16), /axis 0 is an output axis with 16 left; KEEP takes a reduce axis/],
  ],
  DOT: [
    [opt("DOT", 2), /no sum of products of integers of 16 bits goes over its axis; DOT takes such a sum/],
    [opt("DOT", 0), /axis 0 is an output axis/],
  ],
  PACK: [
    [opt("PACK", 0), /a grid in place of the loop; PACK takes an output axis/],
    [opt("PACK", 2), /axis 2 is a reduce axis/],
  ],
  TC: [
    [
      opt("TC", 0, 0),
      /expected a reduce axis of a kernel with two output axes, and a tensor core of GPU32: 0 m16/,
    ],
    [opt("TC", 2, 0), /m16n8k16 bf16 does not fit, it multiplies/],
  ],
  SHARED: [
    [opt("SHARED", 2, 2), /nothing that this reduce reads can be shared by a workgroup; expected LOCAL/],
    [opt("SHARED", 1, 2), /axis 1 is an output axis/],
  ],
};
describe("is refused with a text that says why", () => {
  for (const [name, cases] of Object.entries(REFUSED)) {
    // NOLOCALS alone is never refused
    if (cases.length === 0) continue;
    test(name, async () => {
      const item = await product();
      for (const [o, why] of cases) {
        expect(() => lowered(item, [o], gpuTarget(32))).toThrow(ArgumentError);
        expect(() => lowered(item, [o], gpuTarget(32))).toThrow(why);
        expect(() => lowered(item, [o], gpuTarget(32))).toThrow(showOpts([o]));
      }
    });
  }
  test("an axis that the kernel does not have", async () => {
    const item = await product();
    for (const { name, params, takes } of OPT_OPS) {
      if (takes === undefined) continue;
      const o = { ...opt(name, ...Object.values<Param>(params).map((p) => p.least)), axis: 9 } as OptOp;
      expect(() => lowered(item, [o], gpuTarget(32)), name).toThrow(ArgumentError);
    }
  });
  test("two that exclude each other", async () => {
    const item = await product();
    expect(() => lowered(item, [opt("LOCAL", 0, 4), opt("NOLOCALS")], gpuTarget(32))).toThrow(
      "LOCAL(0, threads=4): NOLOCALS is in the list, which excludes it; leave one of them out",
    );
  });
});

describe("candidates", () => {
  const targets: Readonly<Record<string, () => Renderer>> = {
    JS: () => ({ ...rendererOf("JS"), hasThreads: true }),
    GPU: () => gpuTarget(32),
  };
  const found = new Set<OptOpName>();
  test.each(Object.keys(targets))(
    "of products and a softmax on %s fit and give what plain loops give",
    async (on) => {
      const target = targets[on]!();
      for (const item of [
        await product(),
        await softmax(),
        await lastItem(x(6, 9).add(x(6, 1))),
        await lastItem(bytes(6, 8).matmul(bytes(8, 4))),
      ]) {
        const want = await runKernel(item, lowered(item));
        const plain = prepare(item.ast, [], target);
        for (const { name, candidates } of target.optOps) {
          for (const o of candidates(plain, { target, inPlace: false })) {
            expect(o.op).toBe(name);
            found.add(o.op);
            const kernel = attempt(() => lowered(item, [o], target));
            // a grid runs on JS as its interpreter of workgroups does
            if (kernel === undefined || kernel.globalSize.length > 0) continue;
            expectValues(dtypes.float32, await runKernel(item, kernel), want, showOpts([o]), { ulps: 64 });
          }
        }
      }
    },
  );
  test("every op but NOLOCALS has some, and COLLAPSE, which changes what the rest of a list names", () => {
    expect([...found].sort()).toEqual(NAMES.filter((n) => n !== "NOLOCALS" && n !== "COLLAPSE").sort());
  });
  test("PADTO has none where a kernel writes what it reads", async () => {
    const target = rendererOf("JS");
    const plain = prepare((await lastItem(x(6, 9).add(1))).ast, [], target);
    const padto = OPT_OPS.find((r) => r.name === "PADTO");
    expect(padto?.candidates(plain, { target, inPlace: true })).toEqual([]);
    expect(padto?.candidates(plain, { target, inPlace: false })).not.toEqual([]);
  });
});

describe("random lists of candidates", () => {
  /**
   * A kernel that most ops have something to do for: products, sums of something costly, rows that are odd.
   */
  const program = (r: Random): Tensor => {
    const [n, k, m] = [r.int(2, 9), r.pick([6, 8, 16, 32]), r.pick([4, 7, 8, 16])];
    return r.pick([
      () => x(n, k).matmul(x(k, m)).add(x(m)),
      () => x(n, m, k).mul(0.1).exp().sum(2),
      () => x(n, k).mul(0.1).softmax(1),
      () => x(n, k).sub(x(n, k).max(1, true)),
      () => x(2, n, 8, 8).conv2d(x(m, n, 3, 3)),
      () => bytes(n, k).matmul(bytes(k, m)),
    ])();
  };
  test.each(["JS", "GPU"])("on %s", async (on) => {
    const ran = new Map<OptOpName, number>();
    for (let seed = 1; seed <= 40; seed++) {
      const r = new Random(seed);
      const item = await lastItem(program(r));
      const target = on === "GPU" ? gpuTarget(32) : { ...rendererOf("JS"), hasThreads: true };
      const plain = prepare(item.ast, [], target);
      const all = target.optOps.map((op) => op.candidates(plain, { target, inPlace: false }));
      const want = await runKernel(item, lowered(item));
      for (let i = 0; i < 6; i++) {
        // an op first, then which of its candidates: those of SHARED are as likely as those of UPCAST
        const list = Array.from({ length: r.int(2, 4) }, () => {
          const some = r.pick(all.filter((c) => c.length > 0));
          return r.pick(some);
        });
        const kernel = attempt(() => lowered(item, list, target));
        if (kernel === undefined) continue;
        for (const o of list) ran.set(o.op, (ran.get(o.op) ?? 0) + 1);
        const what = `seed ${seed}: ${kernel.name} with ${showOpts(list)}`;
        expectValues(dtypes.float32, await runKernel(item, kernel), want, what, { ulps: 64 });
      }
    }
    const missing = (on === "GPU" ? GRID_OPS : CPU_OPS).filter((r) => !ran.has(r.name)).map((r) => r.name);
    // a grid takes the place of the loops that THREAD, PACK and INTERCHANGE change
    const loops = on === "GPU" ? ["THREAD", "PACK", "INTERCHANGE"] : [];
    expect(missing.toSorted()).toEqual(["NOLOCALS", ...loops].toSorted());
  });
});

/** undefined: the list is refused. */
function attempt<T>(fn: () => T): T | undefined {
  try {
    return fn();
  } catch (e) {
    if (e instanceof ArgumentError) return undefined;
    throw e;
  }
}
