// Random cases of ops of com.microsoft on few bits: packed weights, arithmetic with scales and zero points.

import type { OnnxAttribute } from "gradloom/onnx";
import { type CaseDice, type CaseMaker, full, type HostData, ints, list } from "./cases.ts";
import { f, type Inputs, make, one } from "./heads.ts";

// ---- few bits ----

const matMulNBits: CaseMaker = (r) => {
  const bits = r.pick([2, 4, 4, 8]);
  const block = r.pick([16, 32, 64, 128, 256]);
  const K = r.pick([block, 2 * block, block + 16, 3 * block]);
  const [N, blocks] = [r.int(1, 5), Math.ceil(K / block)];
  const form = r.pick(["none", "packed", "floats"]);
  const perRow = Math.ceil((blocks * bits) / 8);
  const zero =
    form === "none"
      ? undefined
      : form === "packed"
        ? r.tensor("uint8", [N, perRow], 0, 255)
        : r.tensor("float", [N, blocks], 0, 2 ** bits - 1);
  const inputs = [
    f(r, ...r.pick([[1], [2, 3], [3]]), K),
    r.tensor("uint8", [N, blocks, (block * bits) / 8], 0, 255),
    r.tensor("float", [N, blocks], 0, 1),
    zero,
    undefined,
    r.chance(40) ? f(r, N) : undefined,
  ];
  return make(
    "MatMulNBits",
    inputs,
    { K, N, bits, block_size: block },
    { slack: 1e-4, weights: [1, 2, 3, 5] },
  );
};

const gatherBlocks: CaseMaker = (r) => {
  const [rows, blocks, bits] = [r.int(2, 6), r.int(1, 3), r.pick([4, 8])];
  const width = blocks * 16;
  const zero = r.chance(50) ? r.tensor("uint8", [rows, Math.ceil((blocks * bits) / 8)], 0, 255) : undefined;
  const inputs = [
    r.tensor("uint8", [rows, (width * bits) / 8], 0, 255),
    r.tensor("int64", full(r.shape(1, 2)), 0, rows - 1),
    r.tensor("float", [rows, blocks], 0, 1),
    zero,
  ];
  return make(
    "GatherBlockQuantized",
    inputs,
    { gather_axis: 0, quantize_axis: 1, block_size: 16, bits },
    { weights: [0, 2, 3] },
  );
};

const type8 = (r: CaseDice): string => r.pick(["uint8", "int8"]);

const point = (r: CaseDice, type: string): HostData => ({ ...r.tensor(type, [1], -9, 20), shape: [] });

const scale = (r: CaseDice): HostData => one(r.int(2, 12) / 64);

const codes = (r: CaseDice, type: string, shape: readonly number[]): HostData =>
  r.tensor(type, shape, type === "uint8" ? 0 : -100, 120);

const STEP = { slack: 1 };

const qBinary =
  (op: string): CaseMaker =>
  (r) => {
    const type = type8(r);
    const shape = full(r.shape(1, 3));
    const operand = (): Inputs => [codes(r, type, r.broadcast(shape)), scale(r), point(r, type)];
    return make(op, [...operand(), ...operand(), scale(r), point(r, type)], {}, STEP);
  };

const qUnary =
  (
    op: string,
    attributes: (r: CaseDice, ndim: number) => Record<string, OnnxAttribute>,
    low = 1,
    high = 4,
  ): CaseMaker =>
  (r) => {
    const type = type8(r);
    const shape = full(r.shape(low, high));
    const inputs = [codes(r, type, shape), scale(r), point(r, type), scale(r), point(r, type)];
    return make(op, inputs, attributes(r, shape.length), { ...STEP, weights: [1, 2, 3, 4] });
  };

const qConcat: CaseMaker = (r) => {
  const type = type8(r);
  const shape = full(r.shape(1, 3));
  const axis = r.axis(shape.length);
  const parts = list(r.int(1, 3), () => [
    codes(r, type, shape.with(axis, r.int(1, 3))),
    scale(r),
    point(r, type),
  ]).flat();
  return make(
    "QLinearConcat",
    [scale(r), point(r, type), ...parts],
    { axis },
    { ...STEP, weights: list(parts.length + 2, (i) => i).filter((i) => i < 2 || i % 3 !== 2) },
  );
};

const integerToFloat: CaseMaker = (r) => {
  const [n, k, m, batch] = [r.int(1, 4), r.int(1, 6), r.int(1, 4), full(r.shape(0, 1, 3))];
  const [a, b] = ["uint8", type8(r)];
  const perColumn = r.chance(40);
  const bScale = perColumn ? r.tensor("float", [m], 0, 1) : scale(r);
  const bZero = r.chance(40) ? undefined : perColumn ? r.tensor(b, [m], 0, 9) : point(r, b);
  if (r.chance(40))
    return make(
      "DynamicQuantizeMatMul",
      [f(r, ...batch, n, k), codes(r, b, [k, m]), bScale, bZero, r.chance(40) ? f(r, m) : undefined],
      {},
      { slack: 0.02 },
    );
  return make("MatMulIntegerToFloat", [
    codes(r, a, [...batch, n, k]),
    codes(r, b, [k, m]),
    scale(r),
    bScale,
    r.chance(60) ? point(r, a) : undefined,
    bZero,
    r.chance(40) ? f(r, m) : undefined,
  ]);
};

