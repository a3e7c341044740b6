// What the compiler knows about an OptOp: one record for each, in a file of its own. Lowering asks what part
// of an axis it takes, a pass runs its graph transformation, BEAM asks for candidates, the docs print the
// rest. A target lists the records that it has, so that a page which runs on WASM does not load what only
// GPUs need.

import { ArgumentError } from "../../errors.ts";
import type { Sint } from "../../shape/symbolic.ts";
import { isLane } from "../../uop/axis.ts";
import type { KernelGraph } from "../lower/lower.ts";
import type { Target } from "../target.ts";
import { type OptOp, type OptOpName, type OptParams, showOpts } from "./opts.ts";

/** A parameter: what it means, and its least value. */
export interface Param {
  readonly meaning: string;
  readonly least: number;
}

/** An axis of the kernel while the ops that name it are applied, one after the other. */
export interface AxisState {
  readonly number: number;
  /** an output axis; otherwise a reduce axis */
  readonly isOutput: boolean;
  readonly size: Sint;
  /** iterations that are left after the ops so far */
  readonly left: Sint;
  /** no op took anything so far */
  readonly isWhole: boolean;
  /** PADTO rounded it up */
  readonly isPadded: boolean;
  /** the workgroup does not divide the axis: threads beyond the end do nothing */
  readonly isRagged: boolean;
  /** what lies beyond its end can be gated for each element: it comes through shared memory */
  readonly isGated: boolean;
  /** lanes that are neighbours */
  readonly lanes: number;
}

/** What a graph transformation may look at besides the graph. */
export interface OptContext {
  /** the whole list */
  readonly opts: readonly OptOp[];
  readonly target: Target;
  /** its position among the ops of the same name in the list */
  readonly index: number;
}

/** What a search may look at. */
export interface SearchContext {
  readonly target: Target;
  /** the kernel writes what it reads: nothing may be computed twice */
  readonly inPlace: boolean;
}

/**
 * The part of an axis that an op takes: lanes side by side, threads of a workgroup, or lanes with
 * accumulators.
 */
export type AxisPart = "lanes" | "local" | "group";

/** The documentation of an OptOp. It is not part of the record, so that a bundler can leave it out. */
export interface OptDoc {
  /** what textbooks call it */
  readonly textbook: string;
  /** what it does, in a sentence or two */
  readonly summary: string;
  /** a loop nest before and after, in four lines */
  readonly picture: string;
}

export interface OptRecord<K extends OptOpName = OptOpName> {
  readonly name: K;
  readonly params: { readonly [P in keyof OptParams[K]]: Param };
  /** the kind of axis that it names; undefined: it is about the whole kernel */
  readonly takes: "output" | "reduce" | undefined;
  /** what it takes besides an axis, for the text of a refusal */
  readonly expected: string;
  /** a second one in a list would contradict the first */
  readonly once?: true;
  /** ops that a list with this one cannot have */
  readonly excludes?: readonly OptOpName[];
  /** some elements are computed twice: not for a kernel that writes what it reads */
  readonly repeats?: true;
  /** only linearize looks at it: the graph is the same with and without it */
  readonly onlyLinearize?: true;
  /** Why it does not apply to this axis; undefined: it does. The graph transformation may still refuse. */
  refusal?(axis: AxisState, opt: OptOp<K>, target: Target): string | undefined;
  /** Ops worth trying on this kernel, which was lowered without OptOps. */
  candidates(kernel: KernelGraph, context: SearchContext): OptOp<K>[];

  // what it does: it takes a part of its axis, names sides of matrices, or changes the graph; the rest is for
  // linearize
  readonly part?: AxisPart;
  /**
   * The sides of the matrices that a warp multiplies, by the number of their axis. `outputs`: how many output
   * axes.
   */
  tiles?(outputs: number, opt: OptOp<K>, target: Target, opts: readonly OptOp[]): ReadonlyMap<number, number>;
  transform?(graph: KernelGraph, opt: OptOp<K>, context: OptContext): KernelGraph;
}

/** Refuses an op: why it does not apply, and what it takes. */
export function refuse(opt: OptOp, why: string, expected: string): never {
  throw new ArgumentError(`${showOpts([opt])}: ${why}; ${expected}`);
}

export const recordOf = ({ optOps }: Target, name: OptOpName): OptRecord | undefined =>
  optOps.find((r) => r.name === name);

/** The numbers of the axes of a kind, and their sizes where they are known. */
export function axesOf({ axes }: KernelGraph, kind: "output" | "reduce"): { axis: number; size: Sint }[] {
  return axes.filter((a) => a.kind === kind && !isLane(a)).map((a) => ({ axis: a.of, size: a.size }));
}
/** The same for those whose size is a constant: a search tries only these. */
export function constantAxes(
  kernel: KernelGraph,
  kind: "output" | "reduce",
): { axis: number; size: number }[] {
  return axesOf(kernel, kind).flatMap(({ axis, size }) => (typeof size === "number" ? [{ axis, size }] : []));
}

const FACTORS = [2, 3, 4, 5, 8, 16];
const WORKGROUPS = [32, 64, 128, 256];

/** Each axis of a kind with each factor that divides it. */
export function divisions(
  kernel: KernelGraph,
  kind: "output" | "reduce",
): { axis: number; factor: number }[] {
  return constantAxes(kernel, kind).flatMap(({ axis, size }) =>
    FACTORS.filter((n) => size % n === 0).map((factor) => ({ axis, factor })),
  );
}
/** Each axis of a kind with each size of a workgroup that it fills. */
export function workgroups(
  kernel: KernelGraph,
  kind: "output" | "reduce",
  target: Target,
): { axis: number; threads: number }[] {
  if (target.grid === undefined) return [];
  return constantAxes(kernel, kind).flatMap(({ axis, size }) =>
    WORKGROUPS.filter((n) => n <= size).map((threads) => ({ axis, threads })),
  );
}
