// Four lanes at once: how vectors of types of up to 32 bits are loaded, stored, computed, cast, put together
// and taken apart in WebAssembly. A lane has 32 bits whatever its type, with a value of the type in it; a
// bool lane is all ones or all zeros. The operands are on the stack already. Wider types have no vectors
// here: expand.ts takes them apart. `#render/simd` is this file, or in a page simdlater.ts.

import type { Simd } from "../../codegen/target.ts";
import { type DType, scalarOf, type Value } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { type AluOp, opRecord } from "../../ops.ts";
import { type Alu, type Expr, valueType } from "../../uop/node.ts";
import { emitConst, reprOf } from "./alu.ts";
import { F32, type FunctionBuilder, OP, type Opcode, V128 } from "./assembler.ts";
import { fitsLane, WIDTH } from "./lanes.ts";
import { VECTOR_OP } from "./vectorops.ts";

type SimdSpelling = Opcode | ((f: FunctionBuilder) => void) | undefined;
/** bool, int<=32, uint<=32, float32: the columns of alu.ts without the 64-bit types */
type SimdRow = readonly [SimdSpelling, SimdSpelling, SimdSpelling, SimdSpelling];
const COLUMNS = [0, 1, 2, undefined, undefined, 3, undefined] as const;

const ints = (i32: Opcode, bool?: SimdSpelling, f32?: Opcode): SimdRow => [bool, i32, i32, f32];
const nothing: SimdSpelling = () => {};
const never: SimdSpelling = (f) => {
  f.op(OP.drop);
  f.op(OP.drop);
  f.v128(new Uint32Array(4));
};
/** mask a < mask b: not a, and b */
const boolLess: SimdSpelling = (f) => {
  const b = f.local(V128);
  f.set(b);
  f.op(VECTOR_OP["v128.not"]);
  f.get(b);
  f.op(VECTOR_OP["v128.and"]);
};
const boolEqual: SimdSpelling = (f) => {
  f.op(VECTOR_OP["v128.xor"]);
  f.op(VECTOR_OP["v128.not"]);
};

/**
 * `a < b ? b : a` gives a where b is NaN; OR with a mask of all ones makes that lane NaN. f32x4.max, which
 * does all of it, takes twice as long.
 */
const largest: SimdSpelling = (f) => {
  const b = f.local(V128);
  f.tee(b);
  f.op(VECTOR_OP["f32x4.pmax"]);
  f.get(b);
  f.get(b);
  f.op(VECTOR_OP["f32x4.ne"]);
  f.op(VECTOR_OP["v128.or"]);
};

export { minMaxOf } from "../minmax.ts";
export { pairIn } from "./pairs.ts";
export const emitMinMax = (f: FunctionBuilder, isMax: boolean): void =>
  f.op(isMax ? VECTOR_OP["f32x4.pmax"] : VECTOR_OP["f32x4.pmin"]);

/** What is missing goes lane by lane. */
// biome-ignore format: a table
const ALU: Partial<Record<AluOp, SimdRow>> = {
  NEG: [nothing, VECTOR_OP["i32x4.neg"], VECTOR_OP["i32x4.neg"], VECTOR_OP["f32x4.neg"]],
  SQRT: [undefined, undefined, undefined, VECTOR_OP["f32x4.sqrt"]],
  TRUNC: [undefined, undefined, undefined, VECTOR_OP["f32x4.trunc"]],
  ADD: ints(VECTOR_OP["i32x4.add"], VECTOR_OP["v128.or"], VECTOR_OP["f32x4.add"]),
  SUB: ints(VECTOR_OP["i32x4.sub"], VECTOR_OP["v128.xor"], VECTOR_OP["f32x4.sub"]),
  MUL: ints(VECTOR_OP["i32x4.mul"], VECTOR_OP["v128.and"], VECTOR_OP["f32x4.mul"]),
  DIV: [undefined, undefined, undefined, VECTOR_OP["f32x4.div"]],
  MOD: [never, undefined, undefined, undefined],
  MAX: [VECTOR_OP["v128.or"], VECTOR_OP["i32x4.max_s"], VECTOR_OP["i32x4.max_u"], largest],
  CMPLT: [boolLess, VECTOR_OP["i32x4.lt_s"], VECTOR_OP["i32x4.lt_u"], VECTOR_OP["f32x4.lt"]],
  CMPEQ: ints(VECTOR_OP["i32x4.eq"], boolEqual, VECTOR_OP["f32x4.eq"]),
  CMPNE: ints(VECTOR_OP["i32x4.ne"], VECTOR_OP["v128.xor"], VECTOR_OP["f32x4.ne"]),
  AND: ints(VECTOR_OP["v128.and"], VECTOR_OP["v128.and"]),
  OR: ints(VECTOR_OP["v128.or"], VECTOR_OP["v128.or"]),
  XOR: ints(VECTOR_OP["v128.xor"], VECTOR_OP["v128.xor"]),
  // the count is a scalar on the stack
  SHL: [undefined, VECTOR_OP["i32x4.shl"], VECTOR_OP["i32x4.shl"], undefined],
  SHR: [undefined, VECTOR_OP["i32x4.shr_s"], VECTOR_OP["i32x4.shr_u"], undefined],
  DOT2: [undefined, VECTOR_OP["i32x4.dot_i16x8_s"], undefined, undefined],
  WHERE: [VECTOR_OP["v128.bitselect"], VECTOR_OP["v128.bitselect"], VECTOR_OP["v128.bitselect"], VECTOR_OP["v128.bitselect"]],
  MULACC: [undefined, undefined, undefined, OP["f32x4.relaxed_madd"]],
};

