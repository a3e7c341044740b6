// SPEC=1: the graph between two passes, and the list that a renderer sees, must be well formed. Each op
// states what its sources and types are; a breach is our own bug and names the node.

import { type DType, dtypes, Pointer, scalarOf } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { toposort } from "../helpers.ts";
import { opRecord, resultDType } from "../ops.ts";
import type { UOpGraph } from "./list.ts";
import { listing } from "./listing.ts";
import { GRAPH_ONLY, type UOp, type UOpName, type UType } from "./node.ts";
import { Parameter } from "./parameter.ts";

/** A malformed node may lack any of its sources. */
type MaybeUOp = UOp | undefined;

const isPointer = (u: MaybeUOp): boolean => u?.dtype instanceof Pointer;
const isLocal = (u: MaybeUOp): boolean => u?.dtype instanceof Pointer && u.dtype.local;
const isValue = (d: UType): d is DType => d !== undefined && !(d instanceof Pointer);
const has = (u: MaybeUOp, d: DType): boolean => u?.dtype === d;
const isIndex = (u: MaybeUOp): boolean => has(u, dtypes.int32);
/** An index into this memory: a number, or of a pixel (x, y). */
const isPlace = (u: MaybeUOp, memory: MaybeUOp): boolean =>
  isIndex(u) ||
  (has(u, dtypes.int32.vec(2)) && memory?.dtype instanceof Pointer && memory.dtype.image !== undefined);
/** A condition, or none. */
const isGate = (u: MaybeUOp): boolean => u === undefined || has(u, dtypes.bool);
const element = (u: MaybeUOp): DType | undefined => (u?.dtype instanceof Pointer ? u.dtype.base : undefined);
/** An element of the memory, or a vector of them. */
const isElement = (d: UType, memory: MaybeUOp): boolean => {
  const of = element(memory);
  return isValue(d) && of !== undefined && (d === of || d === of.vec(d.count));
};
/** int32, or int64 for loops of more iterations. */
const isLoopIndex = (u: UOp<"LOOP" | "RANGE">): boolean => {
  const type = u.dtype === dtypes.int64 ? dtypes.int64 : dtypes.int32;
  return has(u, type) && u.srcs.length === 2 && has(u.start, type) && has(u.end, type);
};

