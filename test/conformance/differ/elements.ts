// Random cases of ops element by element, of reductions and of products.

import {
  type CaseDice,
  type CaseMaker,
  floats,
  full,
  type HostData,
  ints,
  makeCase,
  scalar,
} from "./cases.ts";
import { NUMBERS, nonZero, number } from "./moves.ts";

const sum = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0);

const binary =
  (op: string, types: readonly string[] = NUMBERS, low = -4): CaseMaker =>
  (r) => {
    const type = r.pick(types);
    const shape = r.shape(0, 4);
    const [a, b] = [r.broadcast(shape), r.broadcast(shape)];
    return makeCase(
      op,
      [r.tensor(type, a, low), r.tensor(type, b, low)],
      {},
      { opset: r.pick([13, 14, 21]) },
    );
  };

const unary =
  (op: string, low: number, high: number, types: readonly string[] = ["float", "double"]): CaseMaker =>
  (r) =>
    makeCase(op, [r.tensor(r.pick(types), r.shape(0, 4), low, high)], {}, { opset: r.pick([13, 21]) });

const withAttributes =
  (op: string, attributes: (r: CaseDice) => Record<string, number>): CaseMaker =>
  (r) =>
    makeCase(op, [r.tensor("float", r.shape(0, 4))], r.maybe(attributes(r)), { opset: r.pick([16, 21]) });

const fraction = (r: CaseDice): number => r.int(1, 40) / 16;

/** Before version 18 the axes of a reduction were an attribute, those of ReduceSum before 13. */
const reduction =
  (op: string, types: readonly string[], low = -4): CaseMaker =>
  (r) => {
    const opset = r.pick([11, 13, 18, 21]);
    const shape = full(r.shape(1, 4));
    const type = r.pick(types);
    const isInput = opset >= (op === "ReduceSum" ? 13 : 18);
    const axes = r.chance(25)
      ? undefined
      : r.some(shape.map((_, d) => d)).map((d) => (r.chance(50) ? d : d - shape.length));
    const keepdims = r.maybe({ keepdims: r.int(0, 1) });
    const x = r.tensor(type, shape, low);
    if (!isInput)
      return makeCase(
        op,
        [x],
        { ...keepdims, ...(axes === undefined ? {} : { axes }) },
        { opset, slack: 1e-5 },
      );
    const noop = r.maybe({ noop_with_empty_axes: r.int(0, 1) });
    const list = axes === undefined ? (r.chance(50) ? undefined : ints([])) : ints(axes);
    return makeCase(op, [x, list], { ...keepdims, ...noop }, { opset, slack: 1e-5 });
  };

const argBest =
  (op: string): CaseMaker =>
  (r) => {
    const shape = r.shape(1, 4).map((n) => Math.max(n, 1));
    const attributes = { axis: r.axis(shape.length), keepdims: r.int(0, 1), select_last_index: r.int(0, 1) };
    return makeCase(op, [r.tensor(r.pick(["float", "int32"]), shape, -1, 1)], r.maybe(attributes), {
      opset: r.pick([12, 13, 21]),
    });
  };

const alongAxis =
  (op: string): CaseMaker =>
  (r) => {
    const shape = r.shape(1, 4);
    return makeCase(op, [r.float(shape)], r.maybe({ axis: r.axis(shape.length) }), {
      opset: r.pick([7, 11, 12, 13, 21]),
    });
  };

const cumulative =
  (op: string): CaseMaker =>
  (r) => {
    const shape = r.shape(1, 4);
    const attributes = r.maybe({ exclusive: r.int(0, 1), reverse: r.int(0, 1) });
    return makeCase(
      op,
      [r.tensor(number(r), shape), scalar(r.axis(shape.length), r.pick(["int32", "int64"]))],
      attributes,
      { opset: 14, slack: 1e-5 },
    );
  };