const spellingOf = (op: AluOp, d: DType): SimdSpelling => {
  const column = fitsLane(d) ? COLUMNS[reprOf(d).column] : undefined;
  return column === undefined ? undefined : ALU[op]?.[column];
};
const isShift = (op: AluOp): boolean => op === "SHL" || op === "SHR";

/** The count of a shift, where every lane is shifted by the same known amount. */
export function shiftOf(u: Alu): number | undefined {
  if (u.fn !== "SHL" && u.fn !== "SHR") return undefined;
  const [, count] = u.operands;
  return count.op === "CONST" ? Number(count.value) & (scalarOf(count.dtype).bits - 1) : undefined;
}

/** Whether four of this node are computed at once; the node is still on scalars. */
export const hasVector: Simd["has"] = (u) => {
  const to = valueType(u);
  if (!fitsLane(to)) return false;
  if (u.op === "REDUCE") return true;
  if (u.op === "BITCAST" || u.op === "CAST") {
    const from = u.operand.dtype;
    if (u.op === "BITCAST") return fitsLane(from) && from.itemsize === to.itemsize;
    return fitsLane(from) && !(from.isFloat && to.kind === "uint" && to.itemsize === 4);
  }
  if (u.op !== "ALU" || spellingOf(u.fn, u.operandType) === undefined) return false;
  return !isShift(u.fn) || shiftOf(u) !== undefined;
};

const shifted = (f: FunctionBuilder, by: number): void => {
  f.i32(by);
  f.op(VECTOR_OP["i32x4.shl"]);
  f.i32(by);
  f.op(VECTOR_OP["i32x4.shr_s"]);
};
const splat = (x: number): Uint32Array => new Uint32Array(WIDTH).fill(x);
function masked(f: FunctionBuilder, bits: Uint32Array): void {
  f.v128(bits);
  f.op(VECTOR_OP["v128.and"]);
}
/** Brings lanes back into the range of a type below 32 bits. */
function narrow(f: FunctionBuilder, d: DType): void {
  if (d.kind === "bool" || d.itemsize === 4) return;
  const bits = d.itemsize * 8;
  if (d.kind === "int") shifted(f, 32 - bits);
  else masked(f, splat(2 ** bits - 1));
}

/** The op on the vectors on the stack; `d` is the type of a lane of the last of them. */
export function emitVectorAlu(f: FunctionBuilder, op: AluOp, d: DType): void {
  const spelling = spellingOf(op, d);
  if (spelling === undefined) throw new InternalError(`WASM has no ${op} of four ${d.name}`);
  if (typeof spelling === "number") f.op(spelling);
  else spelling(f);
  if (opRecord(op).leavesRange) narrow(f, d);
}

const zeros = splat(0);
const ONE = new Uint32Array(new Float32Array([1]).buffer)[0] as number;

function notZero(f: FunctionBuilder): void {
  f.v128(zeros);
  f.op(VECTOR_OP["i32x4.ne"]);
}

export function emitVectorCast(f: FunctionBuilder, from: DType, to: DType): void {
  if (from === to) return;
  if (to.kind === "bool" && !from.isFloat) notZero(f);
  else if (to.kind === "bool") {
    f.v128(zeros);
    f.op(VECTOR_OP["f32x4.ne"]);
  } else if (from.kind === "bool") masked(f, splat(to.isFloat ? ONE : 1));
  else if (to.isFloat)
    f.op(from.kind === "int" ? VECTOR_OP["f32x4.convert_i32x4_s"] : VECTOR_OP["f32x4.convert_i32x4_u"]);
  else {
    if (from.isFloat) f.op(VECTOR_OP["i32x4.trunc_sat_f32x4_s"]);
    narrow(f, to);
  }
}
export function emitVectorBitcast(f: FunctionBuilder, from: DType, to: DType): void {
  if (from.kind === "bool") masked(f, splat(1));
  if (to.kind === "bool") notZero(f);
  else narrow(f, to);
}

/** Four values as they lie in a vector. */
function vectorBits(d: DType, values: readonly Value[]): Uint32Array {
  const bits = new DataView(new ArrayBuffer(16));
  values.forEach((x, i) => {
    if (d.isFloat) bits.setFloat32(4 * i, Number(x), true);
    else bits.setInt32(4 * i, d.kind === "bool" ? -Number(x) : Number(x), true);
  });
  return new Uint32Array(bits.buffer);
}
export const inAllLanes = (d: DType, value: Value): Uint32Array =>
  vectorBits(scalarOf(d), [value, value, value, value]);

