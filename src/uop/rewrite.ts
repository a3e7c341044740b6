// The rewrite engine: named rules (pattern -> replacement) over the UOp graph. `rewriteOne` tries a table on
// one node, `graphRewrite` applies a table everywhere, sources first, until nothing matches. What the rules
// say is in fold.ts (always on) and in the tables of codegen/passes.

import type { AluOp } from "../ops.ts";
import type { UOpArena } from "./arena.ts";
import { UOpMap } from "./map.ts";
import type { Alu, Const, Expr, Memory, UOp, UOpName } from "./node.ts";

/** What a pattern captures: a node for each name. */
type Captures = Readonly<Record<string, UOp>>;

/** Matches a node: its op, its function, its sources; `as` captures it, `where` has the last word. */
export interface Pattern<C = unknown> {
  readonly op?: UOpName;
  readonly fn?: AluOp;
  readonly srcs?: readonly Pattern[];
  readonly as?: string;
  readonly where?: (u: UOp) => boolean;
  /** two sources, in either order */
  readonly commutative?: boolean;
  /** at least one source is a constant */
  readonly hasConst?: boolean;
  /** for the type checker only: the captures of the pattern and of its sources */
  readonly captures?: C;
}
type CapturesOf<Ps extends readonly Pattern[]> = Ps extends readonly [
  Pattern<infer C>,
  ...infer Rest extends readonly Pattern[],
]
  ? C & CapturesOf<Rest>
  : unknown;

export interface Rule {
  readonly name: string;
  readonly pattern: Pattern;
  /** undefined: it does not apply after all */
  readonly replace: (found: Captures, arena: UOpArena, root: UOp) => UOp | undefined;
}

/** `replace` gets what the pattern captured, by name and with its type. `root`: the node that the pattern matched. */
export function rule<C, R extends UOp = Expr>(
  name: string,
  pattern: Pattern<C>,
  replace: (found: C, arena: UOpArena, root: R) => UOp | undefined,
): Rule {
  return { name, pattern, replace: replace as unknown as Rule["replace"] };
}

/** Any expression. A name that occurs twice in a pattern is the same node at both places. */
export const any = <N extends string>(
  as: N,
  where?: (u: Expr) => boolean,
): Pattern<{ readonly [K in N]: Expr }> => ({ as, ...condition(where) });
export const memory = <N extends string>(as: N): Pattern<{ readonly [K in N]: Memory }> => ({ as });
export const constant = <N extends string>(
  as: N,
  where?: (u: Const) => boolean,
): Pattern<{ readonly [K in N]: Const }> => ({ op: "CONST", as, ...condition(where) });
export const alu = <const Ps extends readonly Pattern[]>(
  fn: AluOp,
  ...srcs: Ps
): Pattern<CapturesOf<Ps>> => ({
  op: "ALU",
  fn,
  srcs,
});
/** Both orders of two sources. */
export const either = <A, B>(fn: AluOp, a: Pattern<A>, b: Pattern<B>): Pattern<A & B> => ({
  op: "ALU",
  fn,
  srcs: [a, b],
  commutative: true,
});
/** A node of another op by its sources, in their order. */
export const node = <const Ps extends readonly Pattern[]>(
  op: UOpName,
  srcs: Ps,
  where?: (u: Expr) => boolean,
): Pattern<CapturesOf<Ps>> => ({ op, srcs, ...condition(where) });
/** Any ALU that the condition accepts. */
export const anyAlu = (where: (u: Alu) => boolean, hasConst = false): Pattern => ({
  op: "ALU",
  ...condition(where),
  hasConst,
});

/** The op of the pattern has been compared by the time its condition is asked. */
const condition = <U extends UOp>(where: ((u: U) => boolean) | undefined): Pick<Pattern, "where"> =>
  where === undefined ? {} : { where: where as (u: UOp) => boolean };

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
    const root = u.op === "ALU" ? u.fn : u.op;
    let list = known.get(root);
    if (list === undefined) {
      list = this.rules.filter(({ pattern: p }) => {
        if ((p.op ?? u.op) !== u.op || (p.fn ?? u.arg) !== u.arg) return false;
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
  if (p.fn !== undefined && p.fn !== u.arg) return false;
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
    if (match(ps[i]!, us[swapped ? 1 - i : i]!)) continue;
    count = before;
    return false;
  }
  return true;
}

/** The replacement by the first rule that applies, or undefined. */
export function rewriteOne(u: UOp, table: RuleTable, arena: UOpArena): UOp | undefined {
  const rules = table.for(u);
  for (const r of rules) {
    count = 0;
    if (!match(r.pattern, u)) continue;
    const found: Record<string, UOp> = {};
    for (let n = 0; n < count; n++) found[names[n]!] = nodes[n]!;
    const next = r.replace(found, arena, u);
    if (next !== undefined && next !== u) return next;
  }
  return undefined;
}

/** The sources of a node, each replaced by `by` of it; undefined where that changes nothing. */
export function changedSrcs(u: UOp, by: (s: UOp) => UOp): UOp[] | undefined {
  let changed: UOp[] | undefined;
  for (let i = 0; i < u.srcs.length; i++) {
    const s = u.srcs[i]!;
    const next = by(s);
    if (next !== s) changed ??= u.srcs.slice(0, i);
    changed?.push(next);
  }
  return changed;
}

/** Rewrites the whole graph below `root`, sources first; a replacement is rewritten again. */
export function graphRewrite<U extends UOp>(root: U, table: RuleTable, arena: UOpArena): U {
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
  return visit(root) as U;
}

/** One pass, sources first; a replacement is not looked at again. */
export function mapGraph<U extends UOp>(
  root: U,
  arena: UOpArena,
  change: (u: UOp, arena: UOpArena) => UOp | undefined,
): U {
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
  return now(root) as U;
}
