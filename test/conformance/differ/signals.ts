// Random cases of normalisations, quantisation, recurrences, signals and losses.

import {
  type CaseDice,
  type CaseMaker,
  floats,
  full,
  type HostData,
  ints,
  list,
  makeCase,
  scalar,
} from "./cases.ts";
import { padding } from "./windows.ts";

const batchNorm: CaseMaker = (r) => {
  const shape = full(r.shape(2, 5));
  const channels = [shape[1] as number];
  const each = (low: number): HostData => r.tensor("float", channels, low, 3);
  const isTraining = r.chance(40);
  const opset = isTraining ? r.pick([14, 15]) : r.pick([7, 9, 14, 15]);
  const inputs = [r.tensor("float", shape), each(-3), each(-3), each(-3), each(1)];
  const attributes = r.maybe({ epsilon: 0.01, momentum: 0.75 });
  return makeCase(
    "BatchNormalization",
    inputs,
    { ...attributes, ...(isTraining ? { training_mode: 1 } : {}) },
    { opset, outputs: isTraining ? 3 : 1, slack: 1e-4 },
  );
};

const layerNorm =
  (op: string, outputs: number, opset: number): CaseMaker =>
  (r) => {
    const shape = full(r.shape(1, 4));
    const axis = r.axis(shape.length);
    const at = axis < 0 ? axis + shape.length : axis;
    const part = shape.slice(at);
    const bias = op === "LayerNormalization" && r.chance(50) ? r.tensor("float", part) : undefined;
    return makeCase(
      op,
      [r.tensor("float", shape), r.tensor("float", part), bias],
      { axis, ...r.maybe({ epsilon: 0.01 }) },
      { opset, outputs: r.int(1, outputs), slack: 1e-4 },
    );
  };

const instanceNorm: CaseMaker = (r) => {
  const shape = full(r.shape(3, 5));
  const c = [shape[1] as number];
  return makeCase(
    "InstanceNormalization",
    [r.tensor("float", shape), r.tensor("float", c), r.tensor("float", c)],
    r.maybe({ epsilon: 0.01 }),
    { opset: 7, slack: 1e-4 },
  );
};

const groupNorm: CaseMaker = (r) => {
  const [groups, each] = [r.int(1, 3), r.int(1, 3)];
  const opset = r.pick([18, 21]);
  const c = [opset === 18 ? groups : groups * each];
  return makeCase(
    "GroupNormalization",
    [
      r.tensor("float", [r.int(1, 2), groups * each, ...list(r.int(1, 2), () => r.int(1, 4))]),
      r.tensor("float", c),
      r.tensor("float", c),
    ],
    { num_groups: groups, ...r.maybe({ epsilon: 0.01 }) },
    { opset, slack: 1e-4 },
  );
};

const QUANTISED = ["uint8", "int8", "uint16", "int16"] as const;

/** A scale and zero point for all, for each index of an axis, or for blocks. */
function quantising(
  r: CaseDice,
  shape: readonly number[],
  type: string,
): { scale: HostData; zero: HostData | undefined; attributes: Record<string, number> } {
  const axis = r.axis(shape.length);
  const at = axis < 0 ? axis + shape.length : axis;
  const size = shape[at] as number;
  const how = r.pick(["all", "axis", "blocks"]);
  const block = r.pick([1, 2, size].filter((b) => size % b === 0));
  const part = how === "all" ? [] : how === "axis" ? [size] : shape.map((n, d) => (d === at ? n / block : n));
  const scale = {
    type: "float",
    shape: part,
    data: list(
      part.reduce((a, b) => a * b, 1),
      () => r.pick([0.25, 0.5, 1, 0.125]),
    ),
  };
  const zero = r.chance(30) ? undefined : r.tensor(type, part, -5, 9);
  return {
    scale,
    zero,
    attributes: how === "all" ? {} : how === "axis" ? { axis } : { axis, block_size: block },
  };
}

