// The rewrite engine: named rules (pattern -> replacement) over the UOp graph. `rewriteOne` tries a table on
// one node, `graphRewrite` applies a table everywhere, sources first, until nothing matches. What the rules
// say is in fold.ts (always on) and decompose.ts (what a target lacks).

import type { AluOp } from "../ops.ts";
import { UOpMap } from "./map.ts";
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
  /** at least one source is a constant */
  readonly hasConst?: boolean;
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

const isConst = (x: UOp | Pattern): boolean => x.op === "CONST";

/** Rules by their root: its op (and ALU op), with or without a constant source. A node meets those that can match. */
export class RuleTable {
  readonly rules: readonly Rule[];
  readonly #plain = new Map<UOpName | AluOp, readonly Rule[]>();
  readonly #withConst = new Map<UOpName | AluOp, readonly Rule[]>();

  constructor(rules: readonly Rule[]) {
    this.rules = rules;
  }
  for(u: UOp): readonly Rule[] {
    const hasConst = u.srcs.some(isConst);
    const known = hasConst ? this.#withConst : this.#plain;
    const root = u.op === "ALU" ? u.arg : u.op;
    let list = known.get(root);
    if (list === undefined) {
      list = this.rules.filter(({ pattern: p }) => {
        if ((p.op ?? u.op) !== u.op || (p.alu ?? u.arg) !== u.arg) return false;
        return hasConst || !(p.hasConst ?? p.srcs?.some(isConst) ?? false);
      });
      known.set(root, list);
    }
    return list;
  }
}

/** What the pattern being matched has captured so far; a failed attempt is undone by setting `count` back. */
const names: string[] = [];
const nodes: UOp[] = [];
let count = 0;

function match(p: Pattern, u: UOp): boolean {
  if (p.op !== undefined && p.op !== u.op) return false;
  if (p.alu !== undefined && p.alu !== u.arg) return false;
  if (p.where !== undefined && !p.where(u)) return false;
  if (p.as !== undefined && !capture(p.as, u)) return false;
  if (p.srcs === undefined) return true;
  if (p.srcs.length !== u.srcs.length) return false;
  if (matchSrcs(p.srcs, u.srcs, false)) return true;
  return p.commutative === true && matchSrcs(p.srcs, u.srcs, true);
}

function capture(name: string, node: UOp): boolean {
  for (let i = 0; i < count; i++) if (names[i] === name) return nodes[i] === node;
  names[count] = name;
  nodes[count++] = node;
  return true;
}

function matchSrcs(ps: readonly Pattern[], us: readonly UOp[], swapped: boolean): boolean {
  const before = count;
  for (let i = 0; i < ps.length; i++) {
    if (match(ps[i] as Pattern, us[swapped ? 1 - i : i] as UOp)) continue;
    count = before;
    return false;
  }
  return true;
}

/** The replacement by the first rule that applies, or undefined. */
export function rewriteOne(u: UOp, table: RuleTable, arena: UOpArena): UOp | undefined {
  const rules = table.for(u);
  for (let i = 0; i < rules.length; i++) {
    const r = rules[i] as Rule;
    count = 0;
    if (!match(r.pattern, u)) continue;
    const found: Record<string, UOp> = {};
    for (let n = 0; n < count; n++) found[names[n] as string] = nodes[n] as UOp;
    const next = r.replace(found, arena, u);
    if (next !== undefined && next !== u) return next;
  }
  return undefined;
}

/** The sources of a node, each replaced by `by` of it; undefined where that changes nothing. */
export function changedSrcs(u: UOp, by: (s: UOp) => UOp): UOp[] | undefined {
  let changed: UOp[] | undefined;
  for (let i = 0; i < u.srcs.length; i++) {
    const s = u.srcs[i] as UOp;
    const next = by(s);
    if (next !== s) changed ??= u.srcs.slice(0, i);
    changed?.push(next);
  }
  return changed;
}

/** Rewrites the whole graph below `root`, sources first; a replacement is rewritten again. */
export function graphRewrite(root: UOp, table: RuleTable, arena: UOpArena): UOp {
  const done = new UOpMap<UOp>(arena);
  const visit = (u: UOp): UOp => {
    const known = done.get(u);
    if (known !== undefined) return known;
    const srcs = changedSrcs(u, visit);
    const rebuilt = srcs === undefined ? u : arena.withSrcs(u, srcs);
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
  // most passes change few nodes, or none
  let changed: UOpMap<UOp> | undefined;
  const now = (u: UOp): UOp => changed?.get(u) ?? u;
  for (const u of arena.nodes(root)) {
    const srcs = changed === undefined ? undefined : changedSrcs(u, now);
    const rebuilt = srcs === undefined ? u : arena.withSrcs(u, srcs);
    const next = change(rebuilt, arena) ?? rebuilt;
    if (next === u) continue;
    changed ??= new UOpMap(arena);
    changed.set(u, next);
  }
  return now(root);
}
