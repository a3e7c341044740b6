// Normalisations, losses and attention in the reference, as formulas of the elementwise ops and reductions.

import { arr, flag, num, nums, type Ops, options, text, type Value } from "./args.ts";
import { type Arr, array, axisOf, broadcastTo, gatherBy, isArr, sizeOf, Unsuitable } from "./array.ts";
import { add, div, ELEMENTWISE, fn, full, mapFloat, maximum, mul, sub, where } from "./elementwise.ts";
import { movedim, permute, reshape, slice } from "./movement.ts";
import { matmul } from "./products.ts";
import { logsumexp, mean, softmax, sum, variance } from "./reduce.ts";

type Options = Readonly<Record<string, Value>>;

/** (x - mean) / sqrt(variance + eps) over dims. */
function standardised(x: Arr, dims: readonly number[], eps: number): Arr {
  const apart = sub(x, mean(x, [...dims], true));
  return div(apart, mapFloat(add(variance(x, [...dims], true, 0), eps), Math.sqrt));
}
const affine = (x: Arr, o: Options, shape: (p: Arr) => Arr = (p) => p): Arr => {
  const weighted = isArr(o.weight) ? mul(x, shape(o.weight)) : x;
  return isArr(o.bias) ? add(weighted, shape(o.bias)) : weighted;
};
const lastDims = (x: Arr, s: Value): number[] => nums(s).map((_, i, all) => x.s.length - all.length + i);
/** A parameter of each channel, dim 1 of x. */
const perChannel =
  (x: Arr) =>
  (p: Arr): Arr =>
    reshape(p, [-1, ...x.s.slice(2).map(() => 1)]);

function batchNorm(x: Arr, runningMean: Value, runningVar: Value, o: Options): Arr {
  const eps = num(o.eps, 1e-5);
  const channel = perChannel(x);
  const dims = x.s.map((_, i) => i).filter((i) => i !== 1);
  const normal = flag(o.training)
    ? standardised(x, dims, eps)
    : div(sub(x, channel(arr(runningMean))), channel(mapFloat(add(arr(runningVar), eps), Math.sqrt)));
  return affine(normal, o, channel);
}
function groupNorm(x: Arr, groups: number, o: Options): Arr {
  const [n, c, ...rest] = x.s as [number, number, ...number[]];
  if (c % groups !== 0) throw new Unsuitable("groups");
  const parts = reshape(x, [n, groups, (c / groups) * sizeOf(rest)]);
  return affine(reshape(standardised(parts, [2], num(o.eps, 1e-5)), x.s), o, perChannel(x));
}
function rmsNorm(x: Arr, s: Value, o: Options): Arr {
  const size = add(mean(mul(x, x), lastDims(x, s), true), num(o.eps));
  return affine(div(x, mapFloat(size, Math.sqrt)), o);
}
function normalize(x: Arr, o: Options): Arr {
  const size = mapFloat(sum(mul(x, x), num(o.dim, 1), true), Math.sqrt);
  return div(x, maximum(size, 1e-12));
}
function cosineSimilarity(x: Arr, y: Arr, dim: number): Arr {
  const unitOf = (t: Arr): Arr => div(t, maximum(mapFloat(sum(mul(t, t), dim, true), Math.sqrt), 1e-8));
  return sum(mul(unitOf(x), unitOf(y)), dim);
}
function attention(q: Arr, k: Arr, v: Arr, o: Options): Arr {
  const scale = num(o.scale ?? undefined, 1 / Math.sqrt(q.s.at(-1) as number));
  const keys = permute(
    k,
    k.s.map((_, i, all) => (i === all.length - 1 ? i - 1 : i === all.length - 2 ? i + 1 : i)),
  );
  let scores = mapFloat(matmul(q, keys), (e) => e * scale);
  if (flag(o.isCausal)) {
    const [rows, columns] = scores.s.slice(-2) as [number, number];
    const seen = array(
      "bool",
      [rows, columns],
      Array.from({ length: rows * columns }, (_, i) => Number(i % columns <= Math.floor(i / columns))),
    );
    scores = where(broadcastTo(seen, scores.s), scores, full(scores.d, scores.s, -Infinity));
  }
  return matmul(softmax(scores, -1), v);
}

// ---- losses ----

function reduced(x: Arr, o: Options): Arr {
  const how = text(o.reduction, "mean");
  return how === "none" ? x : how === "sum" ? sum(x) : mean(x);
}
const absolute = (x: Arr): Arr => ELEMENTWISE.abs?.(x) as Arr;
/** Rows of class scores, the classes last. */
const classesLast = (x: Arr): Arr => (x.s.length === 1 ? x : movedim(x, [1], [-1]));
/** The log-probability of the right class, for each sample. */
function chosen(logs: Arr, target: Arr): Arr {
  const rows = classesLast(logs);
  return gatherBy(rows, target.s, (p) => [...p, Number(target.v[flat(target.s, p)])]);
}
const flat = (s: readonly number[], p: readonly number[]): number =>
  p.reduce((f, a, i) => f * (s[i] as number) + a, 0);
