// Lists of OptOps out of a cache, which another version of the package may have stored.

import { ArgumentError } from "../../errors.ts";
import type { Target } from "../target.ts";
import { requireValid } from "./list.ts";
import type { OptOp } from "./opts.ts";

/**
 * Parses a stored list; undefined where it is not one for this target: another version may have stored it.
 */
export function parseOpts(text: string, target: Target): OptOp[] | undefined {
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list) || !list.every(isOpt)) return undefined;
    requireValid(list, target);
    return list;
  } catch (e) {
    if (e instanceof SyntaxError || e instanceof ArgumentError) return undefined;
    throw e;
  }
}
const isOpt = (o: unknown): o is OptOp =>
  typeof o === "object" && o !== null && "op" in o && typeof o.op === "string";
