// Every method of Tensor stands in one of three tables: its gradient is checked by torch's samples
// (conformance.test.ts), or here against central differences in float64, or it has none. A new
// method that is in no table fails.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { allEntries } from "../../scripts/reference.ts";
import { readSamples } from "../conformance/sample.ts";
import { gradcheck } from "./gradcheck.ts";
import { tensor } from "./numeric.ts";

const words = (text: string): string[] => text.trim().split(/\s+/);

/**
 * Differentiated by samples of the open conformance file; torch's name where it is not the same in camelCase.
 */
const SAMPLED = words(`
  acos acosh adaptiveAvgPool1d adaptiveAvgPool2d adaptiveMaxPool2d add addmm amax amin asinh atan2 atanh avgPool1d
  avgPool2d avgPool3d baddbmm batchNorm binaryCrossEntropy binaryCrossEntropyWithLogits bmm broadcastTo cat cdist celu
  cholesky clamp clampMax clampMin conv1d conv2d conv3d convTranspose1d convTranspose2d copysign cos cosh
  cosineSimilarity crossEntropy cummax cummin cumprod cumsum det diag diagEmbed diagonal div embedding erfc exp exp2
  expand flatten flip fliplr flipud floatPower fmax fmin fmod gather gelu glu groupNorm hardshrink hardswish huberLoss
  hypot imUnfold indexAdd indexCopy indexFill indexPut indexSelect inner instanceNorm interpolate inv klDiv l1Loss
  layerNorm leakyRelu lerp linalgNorm linear log log10 log1p log2 logSoftmax logaddexp logaddexp2 logcumsumexp
  logsigmoid logsumexp maskedFill maskedSelect matmul max maxPool1d maxPool2d maxPool3d maximum mean median min minimum
  mish mseLoss mul mv narrow neg nllLoss normalize outer pad permute pixelShuffle pixelUnshuffle pow prelu prod qr
  reciprocal relu remainder repeat repeatInterleave reshape rmsNorm roll rot90 rsqrt rsub scaledDotProductAttention
  scatter scatterAdd scatterReduce select selu sigmoid silu sinc smoothL1Loss softmax softmin softplus softshrink
  softsign solve sort split splitWithSizes sqrt square squeeze stack std stdMean sub sum svd t takeAlongDim tanh
  tanhshrink tensordot tile topk trace transpose tril triu unbind unflatten unfold unsqueeze var varMean vectorNorm view
  where xlogy Tensor.einsum Tensor.hstack Tensor.vstack
`);
const RENAMED: Readonly<Record<string, string>> = {
  imUnfold: "nn.functional.unfold",
  linalgNorm: "linalg.norm",
  smoothL1Loss: "nn.functional.smooth_l1_loss",
};

/** Other names of methods in these tables, called with the same arguments. */
const ALIASES: Readonly<Record<string, (x: Tensor) => readonly [alias: Tensor, own: Tensor]>> = {
  absolute: (x) => [x.absolute(), x.abs()],
  bfloat16: (x) => [x.bfloat16(), x.cast("bfloat16")],
  clip: (x) => [x.clip(-1, 1), x.clamp(-1, 1)],
  divide: (x) => [x.divide(2, { roundingMode: "floor" }), x.div(2, { roundingMode: "floor" })],
  double: (x) => [x.double(), x.cast("float64")],
  float: (x) => [x.float(), x.cast("float32")],
  fold: (x) => [x.reshape(1, 3, 1).fold([1, 3], [1, 3]), x.reshape(1, 3, 1).imFold([1, 3], [1, 3])],
  greater: (x) => [x.greater(0), x.gt(0)],
  greaterEqual: (x) => [x.greaterEqual(0.2), x.ge(0.2)],
  half: (x) => [x.half(), x.cast("float16")],
  int: (x) => [x.int(), x.cast("int32")],
  less: (x) => [x.less(0), x.lt(0)],
  lessEqual: (x) => [x.lessEqual(0.2), x.le(0.2)],
  long: (x) => [x.long(), x.cast("int64")],
  bool: (x) => [x.bool(), x.cast("bool")],
  multiply: (x) => [x.multiply(3), x.mul(3)],
  negative: (x) => [x.negative(), x.neg()],
  notEqual: (x) => [x.notEqual(0.2), x.ne(0.2)],
  subtract: (x) => [x.subtract(1, { alpha: 2 }), x.sub(1, { alpha: 2 })],
  trueDivide: (x) => [x.trueDivide(3), x.div(3)],
  "Tensor.concat": (x) => [Tensor.concat([x, x]), Tensor.cat([x, x])],
  "Tensor.where": (x) => [Tensor.where(x.gt(0), x, 0), x.gt(0).where(x, 0)],
};

