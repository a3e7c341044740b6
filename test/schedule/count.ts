// Shared by the tests of this folder: tensors that are in memory already, and ways to inspect a schedule (how
// many kernels, which items, how deep the loops are, how many operations) without running it.

import { createSchedule, type ScheduleItem, Tensor, type TensorOptions, toKernel } from "gradloom";
import { ClangRenderer } from "gradloom/render";

/** A realised float tensor with small values that differ from element to element. */
export function ready(shape: readonly number[], options: TensorOptions = {}, seed = 1): Tensor {
  const size = shape.reduce((a, b) => a * b, 1);
  const data = Float32Array.from({ length: size }, (_, i) => (((i + seed) * 37) % 101) / 50 - 1);
  return new Tensor(data, options).reshape(shape).realizeSync();
}

export const itemsOf = (...ts: readonly Tensor[]): ScheduleItem[] =>
  createSchedule(ts.map((t) => t.lazydata));
export const opsOf = (...ts: readonly Tensor[]): string[] => itemsOf(...ts).map((si) => si.ast[0]?.op ?? "?");
/** How many kernels it takes to compute these. */
export const kernels = (...ts: readonly Tensor[]): number =>
  opsOf(...ts).filter((op) => op === "STORE").length;

export interface Cost {
  /** operations on values, over all iterations */
  readonly ops: number;
  /** the depth of the deepest loop nest */
  readonly depth: number;
}

/** What the kernels of these tensors cost, in the order in which they run. */
export function costs(...ts: readonly Tensor[]): Cost[] {
  return itemsOf(...ts)
    .filter((si) => si.ast[0]?.op === "STORE")
    .map((si) => {
      const kernel = toKernel(si.ast, [], ClangRenderer);
      let depth = 0;
      let deepest = 0;
      for (const u of kernel.uops) {
        if (u.op === "LOOP") deepest = Math.max(deepest, ++depth);
        else if (u.op === "ENDLOOP") depth--;
      }
      return { ops: kernel.ops, depth: deepest };
    });
}
export const totalOps = (...ts: readonly Tensor[]): number => costs(...ts).reduce((n, c) => n + c.ops, 0);

/** Equal up to the rounding of float32 sums. */
export function worst(a: ArrayLike<number | bigint>, b: ArrayLike<number | bigint>): number {
  if (a.length !== b.length) return Infinity;
  let most = 0;
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [Number(a[i]), Number(b[i])];
    if (Object.is(x, y)) continue;
    const off = Math.abs(x - y) / Math.max(1, Math.abs(y));
    if (Number.isNaN(off)) return Infinity;
    most = Math.max(most, off);
  }
  return most;
}
