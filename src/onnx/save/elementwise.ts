// Elementwise ops as ops of the standard, with the meaning that src/ops.ts gives them: integers wrap,
// division by zero is 0, NaN wins a maximum. Types that runtimes do not compute in are carried by wider
// ones, which hold the same bits or values. In: an op and nodes. Out: a node.

import { bounds, type DType, dtypes, type Value } from "../../dtype.ts";
import { type Algebra, type AluOp, opRecord } from "../../ops.ts";
import { typeOfDType } from "../elements.ts";
import { OnnxError } from "../errors.ts";
import type { ExportNode, GraphBuilder, NodeAttributes } from "./graph.ts";

const { bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64 } = dtypes;

/** The type that a packed or small float type is written as: it holds all its values. */
export function writtenAs(d: DType): DType {
  if (d === dtypes.int4) return int8;
  if (d === dtypes.uint4) return uint8;
  return d.isFloat && d.bits < 16 ? float32 : d;
}
/** Types that no kernel of a runtime is there for, and what holds their bits or values. */
const CARRIERS: ReadonlyMap<DType, DType> = new Map([
  [bool, uint8],
  [int8, int32],
  [int16, int32],
  [uint16, int32],
  [uint32, int64],
  [uint64, int64],
]);
const carrierOf = (d: DType): DType => CARRIERS.get(d) ?? d;
const isNarrowFloat = (d: DType): boolean => d.isFloat && d.bits < 32;
const constant = (b: GraphBuilder, d: DType, x: number): ExportNode => b.number(d.isBig ? BigInt(x) : x, d);

type OpRule = (b: GraphBuilder, xs: readonly ExportNode[], d: DType) => ExportNode;
const simple =
  (op: string): OpRule =>
  (b, xs, d) =>
    b.map(op, xs, d);
const comparison =
  (op: string): OpRule =>
  (b, xs) =>
    b.map(op, xs, bool);
const not = (b: GraphBuilder, x: ExportNode): ExportNode => b.map("Not", [x], bool);
/** In the carrier, and back. */
const carried =
  (rule: OpRule, types: ReadonlySet<DType>): OpRule =>
  (b, xs, d) => {
    if (!types.has(d)) return rule(b, xs, d);
    const wide = carrierOf(d);
    return b.cast(
      rule(
        b,
        xs.map((x) => (x.dtype === d ? b.cast(x, wide) : x)),
        wide,
      ),
      d,
    );
  };
const either =
  (onBools: OpRule, rule: OpRule): OpRule =>
  (b, xs, d) =>
    d === bool ? onBools(b, xs, d) : rule(b, xs, d);

/** A divisor that is a number other than 0 and -1 needs no care. */
const isSafeDivisor = (x: ExportNode): boolean =>
  x.op === "Number" && Number(x.values[0]) !== 0 && Number(x.values[0]) !== -1;

/** C's division and remainder; by 0 they are 0, by -1 they must not trap. */
const division =
  (op: "Div" | "Mod"): OpRule =>
  (b, [x, y], d) => {
    const [top, by] = [x, y] as [ExportNode, ExportNode];
    const attributes: NodeAttributes = op === "Mod" ? { fmod: 1 } : {};
    if (d.isFloat || isSafeDivisor(by)) return b.map(op, [top, by], d, attributes);
    const is = (v: number): ExportNode => b.map("Equal", [by, constant(b, d, v)], bool);
    const isOdd = d.kind === "int" ? b.map("Or", [is(0), is(-1)], bool) : is(0);
    const [zero, one] = [constant(b, d, 0), constant(b, d, 1)];
    const made = b.map(op, [top, where(b, isOdd, one, by)], d, attributes);
    if (d.kind !== "int") return where(b, isOdd, zero, made);
    if (op === "Mod") return where(b, isOdd, zero, made);
    return where(b, isOdd, where(b, is(0), zero, b.map("Sub", [zero, top], d)), made);
  };