/** Values are whole, or steps, or a name for something else: nothing flows. */
const FLAT = words(`
  all allclose any argmax argmin argsort bitcast bitwiseAnd bitwiseLeftShift bitwiseNot bitwiseOr bitwiseRightShift
  bitwiseXor bucketize countNonzero eq equal gcd ge gt heaviside idiv isclose isfinite isinf isnan isneginf isposinf isreal lcm le
  logicalAnd logicalNot logicalOr logicalXor lshift lt matrixRank multinomial ne nonzero oneHot rshift searchsorted
  signbit
`);
/** Steps: a gradient flows and is 0 everywhere. */
const ZERO: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  angle: (x) => x.angle(),
  ceil: (x) => x.ceil(),
  fill: (x) => x.fill(2),
  floor: (x) => x.floor(),
  floorDivide: (x) => x.floorDivide(0.3),
  round: (x) => x.round(),
  sgn: (x) => x.sgn(),
  sign: (x) => x.sign(),
  trunc: (x) => x.trunc(),
};
/** Made of nothing that a gradient could come from, or drawn at random. */
const SOURCES = words(`
  Tensor.arange Tensor.empty Tensor.emptyLike Tensor.eye Tensor.from Tensor.fromFile Tensor.fromImage Tensor.full Tensor.fullLike
  Tensor.glorotUniform Tensor.kaimingNormal Tensor.kaimingUniform Tensor.linspace Tensor.logspace Tensor.normal
  Tensor.ones Tensor.onesLike Tensor.rand Tensor.randLike Tensor.randint Tensor.randn Tensor.randnLike Tensor.randperm
  Tensor.scaledUniform Tensor.tri Tensor.uniform Tensor.zeros Tensor.zerosLike bernoulli emptyLike fullLike onesLike
  randLike randintLike randnLike zerosLike
`);
/**
 * About values, places and the graph itself. Gradients through custom, checkpoint,
 * shard: autograd.test, shard.test.
 */
const OTHER = words(`
  Tensor.autocast Tensor.checkpoint Tensor.custom Tensor.customOp Tensor.manualSeed Tensor.noGrad Tensor.realize Tensor.realizeSync
  Tensor.enableGrad Tensor.train Tensor.training assign backward data dataSync detach device devices dim dispose
  dtype grad item itemSync ndim numel requiresGrad placedLike toJSON realize realizeSync shape shard shardDim shard_ size toCanvas toImage toString tolist tolistSync
`);

type Case = readonly [
  f: (...xs: Tensor[]) => Tensor | readonly Tensor[],
  shapes: readonly (readonly number[])[],
  at?: (x: number) => number,
];
const one = (f: (x: Tensor) => Tensor | readonly Tensor[], at?: (x: number) => number): Case =>
  at === undefined ? [f, [[2, 3]]] : [f, [[2, 3]], at];
const two = (f: (x: Tensor, y: Tensor) => Tensor, ...shapes: number[][]): Case => [
  f as Case[0],
  shapes.length > 0
    ? shapes
    : [
        [2, 3],
        [2, 3],
      ],
];
const ints = (data: number[] | number[][] | number[][][]): Tensor => new Tensor(data);
const first = (xs: readonly Tensor[]): Tensor => xs[0] as Tensor;
const above = (x: number): number => x + 1.5;
/** symmetric, with eigenvalues apart */
const symmetric = (x: Tensor): Tensor => x.add(x.transpose()).add(Tensor.arange(3).mul(3).diag());
const regular = (x: Tensor): Tensor => x.add(Tensor.eye(3, { dtype: "float64" }).mul(3));

