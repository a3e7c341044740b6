// A list of UOps as seed 002 prints it: a row for each. Pages seldom ask for it.

import { opRecord } from "../ops.ts";
import { setListing, type UOpGraph } from "./list.ts";
import type { UOp } from "./node.ts";

/** A row for each UOp: its position, op, type, the positions of its sources, its argument. */
export function listing(list: UOpGraph): string {
  const head = "step  Op_name               type                      input                           arg";
  const rows = list.uops.map((u, i) => {
    const type = u.dtype === undefined ? "" : String(u.dtype);
    const input = `[${u.srcs.map((s) => list.indexOf(s)).join(", ")}]`;
    return `${String(i).padStart(4)} ${`UOps.${u.op}`.padEnd(20)}: ${type.padEnd(25)} ${input.padEnd(32)} ${showArg(u)}`;
  });
  return [head, ...rows].join("\n");
}
setListing(listing);

function showArg(u: UOp): string {
  const show = (x: unknown): string => {
    if (typeof x === "boolean") return x ? "True" : "False";
    return typeof x === "string" ? `'${x}'` : String(x);
  };
  switch (u.op) {
    case "ALU":
      return `${opRecord(u.fn).group}.${u.fn}`;
    case "REDUCE":
      return `ReduceOps.${u.fn}`;
    case "DEFINE_VAR":
      return u.variable.name;
    case "WMMA":
      return u.core.name;
    case "TILE":
      return `${u.tile.size} x ${u.tile.stages}`;
    case "RANGE":
      return `${u.axis.kind} ${u.axis.id}`;
    default: {
      const { arg } = u;
      if (arg === undefined) return "None";
      return Array.isArray(arg) ? `(${arg.map(show).join(", ")})` : show(arg);
    }
  }
}
