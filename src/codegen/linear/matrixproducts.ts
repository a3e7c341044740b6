// In which order products of matrices of a reduction are read and multiplied, on targets with tensor cores.
// In go the reductions of a loop, out come the new values of their accumulators.

import { range } from "../../helpers.ts";
import type { Expr, UOp } from "../../uop/node.ts";
import { type Accumulation, type Assign, addTerm, type Placer, termsOf } from "./accumulate.ts";
import type { SoftwarePipeline } from "./pipeline.ts";

/**
 * Products of matrices are emitted one unrolled step at a time. The operands of the next step are read before
 * this one is multiplied, and in the last step those of the next iteration: reads overlap with products.
 * undefined: there are no such products.
 */
export function matrixProducts(
  all: readonly Accumulation[],
  placer: Placer,
  pipeline: SoftwarePipeline | undefined,
  assign: Assign,
): UOp[] | undefined {
  if (placer.target.gpu === undefined) return undefined;
  const work = all.map((a) => ({ ...a, terms: termsOf(a.reduce, placer), sum: a.accumulator as Expr }));
  if (!work.some(({ terms }) => terms.some((t) => t.op === "WMMA"))) return undefined;
  const lanes = Math.max(...work.map((w) => w.terms.length));
  const read = (lane: number): void => {
    for (const { terms } of work) {
      const t = terms[lane];
      if (t?.op !== "WMMA") continue;
      placer.place(t.a);
      placer.place(t.b);
    }
  };
  read(0);
  for (const lane of range(lanes)) {
    read(lane + 1);
    if (lane === 0) pipeline?.copyAhead();
    if (lane === lanes - 1) pipeline?.readNext();
    for (const s of work) {
      const t = s.terms[lane];
      if (t !== undefined) s.sum = addTerm(s.reduce, t, s.sum, placer);
    }
  }
  pipeline?.finish();
  return work.map(({ accumulator, sum }) => assign(accumulator, sum));
}
