// A long sum of floats goes in blocks, each with an accumulator of its own: one running float32 total loses digits and
// stops growing at 2^24. Between pickOneHot and decompose: a sum that picks one term has become a load by then.

import { dtypes } from "../../dtype.ts";
import { getOrMake, toposort } from "../../helpers.ts";
import { mapGraph } from "../../uop/rewrite.ts";
import { largest, type UOp, type UOpArena, valueType } from "../../uop/uops.ts";
import type { Lowered } from "../lower/lower.ts";
import { substitute } from "./onehot.ts";

/** As many floats are added one by one to one accumulator; more are added in blocks of the root of their number. */
export const MAX_RUN = 4096;
/** Ranges made here are numbered from here: no kernel has as many axes of its own. */
const FIRST_ID = 1000;

/** Ranges that stay outside, ranges that go inside, and what each split range's index became. */
interface Blocks {
  readonly outer: readonly UOp[];
  readonly inner: readonly UOp[];
  readonly split: Split | undefined;
}
interface Split {
  readonly range: UOp;
  readonly at: UOp;
  /** false beyond the end, in a last block that is not full */
  readonly there: UOp;
}

export function blockSums({ sink, arena, axes }: Lowered): UOp {
  const isGroup = (r: UOp): boolean => axes[r.arg as number]?.kind === "group";
  // sums over the same ranges share their loops, so they must be cut in the same way
  const known = new Map<string, Blocks>();
  return mapGraph(sink, arena, (u) => {
    if (u.op !== "REDUCE" || u.arg !== "SUM" || !valueType(u).isFloat) return undefined;
    // its loop is the one that fetches parts of buffers
    if (toposort([u.srcs[0] as UOp], (x) => x.srcs).some((x) => x.op === "TILE" || x.op === "WMMA"))
      return undefined;
    // lanes of a GROUP have accumulators of their own already
    const groups = u.srcs.slice(1).filter(isGroup);
    const ranges = u.srcs.slice(1).filter((r) => !isGroup(r));
    const total = ranges.reduce((n, r) => n * largest(r.srcs[1] as UOp), 1);
    if (total <= MAX_RUN) return undefined;
    const key = ranges.map((r) => r.arg).join();
    const { outer, inner, split } = getOrMake(known, key, () =>
      cut(ranges, total, FIRST_ID + 2 * known.size, arena),
    );
    let body = u.srcs[0] as UOp;
    if (split !== undefined) {
      const inside = substitute(body, split.range, split.at, split.there, arena);
      body = arena.alu("WHERE", split.there, inside, arena.constant(valueType(u), 0));
    }
    // the lanes of a group meet once, after all blocks
    if (outer.length === 0) return arena.make("REDUCE", u.dtype, [body, ...inner, ...groups], "SUM");
    const block = arena.make("REDUCE", u.dtype, [body, ...inner], "SUM");
    return arena.make("REDUCE", u.dtype, [block, ...outer, ...groups], "SUM");
  });
}

/** The innermost ranges make a block; the range at its edge is split. */
function cut(ranges: readonly UOp[], total: number, id: number, arena: UOpArena): Blocks {
  let room = Math.min(MAX_RUN, 2 ** Math.round(Math.log2(total) / 2));
  const outer = [...ranges];
  const inner: UOp[] = [];
  for (let r = outer.pop(); r !== undefined; r = outer.pop()) {
    const size = largest(r.srcs[1] as UOp);
    if (size > room) {
      if (room < 2) return { outer: [...outer, r], inner, split: undefined };
      const { rest, part, split } = divide(r, room, id, arena);
      return { outer: [...outer, rest], inner: [part, ...inner], split };
    }
    inner.unshift(r);
    room = Math.floor(room / size);
  }
  return { outer, inner, split: undefined };
}

/** One range as two: a divisor of its size where there is one, else the last block is not full. */
function divide(range: UOp, most: number, id: number, a: UOpArena): { rest: UOp; part: UOp; split: Split } {
  const end = range.srcs[1] as UOp;
  const int = (n: number): UOp => a.constant(dtypes.int32, n);
  const size = end.op === "CONST" ? Number(end.arg) : undefined;
  let block = most;
  while (size !== undefined && block > most / 8 && size % block !== 0) block--;
  const even = size !== undefined && size % block === 0;
  if (!even) block = most;
  const blocks = a.alu("IDIV", a.alu("ADD", end, int(block - 1)), int(block));
  const rest = a.make("RANGE", dtypes.int32, [int(0), blocks], id);
  const part = a.make("RANGE", dtypes.int32, [int(0), int(block)], id + 1);
  const at = a.alu("ADD", a.alu("MUL", rest, int(block)), part);
  const there = even ? a.constant(dtypes.bool, 1) : a.alu("CMPLT", at, end);
  return { rest, part, split: { range, at, there } };
}
