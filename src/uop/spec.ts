// SPEC=1: the graph between two passes, and the list that a renderer sees, must be well formed. Each op states what its
// sources and types are; a breach is our own bug and names the node.

import { type DType, dtypes, Pointer, scalarOf } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { toposort } from "../helpers.ts";
import { opRecord, resultDType } from "../ops.ts";
import { GRAPH_ONLY, type UOp, type UOpGraph, type UOpName, valueType } from "./uops.ts";

type Check = (u: UOp) => boolean;

const isLocal = (u: UOp | undefined): boolean => u?.dtype instanceof Pointer && u.dtype.local;
const isPointer = (u: UOp | undefined): boolean => u?.dtype instanceof Pointer;
const has = (u: UOp | undefined, d: DType): boolean => u?.dtype === d;
const index = (u: UOp | undefined): boolean => has(u, dtypes.int32);
const element = (u: UOp | undefined): DType | undefined =>
  u?.dtype instanceof Pointer ? u.dtype.base : undefined;
const scalar = (d: UOp["dtype"], of: DType | undefined): boolean =>
  d !== undefined && !(d instanceof Pointer) && of !== undefined && (d === of || d === of.vec(d.count));

/** STOREs, then nothing but the op. */
const isTail = (us: readonly UOp[], op: UOpName): boolean =>
  us.slice(us.findLastIndex((u) => u.op === "STORE") + 1).every((u) => u.op === op);

/** Exhaustive: a new op must say what it looks like. */
const SPEC: Record<UOpName, Check> = {
  DEFINE_GLOBAL: (u) => isPointer(u) && u.srcs.length === 0,
  DEFINE_LOCAL: (u) => isPointer(u) && u.srcs.length === 0,
  DEFINE_ACC: (u) => u.dtype !== undefined && !isPointer(u) && u.arg !== undefined,
  DEFINE_VAR: (u) => index(u) && u.srcs.length === 0,
  SPECIAL: (u) => index(u) && u.srcs.length === 0,
  CONST: (u) =>
    u.dtype !== undefined && !isPointer(u) && typeof u.arg === (valueType(u).isBig ? "bigint" : "number"),
  LOOP: (u) => index(u) && u.srcs.length === 2 && u.srcs.every(index),
  ENDLOOP: (u) => u.srcs.length === 1 && u.srcs[0]?.op === "LOOP",
  IF: (u) => has(u.srcs[0], dtypes.bool),
  ENDIF: (u) => u.srcs[0]?.op === "IF",
  LOAD: (u) => {
    const [buf, idx, gate, alt] = u.srcs;
    const gated = u.srcs.length === 4 && has(gate, dtypes.bool) && alt?.dtype === u.dtype;
    return scalar(u.dtype, element(buf)) && index(idx) && (u.srcs.length === 2 || gated);
  },
  STORE: (u) => {
    const [buf, idx, value, gate] = u.srcs;
    return scalar(value?.dtype, element(buf)) && index(idx) && (gate === undefined || has(gate, dtypes.bool));
  },
  ALU: (u) => {
    if (u.op !== "ALU" || u.srcs.length !== opRecord(u.arg).arity) return false;
    const values = u.arg === "WHERE" ? u.srcs.slice(1) : u.srcs;
    const first = valueType(values[0] as UOp);
    const condition = u.arg !== "WHERE" || valueType(u.srcs[0] as UOp).kind === "bool";
    return condition && values.every((s) => s.dtype === first) && u.dtype === resultDType(u.arg, first);
  },
  CAST: (u) => u.srcs.length === 1 && valueType(u).count === valueType(u.srcs[0] as UOp).count,
  BITCAST: (u) => u.srcs.length === 1 && valueType(u).itemsize === valueType(u.srcs[0] as UOp).itemsize,
  PHI: (u) =>
    u.srcs[0]?.op === "DEFINE_ACC" &&
    u.srcs[1]?.dtype === u.dtype &&
    u.srcs.slice(2).every((l) => l.op === "LOOP"),
  BARRIER: (u) => u.dtype === undefined && u.srcs.length === 0,
  ASYNC: (u) => {
    const [to, at, from, there, gate] = u.srcs;
    const same = isLocal(to) && isPointer(from) && element(to) === element(from);
    return same && index(at) && index(there) && (gate === undefined || has(gate, dtypes.bool));
  },
  COMMIT: (u) => u.dtype === undefined && u.srcs.length === 0,
  WAIT: (u) => u.op === "WAIT" && u.srcs.length === 0 && u.arg >= 0,
  LDMATRIX: (u) => isLocal(u.srcs[0]) && index(u.srcs[1]) && scalarOf(valueType(u)) === dtypes.uint32,
  WMMA: (u) => {
    if (u.op !== "WMMA") return false;
    const [a, b, c] = u.srcs;
    const words = (x: UOp | undefined, n: number): boolean => has(x, dtypes.uint32.vec(n));
    const bytes = u.arg.from.itemsize;
    const operands = words(a, (u.arg.a.elements * bytes) / 4) && words(b, (u.arg.b.elements * bytes) / 4);
    return operands && u.dtype === u.arg.to.vec(u.arg.c.elements) && (c === undefined || c.dtype === u.dtype);
  },
  SHFL: (u) => u.op === "SHFL" && u.srcs.length === 1 && u.srcs[0]?.dtype === u.dtype && u.arg > 0,
  GEP: (u) => {
    const from = valueType(u.srcs[0] as UOp);
    return u.op === "GEP" && u.arg >= 0 && u.arg < from.count && u.dtype === scalarOf(from);
  },
  VECTORIZE: (u) => {
    const lane = scalarOf(valueType(u));
    return valueType(u).count === u.srcs.length && u.srcs.every((s) => s.dtype === lane);
  },
  RANGE: (u) => index(u) && u.srcs.length === 2 && u.srcs.every(index),
  REDUCE: (u) =>
    u.srcs[0]?.dtype === u.dtype && u.srcs.length > 1 && u.srcs.slice(1).every((r) => r.op === "RANGE"),
  STAGE: (u) => {
    const [array, ...rest] = u.srcs;
    const stores = rest.filter((s) => s.op === "STORE");
    const filled = stores.length > 0 && stores.every((s) => s.srcs[0] === array);
    return array?.op === "DEFINE_LOCAL" && array.dtype === u.dtype && filled && isTail(rest, "RANGE");
  },
  TILE: (u) =>
    isLocal(u) && isPointer(u.srcs[0]) && index(u.srcs[1]) && (u.srcs[2]?.op ?? "RANGE") === "RANGE",
  ELEMENT: (u) =>
    u.srcs.length === 2 && index(u.srcs[1]) && u.dtype === scalarOf(valueType(u.srcs[0] as UOp)),
  SINK: (u) => u.srcs.every((s) => s.op === "STORE"),
};