const quantizeLinear: CaseMaker = (r) => {
  const shape = full(r.shape(1, 4));
  const type = r.pick(QUANTISED);
  const { scale, zero, attributes } = quantising(r, shape, type);
  const stated: Record<string, number> =
    zero === undefined ? { output_dtype: { uint8: 2, int8: 3, uint16: 4, int16: 5 }[type] } : {};
  return makeCase(
    "QuantizeLinear",
    [r.tensor("float", shape, -60, 60), scale, zero],
    { ...attributes, ...stated },
    { opset: 21 },
  );
};

const dequantizeLinear: CaseMaker = (r) => {
  const shape = full(r.shape(1, 4));
  const type = r.pick([...QUANTISED, "int32"]);
  const { scale, zero, attributes } = quantising(r, shape, type);
  return makeCase(
    "DequantizeLinear",
    [r.tensor(type, shape, -100, 100), scale, type === "int32" ? undefined : zero],
    attributes,
    { opset: 21 },
  );
};

const qLinearMatMul: CaseMaker = (r) => {
  const [n, k, m] = [r.int(1, 4), r.int(1, 6), r.int(1, 4)];
  const type = r.pick(["uint8", "int8"]);
  const one = (scale: number): [HostData, HostData] => [
    { ...floats([scale]), shape: [] },
    { ...r.tensor(type, [1], -3, 3), shape: [] },
  ];
  return makeCase(
    "QLinearMatMul",
    [r.tensor(type, [n, k], -50, 50), ...one(0.1), r.tensor(type, [k, m], -50, 50), ...one(0.2), ...one(1.7)],
    {},
    { opset: 10, slack: 1, weights: [1, 2, 4, 5, 6, 7] },
  );
};

const qLinearConv: CaseMaker = (r) => {
  const [a, b] = [r.pick(["uint8", "uint8", "int8"]), r.pick(["int8", "uint8"])];
  const types: readonly [string, string] = a === "int8" ? ["int8", "int8"] : [a, b];
  const [c, m] = [r.int(1, 3), r.int(1, 3)];
  const perChannel = r.chance(50);
  const w = {
    ...floats(list(perChannel ? m : 1, () => r.pick([0.05, 0.1, 0.2]))),
    shape: perChannel ? [m] : [],
  };
  const zero = (type: string): HostData => ({ ...r.tensor(type, [1], 0, 3), shape: [] });
  const wZero = {
    ...r.tensor(types[1], [perChannel ? m : 1], 0, types[1] === "int8" ? 0 : 3),
    shape: perChannel ? [m] : [],
  };
  const uniform = { ...wZero, data: Array.from(wZero.data, () => wZero.data[0] as number) };
  const inputs = [
    r.tensor(types[0], [1, c, 5, 5], -50, 50),
    { ...floats([0.1]), shape: [] },
    zero(types[0]),
    r.tensor(types[1], [m, c, r.int(1, 3), r.int(1, 3)], -50, 50),
    w,
    uniform,
    { ...floats([1.3]), shape: [] },
    zero(types[0]),
    r.chance(50) ? r.tensor("int32", [m], -99, 99) : undefined,
  ];
  return makeCase(
    "QLinearConv",
    inputs,
    { ...padding(r, 2, [1, 1]), ...r.maybe({ strides: [r.int(1, 2), r.int(1, 2)] }) },
    { opset: 10, slack: 1, weights: [1, 2, 3, 4, 5, 6, 7, 8] },
  );
};

const matMulInteger: CaseMaker = (r) => {
  const [n, k, m] = [r.int(1, 4), r.int(1, 6), r.int(1, 4)];
  const [a, b] = [r.pick(["uint8", "int8"]), r.pick(["uint8", "int8"])];
  const batch = full(r.shape(0, 2, 3));
  const zero = (type: string): HostData | undefined =>
    r.chance(50) ? undefined : { ...r.tensor(type, [1], 0, 9), shape: [] };
  const perColumn = r.chance(30) ? r.tensor(b, [m], 0, 9) : zero(b);
  return makeCase(
    "MatMulInteger",
    [r.tensor(a, [...batch, n, k], -50, 99), r.tensor(b, [k, m], -50, 99), zero(a), perColumn],
    {},
    { opset: 10, weights: [1, 2, 3] },
  );
};

