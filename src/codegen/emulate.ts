// float16 and bfloat16 on targets that do not compute with them. A narrow value becomes a float32 that holds one of
// its values exactly; arithmetic is done in float32 and rounded after each op. With `storage` the target converts
// by itself; with `bits` loads and stores move 16-bit integers and the conversion is integer arithmetic.

import { type DType, dtypes, Pointer, PtrDType, wrap } from "../dtype.ts";
import type { Support, Target } from "./target.ts";
import { type UOp, type UOpArena, valueType } from "./uops.ts";

const { float16, bfloat16, float32, uint16, uint32 } = dtypes;

export function emulate(sink: UOp, target: Target, arena: UOpArena): UOp {
  const nodes = arena.nodes(sink);
  const how = (d: UOp["dtype"]): Support => {
    const base = d instanceof Pointer ? d.base : d;
    return base === float16 || base === bfloat16 ? target.support(base) : "native";
  };
  if (nodes.every((u) => how(u.dtype) === "native")) return sink;
  const done = new Map<UOp, UOp>();
  for (const u of nodes) {
    const srcs = u.srcs.map((s) => done.get(s) as UOp);
    done.set(
      u,
      narrow(u, srcs, how, arena) ?? (srcs.every((s, i) => s === u.srcs[i]) ? u : arena.withSrcs(u, srcs)),
    );
  }
  return done.get(sink) as UOp;
}

/** The replacement of one node whose sources are replaced already; undefined: nothing narrow about it. */
function narrow(
  u: UOp,
  srcs: readonly UOp[],
  how: (d: UOp["dtype"]) => Support,
  a: UOpArena,
): UOp | undefined {
  const [x] = srcs;
  const bits = how(u.dtype) === "bits";
  if (u.op === "DEFINE_GLOBAL" || u.op === "DEFINE_LOCAL") {
    const local = u.dtype instanceof Pointer && u.dtype.local;
    return bits ? a.make(u.op, PtrDType(uint16, local), [], u.arg as never) : undefined;
  }
  if (u.op === "TILE") return bits ? a.make("TILE", PtrDType(uint16, true), srcs, u.arg) : undefined;
  if (u.op === "STAGE") return bits ? a.make("STAGE", x?.dtype, srcs, undefined) : undefined;
  if (u.op === "STORE") return store(u, srcs, how, a);
  if (u.op === "BITCAST" && x !== undefined) {
    const from = valueType(u.srcs[0] as UOp);
    const raw = how(from) === "native" ? x : toBits(x, from, how(from), a);
    const whole = a.bitcast(raw, bits || how(u.dtype) !== "native" ? uint16 : valueType(u));
    return how(u.dtype) === "native" ? whole : fromBits(whole, valueType(u), how(u.dtype), a);
  }
  if (how(u.dtype) === "native" || u.dtype instanceof Pointer || u.dtype === undefined) return undefined;
  const type = u.dtype;
  if (u.op === "CONST") return a.constant(float32, wrap(type, u.arg));
  if (u.op === "LOAD") return load(srcs, type, bits, a);
  if (u.op === "CAST" && x !== undefined) return round(a.cast(x, float32), type, how(type), a);
  if (u.op === "ALU" && u.arg === "MULACC") {
    const product = round(a.alu("MUL", ...srcs.slice(0, 2)), type, how(type), a);
    return round(a.alu("ADD", product, srcs[2] as UOp), type, how(type), a);
  }
  if (u.op === "ALU") {
    const wide = a.alu(u.arg, ...srcs);
    // choosing between values makes no new one
    return u.arg === "WHERE" || u.arg === "MAX" ? wide : round(wide, type, how(type), a);
  }
  const wide = a.make(u.op, float32, srcs, u.arg as never);
  // the running sum stays in float32 and rounds at the end
  return u.op === "REDUCE" && u.arg === "SUM" ? round(wide, type, how(type), a) : wide;
}

function load(srcs: readonly UOp[], type: DType, bits: boolean, a: UOpArena): UOp {
  const [buf, idx, gate] = srcs as readonly [UOp, UOp, UOp?];
  const memory = bits ? uint16 : type;
  const at = gate === undefined ? [buf, idx] : [buf, idx, gate, a.constant(memory, 0)];
  const value = a.make("LOAD", memory, at, undefined);
  return bits ? fromBits(value, type, "bits", a) : a.cast(value, float32);
}