const CHECKED: Readonly<Record<string, Case>> = {
  T: one((x) => x.T),
  abs: one((x) => x.abs()),
  adaptiveAvgPool3d: [(x) => x.adaptiveAvgPool3d(2), [[1, 3, 3, 2]]],
  adaptiveMaxPool1d: [(x) => x.adaptiveMaxPool1d(2), [[1, 5]]],
  adaptiveMaxPool1dWithIndices: [(x) => first(x.adaptiveMaxPool1dWithIndices(2)), [[1, 5]]],
  adaptiveMaxPool2dWithIndices: [(x) => first(x.adaptiveMaxPool2dWithIndices(2)), [[1, 3, 3]]],
  adaptiveMaxPool3d: [(x) => x.adaptiveMaxPool3d(2), [[1, 3, 3, 2]]],
  adaptiveMaxPool3dWithIndices: [(x) => first(x.adaptiveMaxPool3dWithIndices(2)), [[1, 3, 3, 2]]],
  addbmm: [
    (x, y, z) => x.addbmm(y, z, { alpha: 2 }),
    [
      [2, 2],
      [2, 2, 3],
      [2, 3, 2],
    ],
  ],
  addcdiv: [(x, y, z) => x.addcdiv(y, z.add(3), { value: 2 }), [[3], [3], [3]]],
  addcmul: [(x, y, z) => x.addcmul(y, z, { value: 2 }), [[3], [3], [3]]],
  addmv: [(x, y, z) => x.addmv(y, z, { beta: 2 }), [[2], [2, 3], [3]]],
  addr: [(x, y, z) => x.addr(y, z, { alpha: 2 }), [[2, 3], [2], [3]]],
  aminmax: one((x) => x.aminmax(1)),
  asin: one((x) => x.mul(0.9).asin()),
  atan: one((x) => x.atan()),
  atleast1d: [(x) => x.atleast1d(), [[]]],
  atleast2d: [(x) => x.atleast2d(), [[2]]],
  atleast3d: [(x) => x.atleast3d(), [[2]]],
  bceWithLogits: two((x, y) => x.bceWithLogits(y.abs())),
  cast: one((x) => x.cast("float64").mul(x)),
  chainMatmul: [
    (x, y, z) => x.chainMatmul(y, z),
    [
      [2, 3],
      [3, 2],
      [2, 2],
    ],
  ],
  channelShuffle: [(x) => x.channelShuffle(2), [[1, 4, 2]]],
  chunk: one((x) => x.chunk(2, 1)),
  clone: one((x) => x.clone().mul(x)),
  contiguous: one((x) => x.permute(1, 0).contiguous()),
  convTranspose3d: [
    (x, w) => x.convTranspose3d(w, undefined, { stride: 2 }),
    [
      [1, 2, 2, 2],
      [1, 2, 2, 1, 2],
    ],
  ],
  cosineEmbeddingLoss: two((x, y) => x.cosineEmbeddingLoss(y, ints([1, -1]), { margin: -1 })),
  cross: two((x, y) => x.cross(y)),
  deg2rad: one((x) => x.deg2rad()),
  diff: one((x) => x.diff(2)),
  digamma: one((x) => x.digamma(), above),
  dist: two((x, y) => x.dist(y, 3)),
  dot: two((x, y) => x.dot(y), [2, 3], [3, 2]),
  dropout: one((x) => {
    Tensor.manualSeed(1); // the same elements every time
    return x.dropout(0.5, true);
  }),
  eigh: [(x) => first(symmetric(x).eigh()), [[3, 3]]],
  eigvalsh: [(x) => symmetric(x).eigvalsh(), [[3, 3]]],
  elu: one((x) => x.elu(0.7)),
  erf: one((x) => x.erf()),
  erfinv: one((x) => x.mul(0.9).erfinv()),
  expandAs: two((x, y) => x.expandAs(y).mul(y), [1, 3], [2, 3]),
  expm1: one((x) => x.expm1()),
  frac: one((x) => x.mul(3).frac()),
  frexp: one(
    (x) => first(x.frexp()),
    (x) => x * 0.37,
  ),
  gaussianNllLoss: [(x, y, v) => x.gaussianNllLoss(y, v.square().add(0.5)), [[3], [3], [3]]],
  ger: two((x, y) => x.ger(y), [2], [3]),
  get: one((x) => x.get("...", [null, null, -1], null)),
  getAsync: one((x) => x.get(ints([1, 1, 0]))),
  hardsigmoid: one((x) => x.mul(4).hardsigmoid()),
  hardtanh: one((x) => x.hardtanh(-0.4, 0.4)),
  hingeEmbeddingLoss: one((x) =>
    x.hingeEmbeddingLoss(
      ints([
        [1, -1, 1],
        [-1, 1, -1],
      ]),
    ),
  ),
  i0: one((x) => x.mul(12).i0().mul(1e-3)),
  i1: one((x) => x.mul(12).i1().mul(1e-3)),
  imFold: [(x) => x.imFold([3, 3], 2), [[1, 4, 4]]],
  inverse: [(x) => regular(x).inverse(), [[3, 3]]],
  kron: two((x, y) => x.kron(y), [2, 1], [2, 2]),
  kthvalue: one((x) => first(x.kthvalue(2))),
  ldexp: two((x, y) => x.ldexp(y)),
  lgamma: one((x) => x.lgamma(), above),
  logdet: [(x) => regular(x).logdet(), [[3, 3]]],
  logit: one((x) => x.mul(0.4).add(0.5).logit()),
  lpPool1d: [(x) => x.lpPool1d(3, 2), [[1, 4]], above],
  lpPool2d: [(x) => x.lpPool2d(3, 2), [[1, 4, 2]], above],
  lpPool3d: [(x) => x.lpPool3d(3, 2), [[1, 2, 2, 2]], above],
  lstsq: two((x, y) => x.lstsq(y).solution, [3, 2], [3, 1]),
  marginRankingLoss: two((x, y) =>
    x.marginRankingLoss(
      y,
      ints([
        [1, -1, 1],
        [-1, 1, -1],
      ]),
      { margin: 0.1 },
    ),
  ),
  maskedScatter: two((x, y) => x.maskedScatter(new Tensor([true, false, true]), y), [3], [2]),
  matrixNorm: [(x) => [x.matrixNorm("fro"), x.matrixNorm("nuc"), x.matrixNorm(1), x.matrixNorm(2)], [[3, 2]]],
  matrixPower: [(x) => [x.matrixPower(3), regular(x).matrixPower(-2)], [[3, 3]]],
  maxPool1dWithIndices: [(x) => first(x.maxPool1dWithIndices(2)), [[1, 5]]],
  maxPool2dWithIndices: [(x) => first(x.maxPool2dWithIndices(2)), [[1, 4, 4]]],
  maxPool3dWithIndices: [(x) => first(x.maxPool3dWithIndices(2)), [[1, 2, 2, 4]]],
  maxUnpool1d: [(x) => x.maxUnpool1d(ints([[1, 2]]), 2), [[1, 2]]],
  maxUnpool2d: [(x) => x.maxUnpool2d(ints([[[3, 4]]]), 2), [[1, 1, 2]]],
  maxUnpool3d: [(x) => x.maxUnpool3d(new Tensor([[[[1, 2]]]]), [1, 1, 2]), [[1, 1, 1, 2]]],
  maxWithIndices: one((x) => first(x.maxWithIndices(1))),
  minWithIndices: one((x) => first(x.minWithIndices(0))),
  mm: two((x, y) => x.mm(y), [2, 3], [3, 2]),
  mode: one((x) => first(x.mode())),
  moveaxis: one((x) => x.moveaxis(0, 1)),
  movedim: one((x) => x.movedim(0, 1)),
  msort: one((x) => x.msort()),
  mulacc: [(x, y, z) => x.mulacc(y, z), [[3], [3], [3]]],
  multiMarginLoss: one((x) => x.multiMarginLoss(ints([2, 0]), { p: 2 })),
  multilabelMarginLoss: one((x) =>
    x.mul(0.7).multilabelMarginLoss(
      ints([
        [2, -1, 0],
        [0, 1, -1],
      ]),
    ),
  ),
  multilabelSoftMarginLoss: two((x, y) => x.multilabelSoftMarginLoss(y.abs())),
  mvlgamma: one(
    (x) => x.mvlgamma(2),
    (x) => x + 2.5,
  ),
  nanToNum: one((x) => x.nanToNum()),
  nanmean: one((x) => x.nanmean(1)),
  nanmedian: one((x) => first(x.nanmedian(1))),
  nanquantile: one((x) => x.nanquantile(0.3, 1)),
  nansum: one((x) => x.nansum(1)),
  nextafter: one((x) => x.nextafter(2)),
  norm: one((x) => x.norm(3)),
  pairwiseDistance: two((x, y) => x.pairwiseDistance(y)),
  pinv: [(x) => x.pinv(), [[3, 2]]],
  poissonNllLoss: two((x, y) => x.poissonNllLoss(y.abs().mul(5), { full: true })),
  polygamma: one((x) => x.polygamma(2), above),
  positive: one((x) => x.positive().mul(x)),
  put: two((x, y) => x.put(ints([0, -1]), y), [2, 3], [2]),
  quantile: one((x) => x.quantile([0.2, 0.7], 1)),
  rad2deg: one((x) => x.rad2deg()),
  ravel: one((x) => x.ravel()),
  relu6: one((x) => x.mul(10).relu6()),
  reshapeAs: two((x, y) => x.reshapeAs(y).mul(y), [2, 3], [3, 2]),
  setitem: two((x, y) => x.clone().setitem([0, [1, null]], y), [2, 3], [2]),
  shrink: one((x) => x.shrink([null, [1, 3]])),
  sin: one((x) => x.sin()),
  sinh: one((x) => x.sinh()),
  slogdet: [(x) => regular(x).slogdet()[1], [[3, 3]]],
  softMarginLoss: one((x) =>
    x.softMarginLoss(
      ints([
        [1, -1, 1],
        [-1, 1, -1],
      ]),
    ),
  ),
  solveTriangular: [
    (x, y) => regular(x).solveTriangular(y),
    [
      [3, 3],
      [3, 2],
    ],
  ],
  sparseCategoricalCrossentropy: one((x) =>
    x.sparseCategoricalCrossentropy(ints([2, 0]), { labelSmoothing: 0.1 }),
  ),
  stride: one((x) => x.stride([1, 2])),
  svdvals: [(x) => x.svdvals(), [[3, 2]]],
  swapaxes: one((x) => x.swapaxes(0, 1)),
  swapdims: one((x) => x.swapdims(0, 1)),
  take: one((x) => x.take(ints([0, -1, 0]))),
  tan: one((x) => x.tan()),
  tensorSplit: one((x) => x.tensorSplit([1], 1)),
  threshold: one((x) => x.threshold(0.1, 7)),
  to: one((x) => x.to("JS").to("WASM").mul(x)),
  trapezoid: one((x) => x.trapezoid({ dx: 0.5 })),
  tripletMarginLoss: [
    (x, y, z) => x.tripletMarginLoss(y, z, { swap: true }),
    [
      [2, 3],
      [2, 3],
      [2, 3],
    ],
  ],
  upsample: [(x) => x.upsample({ size: 3, mode: "linear" }), [[1, 1, 4]]],
  upsampleBilinear: [(x) => x.upsampleBilinear({ size: [3, 3] }), [[1, 1, 2, 4]]],
  upsampleNearest: [(x) => x.upsampleNearest({ size: 5 }), [[1, 1, 3]]],
  vdot: two((x, y) => x.vdot(y), [3], [3]),
  viewAs: two((x, y) => x.viewAs(y).mul(y), [2, 3], [3, 2]),
  "Tensor.block": [
    (x, y) => Tensor.block([[x, y]]),
    [
      [2, 1],
      [2, 2],
    ],
  ],
  "Tensor.blockDiag": [
    (x, y) => Tensor.blockDiag([x, y]),
    [
      [2, 1],
      [1, 2],
    ],
  ],
  "Tensor.cartesianProd": [(x, y) => Tensor.cartesianProd([x, y]), [[2], [3]]],
  "Tensor.cat": [
    (x, y) => Tensor.cat([x, y], 1),
    [
      [2, 1],
      [2, 2],
    ],
  ],
  "Tensor.columnStack": [(x, y) => Tensor.columnStack([x, y]), [[2], [2, 2]]],
  "Tensor.dstack": [(x, y) => Tensor.dstack([x, y]), [[2], [2]]],
  "Tensor.meshgrid": [(x, y) => Tensor.meshgrid([x, y]), [[2], [3]]],
  "Tensor.multiDot": [
    (x, y, z) => Tensor.multiDot([x, y, z]),
    [
      [2, 3],
      [3, 2],
      [2, 2],
    ],
  ],
  "Tensor.stack": [(x, y) => Tensor.stack([x, y], 1), [[2], [2]]],
};