function where(b: GraphBuilder, c: ExportNode, x: ExportNode, y: ExportNode): ExportNode {
  const d = x.dtype;
  if (d === bool) {
    const [yes, no] = [b.map("And", [c, x], bool), b.map("And", [not(b, c), y], bool)];
    return b.map("Or", [yes, no], bool);
  }
  const wide = d === uint8 ? d : carrierOf(d);
  return b.cast(b.map("Where", [c, b.cast(x, wide), b.cast(y, wide)], wide), d);
}

/** Counts are taken modulo the width; an arithmetic shift of a negative number is that of its complement. */
const shift =
  (direction: "LEFT" | "RIGHT"): OpRule =>
  (b, [x, y], d) => {
    const bits = d.isBig ? uint64 : uint32;
    const count = b.map("BitwiseAnd", [b.cast(y as ExportNode, bits), constant(b, bits, d.bits - 1)], bits);
    const moved = (v: ExportNode): ExportNode => b.map("BitShift", [v, count], bits, { direction });
    const signed = d.isBig ? int64 : int32;
    const all = b.cast(x as ExportNode, signed);
    if (direction === "LEFT" || d.kind !== "int") return b.cast(moved(b.cast(x as ExportNode, bits)), d);
    const isNegative = b.map("Less", [all, constant(b, signed, 0)], bool);
    const flipped = where(b, isNegative, b.map("BitwiseNot", [all], signed), all);
    const shifted = b.cast(moved(b.cast(flipped, bits)), signed);
    return b.cast(where(b, isNegative, b.map("BitwiseNot", [shifted], signed), shifted), d);
  };
const trunc: OpRule = (b, [x], d) => {
  const isBelow = b.map("Less", [x as ExportNode, constant(b, d, 0)], bool);
  return b.map(
    "Where",
    [isBelow, b.map("Ceil", [x as ExportNode], d), b.map("Floor", [x as ExportNode], d)],
    d,
  );
};
/** In double: a logarithm of a power of two is whole. */
const log2: OpRule = (b, [x], d) => {
  const wide = b.map("Log", [b.cast(x as ExportNode, float64)], float64);
  return b.cast(b.map("Mul", [wide, b.number(Math.LOG2E, float64)], float64), d);
};
/** Runtimes have it for float32 only; others are computed from other ops. */
const erf: OpRule = (b, xs, d) => {
  const record = opRecord("ERF").decompose;
  if (d === float32 || record === undefined) return b.map("Erf", xs, d);
  return record(algebraOf(b), ...xs);
};
/** What the record of an op says it is made of. */
const decomposed =
  (op: AluOp): OpRule =>
  (b, xs) => {
    const record = opRecord(op).decompose;
    if (record === undefined) throw new OnnxError(`internal: ${op} has no decomposition`);
    return record(algebraOf(b), ...xs);
  };
const SMALL_INTS = new Set([int8, int16, uint16, uint8]);

const RULES: Readonly<Record<AluOp, OpRule>> = {
  NEG: either(
    (_, [x]) => x as ExportNode,
    (b, [x], d) =>
      d.kind === "uint"
        ? b.map("Sub", [constant(b, d, 0), x as ExportNode], d)
        : b.map("Neg", [x as ExportNode], d),
  ),
  EXP2: (b, [x], d) => b.map("Pow", [constant(b, d, 2), x as ExportNode], d),
  LOG2: log2,
  SIN: simple("Sin"),
  COS: simple("Cos"),
  ERF: erf,
  SQRT: simple("Sqrt"),
  RECIP: simple("Reciprocal"),
  TRUNC: trunc,
  ADD: either(simple("Or"), simple("Add")),
  SUB: either(simple("Xor"), simple("Sub")),
  MUL: either(simple("And"), simple("Mul")),
  DIV: simple("Div"),
  POW: simple("Pow"),
  IDIV: either(simple("And"), carried(division("Div"), SMALL_INTS)),
  MOD: carried(division("Mod"), new Set([bool, ...SMALL_INTS])),
  MAX: either(simple("Or"), carried(simple("Max"), new Set([int16, uint16]))),
  CMPLT: either(
    (b, [x, y]) => b.map("And", [not(b, x as ExportNode), y as ExportNode], bool),
    comparison("Less"),
  ),
  CMPEQ: comparison("Equal"),
  CMPNE: either(comparison("Xor"), (b, xs) => not(b, b.map("Equal", xs, bool))),
  AND: either(simple("And"), simple("BitwiseAnd")),
  OR: either(simple("Or"), simple("BitwiseOr")),
  XOR: either(simple("Xor"), simple("BitwiseXor")),
  SHL: shift("LEFT"),
  SHR: shift("RIGHT"),
  DOT2: decomposed("DOT2"),
  WHERE: (b, [c, x, y]) => where(b, c as ExportNode, x as ExportNode, y as ExportNode),
  MULACC: (b, [x, y, z], d) =>
    b.map("Add", [b.map("Mul", [x as ExportNode, y as ExportNode], d), z as ExportNode], d),
};