const qAttention: CaseMaker = (r) => {
  const [batch, n, size, time, width] = [r.int(1, 2), r.int(1, 3), r.int(1, 4), r.int(1, 4), r.int(1, 5)];
  const all = 3 * n * size;
  const hasPast = r.chance(30);
  const [a, b] = ["uint8", type8(r)];
  const keys = time + (hasPast ? 2 : 0);
  const masked = r.chance(50)
    ? ints(
        list(batch, () => r.int(1, keys)),
        "int32",
      )
    : undefined;
  const inputs = [
    codes(r, a, [batch, time, width]),
    codes(r, b, [width, all]),
    f(r, all),
    one(0.01),
    one(0.01),
    masked,
    point(r, a),
    point(r, b),
    hasPast ? f(r, 2, batch, n, 2, size) : undefined,
  ];
  return make(
    "QAttention",
    inputs,
    { num_heads: n, ...(r.chance(40) ? { unidirectional: 1 } : {}) },
    { outputs: hasPast ? 2 : 1, slack: 1e-4, weights: [1, 4, 7] },
  );
};

const dynamicLstm: CaseMaker = (r) => {
  const [time, batch, input, hidden, d] = [r.int(1, 3), r.int(1, 2), r.int(1, 4), r.int(1, 3), r.int(1, 2)];
  const type = type8(r);
  const perColumn = r.chance(40);
  const scales = (): HostData => r.tensor("float", perColumn ? [d, 4 * hidden] : [d], 0, 1);
  const small = (x: HostData): HostData => ({
    ...x,
    data: Array.from(x.data, (v) => (Number(v) + 0.5) / 128),
  });
  const zeros = (): HostData => ({
    type,
    shape: perColumn ? [d, 4 * hidden] : [d],
    data: list(perColumn ? d * 4 * hidden : d, () => (type === "uint8" ? 60 : 0)),
  });
  const inputs = [
    f(r, time, batch, input),
    codes(r, type, [d, input, 4 * hidden]),
    codes(r, type, [d, hidden, 4 * hidden]),
    r.chance(60) ? f(r, d, 8 * hidden) : undefined,
    undefined,
    undefined,
    undefined,
    undefined,
    small(scales()),
    zeros(),
    small(scales()),
    zeros(),
  ];
  return make(
    "DynamicQuantizeLSTM",
    inputs,
    { hidden_size: hidden, direction: d === 2 ? "bidirectional" : "forward" },
    { outputs: 3, slack: 0.05, weights: [1, 2, 8, 9, 10, 11] },
  );
};

const nhwcPool: CaseMaker = (r) => {
  const type = type8(r);
  const shape = [r.int(1, 2), r.int(4, 6), r.int(4, 6), r.int(1, 3)];
  return make("NhwcMaxPool", [codes(r, type, shape)], {
    kernel_shape: [r.int(1, 3), r.int(1, 3)],
    ...r.maybe({ strides: [r.int(1, 2), r.int(1, 2)], pads: [0, 0, 0, 0], ceil_mode: r.int(0, 1) }),
  });
};

const qWhere: CaseMaker = (r) => {
  const type = type8(r);
  const shape = full(r.shape(1, 3));
  const operand = (): Inputs => [codes(r, type, r.broadcast(shape)), scale(r), point(r, type)];
  return make(
    "QLinearWhere",
    [r.tensor("bool", r.broadcast(shape)), ...operand(), ...operand(), scale(r), point(r, type)],
    {},
    { ...STEP, weights: [2, 3, 5, 6, 7, 8] },
  );
};

const qAveragePool = qUnary(
  "QLinearAveragePool",
  (r) => ({
    kernel_shape: [r.int(1, 2), r.int(1, 2)],
    ...r.maybe({ strides: [r.int(1, 2), 1], channels_last: 0, count_include_pad: r.int(0, 1) }),
  }),
  4,
  4,
);

export const EIGHT_BIT: Readonly<Record<string, CaseMaker>> = {
  MatMulNBits: matMulNBits,
  GatherBlockQuantized: gatherBlocks,
  QLinearAdd: qBinary("QLinearAdd"),
  QLinearMul: qBinary("QLinearMul"),
  QLinearSigmoid: qUnary("QLinearSigmoid", () => ({})),
  QLinearLeakyRelu: qUnary("QLinearLeakyRelu", (r) => r.maybe({ alpha: 0.2 })),
  QLinearSoftmax: qUnary("QLinearSoftmax", (r, ndim) => ({ axis: r.axis(ndim), opset: r.pick([11, 13]) })),
  QLinearGlobalAveragePool: qUnary(
    "QLinearGlobalAveragePool",
    (r) => r.maybe({ channels_last: r.int(0, 1) }),
    4,
    4,
  ),
  QLinearAveragePool: (r) => {
    const pool = qAveragePool(r);
    const [x, ...rest] = pool.inputs as [HostData, ...HostData[]];
    return { ...pool, inputs: [codes(r, x.type, [1, 2, r.int(4, 6), r.int(4, 6)]), ...rest] };
  },
  QLinearConcat: qConcat,
  QLinearWhere: qWhere,
  MatMulIntegerToFloat: integerToFloat,
  QAttention: qAttention,
  DynamicQuantizeLSTM: dynamicLstm,
  NhwcMaxPool: nhwcPool,
};
