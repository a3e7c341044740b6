// How each op, cast and bitcast is spelt in WebAssembly, for every dtype, and the helper functions a few of
// them call. The operands are on the stack already; which ones stay there is wasm.ts's business.
// Types below 32 bits live in an i32 that always holds a value of the type: ops that can leave it normalise.

import type { DType, Value } from "../../dtype.ts";
import { InternalError } from "../../errors.ts";
import { type AluOp, type NativeOps, opRecord } from "../../ops.ts";
import { F32, F64, FunctionBuilder, I32, I64, OP, type Opcode, type ValType } from "./assembler.ts";

/** The column of a dtype in the tables below. */
type Column = 0 | 1 | 2 | 3 | 4 | 5 | 6;
type ScalarName =
  | "bool"
  | "int8"
  | "uint8"
  | "int16"
  | "uint16"
  | "int32"
  | "uint32"
  | "int64"
  | "uint64"
  | "float32"
  | "float64";

/** Everything that is fixed for a dtype: where it lives, how it moves, how it is brought back into range. */
interface Repr {
  readonly type: ValType;
  readonly column: Column;
  readonly align: number;
  readonly load: Opcode;
  readonly store: Opcode;
  readonly narrow?: (f: FunctionBuilder) => void;
}
const mask = (bits: number) => (f: FunctionBuilder) => {
  f.i32(bits);
  f.op(OP["i32.and"]);
};
const opcode = (code: Opcode) => (f: FunctionBuilder) => f.op(code);
const repr = (type: ValType, column: Column, align: number, load: Opcode, store: Opcode): Repr => ({
  type,
  column,
  align,
  load,
  store,
});

// biome-ignore format: a table
const REPRS: Record<ScalarName, Repr> = {
  bool: repr(I32, 0, 0, OP["i32.load8_u"], OP["i32.store8"]),
  int8: { ...repr(I32, 1, 0, OP["i32.load8_s"], OP["i32.store8"]), narrow: opcode(OP["i32.extend8_s"]) },
  uint8: { ...repr(I32, 2, 0, OP["i32.load8_u"], OP["i32.store8"]), narrow: mask(0xff) },
  int16: { ...repr(I32, 1, 1, OP["i32.load16_s"], OP["i32.store16"]), narrow: opcode(OP["i32.extend16_s"]) },
  uint16: { ...repr(I32, 2, 1, OP["i32.load16_u"], OP["i32.store16"]), narrow: mask(0xffff) },
  int32: repr(I32, 1, 2, OP["i32.load"], OP["i32.store"]),
  uint32: repr(I32, 2, 2, OP["i32.load"], OP["i32.store"]),
  int64: repr(I64, 3, 3, OP["i64.load"], OP["i64.store"]),
  uint64: repr(I64, 4, 3, OP["i64.load"], OP["i64.store"]),
  float32: repr(F32, 5, 2, OP["f32.load"], OP["f32.store"]),
  float64: repr(F64, 6, 3, OP["f64.load"], OP["f64.store"]),
};

export const hasRepr = (d: DType): boolean => Object.hasOwn(REPRS, d.name);
export function reprOf(d: DType): Repr {
  const known: Repr | undefined = REPRS[d.name as ScalarName];
  if (known !== undefined) return known;
  throw new InternalError(`WASM: ${d.name} reached the renderer; codegen spells it out in integers`);
}

export function emitConst(f: FunctionBuilder, d: DType, value: Value): void {
  const { type } = reprOf(d);
  if (type === I32) f.i32(Number(value));
  else if (type === I64) f.i64(BigInt(value));
  else if (type === F32) f.f32(Number(value));
  else f.f64(Number(value));
}

/** What an op may need besides the function it is written into. */
export interface AluContext {
  readonly f: FunctionBuilder;
  /** the number of a helper function, added to the module on first use */
  helper(name: WasmHelper): number;
  /** two scratch locals of this type; their values live only within one op */
  scratch(type: ValType): number;
}

