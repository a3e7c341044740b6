// Random cases of the ops of com.microsoft: products with an activation behind them, older names, and the
// table of all.

import { type CaseMaker, floats, full, ints, list } from "./cases.ts";
import { EIGHT_BIT } from "./eightbit.ts";
import { f, HEADS, make, one } from "./heads.ts";

const fusedMatMul: CaseMaker = (r) => {
  const [n, k, m, batch] = [r.int(1, 4), r.int(1, 4), r.int(1, 4), full(r.shape(0, 2, 3))];
  const [transA, transB] = [r.int(0, 1), r.int(0, 1)];
  const isBatch = batch.length > 0 && r.chance(30);
  const [transBatchA, transBatchB] = isBatch ? [r.int(0, 1), r.int(0, 1)] : [0, 0];
  const shaped = (rows: number, columns: number, flips: number, back: number): number[] => {
    const [a, b] = flips === 1 ? [columns, rows] : [rows, columns];
    return back === 1 ? [a, ...batch, b] : [...batch, a, b];
  };
  const inputs = [f(r, ...shaped(n, k, transA, transBatchA)), f(r, ...shaped(k, m, transB, transBatchB))];
  return make("FusedMatMul", inputs, {
    transA,
    transB,
    ...(isBatch ? { transBatchA, transBatchB } : {}),
    ...r.maybe({ alpha: 0.75 }),
  });
};

const fusedConv: CaseMaker = (r) => {
  const n = r.int(1, 2);
  const [kernel, spatial] = [list(n, () => r.int(1, 3)), list(n, () => r.int(4, 6))];
  const [activation, activation_params] = r.pick<readonly [string, readonly number[]]>([
    ["Relu", []],
    ["Tanh", []],
    ["Sigmoid", []],
    ["LeakyRelu", [0.1]],
    ["Clip", [-1, 2]],
    ["HardSigmoid", [0.3, 0.4]],
  ]);
  const m = r.int(1, 3);
  const out = spatial.map((s, i) => s - (kernel[i] as number) + 1);
  const inputs = [
    f(r, 1, 2, ...spatial),
    f(r, m, 2, ...kernel),
    f(r, m),
    r.chance(30) ? f(r, 1, m, ...out) : undefined,
  ];
  return make("FusedConv", inputs, {
    activation,
    ...(activation_params.length > 0 ? { activation_params } : {}),
    kernel_shape: kernel,
  });
};

const fusedGemm: CaseMaker = (r) => {
  const [n, k, m] = [r.int(1, 4), r.int(1, 4), r.int(1, 4)];
  const [activation, activation_alpha] = r.pick<readonly [string, number]>([
    ["Relu", 0],
    ["Tanh", 0],
    ["Sigmoid", 0],
    ["LeakyRelu", 0.1],
    ["Elu", 0.5],
  ]);
  const [transA, transB] = [r.int(0, 1), r.int(0, 1)];
  const inputs = [
    transA ? f(r, k, n) : f(r, n, k),
    transB ? f(r, m, k) : f(r, k, m),
    r.chance(60) ? f(r, m) : undefined,
  ];
  return make("FusedGemm", inputs, {
    transA,
    transB,
    activation,
    ...(activation_alpha === 0 ? {} : { activation_alpha }),
    ...r.maybe({ alpha: 0.5, beta: 2 }),
  });
};

const gelu =
  (op: string, hasBias: boolean): CaseMaker =>
  (r) => {
    const shape = full(r.shape(1, 3));
    return make(
      op,
      [f(r, ...shape), ...(hasBias ? [f(r, shape.at(-1) as number)] : [])],
      op === "QuickGelu" ? r.maybe({ alpha: 1.25 }) : {},
    );
  };

const OTHERS: Readonly<Record<string, CaseMaker>> = {
  "ms.Inverse": (r) => {
    const n = r.int(1, 4);
    const x = r.tensor("float", [...full(r.shape(0, 1)), n, n]);
    // far from a matrix without an inverse
    const data = Array.from(x.data, (v, i) => Number(v) + (Math.floor(i / n) % n === i % n ? 20 : 0));
    return make("Inverse", [{ ...x, data }], {}, { slack: 1e-4 });
  },
  "ms.CDist": (r) =>
    make(
      "CDist",
      [f(r, r.int(1, 4), 3), f(r, r.int(1, 4), 3)],
      { metric: r.pick(["euclidean", "sqeuclidean"]) },
      { slack: 1e-4 },
    ),
  "ms.ExpandDims": (r) =>
    make("ExpandDims", [f(r, 2, 3), { ...ints([r.int(-3, 2)], "int32"), shape: [] }], {}, { weights: [1] }),
  "ms.Trilu": (r) =>
    make("Trilu", [f(r, 3, 4), { ...ints([r.int(-3, 3)]), shape: [] }], r.maybe({ upper: r.int(0, 1) })),
  "ms.Unique": (r) => make("Unique", [r.tensor("float", [r.int(1, 6)], 0, 1)], {}, { outputs: 3 }),
  "ms.Pad": (r) =>
    make(
      "Pad",
      [f(r, 2, 3), ints(list(4, () => r.int(0, 2))), r.chance(50) ? floats([1.5]) : undefined],
      r.maybe({ mode: "constant" }),
    ),
  "ms.Range": (r) => make("Range", [one(r.int(0, 3)), one(r.int(4, 9)), one(r.int(1, 3))]),
  "ms.GatherND": (r) =>
    make("GatherND", [f(r, 3, 4), { ...ints(list(4, () => r.int(0, 2))), shape: [2, 2] }]),
};

export const MICROSOFT: Readonly<Record<string, CaseMaker>> = {
  ...HEADS,
  FusedMatMul: fusedMatMul,
  FusedConv: fusedConv,
  FusedGemm: fusedGemm,
  BiasGelu: gelu("BiasGelu", true),
  FastGelu: gelu("FastGelu", true),
  QuickGelu: gelu("QuickGelu", false),
  "ms.Gelu": gelu("Gelu", false),
  ...EIGHT_BIT,
  ...OTHERS,
};
