// Kernels that differ only in float constants are lowered once. The first one of a structure is a template:
// its constants were parameters while it was lowered (uop/parameter.ts), so it is known which of them nothing
// has looked at. Another kernel of the same structure is its list with other constants in their places: the
// one that lowering would have made.

import type { UOpArena } from "../uop/arena.ts";
import { UOpGraph } from "../uop/list.ts";
import { copyUOp, makeUOp, settle, type UOp } from "../uop/node.ts";
import { Parameter } from "../uop/parameter.ts";

/** The float constants of a lowered kernel. */
export interface FloatConstants {
  /** the nodes whose value may be another, with the one they have */
  readonly free: ReadonlyMap<UOp, number>;
  /** all other values: a free constant that had one of them would be the same node */
  readonly taken: ReadonlySet<number>;
}

/** Sorts the float constants of a lowered kernel; what was a parameter gets its value. */
export function settleConstants(arena: UOpArena): FloatConstants {
  const free = new Map<UOp, number>();
  const taken = new Set<number>();
  const all = arena.floats();
  for (const u of all) {
    if (u.arg instanceof Parameter && u.arg.isFree) free.set(u, u.arg.key);
    else taken.add(Number(u.value));
  }
  for (const u of all) settle(u);
  return { free, taken };
}

/** What a template is: a list, and its constants. */
interface Listed {
  readonly uops: UOpGraph;
  readonly floats: FloatConstants;
}
/**
 * The list of a kernel whose AST has other constants; undefined: lowering it gives another list. Constants
 * that were equal must still be, those that were not must not, and no other than a free one may change.
 */
export function withConstants(
  { uops, floats }: Listed,
  before: readonly number[],
  now: readonly number[],
): Listed | undefined {
  const values = newValues(floats, before, now);
  if (values === undefined) return undefined;
  const made = new UOpGraph();
  const free = new Map<UOp, number>();
  const copyOf = (u: UOp): UOp => made.uops[uops.indexOf(u)]!;
  for (const u of uops) {
    const value = floats.free.get(u);
    if (value === undefined) made.push(copyUOp(u, u.srcs.map(copyOf)));
    else {
      const changed = values.get(value) ?? value;
      const constant = makeUOp("CONST", u.dtype, [], changed);
      free.set(constant, changed);
      made.push(constant);
    }
  }
  return { uops: made, floats: { free, taken: floats.taken } };
}

/** What each free constant becomes. */
function newValues(
  { free, taken }: FloatConstants,
  before: readonly number[],
  now: readonly number[],
): ReadonlyMap<number, number> | undefined {
  const isFree = new Set(free.values());
  const values = new Map<number, number>();
  const used = new Set(taken);
  for (let i = 0; i < before.length; i++) {
    const [from, to] = [before[i]!, now[i]!];
    const known = isFree.has(from) ? values.get(from) : from;
    if (known === to) continue;
    if (known !== undefined || used.has(to) || Math.sign(from) !== Math.sign(to)) return undefined;
    values.set(from, to);
    used.add(to);
  }
  return values;
}
