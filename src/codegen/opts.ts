// An OptOp changes how a kernel is run and never what it computes. A kernel's optimisation is a list of them: a
// value that lowering takes as input, that can be stored, searched and shown. Here: the axes they act on and how.

import { ArgumentError } from "../errors.ts";
import type { Sint } from "../shape/symbolic.ts";

/**
 * SWAP exchanges two output axes. UPCAST computes `amount` neighbours of an output axis side by side, UNROLL of a
 * reduce axis. LOCAL makes `amount` neighbours of an output axis one workgroup.
 */
export type OptOpName = "SWAP" | "UPCAST" | "UNROLL" | "LOCAL";

/** One step of a kernel's optimisation. */
export interface OptOp {
  readonly op: OptOpName;
  /** output axes count from 0, outermost first; reduce axes go on from there, in the order of the AST */
  readonly axis: number;
  /** the other axis of SWAP, else a factor that divides the axis */
  readonly amount: number;
}

const NAMES: Readonly<Record<OptOpName, true>> = { SWAP: true, UPCAST: true, UNROLL: true, LOCAL: true };

export const showOpts = (opts: readonly OptOp[]): string =>
  opts.map((o) => `${o.op}(${o.axis}, ${o.amount})`).join(" ");

/** How one axis of the kernel is split: its size is `rest * local * lanes`. */
export interface Split {
  readonly rest: Sint;
  readonly local: number;
  readonly lanes: number;
}

/** The split of axis `axis` of the given size. `output` says whether it is an output or a reduce axis. */
export function splitAxis(opts: readonly OptOp[], axis: number, size: Sint, output: boolean): Split {
  let rest = size;
  let local = 1;
  let lanes = 1;
  for (const o of opts) {
    if (o.axis !== axis || o.op === "SWAP") continue;
    const fits =
      typeof rest === "number" && Number.isInteger(o.amount) && o.amount > 0 && rest % o.amount === 0;
    if (!fits || output === (o.op === "UNROLL")) {
      throw new ArgumentError(
        `${o.op}(${o.axis}, ${o.amount}): axis ${axis} is ${output ? "an output" : "a reduce"} axis with ${rest} left; ` +
          `${o.op} takes ${o.op === "UNROLL" ? "a reduce" : "an output"} axis and a divisor of what is left`,
      );
    }
    rest = (rest as number) / o.amount;
    if (o.op === "LOCAL") local *= o.amount;
    else lanes *= o.amount;
  }
  return { rest, local, lanes };
}

/** The order of `n` output axes after all SWAPs, outermost first. */
export function axisOrder(opts: readonly OptOp[], n: number): number[] {
  const order = Array.from({ length: n }, (_, i) => i);
  for (const o of opts) {
    // a list that was stored, or written in plain JavaScript, may hold anything; every kernel's list comes by here
    if (!Object.hasOwn(NAMES, o.op)) {
      throw new ArgumentError(
        `OptOp ${String(o.op)}(${o.axis}, ${o.amount}): there is no such op; expected one of ${Object.keys(NAMES).join(", ")}`,
      );
    }
    if (o.op !== "SWAP") continue;
    const [a, b] = [order.indexOf(o.axis), order.indexOf(o.amount)];
    if (a < 0 || b < 0) {
      throw new ArgumentError(`SWAP(${o.axis}, ${o.amount}): this kernel has the output axes 0 to ${n - 1}`);
    }
    [order[a], order[b]] = [order[b] as number, order[a] as number];
  }
  return order;
}
