// What the loops of the bench's kernels are made of, as the heuristic leaves them: no division and no modulo,
// no bounds check but at the edges of a padding, nothing that is the same in every iteration, and vectors
// wherever memory lies side by side.

import { describe, expect, test } from "vitest";
import { KERNELS, type KernelName, kernelItems } from "../../../../bench/cpu/kernels.ts";
import { type Kernel, toFastKernel, toKernel } from "../../../../src/codegen/kernel.ts";
import { clangRenderer } from "../../../../src/render/languages.ts";
import { WASMRenderer } from "../../../../src/render/wasm/renderer.ts";
import { type UOp, valueType } from "../../../../src/uop/node.ts";

const TARGETS = {
  WASM: WASMRenderer,
  CLANG: clangRenderer({ widths: [8, 4], accumulators: 16, registers: 32, fused: true }),
};

/** The padding has edges; every other kernel's shapes rule them out. */
const EDGES: ReadonlySet<string> = new Set(["conv2d 3×3, padded: 0"]);

interface Placed {
  readonly node: UOp;
  /** the loops it stands in, outermost first; the grid is one */
  readonly loops: readonly UOp[];
}
function placed({ uops }: Kernel): Placed[] {
  const open: UOp[] = [];
  return [...uops].map((node) => {
    if (node.op === "ENDLOOP") open.pop();
    const loops = [...open];
    if (node.op === "LOOP" || node.op === "SPECIAL") open.push(node);
    return { node, loops };
  });
}
const isDivision = (u: UOp): boolean => u.op === "ALU" && (u.arg === "IDIV" || u.arg === "MOD");
const gateOf = (u: UOp): UOp | undefined =>
  u.op === "LOAD" ? u.srcs[2] : u.op === "STORE" ? u.srcs[3] : undefined;

/** The loops that a value can be another one in, with each iteration. */
function changing(list: readonly Placed[]): Map<UOp, ReadonlySet<UOp>> {
  const found = new Map<UOp, ReadonlySet<UOp>>();
  for (const { node, loops } of list) {
    const mine = new Set(node.srcs.flatMap((s) => [...(found.get(s) ?? [])]));
    if (node.op === "LOOP" || node.op === "SPECIAL") mine.add(node);
    // a sum so far, and what an array holds, change with every loop around them
    if (node.op === "DEFINE_ACC") for (const l of list) if (l.node.op === "LOOP") mine.add(l.node);
    const fromArray = node.op === "LOAD" && node.srcs[0]?.op === "DEFINE_LOCAL";
    if (fromArray) for (const l of loops) mine.add(l);
    if (node.op === "PHI") for (const l of loops) mine.add(l);
    found.set(node, mine);
  }
  return found;
}

const every = (check: (kernel: Kernel, name: string) => void, plain = false): void => {
  for (const target of Object.values(TARGETS)) {
    for (const name of Object.keys(KERNELS) as KernelName[]) {
      kernelItems(KERNELS[name]()).forEach((item, i) => {
        const kernel = plain ? toKernel(item.ast, [], target) : toFastKernel(item.ast, target, false);
        check(kernel, `${name}: ${i}`);
      });
    }
  }
};

describe.each([
  ["as the heuristic leaves them", false],
  ["as plain loops", true],
])("the bench's kernels, %s", (_, plain) => {
  test("divide nothing inside a loop", () => {
    every((kernel, name) => {
      const found = placed(kernel).filter(({ node, loops }) => isDivision(node) && loops.length > 0);
      expect(
        found.map((p) => p.node.arg),
        name,
      ).toEqual([]);
    }, plain);
  });
  test("check no bounds but those of a padding", () => {
    let edges = 0;
    every((kernel, name) => {
      const gated = [...kernel.uops].filter((u) => gateOf(u) !== undefined);
      if (EDGES.has(name)) edges += gated.length;
      else expect(gated, name).toEqual([]);
    }, plain);
    expect(edges).toBeGreaterThan(0);
  });
  test("compute nothing in a loop that is the same in every iteration", () => {
    every((kernel, name) => {
      const list = placed(kernel);
      const changes = changing(list);
      const values = new Set(["ALU", "CAST", "LOAD", "GEP", "VECTORIZE"]);
      const invariant = list.filter(({ node, loops }) => {
        const inner = loops.at(-1);
        return values.has(node.op) && inner !== undefined && changes.get(node)?.has(inner) !== true;
      });
      expect(
        invariant.map((p) => `${p.node.op} ${p.node.arg ?? ""} in ${p.loops.length} loops`),
        name,
      ).toEqual([]);
    }, plain);
  });
});

describe("the bench's kernels with vectors", () => {
  /** Kernels in which some memory is read or written one by one, and why. */
  const APART: ReadonlySet<string> = new Set([
    "conv2d 3×3, padded: 0", // edges
    "max pool 2×2: 0", // every other element
    "transposed copy 2048×2048: 0", // what is read side by side is written apart
    "sum of 16 Mi: 1", // the parts of a few threads
    "GPT-2, attention's scores: 1", // a row of 64 for each of twelve heads
  ]);
  test("have them in every innermost loop that reads memory", () => {
    every((kernel, name) => {
      if (APART.has(name)) return;
      const list = placed(kernel);
      const loops = list.filter((p) => p.node.op === "LOOP").map((p) => p.node);
      const innermost = loops.filter((l) => !list.some((p) => p.node.op === "LOOP" && p.loops.at(-1) === l));
      for (const loop of innermost) {
        const inside = list.filter((p) => p.loops.at(-1) === loop).map((p) => p.node);
        const memory = inside.filter((u) => u.op === "LOAD" || u.op === "STORE");
        const wide = memory.filter((u) => valueType((u.op === "LOAD" ? u : u.srcs[2]) as UOp).count > 1);
        if (memory.length > 0) expect(wide.length, `${name} in ${kernel.name}`).toBeGreaterThan(0);
      }
    });
  });
});