/** One spelling: an opcode, or a few, or code. `undefined`: the target lacks the op for this type. */
type OpcodeSpelling = Opcode | ((c: AluContext, d: DType, second: Value | undefined) => void) | undefined;
/** bool, int<=32, uint<=32, int64, uint64, float32, float64 */
type OpcodeRow = readonly [
  OpcodeSpelling,
  OpcodeSpelling,
  OpcodeSpelling,
  OpcodeSpelling,
  OpcodeSpelling,
  OpcodeSpelling,
  OpcodeSpelling,
];

const nothing: OpcodeSpelling = () => {};
// biome-ignore format: one line each
const same = (bool: OpcodeSpelling, i32: Opcode, i64: Opcode, f32?: Opcode, f64?: Opcode): OpcodeRow =>
  [bool, i32, i32, i64, i64, f32, f64];
// biome-ignore format: one line each
const floats = (f32: Opcode, f64: Opcode): OpcodeRow =>
  [undefined, undefined, undefined, undefined, undefined, f32, f64];

const negative = (type: ValType): OpcodeSpelling => {
  return ({ f }) => {
    if (type === I32) f.i32(-1);
    else f.i64(-1n);
    f.op(type === I32 ? OP["i32.mul"] : OP["i64.mul"]);
  };
};
const maximum =
  (type: ValType, greater: Opcode): OpcodeSpelling =>
  ({ f, scratch }) => {
    const a = scratch(type);
    const b = a + 1;
    f.set(b);
    f.tee(a);
    f.get(b);
    f.get(a);
    f.get(b);
    f.op(greater);
    f.op(OP.select);
  };
/** Straight where the divisor is a harmless constant; else through a function that cannot trap. */
const divide =
  (code: Opcode, helper: WasmHelper): OpcodeSpelling =>
  ({ f, helper: number }, _, second) => {
    if (second !== undefined && Number(second) !== 0 && Number(second) !== -1) f.op(code);
    else f.call(number(helper));
  };
/** The hardware takes counts modulo 32 and 64; shorter types need the mask. */
const shift =
  (code: Opcode): OpcodeSpelling =>
  ({ f }, d) => {
    if (d.itemsize < 4) {
      f.i32(d.itemsize * 8 - 1);
      f.op(OP["i32.and"]);
    }
    f.op(code);
  };
const remainder =
  (type: ValType): OpcodeSpelling =>
  ({ f, helper, scratch }) => {
    // float32 goes through float64: both conversions are exact, and so is the remainder
    if (type === F64) return f.call(helper("fmod"));
    const b = scratch(F32);
    f.set(b);
    f.op(OP["f64.promote_f32"]);
    f.get(b);
    f.op(OP["f64.promote_f32"]);
    f.call(helper("fmod"));
    f.op(OP["f32.demote_f64"]);
  };

/** The dot product of the halves of two words: of the low ones, then of the high ones. */
const dot2: OpcodeSpelling = ({ f, scratch }) => {
  const a = scratch(I32);
  f.set(a + 1);
  f.set(a);
  for (const up of [16, 0]) {
    for (const x of [a, a + 1]) {
      f.get(x);
      f.i32(up);
      f.op(OP["i32.shl"]);
      f.i32(16);
      f.op(OP["i32.shr_s"]);
    }
    f.op(OP["i32.mul"]);
  }
  f.op(OP["i32.add"]);
};