export const ELEMENTS: Readonly<Record<string, CaseMaker>> = {
  Add: binary("Add", [...NUMBERS, "uint8", "int8"], -4),
  Sub: binary("Sub"),
  Mul: binary("Mul"),
  Div: (r) => {
    const one = binary("Div")(r);
    return { ...one, inputs: [one.inputs[0], nonZero(one.inputs[1] as HostData)] };
  },
  Mod: (r) => {
    const one = binary("Mod", ["int32", "int64", "int8", "uint8", "int16", "uint32"], -9)(r);
    return {
      ...one,
      attributes: r.maybe({ fmod: r.int(0, 1) }),
      inputs: [one.inputs[0], nonZero(one.inputs[1] as HostData)],
    };
  },
  ModFloat: (r) => {
    const one = binary("Mod", ["float", "double"])(r);
    return { ...one, attributes: { fmod: 1 }, inputs: [one.inputs[0], nonZero(one.inputs[1] as HostData)] };
  },
  Pow: (r) => {
    const shape = r.shape(0, 4);
    const [base, exponent] = [
      r.pick(["float", "double", "int32", "int64"]),
      r.pick(["float", "int32", "int64", "double"]),
    ];
    const isNegative = r.chance(30) && base !== "int32" && base !== "int64";
    return makeCase(
      "Pow",
      [
        r.tensor(base, r.broadcast(shape), isNegative ? -4 : 0, 4),
        r.tensor(exponent, r.broadcast(shape), isNegative ? -3 : 0, 3),
      ],
      {},
      { opset: r.pick([12, 13, 15]) },
    );
  },
  Max: (r) => {
    const [shape, type] = [r.shape(0, 4), number(r)];
    return makeCase(
      r.pick(["Max", "Min"]),
      Array.from({ length: r.int(1, 3) }, () => r.tensor(type, r.broadcast(shape))),
      {},
      { opset: 13 },
    );
  },
  Sum: (r) => {
    const shape = r.shape(0, 4);
    return makeCase(
      r.pick(["Sum", "Mean"]),
      Array.from({ length: r.int(1, 3) }, () => r.tensor("float", r.broadcast(shape))),
      {},
      { opset: 13 },
    );
  },
  Less: (r) => ({ ...binary("Less")(r), op: r.pick(["Less", "Greater"]), opset: 13 }),
  LessOrEqual: (r) => ({
    ...binary("LessOrEqual")(r),
    op: r.pick(["LessOrEqual", "GreaterOrEqual"]),
    opset: 16,
  }),
  Equal: binary("Equal", [...NUMBERS, "bool"]),
  And: (r) => ({ ...binary("And", ["bool"])(r), op: r.pick(["And", "Or", "Xor"]) }),
  BitShift: (r) => ({
    ...binary("BitShift", ["uint8", "uint32", "uint64"], 0)(r),
    attributes: { direction: r.pick(["LEFT", "RIGHT"]) },
  }),
  BitwiseAnd: (r) => ({
    ...binary("BitwiseAnd", ["uint8", "int32", "int64", "int8"], -9)(r),
    op: r.pick(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]),
    opset: 18,
  }),
  Cast: (r) => {
    const [from, to] = [
      r.pick(["float", "double", "int32", "int64", "uint8", "int8", "bool", "float16"]),
      r.pick([1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13]),
    ];
    return makeCase(
      "Cast",
      [r.tensor(from, r.shape(0, 3), [2, 4, 12, 13].includes(to) && from !== "int32" ? 0 : -100, 120)],
      { to },
      { opset: r.pick([9, 13, 19]) },
    );
  },
  Clip: (r) => {
    const type = r.pick(["float", "double", "int32", "int64", "uint8", "int8"]);
    const one = (): HostData | undefined =>
      r.chance(30) ? undefined : { ...r.tensor(type, [1]), shape: [] };
    return makeCase(
      "Clip",
      [r.tensor(type, r.shape(0, 4), -6, 6), one(), one()],
      {},
      { opset: r.pick([12, 13]) },
    );
  },
  PRelu: (r) => {
    const shape = r.shape(1, 4);
    const slope = shape.map((n) => (r.chance(40) ? 1 : n)).slice(r.int(0, shape.length - 1));
    return makeCase(
      "PRelu",
      [r.tensor("float", shape), r.tensor("float", slope)],
      {},
      { opset: r.pick([9, 16]) },
    );
  },
  IsInf: withAttributes("IsInf", (r) => ({ detect_negative: r.int(0, 1), detect_positive: r.int(0, 1) })),
  LeakyRelu: withAttributes("LeakyRelu", (r) => ({ alpha: fraction(r) })),
  Elu: withAttributes("Elu", (r) => ({ alpha: fraction(r) })),
  Celu: withAttributes("Celu", (r) => ({ alpha: fraction(r) })),
  Selu: withAttributes("Selu", (r) => ({ alpha: fraction(r), gamma: fraction(r) })),
  ThresholdedRelu: withAttributes("ThresholdedRelu", (r) => ({ alpha: fraction(r) })),
  HardSigmoid: withAttributes("HardSigmoid", (r) => ({ alpha: fraction(r), beta: fraction(r) })),
  Shrink: withAttributes("Shrink", (r) => ({ bias: fraction(r), lambd: fraction(r) })),
  Gelu: (r) =>
    makeCase("Gelu", [r.tensor("float", r.shape(0, 4))], r.maybe({ approximate: r.pick(["none", "tanh"]) }), {
      opset: 20,
    }),
  Round: (r) =>
    makeCase(
      "Round",
      [{ ...r.tensor("float", [7]), data: [0.5, 1.5, 2.5, -0.5, -1.5, 2.4, -2.6] }],
      {},
      { opset: 11 },
    ),
  Sign: unary("Sign", -2, 2, ["float", "int32", "int64", "double", "int8", "uint8"]),
  Abs: unary("Abs", -4, 4, ["float", "int32", "int64", "int8", "uint8"]),
  Neg: unary("Neg", -4, 4, ["float", "int32", "int64", "int8", "double"]),
  Relu: unary("Relu", -4, 4, ["float", "double"]),
  Erf: unary("Erf", -3, 3, ["float"]),
  Tan: unary("Tan", -1, 1, ["float"]),
  Asin: unary("Asin", -1, 1, ["float"]),
  Acos: unary("Acos", -1, 1, ["float"]),
  Atan: unary("Atan", -9, 9, ["float"]),
  Sinh: unary("Sinh", -3, 3, ["float"]),
  Cosh: unary("Cosh", -3, 3, ["float"]),
  Asinh: unary("Asinh", -9, 9, ["float"]),
  Acosh: unary("Acosh", 1, 9, ["float"]),
  Atanh: unary("Atanh", -1, 1, ["float"]),
  Log: unary("Log", 0, 9),
  Exp: unary("Exp", -9, 9),
  Sqrt: unary("Sqrt", 0, 9),
  Reciprocal: unary("Reciprocal", 1, 9),
  Sigmoid: unary("Sigmoid", -9, 9, ["float"]),
  Softplus: unary("Softplus", -9, 9, ["float"]),
  Softsign: unary("Softsign", -9, 9, ["float"]),
  HardSwish: unary("HardSwish", -4, 4, ["float"]),
  Mish: (r) => ({ ...unary("Mish", -4, 4, ["float"])(r), opset: 18 }),
};

