// Substitution: replaces nodes of a graph by others, such as ranges by other indexes, or values by loads.

import type { UOpArena } from "./arena.ts";
import { UOpMap } from "./map.ts";
import type { Expr, UOp } from "./node.ts";
import { changedSrcs } from "./rewrite.ts";

export interface SubstituteOptions {
  /** replacements are substituted too; otherwise they are final, and may mention what they replace */
  readonly nested?: boolean;
  /** where this is false the replacements are meaningless: loads that depend on them are gated by it */
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
    // an array is filled before, in its own loops
    if (where !== undefined && u.op === "STAGE") return u;
    const srcs = changedSrcs(u, visit);
    if (srcs === undefined) return u;
    const made = arena.withSrcs(u, srcs);
    return where !== undefined && made.op === "LOAD" ? gated(made, where, arena) : made;
  };
  return visit(root) as U extends Expr ? Expr : U;
}

function gated(load: UOp<"LOAD">, where: Expr, arena: UOpArena): Expr {
  const { buffer, index, otherwise, dtype } = load;
  const gate = load.gate === undefined ? where : arena.alu("AND", load.gate, where);
  return arena.load(buffer, index, { gate, otherwise, lanes: dtype.count });
}
