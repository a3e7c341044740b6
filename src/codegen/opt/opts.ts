// An OptOp changes how a kernel is run and never what it computes. A kernel's optimisation is a list of them: a
// value that lowering takes as input, that can be stored, searched and shown. Here: what ops there are, and how
// they split an axis.

import { ArgumentError } from "../../errors.ts";
import { add, idiv, type Sint } from "../../shape/symbolic.ts";

/**
 * The parameters of each op. Axes are numbers: output axes count from 0, the outermost first; reduce axes go on from
 * there, in the order of the AST. The others are whole numbers, too.
 */
interface Params {
  /** `lanes` neighbours of an output axis are computed side by side */
  UPCAST: { axis: number; lanes: number };
  /** `factor` neighbours of a reduce axis are combined in one iteration */
  UNROLL: { axis: number; factor: number };
  /** `accumulators` neighbours of a reduce axis have an accumulator each; they are combined at the end */
  GROUP: { axis: number; accumulators: number };
  /**
   * `threads` neighbours of an output axis are one workgroup. What UPCAST takes after it is as far apart as the workgroup is
   * wide. Where the target runs a grid, it does not have to divide the axis: threads beyond its end do nothing.
   */
  LOCAL: { axis: number; threads: number };
  /** a reduce axis is shared by `threads` of a workgroup, which combine what they have at the end; otherwise as LOCAL */
  GROUPTOP: { axis: number; threads: number };
  /** the kernel has no workgroups */
  NOLOCALS: Record<never, never>;
  /** parts of the loop over an output axis, of `least` iterations or more, run on different threads */
  THREAD: { axis: number; least: number };
  /** an output axis is rounded up to a multiple: the last iteration starts earlier, and computes some elements again */
  PADTO: { axis: number; multiple: number };
  /** two output axes change places */
  SWAP: { axis: number; with: number };
  /** the loop of the reduce axis `reduce` goes around the loop over an output axis (interchange.ts) */
  INTERCHANGE: { axis: number; reduce: number };
  /** what the loop over a reduce axis computes and a later loop needs is kept in an array of `elements` (keep.ts) */
  KEEP: { axis: number; elements: number };
  /** what sums read again in every iteration over an output axis is copied before its loop (pack.ts) */
  PACK: { axis: number };
  /** warps multiply matrices: this reduce axis and the last two output axes, by tensor core number `core` (tensorcore.ts) */
  TC: { axis: number; core: number };
  /** what a reduce over this axis reads comes through shared memory, `stages` iterations ahead (shared.ts) */
  SHARED: { axis: number; stages: number };
}

export type OptOpName = keyof Params;
/** One step of a kernel's optimisation. */
export type OptOp<K extends OptOpName = OptOpName> = {
  [P in K]: { readonly op: P } & Readonly<Params[P]>;
}[K];

/** The ops that take a factor of an axis. */
export type SplitName = "UPCAST" | "UNROLL" | "GROUP" | "LOCAL" | "GROUPTOP";

/** An op that takes this factor of an axis, by its name. */
export function splitBy(op: SplitName, axis: number, factor: number): OptOp<SplitName> {
  switch (op) {
    case "UPCAST":
      return { op, axis, lanes: factor };
    case "UNROLL":
      return { op, axis, factor };
    case "GROUP":
      return { op, axis, accumulators: factor };
    case "LOCAL":
    case "GROUPTOP":
      return { op, axis, threads: factor };
  }
}
/** The factor of its axis that an op takes; 1: none. */
export function factorOf(o: OptOp): number {
  switch (o.op) {
    case "UPCAST":
      return o.lanes;
    case "UNROLL":
      return o.factor;
    case "GROUP":
      return o.accumulators;
    case "LOCAL":
    case "GROUPTOP":
      return o.threads;
    default:
      return 1;
  }
}
/** What the ops of this name take of these axes, of all if none are named. */
export function factorsOf(opts: readonly OptOp[], op: SplitName, axes?: readonly number[]): number {
  return opts.reduce(
    (n, o) => (o.op === op && (axes === undefined || axes.includes(o.axis)) ? n * factorOf(o) : n),
    1,
  );
}

