// Linearize for scatters: a term that goes to no result takes a branch around the loops over its row, and
// inside of it nothing asks again. Comes with passes/scatter.ts.

import type { Axis, Expr, Store, UOp } from "../../uop/node.ts";
import { conjuncts } from "../passes/onehot.ts";
import { type Linearize, Linearizer } from "./linearize.ts";

class ScatterLinearizer extends Linearizer {
  /** what holds where the branch was taken */
  readonly #inside = new Set<Expr>();

  protected override storeIn(loops: readonly Axis[], stores: readonly Store[]): void {
    const gate = stores[0]?.gate;
    const isFirst = gate !== undefined && this.#inside.size === 0 && this.isReady(gate);
    const branch = isFirst ? this.emit.if(this.place(gate)) : undefined;
    for (const c of isFirst ? conjuncts(gate) : []) this.#inside.add(c);
    super.storeIn(loops, stores);
    if (branch !== undefined) this.emit.endIf(branch);
  }
  protected override sourcesHere(u: UOp, srcs: readonly UOp[]): readonly UOp[] {
    if (u.op !== "LOAD" && u.op !== "STORE") return srcs;
    const isSure = u.gate !== undefined && conjuncts(u.gate).every((c) => this.#inside.has(c));
    return isSure ? srcs.slice(0, u.op === "LOAD" ? 2 : 3) : srcs;
  }
}

export const linearizeScatter: Linearize = (lowered, opts, target) =>
  new ScatterLinearizer(lowered, opts, target).run();