const recurrent =
  (op: "RNN" | "GRU" | "LSTM"): CaseMaker =>
  (r) => {
    const gates = { RNN: 1, GRU: 3, LSTM: 4 }[op];
    const [time, batch, input, hidden] = [r.int(1, 4), r.int(1, 3), r.int(1, 3), r.int(1, 3)];
    const direction = r.pick(["forward", "reverse", "bidirectional"]);
    const d = direction === "bidirectional" ? 2 : 1;
    const layout = 0;
    const one = (shape: readonly number[]): HostData => r.tensor("float", shape, -1, 1);
    const lengths = r.chance(40)
      ? ints(
          list(batch, () => r.int(1, time)),
          "int32",
        )
      : undefined;
    const state = (): HostData | undefined => (r.chance(50) ? one([d, batch, hidden]) : undefined);
    const inputs: (HostData | undefined)[] = [
      one([time, batch, input]),
      one([d, gates * hidden, input]),
      one([d, gates * hidden, hidden]),
      r.chance(70) ? one([d, 2 * gates * hidden]) : undefined,
      lengths,
      state(),
    ];
    if (op === "LSTM") inputs.push(state(), r.chance(40) ? one([d, 3 * hidden]) : undefined);
    const usual = { RNN: ["Tanh"], GRU: ["Sigmoid", "Tanh"], LSTM: ["Sigmoid", "Tanh", "Tanh"] }[op];
    const other = usual.map(() =>
      r.pick([
        "Relu",
        "Tanh",
        "Sigmoid",
        "HardSigmoid",
        "LeakyRelu",
        "Elu",
        "Softsign",
        "Softplus",
        "Affine",
        "ScaledTanh",
        "ThresholdedRelu",
      ]),
    );
    const named = r.chance(40) ? [...other, ...(d === 2 ? other : [])] : undefined;
    // without numbers onnxruntime takes 0 for those of some functions
    const numbers = (): number[] => (named ?? []).map(() => r.int(4, 12) / 16);
    const attributes = {
      hidden_size: hidden,
      direction,
      layout,
      ...(named === undefined
        ? {}
        : { activations: named, activation_alpha: numbers(), activation_beta: numbers() }),
      // onnxruntime leaves the cell of an LSTM as it is where the output looks at it
      ...(op !== "LSTM" && r.chance(20) ? { clip: 0.75 } : {}),
      ...(op === "GRU" ? r.maybe({ linear_before_reset: r.int(0, 1) }) : {}),
      ...(op === "LSTM" && r.chance(20) ? { input_forget: 1 } : {}),
    };
    return makeCase(op, inputs, attributes, { opset: 14, outputs: op === "LSTM" ? 3 : 2, slack: 1e-4 });
  };

const dft: CaseMaker = (r) => {
  const isComplex = r.chance(50);
  const shape = [...full(r.shape(2, 3, 6)), isComplex ? 2 : 1];
  const axis = r.int(r.chance(50) ? 1 : 0, shape.length - 2);
  const onesided = isComplex ? 0 : r.int(0, 1);
  const inverse = onesided === 1 ? 0 : r.int(0, 1);
  const length = r.chance(40) ? scalar(r.int(1, 8)) : undefined;
  const x = r.tensor("float", shape);
  if (r.chance(50))
    return makeCase(
      "DFT",
      [x, length],
      { axis, ...r.maybe({ inverse, onesided }) },
      { opset: 17, slack: 1e-5 },
    );
  return makeCase(
    "DFT",
    [x, length, scalar(r.chance(50) ? axis : axis - shape.length)],
    r.maybe({ inverse, onesided }),
    { opset: 20, slack: 1e-5 },
  );
};

const stft: CaseMaker = (r) => {
  const n = r.int(3, 6);
  const window = r.chance(60) ? r.tensor("float", [n], 0, 1) : undefined;
  return makeCase(
    "STFT",
    [
      r.tensor("float", [r.int(1, 2), r.int(n, 14), 1]),
      scalar(r.int(1, 4)),
      window,
      window === undefined || r.chance(50) ? scalar(n) : undefined,
    ],
    r.maybe({ onesided: r.int(0, 1) }),
    { opset: 17, slack: 1e-5, weights: [1, 3] },
  );
};

