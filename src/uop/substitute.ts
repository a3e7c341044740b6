// Substitution: a graph with other nodes in the place of some. The one way to replace ranges by
// other indexes, values by loads.

import type { UOpArena } from "./arena.ts";
import { UOpMap } from "./map.ts";
import type { Expr, UOp } from "./node.ts";
import { changedSrcs } from "./rewrite.ts";

export interface SubstituteOptions {
  /**
   * what a replacement is made of is replaced too; otherwise replacements are final,
   * and may mention what they replace
   */
  readonly nested?: boolean;
  /** where this is false the replacements have no meaning: loads that depend on them are gated by it */
  readonly where?: Expr;
}

export function substitute<U extends UOp>(
  root: U,
  by: ReadonlyMap<UOp, UOp>,
  arena: UOpArena,
  { nested = false, where }: SubstituteOptions = {},
): U extends Expr ? Expr : U {
  const done = new UOpMap<UOp>(arena);
  const visit = (u: UOp): UOp => {
    const known = done.get(u);
    if (known !== undefined) return known;
    const made = replaced(u);
    done.set(u, made);
    return made;
  };
  const replaced = (u: UOp): UOp => {
    const other = by.get(u);
    if (other !== undefined) return nested ? visit(other) : other;
    // an array was filled before, in loops of its own
    if (where !== undefined && u.op === "STAGE") return u;
    const srcs = changedSrcs(u, visit);
    if (srcs === undefined) return u;
    const made = arena.withSrcs(u, srcs);
    return where !== undefined && made.op === "LOAD" ? gated(made, where, arena) : made;
  };
  return visit(root) as U extends Expr ? Expr : U;
}

function gated(load: UOp<"LOAD">, where: Expr, arena: UOpArena): Expr {
  const { buffer, index, otherwise } = load;
  const gate = load.gate === undefined ? where : arena.alu("AND", load.gate, where);
  return arena.load(buffer, index, { gate, otherwise });
}
