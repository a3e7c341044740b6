// The rewrite engine: named rules (pattern -> replacement) over the UOp graph. `rewriteOne` tries a table on
// one node, `graphRewrite` applies a table everywhere, sources first, until nothing matches. What the rules
// say is in fold.ts (always on) and decompose.ts (what a target lacks).

import { toposort } from "../helpers.ts";
import type { AluOp } from "../ops.ts";
import type { UOp, UOpArena, UOpName } from "./uops.ts";

/** Matches a node: its op, its ALU op, its sources; `as` captures it, `where` has the last word. */
export interface Pattern {
  readonly op?: UOpName;
  readonly alu?: AluOp;
  readonly srcs?: readonly Pattern[];
  readonly as?: string;
  readonly where?: (u: UOp) => boolean;
  /** two sources, in either order */
  readonly commutative?: boolean;
}
export type Found = Readonly<Record<string, UOp>>;

export interface Rule {
  readonly name: string;
  readonly pattern: Pattern;
  /** undefined: it does not apply after all */
  readonly replace: (found: Found, arena: UOpArena, root: UOp) => UOp | undefined;
}

export const rule = (name: string, pattern: Pattern, replace: Rule["replace"]): Rule => ({
  name,
  pattern,
  replace,
});
export const any = (as: string, where?: (u: UOp) => boolean): Pattern => (where ? { as, where } : { as });
export const alu = (op: AluOp, ...srcs: readonly Pattern[]): Pattern => ({ op: "ALU", alu: op, srcs });
/** Both orders of two sources. */
export const either = (op: AluOp, a: Pattern, b: Pattern): Pattern => ({
  ...alu(op, a, b),
  commutative: true,
});
export const constant = (as: string, where?: (u: UOp<"CONST">) => boolean): Pattern => ({
  op: "CONST",
  as,
  ...(where ? { where: where as (u: UOp) => boolean } : {}),
});

/** Rules by the op (and ALU op) of their root, so that a node meets only those that can match. */
export class RuleTable {
  readonly rules: readonly Rule[];
  readonly #byRoot = new Map<string, readonly Rule[]>();

  constructor(rules: readonly Rule[]) {
    this.rules = rules;
  }
  for(u: UOp): readonly Rule[] {
    const key = u.op === "ALU" ? u.arg : `.${u.op}`;
    let list = this.#byRoot.get(key);
    if (list === undefined) {
      list = this.rules.filter((r) => (r.pattern.op ?? u.op) === u.op && (r.pattern.alu ?? u.arg) === u.arg);
      this.#byRoot.set(key, list);
    }
    return list;
  }
}

function match(p: Pattern, u: UOp, found: Record<string, UOp>): boolean {
  if (p.op !== undefined && p.op !== u.op) return false;
  if (p.alu !== undefined && p.alu !== u.arg) return false;
  if (p.where !== undefined && !p.where(u)) return false;
  if (p.as !== undefined) {
    const before = found[p.as];
    if (before !== undefined && before !== u) return false;
    found[p.as] = u;
  }
  if (p.srcs === undefined) return true;
  if (p.srcs.length !== u.srcs.length) return false;
  if (matchAll(p.srcs, u.srcs, found)) return true;
  return p.commutative === true && matchAll(p.srcs, [u.srcs[1] as UOp, u.srcs[0] as UOp], found);
}

function matchAll(ps: readonly Pattern[], us: readonly UOp[], found: Record<string, UOp>): boolean {
  const trial = { ...found };
  if (!ps.every((p, i) => match(p, us[i] as UOp, trial))) return false;
  Object.assign(found, trial);
  return true;
}

/** The replacement by the first rule that applies, or undefined. */
export function rewriteOne(u: UOp, table: RuleTable, arena: UOpArena): UOp | undefined {
  for (const r of table.for(u)) {
    const found: Record<string, UOp> = {};
    if (!match(r.pattern, u, found)) continue;
    const next = r.replace(found, arena, u);
    if (next !== undefined && next !== u) return next;
  }
  return undefined;
}

/** Rewrites the whole graph below `root`, sources first; a replacement is rewritten again. */
export function graphRewrite(root: UOp, table: RuleTable, arena: UOpArena): UOp {
  const done = new Map<UOp, UOp>();
  const visit = (u: UOp): UOp => {
    const known = done.get(u);
    if (known !== undefined) return known;
    const srcs = u.srcs.map(visit);
    const same = srcs.every((s, i) => s === u.srcs[i]);
    const rebuilt = same ? u : arena.withSrcs(u, srcs);
    const next = rewriteOne(rebuilt, table, arena);
    const result = next === undefined ? rebuilt : visit(next);
    done.set(u, result);
    return result;
  };
  return visit(root);
}

/** One pass, sources first; a replacement is not looked at again. */
export function mapGraph(
  root: UOp,
  arena: UOpArena,
  change: (u: UOp, arena: UOpArena) => UOp | undefined,
): UOp {
  const done = new Map<UOp, UOp>();
  for (const u of toposort([root], (x) => x.srcs)) {
    const srcs = u.srcs.map((s) => done.get(s) as UOp);
    const rebuilt = srcs.every((s, i) => s === u.srcs[i]) ? u : arena.withSrcs(u, srcs);
    done.set(u, change(rebuilt, arena) ?? rebuilt);
  }
  return done.get(root) as UOp;
}