/** Exhaustive: a new op must say what it looks like. */
const SPEC: { readonly [K in UOpName]: (u: UOp<K>) => boolean } = {
  DEFINE_GLOBAL: (u) => isPointer(u) && u.srcs.length === 0,
  DEFINE_LOCAL: (u) => isPointer(u) && u.srcs.length === 0,
  DEFINE_ACC: (u) => isValue(u.dtype) && u.initial !== undefined,
  DEFINE_VAR: (u) => isIndex(u) && u.srcs.length === 0,
  SPECIAL: (u) => isIndex(u) && u.srcs.length === 0,
  CONST: (u) =>
    isValue(u.dtype) &&
    (u.arg instanceof Parameter ? u.dtype.isFloat : typeof u.arg === (u.dtype.isBig ? "bigint" : "number")),
  LOOP: isLoopIndex,
  ENDLOOP: (u) => u.srcs.length === 1 && u.loop?.op === "LOOP",
  IF: (u) => has(u.condition, dtypes.bool),
  ENDIF: (u) => u.branch?.op === "IF",
  LOAD: (u) => {
    const gated = u.srcs.length === 4 && has(u.gate, dtypes.bool) && u.otherwise?.dtype === u.dtype;
    return isElement(u.dtype, u.buffer) && isPlace(u.index, u.buffer) && (u.srcs.length === 2 || gated);
  },
  STORE: (u) => isElement(u.value?.dtype, u.buffer) && isPlace(u.index, u.buffer) && isGate(u.gate),
  ALU: (u) => {
    if (u.srcs.length !== opRecord(u.fn).arity) return false;
    const values = u.fn === "WHERE" ? u.operands.slice(1) : u.operands;
    const type = values[0]?.dtype;
    if (!isValue(type)) return false;
    // one condition for each lane
    if (u.fn === "WHERE" && u.operands[0].dtype !== dtypes.bool.vec(type.count)) return false;
    return values.every((s) => s.dtype === type) && u.dtype === resultDType(u.fn, type);
  },
  CAST: (u) => u.srcs.length === 1 && u.dtype.count === u.operand.dtype.count,
  BITCAST: (u) => u.srcs.length === 1 && u.dtype.itemsize === u.operand.dtype.itemsize,
  PHI: (u) =>
    u.accumulator?.op === "DEFINE_ACC" && u.value?.dtype === u.dtype && u.loops.every((l) => l.op === "LOOP"),
  BARRIER: (u) => u.dtype === undefined && u.srcs.length === 0,
  ASYNC: (u) => {
    const isSame = isLocal(u.to) && isPointer(u.from) && element(u.to) === element(u.from);
    return isSame && isIndex(u.toIndex) && isIndex(u.fromIndex) && isGate(u.gate) && isGate(u.inside);
  },
  COMMIT: (u) => u.dtype === undefined && u.srcs.length === 0,
  WAIT: (u) => u.srcs.length === 0 && u.pending >= 0,
  LDMATRIX: (u) =>
    isLocal(u.buffer) && isIndex(u.index) && isValue(u.dtype) && scalarOf(u.dtype) === dtypes.uint32,
  LDFRAGMENT: (u) => {
    const { core, side, pitch } = u.operandLoad;
    const words = (core[side].elements * core.from.itemsize) / 4;
    const isOf = isLocal(u.buffer) && element(u.buffer) === core.from && has(u, dtypes.uint32.vec(words));
    return isOf && isIndex(u.index) && pitch > 0;
  },
  WMMA: (u) => {
    const { a, b, c, to, from } = u.core;
    const isWords = (x: MaybeUOp, elements: number): boolean =>
      has(x, dtypes.uint32.vec((elements * from.itemsize) / 4));
    const operands = isWords(u.a, a.elements) && isWords(u.b, b.elements);
    return operands && u.dtype === to.vec(c.elements) && (u.c === undefined || u.c.dtype === u.dtype);
  },
  SHFL: (u) => u.srcs.length === 1 && u.operand.dtype === u.dtype && u.mask > 0,
  GEP: (u) => u.lane >= 0 && u.lane < u.vector.dtype.count && u.dtype === scalarOf(u.vector.dtype),
  VECTORIZE: (u) => u.dtype.count === u.lanes.length && u.lanes.every((l) => l.dtype === scalarOf(u.dtype)),
  RANGE: isLoopIndex,
  REDUCE: (u) => u.body?.dtype === u.dtype && u.ranges.length > 0 && u.ranges.every((r) => r.op === "RANGE"),
  STAGE: (u) => {
    const { array, stores, ranges } = u;
    const isFilled = stores.length > 0 && stores.every((s) => s.buffer === array);
    // the array, the stores, the ranges and nothing else
    const inOrder = [array, ...stores, ...ranges].every((s, i) => s === u.srcs[i]);
    const isWhole = inOrder && u.srcs.length === 1 + stores.length + ranges.length;
    const isArray = array?.op === "DEFINE_LOCAL" || (array?.op === "DEFINE_GLOBAL" && array.isWritten);
    return isArray && array.dtype === u.dtype && isFilled && isWhole;
  },
  TILE: (u) =>
    isLocal(u) &&
    isPointer(u.buffer) &&
    (u.tile.coordinates.length === 0 ? isIndex(u.base) : isElement(u.base?.dtype, u)) &&
    (u.loop === undefined || u.loop.op === "RANGE"),
  ELEMENT: (u) => u.srcs.length === 2 && isIndex(u.index) && u.dtype === scalarOf(u.vector.dtype),
  SINK: (u) => u.stores.every((s) => s.op === "STORE"),
};

/** The check of a node's own op. */
function isWellFormed<K extends UOpName>(u: UOp<K>): boolean {
  const check: (u: UOp<K>) => boolean = SPEC[u.op as K];
  return check(u);
}

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
    if (!LIST_ONLY.has(u.op) && isWellFormed(u)) continue;
    const srcs = u.srcs.map((s) => `${s.op} ${s.dtype ?? ""}`).join(", ");
    throw new InternalError(`${pass} made a malformed ${u.op} ${u.dtype ?? ""} of [${srcs}]`);
  }
}

/** Checks types, that sources come first, and that no value is used outside the loop it was made in. */
export function checkList(uops: UOpGraph): void {
  const open: UOp[] = [];
  const home = new Map<UOp, readonly UOp[]>();
  const fail = (u: UOp, why: string): never => {
    throw new InternalError(`${u.op} (step ${uops.indexOf(u)}) ${why}\n${listing(uops)}`);
  };
  for (const u of uops) {
    if (graphOnly.has(u.op) || !isWellFormed(u)) fail(u, "is malformed");
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
        fail(u, "starts its accumulator anew in every iteration");
    }
    if (u.op === "LOOP" || u.op === "IF") open.push(u);
    if (u.op === "ENDLOOP" || u.op === "ENDIF") {
      const opened = u.op === "ENDLOOP" ? u.loop : u.branch;
      if (open.pop() !== opened) fail(u, "does not close the innermost loop");
    }
    home.set(u, [...open]);
  }
  const [left] = open;
  if (left !== undefined) fail(left, "is never closed");
}