test("every public method is in exactly one table", () => {
  const all = allEntries().filter((e) => /^Tensor(Handle)?$/.test(e.owner ?? "") && e.kind !== "field");
  const names = [...new Set(all.map((e) => (e.isStatic ? `Tensor.${e.name}` : e.name)))];
  const tables = [
    SAMPLED,
    FLAT,
    Object.keys(ALIASES),
    Object.keys(ZERO),
    SOURCES,
    OTHER,
    Object.keys(CHECKED),
  ].flat();
  expect(
    tables.filter((n, i) => tables.indexOf(n) !== i),
    "in two tables",
  ).toEqual([]);
  expect(
    names.filter((n) => !tables.includes(n)),
    "in no table",
  ).toEqual([]);
  expect(
    tables.filter((n) => !names.includes(n)),
    "no method",
  ).toEqual([]);
});

describe("against central differences", () => {
  test.each(Object.entries(CHECKED))("%s", { timeout: 30_000 }, async (_, [f, shapes, at = (x) => x]) => {
    const inputs = shapes.map((s, i) => {
      const own = tensor(s, i + 1, "float64")
        .reshape(-1)
        .dataSync() as Float64Array;
      return new Tensor(own.map(at)).reshape(s);
    });
    await gradcheck(f, inputs);
  });
});