// ---- memory: types below 32 bits are widened on the way in and packed on the way out ----

interface NarrowAccess {
  readonly load: Opcode;
  readonly widen: readonly Opcode[];
  /** which bytes of the lanes go into memory */
  readonly bytes: readonly number[];
  readonly store: Opcode;
}
const packed = (itemsize: number): number[] => {
  const kept = Array.from({ length: 4 * itemsize }, (_, i) => 4 * Math.floor(i / itemsize) + (i % itemsize));
  return [...kept, ...new Array<number>(16 - kept.length).fill(0)];
};
const bytes = (low16: Opcode, low32: Opcode): NarrowAccess => ({
  load: VECTOR_OP["v128.load32_zero"],
  widen: [low16, low32],
  bytes: packed(1),
  store: VECTOR_OP["v128.store32_lane"],
});
const halves = (low32: Opcode): NarrowAccess => ({
  load: VECTOR_OP["v128.load64_zero"],
  widen: [low32],
  bytes: packed(2),
  store: VECTOR_OP["v128.store64_lane"],
});
const SIGNED = {
  1: bytes(VECTOR_OP["i16x8.extend_low_i8x16_s"], VECTOR_OP["i32x4.extend_low_i16x8_s"]),
  2: halves(VECTOR_OP["i32x4.extend_low_i16x8_s"]),
} as const;
const UNSIGNED = {
  1: bytes(VECTOR_OP["i16x8.extend_low_i8x16_u"], VECTOR_OP["i32x4.extend_low_i16x8_u"]),
  2: halves(VECTOR_OP["i32x4.extend_low_i16x8_u"]),
} as const;
const narrowOf = (d: DType): NarrowAccess | undefined =>
  d.itemsize === 4 ? undefined : (d.kind === "int" ? SIGNED : UNSIGNED)[d.itemsize as 1 | 2];

/** Four elements from the address on the stack. */
export function emitVectorLoad(f: FunctionBuilder, d: DType, offset: number): void {
  const how = narrowOf(d);
  f.memory(how?.load ?? VECTOR_OP["v128.load"], reprOf(d).align, offset);
  for (const op of how?.widen ?? []) f.op(op);
  if (d.kind === "bool") notZero(f);
}
/** The vector on the stack to the address below it. */
export function emitVectorStore(f: FunctionBuilder, d: DType, offset: number): void {
  const how = narrowOf(d);
  if (how === undefined) {
    f.memory(VECTOR_OP["v128.store"], reprOf(d).align, offset);
    return;
  }
  if (d.kind === "bool") masked(f, splat(1));
  const all = f.local(V128);
  f.tee(all);
  f.get(all);
  f.op(VECTOR_OP["i8x16.shuffle"]);
  f.code.raw(how.bytes);
  f.memory(how.store, reprOf(d).align, offset);
  f.code.byte(0); // lane 0 of what was packed
}
/** One word from the address on the stack, in all lanes. */
export function emitLoadSplat(f: FunctionBuilder, align: number, offset: number): void {
  f.memory(VECTOR_OP["v128.load32_splat"], align, offset);
}

// ---- lanes ----

/** Puts lanes together; `push` leaves a scalar on the stack. */
export function emitVectorize(
  f: FunctionBuilder,
  d: DType,
  lanes: readonly Expr[],
  push: (u: Expr) => void,
): void {
  const first = lanes[0];
  if (first === undefined) throw new InternalError("WASM: VECTORIZE without lanes");
  if (lanes.every((l) => l.op === "CONST")) {
    const values = lanes.map((l) => l.value);
    f.v128(vectorBits(d, values));
    return;
  }
  const lane = (u: Expr) => {
    if (d.kind === "bool") emitConst(f, d, 0);
    push(u);
    if (d.kind === "bool") f.op(OP["i32.sub"]);
  };
  const isFloat = reprOf(d).type === F32;
  lane(first);
  f.op(isFloat ? VECTOR_OP["f32x4.splat"] : VECTOR_OP["i32x4.splat"]);
  lanes.forEach((u, i) => {
    if (u === first) return;
    lane(u);
    f.op(isFloat ? VECTOR_OP["f32x4.replace_lane"] : VECTOR_OP["i32x4.replace_lane"]);
    f.code.byte(i);
  });
}
/** One lane of the vector on the stack. */
export function emitExtract(f: FunctionBuilder, d: DType, lane: number): void {
  f.op(reprOf(d).type === F32 ? VECTOR_OP["f32x4.extract_lane"] : VECTOR_OP["i32x4.extract_lane"]);
  f.code.byte(lane);
  if (d.kind !== "bool") return;
  f.i32(1);
  f.op(OP["i32.and"]);
}