export const SIGNALS: Readonly<Record<string, CaseMaker>> = {
  BatchNormalization: batchNorm,
  LayerNormalization: layerNorm("LayerNormalization", 3, 17),
  RMSNormalization: layerNorm("RMSNormalization", 1, 23),
  InstanceNormalization: instanceNorm,
  GroupNormalization: groupNorm,
  LRN: (r) =>
    makeCase(
      "LRN",
      [r.tensor("float", full(r.shape(3, 4)))],
      { size: r.pick([1, 3, 5]), ...r.maybe({ alpha: 0.01, beta: 0.5, bias: 2 }) },
      { opset: 13, slack: 1e-5 },
    ),
  LpNormalization: (r) => {
    const shape = full(r.shape(1, 4));
    return makeCase(
      "LpNormalization",
      [r.tensor("float", shape)],
      r.maybe({ axis: r.axis(shape.length), p: r.int(1, 2) }),
      { opset: 1 + 10, slack: 1e-5 },
    );
  },
  MeanVarianceNormalization: (r) =>
    makeCase(
      "MeanVarianceNormalization",
      [
        r.tensor(
          "float",
          list(4, () => r.int(2, 4)),
        ),
      ],
      r.maybe({ axes: r.pick([[0, 2, 3], [1, 2], [0, 1, 2, 3], [-1]]) }),
      { opset: 13, slack: 1e-3 },
    ),
  QuantizeLinear: quantizeLinear,
  DequantizeLinear: dequantizeLinear,
  QLinearMatMul: qLinearMatMul,
  QLinearConv: qLinearConv,
  MatMulInteger: matMulInteger,
  RNN: recurrent("RNN"),
  GRU: recurrent("GRU"),
  LSTM: recurrent("LSTM"),
  DFT: dft,
  STFT: stft,
  Window: (r) =>
    makeCase(
      r.pick(["HannWindow", "HammingWindow", "BlackmanWindow"]),
      [scalar(r.int(2, 9))],
      r.maybe({ periodic: r.int(0, 1), output_datatype: r.pick([1, 11]) }),
      { opset: 17, slack: 1e-6 },
    ),
  MelWeightMatrix: (r) =>
    makeCase(
      "MelWeightMatrix",
      [
        scalar(r.int(2, 8)),
        scalar(r.pick([16, 32])),
        scalar(8000),
        { ...floats([r.pick([0, 100])]), shape: [] },
        { ...floats([4000]), shape: [] },
      ],
      {},
      { opset: 17, slack: 1e-5 },
    ),
  NegativeLogLikelihoodLoss: (r) => {
    const [n, c, rest] = [r.int(1, 4), r.int(2, 4), list(r.int(0, 2), () => r.int(1, 3))];
    const weight = r.chance(50) ? r.tensor("float", [c], 1, 3) : undefined;
    return makeCase(
      "NegativeLogLikelihoodLoss",
      [r.tensor("float", [n, c, ...rest]), r.tensor("int64", [n, ...rest], 0, c - 1), weight],
      r.maybe({ reduction: r.pick(["none", "sum", "mean"]), ignore_index: 1 }),
      { opset: 13, slack: 1e-5 },
    );
  },
  SoftmaxCrossEntropyLoss: (r) => {
    const [n, c, rest] = [r.int(1, 4), r.int(2, 4), list(r.int(0, 2), () => r.int(1, 3))];
    const weight = r.chance(50) ? r.tensor("float", [c], 1, 3) : undefined;
    return makeCase(
      "SoftmaxCrossEntropyLoss",
      [r.tensor("float", [n, c, ...rest]), r.tensor("int64", [n, ...rest], 0, c - 1), weight],
      r.maybe({ reduction: r.pick(["none", "sum", "mean"]), ignore_index: 1 }),
      { opset: 13, outputs: r.int(1, 2), slack: 1e-5 },
    );
  },
};