function store(
  u: UOp,
  srcs: readonly UOp[],
  how: (d: UOp["dtype"]) => Support,
  a: UOpArena,
): UOp | undefined {
  const type = valueType(u.srcs[2] as UOp);
  const support = how(type);
  if (support === "native") return undefined;
  const value = srcs[2] as UOp;
  const made = support === "bits" ? toBits(value, type, support, a) : a.cast(value, type);
  return a.make("STORE", undefined, [srcs[0] as UOp, srcs[1] as UOp, made, ...srcs.slice(3)], undefined);
}

/** The nearest value of the narrow type, as float32. */
function round(x: UOp, type: DType, support: Support, a: UOpArena): UOp {
  if (support === "storage") return a.cast(a.cast(x, type), float32);
  return fromBits(toBits(x, type, support, a), type, support, a);
}

const u32 = (a: UOpArena, n: number): UOp => a.constant(uint32, n);

function fromBits(h: UOp, type: DType, support: Support, a: UOpArena): UOp {
  if (support === "storage") return a.cast(a.bitcast(h, type), float32);
  const w = a.cast(h, uint32);
  if (type === bfloat16) return a.bitcast(a.alu("SHL", w, u32(a, 16)), float32);
  // exponent and mantissa moved into place and the bias corrected by a multiplication, which handles subnormals too
  const sign = a.alu("SHL", a.alu("AND", w, u32(a, 0x8000)), u32(a, 16));
  const rest = a.alu("SHL", a.alu("AND", w, u32(a, 0x7fff)), u32(a, 13));
  const scaled = a.bitcast(a.alu("MUL", a.bitcast(rest, float32), a.constant(float32, 2 ** 112)), uint32);
  const special = a.alu("OR", rest, u32(a, 0x7f800000));
  const isSpecial = a.alu("CMPLT", u32(a, 0x0f7fffff), rest);
  return a.bitcast(a.alu("OR", sign, a.alu("WHERE", isSpecial, special, scaled)), float32);
}

/** Rounds to nearest, ties to even; NaN stays NaN, too large becomes infinite. */
function toBits(x: UOp, type: DType, support: Support, a: UOpArena): UOp {
  if (support === "storage") return a.bitcast(a.cast(x, type), uint16);
  const w = a.bitcast(x, uint32);
  const isNan = a.alu("CMPNE", x, x);
  if (type === bfloat16) {
    const odd = a.alu("AND", a.alu("SHR", w, u32(a, 16)), u32(a, 1));
    const rounded = a.alu("SHR", a.alu("ADD", w, a.alu("ADD", odd, u32(a, 0x7fff))), u32(a, 16));
    const nan = a.alu("OR", a.alu("AND", a.alu("SHR", w, u32(a, 16)), u32(a, 0x8000)), u32(a, 0x7fc0));
    return a.cast(a.alu("WHERE", isNan, nan, rounded), uint16);
  }
  const sign = a.alu("AND", a.alu("SHR", w, u32(a, 16)), u32(a, 0x8000));
  const mag = a.alu("AND", w, u32(a, 0x7fffffff));
  // normal: round at bit 13 by integer addition, the carry runs into the exponent by itself
  const odd = a.alu("AND", a.alu("SHR", mag, u32(a, 13)), u32(a, 1));
  const bumped = a.alu("ADD", mag, a.alu("ADD", odd, u32(a, 0xfff)));
  const normal = a.alu("SHR", a.alu("SUB", bumped, u32(a, 112 << 23)), u32(a, 13));
  // subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low mantissa bits
  const shifted = a.bitcast(a.alu("ADD", a.bitcast(mag, float32), a.constant(float32, 0.5)), uint32);
  const subnormal = a.alu("SUB", shifted, u32(a, 0x3f000000));
  const small = a.alu("CMPLT", mag, u32(a, 113 << 23));
  const large = a.alu("CMPLT", u32(a, 0x477fefff), mag);
  const finite = a.alu("WHERE", small, subnormal, normal);
  const magnitude = a.alu("WHERE", isNan, u32(a, 0x7e00), a.alu("WHERE", large, u32(a, 0x7c00), finite));
  return a.cast(a.alu("OR", a.alu("WHERE", isNan, u32(a, 0), sign), magnitude), uint16);
}
