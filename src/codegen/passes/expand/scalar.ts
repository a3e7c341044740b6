// A node for one lane: the ranges of lanes become numbers, and whatever depends on them is made again.

import { InternalError } from "../../../errors.ts";
import { mapped } from "../../../helpers.ts";
import type { Range, Stage, UOp } from "../../../uop/node.ts";
import type { Expansion } from "./expansion.ts";
import { type Lane, laneOf } from "./lanes.ts";
import { reduction } from "./reduction.ts";

export function scalar(u: UOp, lane: Lane, x: Expansion): UOp {
  switch (u.op) {
    case "RANGE":
      return number(u, lane, x);
    case "REDUCE":
      return reduction(u, lane, undefined, x);
    case "STAGE":
      return stage(u, x);
    case "ELEMENT": {
      const [vector, index] = [x.scalar(u.vector, lane), x.scalar(u.index, lane)];
      if (index.op === "CONST") return x.arena.gep(vector, Number(index.value));
      throw new InternalError("the lane of a vector depends on more than lanes");
    }
    default:
      return x.arena.withSrcs(
        u,
        mapped(u.srcs, (s) => x.scalar(s, lane)),
      );
  }
}

/** A loop stays what it is. */
function number(r: Range, lane: Lane, { lanes, arena }: Expansion): UOp {
  const axis = lanes.axisOf(r);
  return axis === undefined ? r : arena.int(laneOf(lane, axis));
}

/** An array is filled by all lanes, in the loops that are left. */
function stage({ array, stores, ranges }: Stage, x: Expansion): Stage {
  const filled = stores.flatMap((s) => x.stores(s));
  return x.arena.stage(
    array,
    filled,
    ranges.filter((r) => x.lanes.axisOf(r) === undefined),
  );
}
