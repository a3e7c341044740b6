// What holds for a list of OptOps whatever the kernel: the target has each op, its parameters are there, and
// no two ops contradict each other. Lists also come from a cache, or from a caller in plain JavaScript.
// Lowering says whether a list fits a kernel.

import { ArgumentError } from "../../errors.ts";
import type { Target } from "../target.ts";
import { type OptOp, showOpts } from "./opts.ts";
import { type OptRecord, type Param, recordOf } from "./record.ts";

/** Frozen lists that were found valid, by target: kernels of one structure share theirs. */
const valid = new WeakMap<readonly OptOp[], Target>();

/**
 * Refuses a list with an op that the target does not have, with wrong parameters, or that contradicts itself.
 */
export function requireValid(opts: readonly OptOp[], target: Target): void {
  if (valid.get(opts) === target) return;
  check(opts, target);
  if (Object.isFrozen(opts)) valid.set(opts, target);
}
function check(opts: readonly OptOp[], target: Target): void {
  for (const o of opts) {
    const record = recordOf(target, o.op);
    if (record === undefined) {
      const names = target.optOps.map((r) => r.name).join(", ");
      throw new ArgumentError(
        `OptOp ${showOpts([o])}: ${target.name} does not have it; expected one of ${names}`,
      );
    }
    requireParams(o, record);
    const same = record.once ? opts.filter((x) => x.op === o.op) : [];
    if (same.length > 1)
      throw new ArgumentError(`${showOpts(same)}: expected one ${o.op} in a list; leave the others out`);
    const excluded = opts.find((x) => record.excludes?.includes(x.op));
    if (excluded !== undefined) {
      throw new ArgumentError(
        `${showOpts([excluded])}: ${o.op} is in the list, which excludes it; leave one of them out`,
      );
    }
  }
}

/** The parameters that the record names, all of them, and no others. */
function requireParams(o: OptOp, { name, params }: OptRecord): void {
  const expected: Readonly<Record<string, Param>> = params;
  const extra = Object.keys(o).find((k) => k !== "op" && !Object.hasOwn(expected, k));
  if (extra !== undefined) {
    const names = Object.keys(expected).join(" and ") || "nothing";
    throw new ArgumentError(`${showOpts([o])}: there is no parameter ${extra}; ${name} takes ${names}`);
  }
  const given = o as Readonly<Record<string, unknown>>;
  for (const p of Object.keys(expected)) {
    const { least, meaning } = expected[p]!;
    const value = Object.hasOwn(given, p) ? given[p] : undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= least) continue;
    throw new ArgumentError(
      `${showOpts([o])}: ${p} is ${String(value)}; expected a whole number, ${least} or more (${meaning})`,
    );
  }
}

/** The list with one more op. Where a list may have one of its name, it takes the place of that. */
export function extended(opts: readonly OptOp[], op: OptOp, target: Target): OptOp[] {
  const isOnce = recordOf(target, op.op)?.once === true;
  return [...(isOnce ? opts.filter((o) => o.op !== op.op) : opts), op];
}