export const REDUCES: Readonly<Record<string, CaseMaker>> = {
  ReduceSum: reduction("ReduceSum", ["float", "double", "int32", "int64"]),
  ReduceMean: reduction("ReduceMean", ["float", "double", "int32"]),
  ReduceMax: reduction("ReduceMax", ["float", "double", "int32", "int64", "int8", "uint8"]),
  ReduceMin: reduction("ReduceMin", ["float", "double", "int32", "int64", "int8", "uint8"]),
  ReduceProd: reduction("ReduceProd", ["float", "int32", "int64"]),
  ReduceL1: reduction("ReduceL1", ["float", "int32"]),
  ReduceL2: reduction("ReduceL2", ["float", "int32"]),
  ReduceSumSquare: reduction("ReduceSumSquare", ["float", "double", "int32"]),
  ReduceLogSum: reduction("ReduceLogSum", ["float"], 1),
  ReduceLogSumExp: reduction("ReduceLogSumExp", ["float", "double"]),
  ArgMax: argBest("ArgMax"),
  ArgMin: argBest("ArgMin"),
  Softmax: alongAxis("Softmax"),
  LogSoftmax: alongAxis("LogSoftmax"),
  Hardmax: alongAxis("Hardmax"),
  CumSum: cumulative("CumSum"),
  MatMul: (r) => {
    const [n, k, m] = [r.int(1, 5), r.int(1, 5), r.int(1, 5)];
    const batch = full(r.shape(0, 2));
    const type = r.pick(["float", "double", "int32", "int64"]);
    const a = r.chance(15) ? [k] : [...r.broadcast(batch), n, k];
    const b = r.chance(15) ? [k] : [...r.broadcast(batch), k, m];
    return makeCase(
      "MatMul",
      [r.tensor(type, a), r.tensor(type, b)],
      {},
      { opset: r.pick([9, 13]), slack: 1e-5 },
    );
  },
  Gemm: (r) => {
    const [n, k, m] = [r.int(1, 5), r.int(1, 5), r.int(1, 5)];
    const [transA, transB] = [r.int(0, 1), r.int(0, 1)];
    const bias = r.pick([undefined, [n, m], [m], [1, m], [n, 1], [], [1]]);
    const x = [r.tensor("float", transA ? [k, n] : [n, k]), r.tensor("float", transB ? [m, k] : [k, m])];
    return makeCase(
      "Gemm",
      [...x, bias === undefined ? undefined : r.tensor("float", bias)],
      { transA, transB, ...r.maybe({ alpha: fraction(r), beta: fraction(r) }) },
      { opset: r.pick([11, 13]), slack: 1e-5 },
    );
  },
  Einsum: (r) => {
    const sizes: Readonly<Record<string, number>> = {
      i: r.int(1, 4),
      j: r.int(1, 4),
      k: r.int(1, 4),
      b: r.int(1, 3),
      h: 2,
    };
    const equation = r.pick([
      "ij,jk->ik",
      "bij,bjk->bik",
      "ij->ji",
      "ii->i",
      "ij->",
      "ij->i",
      "i,j->ij",
      "bhij,bhkj->bhik",
      "ij,ij->",
      "ij,jk",
      "bi j , b jk -> bik",
      "ji",
      "...ij,...jk->...ik",
      "ii",
      "i,i->i",
      "b...,b...->...",
    ]);
    const inputs = (equation.split("->")[0] as string).replaceAll(" ", "").split(",");
    const dots = full(r.shape(1, 2, 3));
    const shapes = inputs.map((s) =>
      s
        .replace("...", ".")
        .split("")
        .flatMap((ch) => (ch === "." ? dots : [sizes[ch] as number])),
    );
    return makeCase(
      "Einsum",
      shapes.map((s) => r.tensor("float", s)),
      { equation },
      { opset: 12, slack: 1e-5 },
    );
  },
  Det: (r) => {
    const n = r.int(1, 4);
    return makeCase(
      "Det",
      [r.tensor("float", [...full(r.shape(0, 2)), n, n])],
      {},
      { opset: 11, slack: 1e-4 },
    );
  },
  ConstantOfShape: (r) => makeCase("ConstantOfShape", [ints(r.shape(0, 4))], {}, { opset: 9 }),
  SumOfAll: (r) => {
    // a reduction of what is empty, over the dims that are not
    const shape = [r.int(0, 2), r.int(0, 2), r.int(0, 2)];
    return makeCase(
      r.pick(["ReduceSum", "ReduceSumSquare", "ReduceL1"]),
      [r.tensor("float", shape), ints([sum(shape) % 3])],
      {},
      { opset: 18 },
    );
  },
  DynamicQuantizeLinear: (r) =>
    makeCase(
      "DynamicQuantizeLinear",
      [r.tensor("float", full(r.shape(1, 3)), r.int(-9, 0), r.int(1, 9))],
      {},
      { opset: 11, outputs: 3, slack: 1e-5 },
    ),
  Scales: (r) =>
    makeCase(
      "Upsample",
      [
        r.tensor("float", [1, r.int(1, 2), r.int(1, 4), r.int(1, 4)]),
        floats([1, 1, r.int(1, 3), r.int(1, 3)]),
      ],
      { mode: r.pick(["nearest", "linear"]) },
      { opset: 9 },
    ),
};
