// Patterns: what a rule looks for in the graph. They are built from the functions below, which read like the
// expression they match, and carry the types of what they capture and of the node that they match.

import type { AluOp, ReduceOp } from "../ops.ts";
import type { Alu, Const, Expr, Memory, Reduce, UOp, UOpName } from "./node.ts";

/** Matches a node: its op, its function, its sources; `as` captures it, `where` has the last word. */
export interface Pattern<C = unknown, R = unknown> {
  readonly op?: UOpName;
  readonly fn?: AluOp | ReduceOp;
  readonly srcs?: readonly Pattern[];
  /** more sources may follow */
  readonly more?: boolean;
  readonly as?: string;
  readonly where?: (u: UOp) => boolean;
  /** two sources, in either order */
  readonly commutative?: boolean;
  /** at least one source is a constant */
  readonly hasConst?: boolean;
  /**
   * for the type checker only: the captures of the pattern and of its sources, and the node that it matches
   */
  readonly captures?: C;
  readonly matches?: R;
}
type Capture<N extends string, U extends UOp> = Pattern<{ readonly [K in N]: U }, U>;
type CapturesOf<Ps extends readonly Pattern[]> = Ps extends readonly [
  Pattern<infer C>,
  ...infer Rest extends readonly Pattern[],
]
  ? C & CapturesOf<Rest>
  : unknown;

/** Every pattern has every field, in one order: the engine's inline caches see one shape when they match. */
const made = <C, R>(parts: Pattern): Pattern<C, R> => {
  const { op, fn, srcs, more, as, where, commutative, hasConst } = parts;
  return { op, fn, srcs, more, as, where, commutative, hasConst };
};

/** Any expression. A name that occurs twice in a pattern is the same node at both places. */
export const any = <N extends string>(as: N, where?: (u: Expr) => boolean): Capture<N, Expr> =>
  made({ as, where: condition(where) });
export const memory = <N extends string>(as: N): Capture<N, Memory> => made({ as });
export const constant = <N extends string>(as: N, where?: (u: Const) => boolean): Capture<N, Const> =>
  made({ op: "CONST", as, where: condition(where) });
export const alu = <F extends AluOp, const Ps extends readonly Pattern[]>(
  fn: F,
  ...srcs: Ps
): Pattern<CapturesOf<Ps>, Alu<F>> => made({ op: "ALU", fn, srcs });
/** Both orders of two sources. */
export const either = <F extends AluOp, A, B>(fn: F, a: Pattern<A>, b: Pattern<B>): Pattern<A & B, Alu<F>> =>
  made({ op: "ALU", fn, srcs: [a, b], commutative: true });
/** Any ALU that the condition accepts. */
export const anyAlu = (where: (u: Alu) => boolean, hasConst = false): Pattern<unknown, Alu> =>
  made({ op: "ALU", where: condition(where), hasConst });
/** A reduce of this body, over any ranges. */
export const reduce = <C>(fn: ReduceOp, body: Pattern<C>): Pattern<C, Reduce> =>
  made({ op: "REDUCE", fn, srcs: [body], more: true });
/** A node of another op by its sources, in their order. */
export const node = <K extends UOpName, const Ps extends readonly Pattern[]>(
  op: K,
  srcs: Ps,
  where?: (u: UOp<K>) => boolean,
): Pattern<CapturesOf<Ps>, UOp<K>> => made({ op, srcs, where: condition(where) });
/** A node of this op, whatever its sources. */
export const op = <K extends UOpName>(name: K, where?: (u: UOp<K>) => boolean): Pattern<unknown, UOp<K>> =>
  made({ op: name, where: condition(where) });
/** Any node that the condition accepts. */
export const anything = <R extends UOp>(where: (u: UOp) => u is R): Pattern<unknown, R> => made({ where });
/** The pattern under a condition on the node that it matches. */
export const when = <C, R>(p: Pattern<C, R>, where: (u: R) => boolean): Pattern<C, R> => ({
  ...p,
  where: (u) => (p.where?.(u) ?? true) && (where as (u: unknown) => boolean)(u),
});

/** The op of the pattern has been compared by the time its condition is asked. */
const condition = <U extends UOp>(where: ((u: U) => boolean) | undefined): Pattern["where"] =>
  where as Pattern["where"];

/** What the pattern being matched has captured so far; a failed attempt is undone by setting `count` back. */
const names: string[] = [];
const nodes: UOp[] = [];
let count = 0;

/**
 * What the pattern captured in the node, or undefined where it does not match. `now`: what a capture became.
 */
export function capturesOf(p: Pattern, u: UOp, now?: (u: UOp) => UOp): Record<string, UOp> | undefined {
  count = 0;
  if (!match(p, u)) return undefined;
  const found: Record<string, UOp> = {};
  for (let n = 0; n < count; n++) found[names[n]!] = now === undefined ? nodes[n]! : now(nodes[n]!);
  return found;
}

function match(p: Pattern, u: UOp): boolean {
  if (p.op !== undefined && p.op !== u.op) return false;
  if (p.fn !== undefined && p.fn !== u.arg) return false;
  if (p.where !== undefined && !p.where(u)) return false;
  if (p.as !== undefined && !capture(p.as, u)) return false;
  if (p.srcs === undefined) return true;
  if (p.srcs.length !== u.srcs.length && !(p.more === true && p.srcs.length < u.srcs.length)) return false;
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
