// An OptOp changes how a kernel is run and never what it computes. A kernel's optimisation is a list of them: a
// value that lowering takes as input, that can be stored, searched and shown. Here: the axes they act on and how.

import { ArgumentError } from "../../errors.ts";
import { add, idiv, type Sint } from "../../shape/symbolic.ts";

/**
 * SWAP exchanges two output axes, or puts the loop of a reduce axis around that of an output axis (sums.ts). UPCAST computes
 * `amount` neighbours of an output axis side by side, UNROLL of a reduce axis. GROUP gives `amount` neighbours of a reduce axis an accumulator each; they are combined at the end. LOCAL
 * makes `amount` neighbours of an output axis one workgroup, GROUPTOP gives a reduce axis to `amount` items of a workgroup,
 * which combine what they have at the end; where the target runs a grid neither has to divide its axis, the items beyond
 * its end do nothing. What UPCAST or UNROLL take after them lies as far apart as the workgroup is wide. NOLOCALS refuses
 * workgroups. THREAD makes the loop over an output axis the grid of a kernel that otherwise has none: parts of it run on
 * different threads, at least `amount` turns each. PADTO rounds an output axis up to a multiple of `amount`: the last turn
 * starts so much earlier, and computes what the one before it did once more. Not for a kernel that writes what it reads.
 * TC has warps multiply matrices in one step (tensorcore.ts): the reduce axis it names, and the last two output axes; `amount`
 * is the number of the step in the target's list. SHARED brings what a reduce over this axis reads through shared memory,
 * `amount` turns of its loop ahead; loops of the reduce inside it read what is there (shared.ts).
 * STAGE keeps what the loop over a reduce axis computes and a later loop needs again, in an array of `amount` elements
 * (stage.ts); on an output axis, with an amount of 1, it copies what sums read in every turn of its loop before that loop
 * (operands.ts).
 */
export type OptOpName =
  | "SWAP"
  | "UPCAST"
  | "UNROLL"
  | "GROUP"
  | "LOCAL"
  | "GROUPTOP"
  | "NOLOCALS"
  | "THREAD"
  | "PADTO"
  | "TC"
  | "SHARED"
  | "STAGE";

/** One step of a kernel's optimisation. */
export interface OptOp {
  readonly op: OptOpName;
  /** output axes count from 0, outermost first; reduce axes go on from there, in the order of the AST */
  readonly axis: number;
  /** the other axis of SWAP, the least part of THREAD, the elements of STAGE or 1, a number for TC and SHARED, else a factor */
  readonly amount: number;
}

/** What each op does to the axis it names: it multiplies a part of its split, or none. */
const PARTS: Readonly<Record<OptOpName, { output?: boolean; part?: "local" | "lanes" | "group" }>> = {
  SWAP: { output: true },
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
  STAGE: {},
};

const EXPECTED: Readonly<Record<OptOpName, string>> = {
  SWAP: "another axis",
  NOLOCALS: "no amount",
  THREAD: "a positive amount",
  PADTO: "an amount up to its size, before any other op on it",
  UPCAST: "a divisor of what is left",
  LOCAL: "a divisor of what is left",
  GROUPTOP: "a divisor of what is left",
  UNROLL: "a divisor of what is left",
  GROUP: "a divisor of what is left",
  TC: "the number of a step in the target's list",
  SHARED: "the number of turns, from 1 on",
  STAGE: "the number of its elements, or 1",
};

export const showOpts = (opts: readonly OptOp[]): string =>
  opts.map((o) => `${o.op}(${o.axis}, ${o.amount})`).join(" ");

/** What takes no part of an axis, and is checked elsewhere. */
const NO_PART: ReadonlySet<OptOpName> = new Set<OptOpName>(["SWAP", "NOLOCALS", "TC"]);
const isWorkgroup = (o: OptOp): boolean => o.op === "LOCAL" || o.op === "GROUPTOP";

/** These are about a whole kernel: a second one in the list would say something else of the same. */
const ONCE: readonly OptOpName[] = ["TC", "SHARED"];

