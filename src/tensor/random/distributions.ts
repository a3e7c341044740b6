// Random numbers that fewer programs draw (gradloom/random): permutations, samples of given probabilities,
// the initial weights of some layers.

import { dtypes, toDType } from "../../dtype.ts";
import { ArgumentError, ShapeError } from "../../errors.ts";
import type { Shape } from "../../shape/view.ts";
import { cast, counting, detach } from "../core.ts";
import { checkShape, leaf, type TensorOptions } from "../creation/creation.ts";
import { add, div, gt, log, lt, mul, neg, where } from "../math/arithmetic.ts";
import { argsort, topk } from "../reduce/order.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import {
  atOf,
  checkRange,
  drawn,
  fan,
  floatOption,
  type InitOptions,
  integers,
  kaimingStd,
  like,
  normalLike,
  origin,
  randomWords,
  scaled,
  uniformLike,
} from "./random.ts";

export function randperm(n: number, options: TensorOptions = {}): Tensor {
  const dtype = toDType(options.dtype ?? dtypes.int32);
  checkShape("randperm", [n]);
  const base = origin(options);
  if (n < 2) return leaf(cast(counting(base, n), dtype), options);
  return leaf(cast(argsort(randomWords(base, n)[0]), dtype), options);
}

export function randintLike(self: Tensor, low: number, high: number, options: TensorOptions = {}): Tensor {
  const dtype = toDType(options.dtype ?? self.dtype);
  checkRange(low, high, dtype);
  const made = integers(atOf(self, options), self.lazydata.shape, low, high, dtype);
  return leaf(like(self, made, options), options);
}

export function kaimingNormal(shape: Shape, options: InitOptions = {}): Tensor {
  const std = kaimingStd("kaimingNormal", shape, options);
  const unit = normalLike(origin(options), shape, floatOption("kaimingNormal", options));
  return leaf(mul(unit, std), options);
}
export function glorotUniform(shape: Shape, options: TensorOptions = {}): Tensor {
  const bound = Math.sqrt(6 / (fan("glorotUniform", shape, "fanIn") + fan("glorotUniform", shape, "fanOut")));
  const unit = uniformLike(origin(options), shape, floatOption("glorotUniform", options));
  return leaf(scaled(unit, -bound, bound), options);
}
// ---- samples of given probabilities ----

export function bernoulli(self: Tensor, p?: number): Tensor {
  if (p !== undefined && !(p >= 0 && p <= 1)) {
    throw new ArgumentError(`bernoulli: p is ${p}, expected a probability from 0 to 1`);
  }
  const work = self.dtype.isFloat ? self.dtype : dtypes.float32;
  const chance = uniformLike(atOf(self, {}), self.lazydata.shape, work);
  return cast(lt(chance, p ?? cast(detach(self), work)), self.dtype);
}
export function multinomial(self: Tensor, numSamples = 1, replacement = false): Tensor {
  if (self.ndim < 1 || self.ndim > 2) {
    throw new ShapeError(
      `multinomial: shape ${showShape(self.shape)} is neither a vector nor a matrix of weights`,
    );
  }
  const places = self.shape.at(-1) as number;
  if (!Number.isInteger(numSamples) || numSamples < 1 || (!replacement && numSamples > places)) {
    throw new ArgumentError(
      `multinomial: cannot draw ${numSamples} of ${places} places${replacement ? "" : " without replacement"}; ` +
        `expected 1 ${replacement ? "or more" : `to ${places}`}`,
    );
  }
  const weights = cast(detach(self), self.dtype === dtypes.float64 ? self.dtype : dtypes.float32);
  return replacement ? drawn(weights, numSamples) : raced(weights, numSamples);
}
/** Every index arrives after an exponential time of its rate; the first ones are the sample. */
function raced(self: Tensor, numSamples: number): Tensor {
  const waits = neg(log(add(neg(uniformLike(atOf(self, {}), self.lazydata.shape, self.dtype)), 1)));
  const arrivals = where(gt(self, 0), div(waits, self), Infinity);
  return topk(arrivals, numSamples, -1, false)[1];
}