// biome-ignore format: a table
const ALU: NativeOps<OpcodeRow> = {
  NEG: [nothing, negative(I32), negative(I32), negative(I64), negative(I64), OP["f32.neg"], OP["f64.neg"]],
  SQRT: floats(OP["f32.sqrt"], OP["f64.sqrt"]),
  TRUNC: floats(OP["f32.trunc"], OP["f64.trunc"]),

  ADD: same(OP["i32.or"], OP["i32.add"], OP["i64.add"], OP["f32.add"], OP["f64.add"]),
  SUB: same(OP["i32.xor"], OP["i32.sub"], OP["i64.sub"], OP["f32.sub"], OP["f64.sub"]),
  MUL: same(OP["i32.and"], OP["i32.mul"], OP["i64.mul"], OP["f32.mul"], OP["f64.mul"]),
  DIV: floats(OP["f32.div"], OP["f64.div"]),
  IDIV: [OP["i32.and"],
    divide(OP["i32.div_s"], "i32.div_s"), divide(OP["i32.div_u"], "i32.div_u"),
    divide(OP["i64.div_s"], "i64.div_s"), divide(OP["i64.div_u"], "i64.div_u"), undefined, undefined],
  MOD: [({ f }) => { f.op(OP.drop); f.op(OP.drop); f.i32(0); },
    divide(OP["i32.rem_s"], "i32.rem_s"), divide(OP["i32.rem_u"], "i32.rem_u"),
    divide(OP["i64.rem_s"], "i64.rem_s"), divide(OP["i64.rem_u"], "i64.rem_u"),
    remainder(F32), remainder(F64)],
  MAX: [OP["i32.or"],
    maximum(I32, OP["i32.gt_s"]), maximum(I32, OP["i32.gt_u"]),
    maximum(I64, OP["i64.gt_s"]), maximum(I64, OP["i64.gt_u"]), OP["f32.max"], OP["f64.max"]],
  CMPLT: [OP["i32.lt_u"], OP["i32.lt_s"], OP["i32.lt_u"], OP["i64.lt_s"], OP["i64.lt_u"],
    OP["f32.lt"], OP["f64.lt"]],
  CMPEQ: same(OP["i32.eq"], OP["i32.eq"], OP["i64.eq"], OP["f32.eq"], OP["f64.eq"]),
  CMPNE: same(OP["i32.ne"], OP["i32.ne"], OP["i64.ne"], OP["f32.ne"], OP["f64.ne"]),
  AND: same(OP["i32.and"], OP["i32.and"], OP["i64.and"]),
  OR: same(OP["i32.or"], OP["i32.or"], OP["i64.or"]),
  XOR: same(OP["i32.xor"], OP["i32.xor"], OP["i64.xor"]),
  SHL: [OP.drop, shift(OP["i32.shl"]), shift(OP["i32.shl"]), OP["i64.shl"], OP["i64.shl"],
    undefined, undefined],
  SHR: [OP["i32.shr_u"], shift(OP["i32.shr_s"]), shift(OP["i32.shr_u"]), OP["i64.shr_s"], OP["i64.shr_u"],
    undefined, undefined],
  DOT2: [undefined, dot2, undefined, undefined, undefined, undefined, undefined],

  WHERE: [OP.select, OP.select, OP.select, OP.select, OP.select, OP.select, OP.select],
};

export const hasAlu = (op: AluOp, d: DType): boolean =>
  hasRepr(d) && ALU[op]?.[reprOf(d).column] !== undefined;

/** The op on the operands on the stack. `d` is their type; `second` the second one where it is a constant. */
export function emitAlu(c: AluContext, op: AluOp, d: DType, second: Value | undefined): void {
  const r = reprOf(d);
  const spelling = ALU[op]?.[r.column];
  if (spelling === undefined)
    throw new InternalError(`WASM has no ${op} of ${d.name}; codegen decomposes it`);
  if (typeof spelling === "number") c.f.op(spelling);
  else spelling(c, d, second);
  if (opRecord(op).leavesRange) r.narrow?.(c.f);
}

// ---- casts ----

type CastCode = (f: FunctionBuilder, to: Repr) => void;
const truncate =
  (i32: Opcode, i64: Opcode, u64: Opcode): CastCode =>
  (f, to) => {
    if (to.column === 3) return f.op(i64);
    if (to.column === 4) return f.op(u64);
    if (to.column === 2 && to.align === 2) {
      f.op(i64); // uint32 saturates at int64 and then wraps
      return f.op(OP["i32.wrap_i64"]);
    }
    f.op(i32);
    to.narrow?.(f);
  };
