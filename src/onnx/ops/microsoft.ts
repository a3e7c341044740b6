// Ops of com.microsoft that exporters and optimisers put into files: fused forms of what the standard says
// with several nodes. Activations, normalisations of a sum, and ops that the standard has under other names.

import type { Tensor } from "../../tensor/tensor.ts";
import { OnnxError } from "../errors.ts";
import { castOps } from "./cast.ts";
import { cast, widened, wideOf } from "./common.ts";
import { indexing } from "./indexing.ts";
import { rmsNorm, STASHED } from "./norm.ts";
import { type Call, flag, float, type Op, type OpTable, type Output, op, type Versions } from "./op.ts";
import { matmul } from "./reduce.ts";
import { sampling } from "./sample.ts";
import { shape } from "./shape.ts";

const fastGelu = (x: Tensor, bias: Tensor | undefined): Tensor =>
  widened(bias === undefined ? x : x.add(bias), (y) => y.gelu("tanh"));

interface Fused {
  readonly alpha: number;
  readonly transA: boolean;
  readonly transB: boolean;
  readonly transBatchA: boolean;
  readonly transBatchB: boolean;
}
const FUSED = {
  alpha: float(1),
  transA: flag(false),
  transB: flag(false),
  transBatchA: flag(false),
  transBatchB: flag(false),
};
function fusedMatMul(c: Call<Fused>): Tensor {
  const { alpha, transA, transB, transBatchA, transBatchB } = c.attr;
  // a matrix whose rows are the first dim, before the batches
  const flip = (given: Tensor, isOn: boolean, isBatch: boolean): Tensor => {
    const x = isBatch && given.ndim > 2 ? given.movedim(0, given.ndim - 2) : given;
    return isOn && x.ndim > 1 ? x.transpose(-2, -1) : x;
  };
  const y = matmul(flip(c.t(0), transA, transBatchA), flip(c.t(1), transB, transBatchB));
  return alpha === 1 ? y : y.mul(alpha);
}

// ---- normalisations of a sum ----

/** The outputs after the first are the mean, the inverse deviation, and the sum that was normalised. */
function skipNorm(c: Call<{ epsilon: number }>, isSimple: boolean): readonly Output[] {
  const bias = isSimple ? c.maybe(3) : c.maybe(4);
  const added = c.t(0).add(c.t(1));
  const sum = bias === undefined ? added : added.add(bias);
  const x = cast(sum, wideOf(sum.dtype));
  const mean = isSimple ? undefined : x.mean(-1, true);
  const centred = mean === undefined ? x : x.sub(mean);
  const inverse = centred.square().mean(-1, true).add(c.attr.epsilon).rsqrt();
  const scaled = cast(centred.mul(inverse), sum.dtype).mul(c.t(2));
  const beta = isSimple ? undefined : c.maybe(3);
  return [beta === undefined ? scaled : scaled.add(beta), mean, inverse, sum];
}
const SKIP = { epsilon: float(1e-12) };

/** An op of the standard, as some version of it has it. */
function same(table: OpTable, name: string, version = 21): Versions {
  const found = table[name]?.findLast(([since]) => since <= version)?.[1];
  if (found === undefined) throw new OnnxError(`internal: there is no ${name} of version ${version}`);
  return [[1, found]];
}
/** The elements in the order in which they are first met, where each of all is among them, and the counts. */
const [[, uniqueOp]] = same(indexing, "Unique") as readonly [readonly [number, Op]];
const unique = op({}, async (c) => {
  const inner = c.withAttributes({ axis: undefined, sorted: 0 });
  const [y, , inverse, counts] = (await uniqueOp.run(inner)) as readonly Output[];
  return [y, inverse, counts];
});

export const microsoft: OpTable = {
  "com.microsoft.Gelu": op({}, (c) => widened(c.t(0), (x) => x.gelu("none"))),
  "com.microsoft.FastGelu": op({}, (c) => fastGelu(c.t(0), c.maybe(1))),
  "com.microsoft.BiasGelu": op({}, (c) => widened(c.t(0).add(c.t(1)), (x) => x.gelu("none"))),
  "com.microsoft.QuickGelu": op({ alpha: float(1.702) }, (c) =>
    widened(c.t(0), (x) => x.mul(x.mul(c.attr.alpha).sigmoid())),
  ),
  "com.microsoft.FusedMatMul": op(FUSED, fusedMatMul),
  "com.microsoft.TransposeMatMul": op(FUSED, fusedMatMul),
  "com.microsoft.SkipLayerNormalization": op(SKIP, (c) => skipNorm(c, false)),
  "com.microsoft.SkipSimplifiedLayerNormalization": op(SKIP, (c) => skipNorm(c, true)),
  "com.microsoft.QuantizeLinear": same(castOps, "QuantizeLinear"),
  "com.microsoft.DequantizeLinear": same(castOps, "DequantizeLinear"),
  "com.microsoft.Trilu": same(shape, "Trilu"),
  "com.microsoft.Range": same(shape, "Range"),
  "com.microsoft.Pad": same(shape, "Pad"),
  "com.microsoft.GatherND": same(indexing, "GatherND"),
  "com.microsoft.GridSample": same(sampling, "GridSample"),
  "com.microsoft.Unique": unique,
  // exporters write these without a domain, too
  SimplifiedLayerNormalization: op(STASHED, (c) => rmsNorm(c)),
};
