// A sum in which one term is chosen by its number is that term: sum over r of (r == e ? f(r) : 0) is f(e), where e is in
// the range. This turns gathers, embeddings and batches, which are written as comparisons with ARANGE, into indexed
// loads. Between lower and decompose.

import { dtypes } from "../../dtype.ts";
import { toposort } from "../../helpers.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { type UOp, type UOpArena, valueType } from "../../uop/uops.ts";

export function pickOneHot(sink: UOp, arena: UOpArena): UOp {
  return mapGraph(sink, arena, (u) => {
    let found: UOp | undefined;
    for (let next = pick(u, arena); next !== undefined; next = pick(next, arena)) found = next;
    return found;
  });
}

/** A REDUCE with one range less, or what it reduced where that was the last. */
function pick(u: UOp, a: UOpArena): UOp | undefined {
  if (u.op !== "REDUCE" || u.arg !== "SUM") return undefined;
  const [body, ...ranges] = u.srcs as readonly [UOp, ...UOp[]];
  const [condition, value, otherwise] = body.srcs;
  if (body.op !== "ALU" || body.arg !== "WHERE" || condition === undefined || value === undefined)
    return undefined;
  if (otherwise?.op !== "CONST" || Number(otherwise.arg) !== 0) return undefined;
  const parts = conjuncts(condition);
  for (const part of parts) {
    const choice = chosen(part, ranges);
    if (choice === undefined) continue;
    const { range, index } = choice;
    const zero = a.constant(valueType(index), 0);
    const size = a.cast(range.srcs[1] as UOp, valueType(index));
    const negative = a.alu("CMPLT", index, zero);
    const there = a.alu(
      "AND",
      a.alu("CMPLT", index, size),
      a.alu("XOR", negative, a.constant(dtypes.bool, 1)),
    );
    const at = a.cast(index, dtypes.int32);
    const rest = parts.filter((p) => p !== part).map((p) => substitute(p, range, at, there, a));
    const gate = rest.reduce((x, y) => a.alu("AND", x, y), there);
    const term = a.alu("WHERE", gate, substitute(value, range, at, there, a), otherwise);
    const left = ranges.filter((r) => r !== range);
    return left.length === 0 ? term : a.make("REDUCE", u.dtype, [term, ...left], "SUM");
  }
  return undefined;
}

/** The conditions that an AND joins. */
function conjuncts(u: UOp): UOp[] {
  if (u.op !== "ALU" || u.arg !== "AND" || valueType(u).kind !== "bool") return [u];
  return u.srcs.flatMap(conjuncts);
}

/** `range == index`, with an index that does not depend on the range. */
function chosen(u: UOp, ranges: readonly UOp[]): { range: UOp; index: UOp } | undefined {
  if (u.op !== "ALU" || u.arg !== "CMPEQ") return undefined;
  const [x, y] = u.srcs as readonly [UOp, UOp];
  for (const [side, index] of [
    [x, y],
    [y, x],
  ] as const) {
    const range = side.op === "CAST" ? (side.srcs[0] as UOp) : side;
    if (range.op !== "RANGE" || !ranges.includes(range) || !valueType(index).isInt) continue;
    if (!toposort([index], (n) => n.srcs).includes(range)) return { range, index };
  }
  return undefined;
}

/** The expression with `at` for the range; what it loads is gated, since `at` may lie outside. */
export function substitute(root: UOp, range: UOp, at: UOp, there: UOp, a: UOpArena): UOp {
  const done = new Map<UOp, UOp>();
  // an array was filled before, in loops of its own
  for (const u of toposort([root], (x) => (x.op === "STAGE" ? [] : x.srcs))) {
    const srcs = u.op === "STAGE" ? u.srcs : u.srcs.map((s) => done.get(s) as UOp);
    const changed = srcs.some((s, i) => s !== u.srcs[i]);
    if (u === range) done.set(u, at);
    else if (!changed) done.set(u, u);
    else if (u.op === "LOAD") {
      const [gate, alt] = srcs.slice(2);
      const both = gate === undefined ? there : a.alu("AND", gate, there);
      const gated = [...srcs.slice(0, 2), both, alt ?? a.constant(valueType(u), 0)];
      done.set(u, a.make("LOAD", u.dtype, gated, undefined));
    } else done.set(u, a.withSrcs(u, srcs));
  }
  return done.get(root) as UOp;
}