const shorten: CastCode = (f, to) => {
  if (to.type === I64) return;
  f.op(OP["i32.wrap_i64"]);
  to.narrow?.(f);
};
const widen =
  (extend: Opcode): CastCode =>
  (f, to) => {
    if (to.type === I64) f.op(extend);
    else to.narrow?.(f);
  };
interface CastRow {
  readonly toInt: CastCode;
  readonly toF32: OpcodeSpelling;
  readonly toF64: Opcode | undefined;
  readonly notZero: (f: FunctionBuilder) => void;
}
const notZeroInt: CastRow["notZero"] = (f) => {
  f.i32(0);
  f.op(OP["i32.ne"]);
};
const notZeroLong: CastRow["notZero"] = (f) => {
  f.i64(0n);
  f.op(OP["i64.ne"]);
};
const unsigned32: CastRow = {
  toInt: widen(OP["i64.extend_i32_u"]),
  toF32: OP["f32.convert_i32_u"],
  toF64: OP["f64.convert_i32_u"],
  notZero: notZeroInt,
};

/** From the column's type. */
const CAST: readonly [CastRow, CastRow, CastRow, CastRow, CastRow, CastRow, CastRow] = [
  { ...unsigned32, notZero: () => {} },
  {
    toInt: widen(OP["i64.extend_i32_s"]),
    toF32: OP["f32.convert_i32_s"],
    toF64: OP["f64.convert_i32_s"],
    notZero: notZeroInt,
  },
  unsigned32,
  {
    // castValue goes through float64, and rounds twice
    toInt: shorten,
    toF32: OP["f32.convert_i64_s"],
    toF64: OP["f64.convert_i64_s"],
    notZero: notZeroLong,
  },
  {
    toInt: shorten,
    toF32: OP["f32.convert_i64_u"],
    toF64: OP["f64.convert_i64_u"],
    notZero: notZeroLong,
  },
  {
    toInt: truncate(OP["i32.trunc_sat_f32_s"], OP["i64.trunc_sat_f32_s"], OP["i64.trunc_sat_f32_u"]),
    toF32: nothing,
    toF64: OP["f64.promote_f32"],
    notZero: (f) => {
      f.f32(0);
      f.op(OP["f32.ne"]);
    },
  },
  {
    toInt: truncate(OP["i32.trunc_sat_f64_s"], OP["i64.trunc_sat_f64_s"], OP["i64.trunc_sat_f64_u"]),
    toF32: OP["f32.demote_f64"],
    toF64: undefined,
    notZero: (f) => {
      f.f64(0);
      f.op(OP["f64.ne"]);
    },
  },
];

export function emitCast(c: AluContext, from: DType, to: DType): void {
  const target = reprOf(to);
  const row = CAST[reprOf(from).column];
  if (target.column === 0) row.notZero(c.f);
  else if (target.type === F32) {
    if (typeof row.toF32 === "number") c.f.op(row.toF32);
    else row.toF32?.(c, to, undefined);
  } else if (target.type !== F64) row.toInt(c.f, target);
  else if (row.toF64 !== undefined) c.f.op(row.toF64);
}

/** The bits of a float as an integer, or of an integer as a float, by the type that comes out. */
const REINTERPRET = {
  [I32]: OP["i32.reinterpret_f32"],
  [I64]: OP["i64.reinterpret_f64"],
  [F32]: OP["f32.reinterpret_i32"],
  [F64]: OP["f64.reinterpret_i64"],
} as const;

export function emitBitcast(c: AluContext, from: DType, to: DType): void {
  if (from.itemsize !== to.itemsize) {
    throw new InternalError(`WASM: BITCAST of ${from.name} to ${to.name}; their sizes differ`);
  }
  const [a, b] = [reprOf(from), reprOf(to)];
  if (a.type !== b.type) c.f.op(REINTERPRET[b.type as keyof typeof REINTERPRET]);
  else if (b.column === 0 && a.column !== 0) notZeroInt(c.f);
  else b.narrow?.(c.f);
}

// ---- helper functions of the module ----