/** One op. Floats of 16 bits are computed in float32 and rounded, as kernels do it. */
export function alu(b: GraphBuilder, op: AluOp, xs: readonly ExportNode[]): ExportNode {
  const d = (xs.at(-1) as ExportNode).dtype;
  if (!isNarrowFloat(d) || op === "WHERE") {
    if (!isNarrowFloat(d)) return RULES[op](b, xs, d);
    const [c, x, y] = xs as [ExportNode, ExportNode, ExportNode];
    return b.cast(b.map("Where", [c, b.cast(x, float32), b.cast(y, float32)], float32), d);
  }
  const made = RULES[op](
    b,
    xs.map((x) => b.cast(x, float32)),
    float32,
  );
  return made.dtype === float32 ? b.cast(made, d) : made;
}
/** The algebra of decompositions, over nodes. */
function algebraOf(b: GraphBuilder): Algebra<ExportNode> {
  return {
    alu: (op, ...xs) => alu(b, op, xs),
    constant: (d, value) => b.number(value, d),
    cast: (x, d) => convert(b, x, d),
    bitcast: (x, d) => bitcast(b, x, d),
    dtypeOf: (x) => x.dtype,
  };
}

export function bitcast(b: GraphBuilder, x: ExportNode, d: DType): ExportNode {
  if (x.dtype === d) return x;
  if (x.dtype.isInt && d.isInt) return b.cast(x, d);
  return b.node("BitCast", {
    inputs: [x],
    attributes: { to: typeOfDType(d).code },
    shape: x.shape,
    dtype: d,
  });
}

/** A cast with the meaning of `castValue`: a float that an integer cannot hold goes to the nearest end. */
export function convert(b: GraphBuilder, x: ExportNode, to: DType): ExportNode {
  if (x.dtype === to) return x;
  if (to.isPacked || (to.isFloat && to.bits < 16)) {
    throw new OnnxError(
      `save: a cast to ${to.name} is computed; expected only weights of such a type: cast to float32 or an integer of 8 bits`,
      { op: "Cast" },
    );
  }
  if (!x.dtype.isFloat || !to.isInt) return b.cast(x, to);
  const wide = b.cast(x, float64);
  const isNumber = b.map("Equal", [wide, wide], bool);
  const number = b.map("Where", [isNumber, wide, b.number(0, float64)], float64);
  const clipped = (lo: number, hi: number): ExportNode =>
    b.map("Min", [b.map("Max", [number, b.number(lo, float64)], float64), b.number(hi, float64)], float64);
  if (to !== uint32 && !to.isBig) return b.cast(b.cast(clipped(-(2 ** 31), 2 ** 31 - 1), int32), to);
  const via = to === uint32 ? int64 : to;
  const [lo, hi] = bounds(via) as readonly [Value, Value];
  // the largest double below the end: the end itself is not one
  const end = 2 ** (via === int64 ? 63 : 64);
  const below = end - 2 ** (via === int64 ? 10 : 11);
  const isOver = b.map("Less", [b.number(below, float64), number], bool);
  return b.cast(where(b, isOver, b.number(hi, via), b.cast(clipped(Number(lo), below), via)), to);
}
