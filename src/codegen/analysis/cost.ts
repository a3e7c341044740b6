// What a kernel costs: its arithmetic, all loops counted, and the bytes it touches. DEBUG=2 and the profiler
// show both.

import { astNodes, type LazyOp } from "../../schedule/lazyop.ts";
import { type Sint, smax } from "../../shape/symbolic.ts";
import type { UOpGraph } from "../../uop/list.ts";
import type { UOp } from "../../uop/node.ts";
import { tripCount } from "./loops.ts";

/**
 * Arithmetic on values; addresses and conditions do not count. `warp`: the threads that do a WMMA together.
 */
export function countOps(uops: UOpGraph, grid: readonly Sint[], warp: number): number {
  const addresses = new Set<UOp>();
  const mark = (roots: readonly (UOp | undefined)[]) => {
    const todo = roots.filter((u) => u !== undefined);
    for (let u = todo.pop(); u !== undefined; u = todo.pop()) {
      if (addresses.has(u) || u.op === "LOAD") continue;
      addresses.add(u);
      todo.push(...u.srcs);
    }
  };
  for (const u of uops) {
    if (u.op === "LOAD" || u.op === "STORE") mark([u.index, u.gate]);
    else if (u.op === "LDMATRIX" || u.op === "LDFRAGMENT") mark([u.index]);
    else if (u.op === "ASYNC") mark([u.toIndex, u.fromIndex, u.gate]);
    else if (u.op === "LOOP") mark([u.start, u.end]);
  }
  let times = grid.reduce<number>((n, s) => n * smax(s), 1);
  let ops = 0;
  const trips: number[] = [];
  for (const u of uops) {
    if (u.op === "LOOP") {
      const trip = tripCount(u);
      trips.push(trip);
      times *= trip;
    } else if (u.op === "ENDLOOP") times /= trips.pop() ?? 1;
    else if (u.op === "WMMA") ops += (times * 2 * u.core.m * u.core.n * u.core.k) / warp;
    else if (u.op === "ALU" && !addresses.has(u)) ops += times * (u.fn === "MULACC" ? 2 : 1) * u.dtype.count;
  }
  return Math.round(ops);
}

/** The bytes of each buffer that are touched, counted once. */
export function countBytes(ast: readonly LazyOp[]): number {
  const touched = new Map<number, number>();
  for (const u of astNodes(ast)) {
    if (u.op !== "LOAD" && u.op !== "STORE") continue;
    const elements = Math.min(u.arg.st.realSize(), smax(u.arg.st.size));
    touched.set(u.arg.idx, Math.max(touched.get(u.arg.idx) ?? 0, u.arg.dtype.bytesFor(elements)));
  }
  return [...touched.values()].reduce((a, b) => a + b, 0);
}