const DIVISIONS = {
  "i32.div_s": OP["i32.div_s"],
  "i32.div_u": OP["i32.div_u"],
  "i32.rem_s": OP["i32.rem_s"],
  "i32.rem_u": OP["i32.rem_u"],
  "i64.div_s": OP["i64.div_s"],
  "i64.div_u": OP["i64.div_u"],
  "i64.rem_s": OP["i64.rem_s"],
  "i64.rem_u": OP["i64.rem_u"],
} as const;
type Division = keyof typeof DIVISIONS;
export type WasmHelper = "fmod" | Division;

/** a op b, but 0 for b = 0, and -a for a signed a / -1, where the instruction would trap. */
function division(code: Division): FunctionBuilder {
  const long = code.startsWith("i64");
  const type = long ? I64 : I32;
  const f = new FunctionBuilder({ params: [type, type], results: [type] });
  const constant = (x: number) => (long ? f.i64(BigInt(x)) : f.i32(x));
  f.get(1);
  f.op(long ? OP["i64.eqz"] : OP["i32.eqz"]);
  f.if();
  constant(0);
  f.op(OP.return);
  f.end();
  if (code.endsWith("div_s")) {
    f.get(1);
    constant(-1);
    f.op(long ? OP["i64.eq"] : OP["i32.eq"]);
    f.if();
    constant(0);
    f.get(0);
    f.op(long ? OP["i64.sub"] : OP["i32.sub"]);
    f.op(OP.return);
    f.end();
  }
  f.get(0);
  f.get(1);
  f.op(DIVISIONS[code]);
  return f;
}

/**
 * The exact remainder of x / y with the sign of x. |y| is doubled while it fits, then subtracted on the way
 * back: t <= a < 2t makes each a - t exact, and so are the doublings and halvings.
 */
function fmod(): FunctionBuilder {
  const f = new FunctionBuilder({ params: [F64, F64], results: [F64] });
  const [x, y] = [0, 1];
  const a = f.local(F64, 2);
  const t = a + 1;
  const test = (emit: () => void, result: () => void) => {
    emit();
    f.if();
    result();
    f.op(OP.return);
    f.end();
  };
  const ops = (...items: (number | Opcode)[]) => {
    for (let i = 0; i + 1 < items.length; i += 2) {
      f.get(items[i] as number);
      f.op(items[i + 1] as Opcode);
    }
  };
  ops(x, OP["f64.abs"]);
  f.set(a);
  ops(y, OP["f64.abs"]);
  f.tee(y);
  f.set(t);
  const notFinite = () => {
    f.get(a);
    f.f64(Infinity);
    f.op(OP["f64.lt"]);
    f.get(y);
    f.f64(0);
    f.op(OP["f64.gt"]);
    f.op(OP["i32.and"]);
    f.op(OP["i32.eqz"]);
  };
  test(notFinite, () => f.f64(NaN));
  const small = () => {
    f.get(a);
    ops(y, OP["f64.lt"]);
  };
  test(small, () => f.get(x));
  f.block();
  f.loop();
  f.get(t);
  ops(t, OP["f64.add"], a, OP["f64.le"]); // an overflowing sum is infinite, and stops the loop
  f.op(OP["i32.eqz"]);
  f.brIf(1);
  f.get(t);
  ops(t, OP["f64.add"]);
  f.set(t);
  f.br(0);
  f.end();
  f.end();
  f.loop();
  f.get(a);
  ops(t, OP["f64.ge"]);
  f.if();
  f.get(a);
  ops(t, OP["f64.sub"]);
  f.set(a);
  f.end();
  f.get(t);
  ops(y, OP["f64.ne"]);
  f.if();
  f.get(t);
  f.f64(0.5);
  f.op(OP["f64.mul"]);
  f.set(t);
  f.br(1);
  f.end();
  f.end();
  f.get(a);
  ops(x, OP["f64.copysign"]);
  return f;
}

export const buildHelper = (name: WasmHelper): FunctionBuilder => (name === "fmod" ? fmod() : division(name));
