// For the tests of one OptOp: random programs, lowered with random lists that have it, compute on every
// device what the plain kernel computes.

import type { DeviceError, Tensor } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import { prepare } from "../../../src/codegen/kernel.ts";
import type { KernelGraph } from "../../../src/codegen/lower/lower.ts";
import type { OptOp } from "../../../src/codegen/opt/opts.ts";
import { clangRenderer } from "../../../src/render/languages.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { Random } from "../../shape/random.ts";
import { expectSame, lastItem, lowered, randomOpts, rendererOf, runKernel } from "../kernels.ts";

const DEVICES = ["JS", "WASM", "CLANG"] as const;
const TARGETS = {
  JS: undefined,
  WASM: undefined,
  CLANG: clangRenderer({ widths: [4], accumulators: 12, registers: 16, fused: true }),
};

interface Lists {
  program(r: Random, device: string): Tensor;
  /** What ends a list for this kernel; undefined: the OptOp has nothing to do there. */
  ends(kernel: KernelGraph): ((r: Random) => OptOp[]) | undefined;
  readonly listsPerProgram: number;
  readonly ulps: number;
  /** So many lists were not refused at least: of CLANG, which compiles slowly, and of the others. */
  readonly least: { readonly clang: number; readonly others: number };
}

export function testRandomLists({ program, ends, listsPerProgram, ulps, least }: Lists): void {
  const closed = new Map<string, string>();
  beforeAll(async () => {
    for (const d of DEVICES) await Device.open(d).catch((e: DeviceError) => closed.set(d, e.message));
  });
  describe("random kernels", () => {
    test.for(DEVICES)("on %s", async (device, { skip }) => {
      skip(closed.has(device), closed.get(device));
      const target = TARGETS[device] ?? rendererOf(device);
      let ran = 0;
      for (let seed = 1; seed <= (device === "CLANG" ? 12 : 120); seed++) {
        const r = new Random(seed);
        const item = await lastItem(program(r, device));
        const want = await runKernel(item, lowered(item));
        const kernel = prepare(item.ast, [], target);
        const end = ends(kernel);
        for (let i = 0; end !== undefined && i < listsPerProgram; i++) {
          const opts = [...randomOpts(r, kernel, target), ...end(r)];
          if (await expectSame(item, opts, target, { want, seed, ulps })) ran++;
        }
      }
      expect(ran).toBeGreaterThan(device === "CLANG" ? least.clang : least.others);
    });
  });
}

/** The axes of a kind that a kernel has. */
export const axesOf = (kernel: KernelGraph, kind: string): number[] =>
  kernel.axes.filter((a) => a.kind === kind).map((a) => a.of);