/** What each op does to the axis it names: it multiplies a part of its split, or none. */
const PARTS: Readonly<Record<OptOpName, { output: boolean; part?: "local" | "lanes" | "group" }>> = {
  SWAP: { output: true },
  INTERCHANGE: { output: true },
  NOLOCALS: { output: true },
  THREAD: { output: true },
  PADTO: { output: true },
  UPCAST: { output: true, part: "lanes" },
  LOCAL: { output: true, part: "local" },
  GROUPTOP: { output: false, part: "local" },
  UNROLL: { output: false, part: "lanes" },
  GROUP: { output: false, part: "group" },
  TC: { output: false },
  SHARED: { output: false },
  KEEP: { output: false },
  PACK: { output: true },
};

const EXPECTED: Readonly<Record<OptOpName, string>> = {
  SWAP: "another output axis",
  INTERCHANGE: "a reduce axis",
  NOLOCALS: "nothing else",
  THREAD: "1 or more iterations",
  PADTO: "a multiple up to its size, before any other op on it",
  UPCAST: "a divisor of what is left",
  LOCAL: "a divisor of what is left",
  GROUPTOP: "a divisor of what is left",
  UNROLL: "a divisor of what is left",
  GROUP: "a divisor of what is left",
  TC: "the number of a tensor core in the target's list",
  SHARED: "1 or more iterations",
  KEEP: "the number of its elements",
  PACK: "nothing else",
};

/** The names of the parameters of each op, in their order. */
export const PARAMETERS: { readonly [K in OptOpName]: readonly (keyof Params[K])[] } = {
  SWAP: ["axis", "with"],
  INTERCHANGE: ["axis", "reduce"],
  NOLOCALS: [],
  THREAD: ["axis", "least"],
  PADTO: ["axis", "multiple"],
  UPCAST: ["axis", "lanes"],
  LOCAL: ["axis", "threads"],
  GROUPTOP: ["axis", "threads"],
  UNROLL: ["axis", "factor"],
  GROUP: ["axis", "accumulators"],
  TC: ["axis", "core"],
  SHARED: ["axis", "stages"],
  KEEP: ["axis", "elements"],
  PACK: ["axis"],
};

/** UPCAST(0, lanes=4) PACK(1) NOLOCALS: the axis first, then the other parameters by name. */
export const showOpts = (opts: readonly OptOp[]): string => opts.map(showOpt).join(" ");
function showOpt(o: OptOp): string {
  const shown = Object.entries(o).flatMap(([name, value]) =>
    name === "op" ? [] : [name === "axis" ? String(value) : `${name}=${value}`],
  );
  return shown.length === 0 ? o.op : `${o.op}(${shown.join(", ")})`;
}

/** What takes no part of an axis, and is checked elsewhere. */
const NO_PART: ReadonlySet<OptOpName> = new Set<OptOpName>(["SWAP", "INTERCHANGE", "NOLOCALS", "TC"]);
const isWorkgroup = (o: OptOp): boolean => o.op === "LOCAL" || o.op === "GROUPTOP";

/** These are about a whole kernel: a second one in the list would say something else of the same. */
const ONCE: readonly OptOpName[] = ["TC", "SHARED"];

/**
 * A list that was stored, or written in plain JavaScript, may hold anything. `grid`: the target has workgroups,
 * `copies`: it copies to shared memory while they compute.
 */
export function requireKnown(opts: readonly OptOp[], grid: boolean, copies: boolean): void {
  const other = opts.find((o) => !Object.hasOwn(PARTS, o.op));
  if (other !== undefined) {
    throw new ArgumentError(
      `OptOp ${showOpts([other])}: there is no such op; expected one of ${Object.keys(PARTS).join(", ")}`,
    );
  }
  const group = opts.find(isWorkgroup);
  if (group !== undefined && opts.some((o) => o.op === "NOLOCALS")) {
    throw new ArgumentError(`${showOpts([group])}: NOLOCALS is in the list, so there are no workgroups`);
  }
  const shared = opts.find((o) => o.op === "GROUPTOP");
  if (shared !== undefined && !grid) {
    throw new ArgumentError(`${showOpts([shared])}: this target has no workgroups; use GROUP`);
  }
  const second = opts.find((o, i) => ONCE.includes(o.op) && opts.findIndex((x) => x.op === o.op) < i);
  if (second !== undefined) {
    const all = opts.filter((o) => o.op === second.op);
    throw new ArgumentError(`${showOpts(all)}: expected one ${second.op} in a list; leave the others out`);
  }
  const copied = opts.find((o) => o.op === "SHARED");
  if (copied !== undefined && !copies) {
    throw new ArgumentError(
      `${showOpts([copied])}: this target does not copy to shared memory ahead of time; leave it out`,
    );
  }
}

