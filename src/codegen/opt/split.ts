// How the ops of a list split one axis of the kernel into parts, in their order. In goes the size of the
// axis, out comes the Split that lowering makes ranges of; an op that does not apply is refused here.

import { ArgumentError } from "../../errors.ts";
import { add, idiv, mod, mul, type Sint, smin } from "../../shape/symbolic.ts";
import type { Target } from "../target.ts";
import { axisOf, factorOf, type OptOp, showOpts } from "./opts.ts";
import { type AxisPart, type AxisState, type OptRecord, recordOf } from "./record.ts";

/**
 * How one axis of the kernel is split: its size is `rest * far * local * lanes * group * tile`, the last the
 * innermost.
 */
export interface Split {
  /** the product exceeds the axis size: the last iterations start earlier */
  readonly padded: boolean;
  /** the product exceeds the axis size: what lies beyond the end is gated */
  readonly ragged: boolean;
  /** ... element by element, since a part of it is in shared memory */
  readonly gated: boolean;
  readonly rest: Sint;
  /** lanes of UPCAST or UNROLL after LOCAL or GROUPTOP: they are a workgroup apart */
  readonly far: number;
  /** threads of a workgroup */
  readonly local: number;
  readonly lanes: number;
  readonly group: number;
  /** the side of a matrix that a warp multiplies */
  readonly tile: number;
}

export interface AxisToSplit {
  readonly number: number;
  readonly size: Sint;
  readonly isOutput: boolean;
  /** the side of a matrix that a warp multiplies; 1: there is none */
  readonly tile: number;
}

export function splitAxis(
  opts: readonly OptOp[],
  { number, size, isOutput, tile }: AxisToSplit,
  target: Target,
): Split {
  const entire = idiv(add(size, tile - 1), tile);
  let rest = entire;
  let padded = false;
  // beyond the end of the axis a matrix has zeros
  let ragged = !divides(tile, size);
  const gated = tile > 1 || opts.some((o) => o.op === "SHARED");
  const parts = { far: 1, local: 1, lanes: 1, group: 1 };
  for (const o of opts) {
    const record = recordOf(target, o.op);
    if (axisOf(o) !== number || record === undefined) continue;
    const isWhole = rest === entire;
    const state = { left: rest, isWhole, isPadded: padded, isRagged: ragged, isGated: gated };
    requireApplies(record, o, { number, isOutput, size, lanes: parts.lanes, ...state }, target);
    if (o.op === "PADTO" && !divides(o.multiple, rest)) {
      rest = mul(idiv(add(rest, o.multiple - 1), o.multiple), o.multiple);
      padded = true;
    }
    if (record.part === undefined) continue;
    const factor = factorOf(o);
    ragged ||= !divides(factor, rest);
    rest = idiv(add(rest, factor - 1), factor);
    parts[record.part === "lanes" && parts.local > 1 ? "far" : record.part] *= factor;
  }
  return { rest, padded, ragged, gated, ...parts, tile };
}

function requireApplies(record: OptRecord, o: OptOp, axis: AxisState, target: Target): void {
  const isKind = record.takes === (axis.isOutput ? "output" : "reduce");
  const why = isKind ? record.refusal?.(axis, o, target) : showAxis(axis);
  if (why === undefined) return;
  throw new ArgumentError(
    `${showOpts([o])}: ${why}; ${o.op} takes ${axisKind(record.takes === "output")} and ${record.expected}`,
  );
}

const axisKind = (isOutput: boolean): string => (isOutput ? "an output axis" : "a reduce axis");
/** The axis as the op found it, for the text of a refusal. */
export const showAxis = ({ number, isOutput, left }: AxisState): string =>
  `axis ${number} is ${axisKind(isOutput)} with ${left} left`;

const divides = (factor: number, left: Sint): boolean => factor === 1 || mod(left, factor) === 0;

/** Why an op cannot take this factor of the axis for that part; undefined: it can. */
export function factorRefusal(
  axis: AxisState,
  factor: number,
  part: AxisPart,
  target: Target,
): string | undefined {
  const { left, size, lanes, isPadded, isRagged, isGated } = axis;
  // lanes that start earlier must still start inside the axis
  const hasRoom = !isPadded || part !== "lanes" || lanes * factor <= smin(size);
  if (divides(factor, left) && hasRoom) return undefined;
  // a grid may be wider than the axis
  const fills = typeof left !== "number" || factor <= left;
  const overhangs =
    target.grid !== undefined && fills && !isPadded && (isRagged || isGated || part === "local");
  return overhangs ? undefined : showAxis(axis);
}
