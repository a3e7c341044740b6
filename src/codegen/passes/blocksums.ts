// A long sum of floats is split into blocks, each with an accumulator of its own: one running float32 total
// loses digits and stops growing at 2^24. Between pickOneHot and decompose: a sum that picks one term has
// become a load by then.

import { dtypes } from "../../dtype.ts";
import { getOrMake, toposort } from "../../helpers.ts";
import { add, idiv } from "../../shape/symbolic.ts";
import type { UOpArena } from "../../uop/arena.ts";
import type { Expr, Range, Sink, UOp } from "../../uop/node.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { substitute } from "../../uop/substitute.ts";
import { tripCount } from "../analysis/loops.ts";
import type { KernelGraph } from "../lower/lower.ts";

/** Up to this many floats go to one accumulator; longer sums use blocks of about sqrt(n). */
export const MAX_RUN = 4096;

/** The ranges outside the blocks, those inside, and the range that was split in two. */
interface Blocks {
  readonly outer: readonly Range[];
  readonly inner: readonly Range[];
  readonly split: SplitRange | undefined;
}
/** What the index of a split range became. */
interface SplitRange {
  readonly range: Range;
  readonly index: Expr;
  /** false beyond the end, in a last block that is not full */
  readonly isInRange: Expr;
}

export function blockSums({ sink, arena }: KernelGraph): Sink {
  const isGroup = (r: Range): boolean => r.axis.kind === "group";
  // sums over the same ranges share their loops, so they must be split in the same way
  const known = new Map<string, Blocks>();
  return mapGraph(sink, arena, (u) => {
    if (u.op !== "REDUCE" || u.fn !== "SUM" || !u.dtype.isFloat) return undefined;
    // lanes of a GROUP have accumulators of their own already
    const groups = u.ranges.filter(isGroup);
    const ranges = u.ranges.filter((r) => !isGroup(r));
    const total = ranges.reduce((n, r) => n * tripCount(r), 1);
    if (total <= MAX_RUN) return undefined;
    // its loop already drives the copies to shared memory
    if (toposort<UOp>([u.body], (x) => x.srcs).some((x) => x.op === "TILE" || x.op === "WMMA"))
      return undefined;
    const key = ranges.map((r) => r.axis.id).join();
    const { outer, inner, split } = getOrMake(known, key, () => cut(ranges, total, arena));
    let { body } = u;
    if (split !== undefined) {
      const { range, index, isInRange } = split;
      const inside = substitute(body, new Map([[range, index]]), arena, { where: isInRange });
      body = arena.alu("WHERE", isInRange, inside, arena.constant(u.dtype, 0));
    }
    // the lanes of a group are combined once, after all blocks
    if (outer.length === 0) return arena.reduce("SUM", body, [...inner, ...groups]);
    return arena.reduce("SUM", arena.reduce("SUM", body, inner), [...outer, ...groups]);
  });
}

/** The innermost ranges make a block; the range at its edge is split. */
function cut(ranges: readonly Range[], total: number, arena: UOpArena): Blocks {
  let room = Math.min(MAX_RUN, 2 ** Math.round(Math.log2(total) / 2));
  const outer = [...ranges];
  const inner: Range[] = [];
  for (let r = outer.pop(); r !== undefined; r = outer.pop()) {
    const size = tripCount(r);
    if (size > room) {
      if (room < 2) return { outer: [...outer, r], inner, split: undefined };
      const { blocks, part, split } = divide(r, room, arena);
      return { outer: [...outer, blocks], inner: [part, ...inner], split };
    }
    inner.unshift(r);
    room = Math.floor(room / size);
  }
  return { outer, inner, split: undefined };
}

/** One range as two: a divisor of its size where there is one, else the last block is not full. */
function divide(range: Range, most: number, a: UOpArena): { blocks: Range; part: Range; split: SplitRange } {
  const { end } = range;
  const { of } = range.axis;
  const size = end.op === "CONST" ? Number(end.value) : undefined;
  let block = most;
  while (size !== undefined && block > most / 8 && size % block !== 0) block--;
  const isFull = size !== undefined && size % block === 0;
  if (!isFull) block = most;
  const int = (n: number): Expr => a.constant(end.dtype, n);
  const count = a.alu("IDIV", a.alu("ADD", end, int(block - 1)), int(block));
  const blocks = a.range({ size: idiv(add(range.axis.size, block - 1), block), kind: "reduce", of }, count);
  const part = a.range({ size: block, kind: "reduce", of });
  const index = a.alu("ADD", a.alu("MUL", blocks, int(block)), a.cast(part, end.dtype));
  const isInRange = isFull ? a.constant(dtypes.bool, 1) : a.alu("CMPLT", index, end);
  return { blocks, part, split: { range, index, isInRange } };
}
