// All operators that we claim to support, by family. The keys are torch's names: this is the list.

import { arrangement } from "./arrangement.ts";
import { camel, type Handler, method } from "./call.ts";
import { elementwise } from "./elementwise.ts";
import { matrix } from "./matrix.ts";
import { more } from "./more.ts";
import { network } from "./network.ts";
import { reduction } from "./reduction.ts";

const all = { ...elementwise, ...reduction, ...arrangement, ...matrix, ...network, ...more };

/** Operators that we do not offer, and why. */
export const REASONS: Readonly<Record<string, string>> = {};

export function handlerOf(op: string): Handler | undefined {
  const found = (all as Readonly<Record<string, Handler | string>>)[op];
  if (found === undefined || typeof found === "function") return found;
  return method(camel(op.split(".").at(-1) as string), found);
}