const graphOnly: ReadonlySet<UOpName> = new Set<UOpName>(GRAPH_ONLY);
/** These say where something happens, which a graph does not know. */
const LIST_ONLY: ReadonlySet<UOpName> = new Set<UOpName>([
  "LOOP",
  "ENDLOOP",
  "DEFINE_ACC",
  "PHI",
  "SPECIAL",
  "IF",
  "ENDIF",
  "BARRIER",
  "SHFL",
  "ASYNC",
  "COMMIT",
  "WAIT",
]);

/** Checks every node below a SINK; `pass` is the pass that made it. */
export function checkGraph(sink: UOp, pass: string): void {
  for (const u of toposort([sink], (x) => x.srcs)) {
    if (!LIST_ONLY.has(u.op) && SPEC[u.op](u)) continue;
    const srcs = u.srcs.map((s) => `${s.op} ${s.dtype ?? ""}`).join(", ");
    throw new InternalError(`${pass} made a malformed ${u.op} ${u.dtype ?? ""} of [${srcs}]`);
  }
}

/** Checks types, that sources come first, and that no value is used outside the loop it was made in. */
export function checkList(uops: UOpGraph): void {
  const open: UOp[] = [];
  const home = new Map<UOp, readonly UOp[]>();
  const fail = (u: UOp, why: string): never => {
    throw new InternalError(`${u.op} (step ${uops.indexOf(u)}) ${why}\n${uops}`);
  };
  for (const u of uops) {
    if (graphOnly.has(u.op) || !SPEC[u.op](u)) fail(u, "is malformed");
    for (const s of u.srcs) {
      const at = home.get(s);
      if (at === undefined) fail(u, `comes before its source ${s.op}`);
      // a PHI is there after its own loops, but not after those around them
      else if (
        u.op !== "ENDLOOP" &&
        !at.every((l) => open.includes(l) || (s.op === "PHI" && s.srcs.includes(l)))
      )
        fail(u, `uses ${s.op} after its loop`);
      else if (u.op === "PHI" && s.op === "DEFINE_ACC" && at.some((l) => u.srcs.includes(l)))
        fail(u, "starts its accumulator anew in every turn");
    }
    if (u.op === "LOOP" || u.op === "IF") open.push(u);
    if (u.op === "ENDLOOP" || u.op === "ENDIF") {
      if (open.pop() !== u.srcs[0]) fail(u, "does not close the innermost loop");
    }
    home.set(u, [...open]);
  }
  const [left] = open;
  if (left !== undefined) fail(left, "is never closed");
}
