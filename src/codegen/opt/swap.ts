// SWAP (loop permutation): two output loops change places. Lowering takes the order of the loops from here.

import { ArgumentError } from "../../errors.ts";
import { range } from "../../helpers.ts";
import { type OptOp, showOpts } from "./opts.ts";
import { axesOf, constantAxes, type OptDoc, type OptRecord } from "./record.ts";

export const SWAP_DOC: OptDoc = {
  textbook: "loop permutation",
  summary: "The loops over two output axes change places.",
  picture: `
for i: for j:
  y[i, j] = f(x[i, j])        SWAP(0, with=1)
for j: for i:
  y[i, j] = f(x[i, j])`,
};

export const SWAP: OptRecord<"SWAP"> = {
  name: "SWAP",
  params: {
    axis: { meaning: "an output axis", least: 0 },
    with: { meaning: "another output axis", least: 0 },
  },
  takes: "output",
  expected: "another output axis",
  candidates: (kernel) =>
    constantAxes(kernel, "output").flatMap(({ axis }) =>
      axesOf(kernel, "output")
        .filter((other) => other.axis > axis)
        .map((other) => ({ op: "SWAP", axis, with: other.axis }) as const),
    ),
};

/** The order of `n` output axes after all SWAPs, outermost first. INTERCHANGE names output axes, too. */
export function axisOrder(opts: readonly OptOp[], n: number): number[] {
  const order = range(n);
  for (const o of opts) {
    if (o.op !== "SWAP" && o.op !== "INTERCHANGE") continue;
    const [a, b] = [order.indexOf(o.axis), o.op === "SWAP" ? order.indexOf(o.with) : 0];
    if (a < 0 || b < 0) {
      throw new ArgumentError(
        `${showOpts([o])}: this kernel has ${n === 0 ? "no output axes" : `the output axes 0 to ${n - 1}`}; ` +
          `${o.op} takes ${o.op === "SWAP" ? "two of them" : "one of them and a reduce axis"}`,
      );
    }
    if (o.op === "SWAP") [order[a], order[b]] = [order[b]!, order[a]!];
  }
  return order;
}