/**
 * A list that was stored, or written in plain JavaScript, may hold anything. `grid`: the target has workgroups, `ahead`:
 * copies for them.
 */
export function requireKnown(opts: readonly OptOp[], grid: boolean, ahead: boolean): void {
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
  if (copied !== undefined && !ahead) {
    throw new ArgumentError(
      `${showOpts([copied])}: this target copies nothing to shared memory ahead of time; leave it out`,
    );
  }
}

/** How one axis of the kernel is split: its size is `rest * far * local * lanes * group * tile`, the last the innermost. */
export interface Split {
  /** that is more than the axis has: the last turns start earlier */
  readonly padded: boolean;
  /** that is more than the axis has: what lies beyond the end is left out */
  readonly ragged: boolean;
  readonly rest: Sint;
  /** lanes of UPCAST or UNROLL that lie a workgroup apart */
  readonly far: number;
  /** items of a workgroup */
  readonly local: number;
  readonly lanes: number;
  readonly group: number;
  /** the side of a matrix that a warp multiplies */
  readonly tile: number;
}

/** How often `amount` fits into what is left of an axis, rounded up. */
const shares = (rest: Sint, amount: number): Sint => idiv(add(rest, amount - 1), amount);

/** The split of axis `axis` of the given size. `output`: an output axis. `grid`: workgroups may be wider than what is left. */
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
  let rest = tile === 1 ? size : (size as number) / tile;
  const entire = rest;
  let [padded, ragged] = [false, false];
  const parts = { far: 1, local: 1, lanes: 1, group: 1 };
  for (const o of opts) {
    if (o.axis !== axis || NO_PART.has(o.op)) continue;
    const { output: wanted, part } = PARTS[o.op];
    const whole = Number.isInteger(o.amount) && o.amount > 0;
    // only a whole axis is padded, and by less than a turn
    const pads = rest === entire && typeof rest === "number" && o.amount <= rest;
    const divides = typeof rest === "number" && rest % o.amount === 0;
    const fills = typeof rest !== "number" || o.amount <= rest;
    const overhangs = grid && fills && !padded && (ragged || isWorkgroup(o));
    // lanes that start earlier still start at an element
    const room = !padded || part !== "lanes" || parts.lanes * o.amount <= (size as number);
    const fits = o.op === "PADTO" ? pads && !ragged : part === undefined || (divides && room) || overhangs;
    if (!whole || !fits || output !== (wanted ?? output)) {
      throw new ArgumentError(
        `${o.op}(${o.axis}, ${o.amount}): axis ${axis} is ${output ? "an output" : "a reduce"} axis with ${rest} left; ` +
          `${o.op} takes ${wanted === false ? "a reduce" : "an output"} axis and ${EXPECTED[o.op]}`,
      );
    }
    if (o.op === "PADTO" && !divides) {
      rest = Math.ceil((rest as number) / o.amount) * o.amount;
      padded = true;
    }
    if (part === undefined) continue;
    ragged ||= !divides;
    rest = shares(rest, o.amount);
    parts[part === "lanes" && parts.local > 1 ? "far" : part] *= o.amount;
  }
  return { rest, padded, ragged, ...parts, tile };
}

/** The order of `n` output axes after all SWAPs of two of them, outermost first. */
export function axisOrder(opts: readonly OptOp[], n: number): number[] {
  const order = Array.from({ length: n }, (_, i) => i);
  for (const o of opts) {
    if (o.op !== "SWAP") continue;
    const [a, b] = [order.indexOf(o.axis), order.indexOf(o.amount)];
    if (a >= 0 && o.amount >= n) continue; // with a reduce axis: sums.ts
    if (a < 0 || b < 0) {
      throw new ArgumentError(`SWAP(${o.axis}, ${o.amount}): this kernel has the output axes 0 to ${n - 1}`);
    }
    [order[a], order[b]] = [order[b] as number, order[a] as number];
  }
  return order;
}