/** The mean of losses that are weighted by class divides by the weights, each loss by itself. */
function classLoss(losses: Arr, target: Arr, o: Options): Arr {
  if (!isArr(o.weight)) return reduced(losses, o);
  const { weight } = o;
  const w = gatherBy(weight, target.s, (p) => [Number(target.v[flat(target.s, p)])]);
  const weighted = mul(losses, w);
  return text(o.reduction, "mean") === "mean" ? sum(div(weighted, sum(w))) : reduced(weighted, o);
}
function crossEntropy(x: Arr, target: Arr, o: Options): Arr {
  const logs = sub(x, logsumexp(x, x.s.length === 1 ? 0 : 1, true));
  return classLoss(sub(0, chosen(logs, target)), target, o);
}
function huber(x: Arr, target: Arr, delta: number, smooth: boolean, o: Options): Arr {
  const apart = absolute(sub(x, target));
  const near = mapFloat(apart, (e) => (smooth ? (0.5 * e * e) / delta : 0.5 * e * e), 3);
  const far = mapFloat(
    apart,
    (e) => (smooth ? e - 0.5 * delta : delta * (e - 0.5 * delta)),
    3,
    (e) => delta * (e + delta),
  );
  const small = array(
    "bool",
    apart.s,
    apart.v.map((e) => Number(Number(e) < delta)),
  );
  return reduced(where(small, near, far), o);
}
function bceWithLogits(x: Arr, target: Arr, o: Options): Arr {
  // max(x, 0) - x t + log(1 + exp(-|x|))
  const tail = mapFloat(x, (e) => Math.log1p(Math.exp(-Math.abs(e))), 8);
  return reduced(add(sub(maximum(x, 0), mul(x, target)), tail), o);
}
function klDiv(x: Arr, target: Arr, o: Options): Arr {
  const logs = mapFloat(target, (e) => (e === 0 ? 0 : Math.log(e)), 4);
  const terms = mul(target, sub(logs, x));
  return text(o.reduction, "mean") === "batchmean"
    ? mapFloat(sum(terms), (e) => e / (x.s[0] as number))
    : reduced(terms, o);
}
const squares = (x: Arr): Arr => mul(x, x);

export const NETWORKS: Ops = {
  layerNorm: (x, s, o) => affine(standardised(x, lastDims(x, s), num(options(o).eps, 1e-5)), options(o)),
  rmsNorm: (x, s, o) => rmsNorm(x, s, options(o)),
  batchNorm: (x, m, v, o) => batchNorm(x, m, v, options(o)),
  groupNorm: (x, n, o) => groupNorm(x, num(n), options(o)),
  instanceNorm: (x, o) =>
    affine(
      standardised(x, x.s.map((_, i) => i).slice(2), num(options(o).eps, 1e-5)),
      options(o),
      perChannel(x),
    ),
  normalize: (x, o) => normalize(x, options(o)),
  cosineSimilarity: (x, y, o) => cosineSimilarity(x, arr(y), num(options(o).dim, 1)),
  scaledDotProductAttention: (q, k, v, o) => attention(q, arr(k), arr(v), options(o)),
  mseLoss: (x, t, o) => reduced(squares(sub(x, arr(t))), options(o)),
  l1Loss: (x, t, o) => reduced(absolute(sub(x, arr(t))), options(o)),
  smoothL1Loss: (x, t, o) => huber(x, arr(t), num(options(o).beta, 1), true, options(o)),
  huberLoss: (x, t, o) => huber(x, arr(t), num(options(o).delta, 1), false, options(o)),
  bceWithLogits: (x, t, o) => bceWithLogits(x, arr(t), options(o)),
  crossEntropy: (x, t, o) => crossEntropy(x, arr(t), options(o)),
  nllLoss: (x, t, o) => classLoss(sub(0, chosen(x, arr(t))), arr(t), options(o)),
  klDiv: (x, t, o) => klDiv(x, arr(t), options(o)),
  glu: (x, dim) => {
    const at = axisOf(num(dim, -1), x.s.length);
    const n = (x.s[at] as number) / 2;
    if (!Number.isInteger(n)) throw new Unsuitable("half of an odd size");
    return mul(slice(x, at, 0, 1, n), fn("sigmoid", slice(x, at, n, 1, n)));
  },
};
