// Floats of 16 and 8 bits on targets that do not compute with them. A narrow value becomes a float32 that
// holds it exactly; arithmetic is done in float32 and rounded after each op. With `storage` the target
// converts by itself; with `bits` loads and stores move integers of the same size and the conversion is
// integer arithmetic (narrow.ts).

import { type DType, dtypes, Pointer, PtrDType, wrap } from "../../dtype.ts";
import { floatFromBits, floatToBits } from "../../narrow.ts";
import type { Made, UOpArena } from "../../uop/arena.ts";
import type { Alu, Bitcast, Expr, Load, Sink, Store, UOp, UType } from "../../uop/node.ts";
import { changedSrcs } from "../../uop/rewrite.ts";
import type { Support, Target } from "../target.ts";

const { float32, uint8, uint16, uint32 } = dtypes;

/** A node as it is now: an expression may be of another op, and have another type. */
type Now = <U extends UOp>(u: U) => Made<U["op"]>;
type How = (d: UType) => Support;

export function emulate(sink: Sink, target: Target, arena: UOpArena): Sink {
  const nodes = arena.nodes(sink);
  const how: How = (d) => {
    const base = d instanceof Pointer ? d.base : d;
    return base?.isFloat && base.count === 1 && base.itemsize < 4 ? target.support(base) : "native";
  };
  if (nodes.every((u) => how(u.dtype) === "native")) return sink;
  const done = new Map<UOp, UOp>();
  const now = ((u) => done.get(u) ?? u) as Now;
  for (const u of nodes) {
    const srcs = changedSrcs(u, now);
    done.set(u, narrow(u, now, how, arena) ?? (srcs === undefined ? u : arena.withSrcs(u, srcs)));
  }
  return now(sink);
}

/** The replacement of one node whose sources are replaced already; undefined: nothing narrow about it. */
function narrow(u: UOp, now: Now, how: How, a: UOpArena): UOp | undefined {
  if (u.op === "STORE") return store(u, now, how, a);
  if (u.op === "BITCAST") return bitcast(u, now, how, a);
  const type = u.dtype;
  const support = how(type);
  if (support === "native" || type === undefined) return undefined;
  const srcs = u.srcs.map((s) => now(s));
  if (type instanceof Pointer) {
    return support === "bits" ? a.withType(u, PtrDType(integer(type), type.local), srcs) : undefined;
  }
  switch (u.op) {
    case "CONST":
      return a.constant(float32, wrap(type, u.value));
    case "LOAD":
      return load(u, now, support, a);
    case "CAST":
      return round(a.cast(now(u.operand), float32), type, support, a);
    case "ALU":
      return alu(u, now, support, a);
    default: {
      const wide = a.withType(u, float32, srcs);
      // the running sum stays in float32 and rounds at the end
      return wide.op === "REDUCE" && wide.fn === "SUM" ? round(wide, type, support, a) : wide;
    }
  }
}

function alu(u: Alu, now: Now, support: Support, a: UOpArena): Expr {
  const { dtype } = u;
  if (u.fn === "MULACC") {
    const [x, y, sum] = u.operands;
    const product = round(a.alu("MUL", now(x), now(y)), dtype, support, a);
    return round(a.alu("ADD", product, now(sum)), dtype, support, a);
  }
  const wide = a.alu(u.fn, ...u.operands.map((x) => now(x)));
  // choosing between values makes no new one
  return u.fn === "WHERE" || u.fn === "MAX" ? wide : round(wide, dtype, support, a);
}

function bitcast({ operand, dtype }: Bitcast, now: Now, how: How, a: UOpArena): Expr {
  const [from, to] = [how(operand.dtype), how(dtype)];
  const bits = from === "native" ? now(operand) : toBits(now(operand), operand.dtype, from, a);
  if (to === "native") return a.bitcast(bits, dtype);
  return fromBits(a.bitcast(bits, integer(dtype)), dtype, to, a);
}

function load({ buffer, index, gate, dtype }: Load, now: Now, support: Support, a: UOpArena): Expr {
  const value = a.load(now(buffer), now(index), { gate: gate && now(gate) });
  return support === "bits" ? fromBits(value, dtype, "bits", a) : a.cast(value, float32);
}

function store({ buffer, index, value, gate }: Store, now: Now, how: How, a: UOpArena): Store | undefined {
  const type = value.dtype;
  const support = how(type);
  if (support === "native") return undefined;
  const made = support === "bits" ? toBits(now(value), type, support, a) : a.cast(now(value), type);
  return a.store(now(buffer), now(index), made, gate && now(gate));
}

/** The nearest value of the narrow type, as float32. */
function round(x: Expr, type: DType, support: Support, a: UOpArena): Expr {
  if (support === "storage") return a.cast(a.cast(x, type), float32);
  return fromBits(toBits(x, type, support, a), type, support, a);
}

/** The integer that has the bits of a narrow float, or of what a pointer points to. */
const integer = (d: UType): DType => {
  const base = d instanceof Pointer ? d.base : d;
  return base?.itemsize === 1 ? uint8 : uint16;
};

function fromBits(h: Expr, type: DType, support: Support, a: UOpArena): Expr {
  if (support === "storage") return a.cast(a.bitcast(h, type), float32);
  return floatFromBits(a, a.cast(h, uint32), type);
}

function toBits(x: Expr, type: DType, support: Support, a: UOpArena): Expr {
  if (support === "storage") return a.bitcast(a.cast(x, type), integer(type));
  return a.cast(floatToBits(a, x, type), integer(type));
}