test.each(Object.entries(ALIASES))("%s is another name", async (_, f) => {
  const x = new Tensor([-1.7, 0.2, 2.6], { requiresGrad: true });
  const [alias, own] = f(x);
  expect([alias.dtype, alias.requiresGrad, await alias.tolist()]).toEqual([
    own.dtype,
    own.requiresGrad,
    await own.tolist(),
  ]);
});

test.each(Object.entries(ZERO))("%s passes nothing on", async (_, f) => {
  const x = new Tensor([-1.7, 0.2, 2.6], { requiresGrad: true });
  f(x).sum().backward();
  expect(await x.grad?.tolist()).toEqual([0, 0, 0]);
});

test.each(["eq", "isnan", "argmax", "signbit"] as const)("%s ends the graph", (name) => {
  const x = new Tensor([-1.7, 0.2, 2.6], { requiresGrad: true });
  const out = name === "eq" ? x.eq(0.2) : x[name]();
  expect([out.requiresGrad, out.context]).toEqual([false, undefined]);
});

const file =
  process.env.CONFORMANCE ??
  fileURLToPath(new URL("../../../shared/conformance/opinfo-open.jsonl.gz", import.meta.url));
test("the samples differentiate what the first table says", (context) => {
  if (!existsSync(file)) return context.skip(`there is no file ${file}; set CONFORMANCE to one of the form`);
  const found = new Set(readSamples(file).flatMap((s) => (s.grads === undefined ? [] : [s.op])));
  const snake = (n: string) =>
    n.replaceAll(/(?<=[a-z])\d*[A-Z]/g, (c) => `${c.slice(0, -1)}_${c.at(-1)?.toLowerCase()}`);
  const missing = SAMPLED.filter((name) => {
    const op = RENAMED[name] ?? snake(name.replace("Tensor.", ""));
    return ![op, `nn.functional.${op}`, `linalg.${op}`].some((n) => found.has(n));
  });
  expect(missing).toEqual([]);
});
