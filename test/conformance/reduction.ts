// Reductions, running reductions, order.

import { Tensor } from "gradloom";
import { type Call, type Handler, invoke, type Result, type Table, Unsupported } from "./call.ts";
import type { Arg } from "./sample.ts";

type Maybe<T> = T | Promise<T>;

/** One result after another, as torch's named tuples have them. */
const both = async (...results: readonly Maybe<Result>[]): Promise<Result> =>
  (await Promise.all(results)) as readonly Tensor[];

/** max and min: of two tensors, of all elements, or along a dim, where torch gives places too. */
const extreme =
  (name: "max" | "min"): Handler =>
  (c) => {
    if (c.named("dim", "keepdim", "other", "out").other instanceof Tensor)
      return invoke(c.tensor, `${name}imum`, c.named("dim", "keepdim", "other").other);
    const { dim, keepdim } = c.named("dim", "keepdim", "other");
    if (dim instanceof Tensor) return invoke(c.tensor, `${name}imum`, dim);
    // all that are equal share the gradient; along a dim only the one that is named gets it
    if (dim === undefined) return invoke(c.tensor, name);
    return invoke(c.tensor, `${name}WithIndices`, dim, keepdim === true);
  };

/** var and std: `correction` or the older `unbiased`, which may also come first. */
const spread =
  (name: string): Handler =>
  (c) => {
    const { dim, correction, keepdim } = spreadArgs(c);
    return invoke(c.tensor, name, dim, keepdim, correction);
  };
const spreadMean =
  (name: string): Handler =>
  (c) => {
    const { dim, correction, keepdim } = spreadArgs(c);
    if (`${name}Mean` in c.tensor) return invoke(c.tensor, `${name}Mean`, dim, keepdim, correction);
    return both(invoke(c.tensor, name, dim, keepdim, correction), invoke(c.tensor, "mean", dim, keepdim));
  };
function spreadArgs(c: Call): { dim: Arg; correction: number; keepdim: boolean } {
  if (c.variant === "unbiased") {
    const { unbiased } = c.named("unbiased");
    return { dim: undefined, correction: unbiased === false ? 0 : 1, keepdim: false };
  }
  const a = c.named("dim", "correction", "keepdim", "unbiased");
  const correction = a.unbiased === undefined ? (a.correction ?? 1) : a.unbiased === true ? 1 : 0;
  const dim = Array.isArray(a.dim) && a.dim.length === 0 ? undefined : a.dim;
  return { dim, correction: correction as number, keepdim: a.keepdim === true };
}

/** For torch an empty list of dims means all of them, unlike for us. */
const reduce =
  (name: string, more: readonly string[] = []): Handler =>
  (c) => {
    const { dim, keepdim, ...rest } = c.named("dim", "keepdim", ...more) as Record<string, Arg>;
    const all = Array.isArray(dim) && dim.length === 0 ? undefined : dim;
    const options = Object.fromEntries(Object.entries(rest).filter(([, v]) => v !== undefined));
    return invoke(
      c.tensor,
      name,
      all,
      keepdim ?? false,
      ...(Object.keys(options).length === 0 ? [] : [options]),
    );
  };

const median =
  (name: string): Handler =>
  (c) => {
    const { dim, keepdim } = c.named("dim", "keepdim");
    if (dim === undefined) return invoke(c.tensor, name);
    return invoke(c.tensor, name, dim, keepdim ?? false);
  };

export const reduction: Table = {
  // unlike the others, these two take an empty list of dims for none
  all: "dim keepdim",
  amax: reduce("amax"),
  amin: reduce("amin"),
  aminmax: (c) => {
    const { dim, keepdim } = c.named("dim", "keepdim");
    return invoke(c.tensor, "aminmax", dim, keepdim ?? false);
  },
  any: "dim keepdim",
  argmax: "dim keepdim",
  argmin: "dim keepdim",
  argsort: "dim descending ~stable",
  count_nonzero: "dim",
  cummax: "dim",
  cummin: "dim",
  cumprod: "dim *dtype",
  cumsum: "dim *dtype",
  logcumsumexp: "dim",
  log_softmax: "dim *dtype",
  logsumexp: reduce("logsumexp"),
  max: extreme("max"),
  mean: reduce("mean", ["dtype"]),
  median: median("median"),
  min: extreme("min"),
  mode: "dim keepdim",
  msort: "",
  nanmean: reduce("nanmean"),
  nansum: reduce("nansum", ["dtype"]),
  nanmedian: median("nanmedian"),
  kthvalue: "k dim keepdim",
  prod: (c) => {
    const { dim, keepdim, dtype } = c.named("dim", "keepdim", "dtype");
    return invoke(c.tensor, "prod", dim, keepdim ?? false, ...(dtype === undefined ? [] : [{ dtype }]));
  },
  quantile: "q dim keepdim *interpolation",
  softmax: "dim *dtype",
  "nn.functional.softmin": "dim *dtype",
  sort: (c) => {
    const { dim, descending } = c.named("dim", "descending", "stable");
    return invoke(c.tensor, "sort", dim ?? -1, descending ?? false);
  },
  std: spread("std"),
  std_mean: spreadMean("std"),
  sum: reduce("sum", ["dtype"]),
  topk: (c) => {
    const { k, dim, largest, sorted } = c.named("k", "dim", "largest", "sorted");
    if (k === undefined) throw new Unsupported("topk without k");
    return invoke(c.tensor, "topk", k, dim ?? -1, largest ?? true, sorted ?? true);
  },
  var: spread("var"),
  var_mean: spreadMean("var"),
};
