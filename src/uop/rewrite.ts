// The rewrite engine: named rules (pattern -> replacement) over the UOp graph, and the ways to apply a table
// of them: to one node (`rewriteOne`), to a graph until nothing matches (`graphRewrite`), to each node of a
// graph (`rewriteEach`), to a graph whose types change (`translate`). What the rules say is in fold.ts
// (always on) and in the tables of codegen/passes.

import type { AluOp, ReduceOp } from "../ops.ts";
import type { Made, UOpArena } from "./arena.ts";
import { UOpMap } from "./map.ts";
import type { UOp, UOpName } from "./node.ts";
import { capturesOf, type Pattern } from "./pattern.ts";

/** What a node of the graph became. */
export type Now = <U extends UOp>(u: U) => Made<U["op"]>;

export interface Rule {
  readonly name: string;
  readonly pattern: Pattern;
  /** undefined: it does not apply after all */
  readonly replace: (found: Captures, arena: UOpArena, root: UOp, now: Now) => UOp | undefined;
}
/** What a pattern captures: a node for each name. */
type Captures = Readonly<Record<string, UOp>>;

/**
 * `replace` gets what the pattern captured, by name and with its type. `root`: the node that the pattern
 * matched. `now`: for `translate`, what a source of the root became.
 */
export function rule<C, R>(
  name: string,
  pattern: Pattern<C, R>,
  replace: (found: C, arena: UOpArena, root: R, now: Now) => UOp | undefined,
): Rule {
  return { name, pattern, replace: replace as unknown as Rule["replace"] };
}

const isConst = (x: UOp | Pattern): boolean => x.op === "CONST";

const NO_RULES: readonly Rule[] = [];
/**
 * Rules by their root: its op or function, with or without a constant source. A node meets those that can
 * match.
 */
export class RuleTable {
  readonly rules: readonly Rule[];
  /** the ops that some rule has at its root; undefined: one of them matches any */
  readonly #roots: ReadonlySet<UOpName> | undefined;
  readonly #plain = new Map<UOpName | AluOp | ReduceOp, readonly Rule[]>();
  readonly #withConst = new Map<UOpName | AluOp | ReduceOp, readonly Rule[]>();

  constructor(rules: readonly Rule[]) {
    this.rules = rules;
    const roots = rules.flatMap((r) => r.pattern.op ?? []);
    this.#roots = roots.length === rules.length ? new Set(roots) : undefined;
  }
  /** The rules that could match. Every made node is offered, and most tables have nothing for most ops. */
  for(u: UOp): readonly Rule[] {
    if (this.#roots !== undefined && !this.#roots.has(u.op)) return NO_RULES;
    let hasConst = false;
    for (let i = 0; i < u.srcs.length; i++) if (u.srcs[i]!.op === "CONST") hasConst = true;
    const known = hasConst ? this.#withConst : this.#plain;
    const root = u.op === "ALU" || u.op === "REDUCE" ? u.arg : u.op;
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

/** The replacement by the first rule that applies, or undefined. */
export function rewriteOne(u: UOp, table: RuleTable, arena: UOpArena, now?: Now): UOp | undefined {
  const rules = table.for(u);
  for (let i = 0; i < rules.length; i++) {
    const r = rules[i]!;
    const found = capturesOf(r.pattern, u, now);
    if (found === undefined) continue;
    const next = r.replace(found, arena, u, now ?? unchanged);
    // in a translation a rule may say that a node stays, whatever became of its sources
    if (next !== undefined && (next !== u || now !== undefined)) return next;
  }
  return undefined;
}
const unchanged = ((u: UOp) => u) as Now;

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
  const nodes = arena.nodes(root);
  for (let i = 0; i < nodes.length; i++) {
    const u = nodes[i]!;
    const srcs = changed === undefined ? undefined : changedSrcs(u, now);
    const rebuilt = srcs === undefined ? u : arena.withSrcs(u, srcs);
    const next = change(rebuilt, arena) ?? rebuilt;
    if (next === u) continue;
    changed ??= new UOpMap(arena);
    changed.set(u, next);
  }
  return now(root) as U;
}

/**
 * One pass, sources first: rules apply to each node until none matches. The sources of a replacement are not
 * rewritten.
 */
export function rewriteEach<U extends UOp>(root: U, table: RuleTable, arena: UOpArena): U {
  return mapGraph(root, arena, (u) => {
    let found: UOp | undefined;
    for (let next = rewriteOne(u, table, arena); next !== undefined; next = rewriteOne(next, table, arena))
      found = next;
    return found;
  });
}

/**
 * Rebuilds a graph while some types change. Rules match the old nodes; what they capture and build is new. A
 * node that no rule matches is rebuilt from its new sources.
 */
export function translate<U extends UOp>(root: U, table: RuleTable, arena: UOpArena): Made<U["op"]> {
  const done = new UOpMap<UOp>(arena);
  const now = ((u: UOp) => done.get(u) ?? u) as Now;
  for (const u of arena.nodes(root)) {
    const next = rewriteOne(u, table, arena, now);
    const srcs = next === undefined ? changedSrcs(u, now) : undefined;
    done.set(u, next ?? (srcs === undefined ? u : arena.withSrcs(u, srcs)));
  }
  return now(root);
}
