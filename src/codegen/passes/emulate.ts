// Floats of 16 and 8 bits on targets that do not compute with them. A narrow value becomes a float32 that holds one of
// its values exactly; arithmetic is done in float32 and rounded after each op. With `storage` the target converts
// by itself; with `bits` loads and stores move integers of its size and the conversion is integer arithmetic.

import { bitcastValue, type DType, dtypes, FLOAT8, Pointer, PtrDType, wrap } from "../../dtype.ts";
import type { Made, UOpArena } from "../../uop/arena.ts";
import type { Alu, Bitcast, Expr, Load, Sink, Store, UOp, UType } from "../../uop/node.ts";
import { changedSrcs } from "../../uop/rewrite.ts";
import type { Support, Target } from "../target.ts";

const { bfloat16, float32, uint8, uint16, uint32 } = dtypes;

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

const u32 = (a: UOpArena, n: number): Expr => a.constant(uint32, n);

/** What the bits of a float mean: f16 and the floats of 8 bits by the same steps. */
interface Format {
  /** bits of the whole */
  readonly size: number;
  readonly bias: number;
  readonly mantissa: number;
  /** the largest float32, as bits, that rounds to a finite value, and what is beyond */
  readonly last: number;
  readonly beyond: number;
  readonly nan: number;
}
function formatOf(type: DType): Format {
  const eight = FLOAT8.get(type);
  if (eight === undefined) {
    return { size: 16, bias: 15, mantissa: 10, last: 0x477fefff, beyond: 0x7c00, nan: 0x7e00 };
  }
  const nearest = Math.fround(eight.rounds);
  const last = Number(bitcastValue(uint32, nearest, float32)) - (nearest > eight.rounds ? 1 : 0);
  return { ...eight, size: 8, last, nan: 0x7f };
}

function fromBits(h: Expr, type: DType, support: Support, a: UOpArena): Expr {
  if (support === "storage") return a.cast(a.bitcast(h, type), float32);
  const w = a.cast(h, uint32);
  if (type === bfloat16) return a.bitcast(a.alu("SHL", w, u32(a, 16)), float32);
  const { size, bias, mantissa, beyond } = formatOf(type);
  const signBit = 2 ** (size - 1);
  // exponent and mantissa moved into place and the bias corrected by a multiplication, which handles subnormals too
  const sign = a.alu("SHL", a.alu("AND", w, u32(a, signBit)), u32(a, 32 - size));
  const rest = a.alu("SHL", a.alu("AND", w, u32(a, signBit - 1)), u32(a, 23 - mantissa));
  const larger = a.constant(float32, 2 ** (127 - bias));
  const scaled = a.bitcast(a.alu("MUL", a.bitcast(rest, float32), larger), uint32);
  const special = a.alu("OR", rest, u32(a, 0x7f800000));
  const isSpecial = a.alu("CMPLT", u32(a, beyond * 2 ** (23 - mantissa) - 1), rest);
  return a.bitcast(a.alu("OR", sign, a.alu("WHERE", isSpecial, special, scaled)), float32);
}

/** Rounds to nearest, ties to even; NaN stays NaN, too large becomes infinite, or NaN where there is no infinity. */
function toBits(x: Expr, type: DType, support: Support, a: UOpArena): Expr {
  if (support === "storage") return a.bitcast(a.cast(x, type), integer(type));
  const w = a.bitcast(x, uint32);
  const isNan = a.alu("CMPNE", x, x);
  if (type === bfloat16) {
    const odd = a.alu("AND", a.alu("SHR", w, u32(a, 16)), u32(a, 1));
    const rounded = a.alu("SHR", a.alu("ADD", w, a.alu("ADD", odd, u32(a, 0x7fff))), u32(a, 16));
    const nan = a.alu("OR", a.alu("AND", a.alu("SHR", w, u32(a, 16)), u32(a, 0x8000)), u32(a, 0x7fc0));
    return a.cast(a.alu("WHERE", isNan, nan, rounded), uint16);
  }
  const { size, bias, mantissa, last, beyond, nan } = formatOf(type);
  const drop = 23 - mantissa;
  const sign = a.alu("AND", a.alu("SHR", w, u32(a, 32 - size)), u32(a, 2 ** (size - 1)));
  const mag = a.alu("AND", w, u32(a, 0x7fffffff));
  // normal: round at the last bit by integer addition, the carry runs into the exponent by itself
  const odd = a.alu("AND", a.alu("SHR", mag, u32(a, drop)), u32(a, 1));
  const bumped = a.alu("ADD", mag, a.alu("ADD", odd, u32(a, 2 ** (drop - 1) - 1)));
  const normal = a.alu("SHR", a.alu("SUB", bumped, u32(a, (127 - bias) * 2 ** 23)), u32(a, drop));
  // subnormal: adding a number with this unit leaves the rounded multiple of it in the low mantissa bits
  const unit = 2 ** (24 - bias - mantissa);
  const shifted = a.bitcast(a.alu("ADD", a.bitcast(mag, float32), a.constant(float32, unit)), uint32);
  const subnormal = a.alu("SUB", shifted, u32(a, Number(bitcastValue(uint32, unit, float32))));
  const small = a.alu("CMPLT", mag, u32(a, (128 - bias) * 2 ** 23));
  const large = a.alu("CMPLT", u32(a, last), mag);
  const finite = a.alu("WHERE", small, subnormal, normal);
  const magnitude = a.alu("WHERE", isNan, u32(a, nan), a.alu("WHERE", large, u32(a, beyond), finite));
  return a.cast(a.alu("OR", a.alu("WHERE", isNan, u32(a, 0), sign), magnitude), integer(type));
}