/**
 * How one axis of the kernel is split: its size is `rest * far * local * lanes * group * tile`, the last the
 * innermost.
 */
export interface Split {
  /** that is more than the axis has: the last iterations start earlier */
  readonly padded: boolean;
  /** that is more than the axis has: what lies beyond the end is left out */
  readonly ragged: boolean;
  readonly rest: Sint;
  /** lanes of UPCAST or UNROLL that lie a workgroup apart */
  readonly far: number;
  /** threads of a workgroup */
  readonly local: number;
  readonly lanes: number;
  readonly group: number;
  /** the side of a matrix that a warp multiplies */
  readonly tile: number;
}

/** How often a factor fits into what is left of an axis, rounded up. */
const shares = (rest: Sint, factor: number): Sint => idiv(add(rest, factor - 1), factor);

/** The number that an op has besides its axis. */
function numberOf(o: OptOp): number {
  if (o.op === "PADTO") return o.multiple;
  if (o.op === "THREAD") return o.least;
  if (o.op === "SHARED") return o.stages;
  return o.op === "KEEP" ? o.elements : factorOf(o);
}

/**
 * The split of axis `axis` of the given size. `output`: an output axis. `grid`: workgroups may be wider than what
 * is left.
 */
export function splitAxis(
  opts: readonly OptOp[],
  axis: number,
  size: Sint,
  output: boolean,
  grid: boolean,
  tile: number,
): Split {
  if (typeof size !== "number" ? tile > 1 : size % tile !== 0) {
    throw new ArgumentError(
      `TC: axis ${axis} has ${size} elements; expected a multiple of ${tile} (leave TC out, or pad the tensor)`,
    );
  }
  let rest: Sint = typeof size === "number" ? size / tile : size;
  const entire = rest;
  let [padded, ragged] = [false, false];
  const parts = { far: 1, local: 1, lanes: 1, group: 1 };
  for (const o of opts) {
    if (o.op === "NOLOCALS" || o.axis !== axis || NO_PART.has(o.op)) continue;
    const { output: wanted, part } = PARTS[o.op];
    const n = numberOf(o);
    const whole = Number.isInteger(n) && n > 0;
    // only a whole axis is padded, and by less than an iteration
    const pads = rest === entire && typeof rest === "number" && n <= rest;
    const divides = typeof rest === "number" && rest % n === 0;
    const fills = typeof rest !== "number" || n <= rest;
    const overhangs = grid && fills && !padded && (ragged || isWorkgroup(o));
    // lanes that start earlier still start at an element
    const room = !padded || part !== "lanes" || typeof size !== "number" || parts.lanes * n <= size;
    const fits = o.op === "PADTO" ? pads && !ragged : part === undefined || (divides && room) || overhangs;
    if (!whole || !fits || output !== wanted) {
      throw new ArgumentError(
        `${showOpts([o])}: axis ${axis} is ${output ? "an output" : "a reduce"} axis with ${rest} left; ` +
          `${o.op} takes ${wanted ? "an output" : "a reduce"} axis and ${EXPECTED[o.op]}`,
      );
    }
    if (o.op === "PADTO" && !divides && typeof rest === "number") {
      rest = Math.ceil(rest / n) * n;
      padded = true;
    }
    if (part === undefined) continue;
    ragged ||= !divides;
    rest = shares(rest, n);
    parts[part === "lanes" && parts.local > 1 ? "far" : part] *= n;
  }
  return { rest, padded, ragged, ...parts, tile };
}

/** The order of `n` output axes after all SWAPs, outermost first. */
export function axisOrder(opts: readonly OptOp[], n: number): number[] {
  const order = Array.from({ length: n }, (_, i) => i);
  for (const o of opts) {
    if (o.op !== "SWAP" && o.op !== "INTERCHANGE") continue;
    const [a, b] = [order.indexOf(o.axis), o.op === "SWAP" ? order.indexOf(o.with) : 0];
    if (a < 0 || b < 0)
      throw new ArgumentError(`${showOpts([o])}: this kernel has the output axes 0 to ${n - 1}`);
    if (o.op === "SWAP") [order[a], order[b]] = [order[b]!, order[a]!];
  }
  return order;
}
