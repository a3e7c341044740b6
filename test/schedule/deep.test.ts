// Building and scheduling are linear in the graph, whatever its shape: counted, not timed. `base` of a node
// is what every walk over the graph reads, so the reads a node are the work a node.

import { createSchedule, LazyBuffer, type LazyOp, type Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { GRAPHS } from "../../bench/deep/graphs.ts";
import { toposort } from "../../src/helpers.ts";

const SMALL = 400;
const LARGE = 4 * SMALL;

const { get: base } = Object.getOwnPropertyDescriptor(LazyBuffer.prototype, "base") as {
  get: (this: LazyBuffer) => LazyBuffer;
};
/** How often `base` of a node is read while `work` runs. */
function reads<T>(work: () => T): { readonly result: T; readonly count: number } {
  let count = 0;
  const counting = function (this: LazyBuffer): LazyBuffer {
    count++;
    return base.call(this);
  };
  Object.defineProperty(LazyBuffer.prototype, "base", { get: counting, configurable: true });
  try {
    return { result: work(), count };
  } finally {
    Object.defineProperty(LazyBuffer.prototype, "base", { get: base, configurable: true });
  }
}

const nodesOf = (outs: readonly Tensor[]): number =>
  toposort(
    outs.map((t) => t.lazydata.base),
    (x) => (x.srcs ?? []).map((s) => s.base),
  ).length;

/** What a graph of about `n` nodes costs, per node. */
function workOf(build: (n: number) => readonly Tensor[], n: number) {
  const { result: outs, count: building } = reads(() => build(n));
  const nodes = nodesOf(outs);
  const { result: items, count: scheduling } = reads(() => createSchedule(outs.map((t) => t.lazydata)));
  const size = (ast: readonly LazyOp[]): number => toposort(ast, (u) => u.srcs).length;
  const ast = items.reduce((sum, si) => sum + size(si.ast), 0);
  return { building: building / nodes, scheduling: scheduling / nodes, ast: ast / nodes };
}

describe("four times the nodes take four times the work", () => {
  for (const [name, build] of Object.entries(GRAPHS)) {
    test(name, () => {
      const [small, large] = [workOf(build, SMALL), workOf(build, LARGE)];
      for (const part of ["building", "scheduling", "ast"] as const) {
        expect.soft(large[part], `${part}, reads a node`).toBeLessThan(1.5 * small[part] + 2);
      }
      expect(large.ast, "nodes of all kernels, a node of the graph").toBeLessThan(8);
    });
  }
});
