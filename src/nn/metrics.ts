// Metrics: how good predictions are. Functions take a batch and give a Tensor; classes add up batches and
// give numbers at the end, as if all had been one batch. Predictions of classes are scores [n, classes], of
// which the largest counts, or the classes themselves [n].

import { ArgumentError, ShapeError } from "../errors.ts";
import { topk } from "../tensor/reduce/order.ts";
import { argmax } from "../tensor/reduce/totals.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { requireRange } from "../tensor/wholes.ts";

// ---- classes ----

/** The predicted class of each sample, and the target of each. */
function classesOf(who: string, predictions: Tensor, target: Tensor, threshold: number): [Tensor, Tensor] {
  requireTensors(who, predictions, target);
  const scores = predictions.detach();
  if (scores.ndim === target.ndim + 1) {
    requireRows(who, scores, target);
    requireRange(who, target, { size: scores.shape[1] as number });
    // classes are in dim 1, as in crossEntropy
    return [argmax(scores, 1).flatten(), target.detach().flatten()];
  }
  requireSame(who, scores, target);
  const picked = scores.dtype.isFloat ? scores.gt(threshold) : scores;
  return [picked.cast("int32").flatten(), target.detach().cast("int32").flatten()];
}
function requireTensors(who: string, ...given: readonly unknown[]): void {
  if (given.every((t) => t instanceof Tensor)) return;
  throw new ArgumentError(`${who}: expected Tensors: ${who}(predictions, target)`);
}
function requireRows(who: string, scores: Tensor, target: Tensor): void {
  const [n, , ...rest] = scores.shape;
  if (showShape([n as number, ...rest]) === showShape(target.shape)) return;
  throw new ShapeError(
    `${who}: scores of shape ${showShape(scores.shape)} do not fit targets of shape ${showShape(target.shape)}; ` +
      "expected [n, classes] and [n]",
  );
}
function requireSame(who: string, a: Tensor, b: Tensor): void {
  if (showShape(a.shape) === showShape(b.shape)) return;
  throw new ShapeError(
    `${who}: predictions of shape ${showShape(a.shape)} do not fit targets of shape ${showShape(b.shape)}`,
  );
}

/**
 * The part of the samples whose class is right. Float predictions of the shape of the target are
 * probabilities: true above `threshold`.
 * @example
 * await nn.metrics.accuracy(new Tensor([[0.1, 0.9], [0.8, 0.2]]), new Tensor([1, 1])).item() // => 0.5
 */
export function accuracy(predictions: Tensor, target: Tensor, threshold = 0.5): Tensor {
  const [found, wanted] = classesOf("accuracy", predictions, target, threshold);
  return found.eq(wanted).cast("float32").mean();
}
/**
 * The part of the samples whose class is among the `k` with the highest scores.
 * @example
 * const scores = new Tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]]);
 * await nn.metrics.topkAccuracy(scores, new Tensor([2, 2]), 2).item() // => 0.5
 */
export function topkAccuracy(scores: Tensor, target: Tensor, k = 5): Tensor {
  return topHits("topkAccuracy", scores, target, k).cast("float32").mean();
}
function topHits(who: string, scores: Tensor, target: Tensor, k: number): Tensor {
  requireTensors(who, scores, target);
  if (scores.ndim !== 2)
    throw new ShapeError(`${who}: scores have shape ${showShape(scores.shape)}, expected [n, classes]`);
  requireRows(who, scores, target);
  const classes = scores.shape[1] as number;
  if (!Number.isInteger(k) || k < 1 || k > classes) {
    throw new ArgumentError(
      `${who}: k is ${String(k)}, expected an integer from 1 to ${classes}, the number of classes`,
    );
  }
  const [, places] = topk(scores.detach(), k, 1);
  return places.eq(target.detach().cast(places.dtype).unsqueeze(1)).any(1);
}
/**
 * How often each class (row) was predicted as each class (column).
 * @example
 * await nn.metrics.confusionMatrix(new Tensor([0, 1, 1]), new Tensor([0, 1, 0]), 2).tolist() // => [[1, 1], [0, 1]]
 */
export function confusionMatrix(predictions: Tensor, target: Tensor, numClasses: number): Tensor {
  requireClasses("confusionMatrix", numClasses);
  const [found, wanted] = classesOf("confusionMatrix", predictions, target, 0.5);
  const classes = { size: numClasses };
  if (predictions.dtype.isInt) requireRange("confusionMatrix", predictions, classes);
  if (target.dtype.isInt) requireRange("confusionMatrix", target, classes);
  return counted(found, wanted, numClasses);
}
function requireClasses(who: string, numClasses: number): void {
  if (!Number.isInteger(numClasses) || numClasses < 1) {
    throw new ArgumentError(`${who}: numClasses is ${String(numClasses)}, expected an integer >= 1`);
  }
}
function counted(found: Tensor, wanted: Tensor, numClasses: number): Tensor {
  const all = Tensor.arange(numClasses, { device: found.device });
  // a product of two one-hot matrices; counts are exact in float32 below 2^24
  const rows = wanted.unsqueeze(1).eq(all).cast("float32");
  const columns = found.unsqueeze(1).eq(all).cast("float32");
  return rows.T.matmul(columns).cast("int32");
}

// ---- numbers ----

/**
 * The mean of the squared differences.
 * @example
 * await nn.metrics.mse(new Tensor([1.0, 2]), new Tensor([1.0, 4])).item() // => 2
 */
export function mse(predictions: Tensor, target: Tensor): Tensor {
  requireTensors("mse", predictions, target);
  requireSame("mse", predictions, target);
  return predictions.detach().sub(target.detach()).cast("float32").square().mean();
}
/**
 * The root of the mean of the squared differences.
 * @example
 * await nn.metrics.rmse(new Tensor([0.0, 0]), new Tensor([3.0, -3])).item() // => 3
 */
export function rmse(predictions: Tensor, target: Tensor): Tensor {
  return mse(predictions, target).sqrt();
}
/**
 * The mean of the absolute differences.
 * @example
 * await nn.metrics.mae(new Tensor([1.0, 2]), new Tensor([1.0, 4])).item() // => 1
 */
export function mae(predictions: Tensor, target: Tensor): Tensor {
  requireTensors("mae", predictions, target);
  requireSame("mae", predictions, target);
  return predictions.detach().sub(target.detach()).cast("float32").abs().mean();
}
/**
 * The part of the variance of the target that the predictions explain: 1 is perfect, 0 is no better than the
 * mean.
 * @example
 * await nn.metrics.r2(new Tensor([1.0, 2, 3]), new Tensor([1.0, 2, 3])).item() // => 1
 */
export function r2(predictions: Tensor, target: Tensor): Tensor {
  requireTensors("r2", predictions, target);
  requireSame("r2", predictions, target);
  const t = target.detach().cast("float32");
  const rest = t.sub(predictions.detach()).square().sum();
  return rest.div(t.sub(t.mean()).square().sum()).neg().add(1);
}

// ---- over many batches ----

/**
 * The mean of numbers, such as the losses of an epoch; a batch of `n` samples counts `n` times.
 * @example
 * const loss = new nn.metrics.Mean();
 * await loss.update(1, 3);
 * await loss.update(new Tensor(5.0));
 * loss.compute() // => 2
 */
export class Mean {
  #sum = 0;
  #count = 0;

  /** Adds a number or a Tensor of one element. */
  async update(value: number | Tensor, n = 1): Promise<void> {
    const x = value instanceof Tensor ? await value.detach().item() : value;
    if (typeof x !== "number")
      throw new ArgumentError(`Mean: got ${typeof x}, expected a number or a Tensor`);
    if (n < 0) throw new ArgumentError(`Mean: n is ${n}, expected how many samples the value is the mean of`);
    this.#sum += x * n;
    this.#count += n;
  }
  /** NaN before the first update. */
  compute(): number {
    return this.#sum / this.#count;
  }
  reset(): void {
    this.#sum = this.#count = 0;
  }
}

/**
 * Accuracy over many batches; `k` counts a class among the k best.
 * @example
 * const metric = new nn.metrics.Accuracy();
 * await metric.update(new Tensor([0, 1]), new Tensor([0, 0]));
 * await metric.update(new Tensor([1, 1]), new Tensor([1, 1]));
 * metric.compute() // => 0.75
 */
export class Accuracy {
  readonly #k: number;
  #right = 0;
  #count = 0;

  constructor({ k = 1 }: { readonly k?: number } = {}) {
    this.#k = k;
  }
  async update(predictions: Tensor, target: Tensor): Promise<void> {
    const hits = () => {
      if (this.#k !== 1) return topHits("Accuracy", predictions, target, this.#k);
      const [found, wanted] = classesOf("Accuracy", predictions, target, 0.5);
      return found.eq(wanted);
    };
    this.#right += await hits().cast("int32").sum().item();
    this.#count += target.size;
  }
  /** NaN before the first update. */
  compute(): number {
    return this.#right / this.#count;
  }
  reset(): void {
    this.#right = this.#count = 0;
  }
}

/** How the figures of classes become one: their mean, that by frequency, or the figure of all samples. */
export type Average = "macro" | "weighted" | "micro";
export interface ClassFigures {
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
}

/**
 * The confusion matrix over many batches, and what follows from it: accuracy, precision, recall, F1. A class
 * that was never predicted has precision 0, as in scikit-learn.
 * @example
 * const metric = new nn.metrics.Confusion(2);
 * await metric.update(new Tensor([0, 1, 1, 1]), new Tensor([0, 1, 0, 1]));
 * [metric.compute(), metric.figures().f1.toFixed(3)] // => [[[1, 1], [0, 2]], "0.733"]
 */
export class Confusion {
  readonly numClasses: number;
  #counts: number[][];

  constructor(numClasses: number) {
    requireClasses("Confusion", numClasses);
    this.numClasses = numClasses;
    this.#counts = this.#zeros();
  }
  #zeros(): number[][] {
    return Array.from({ length: this.numClasses }, () => new Array<number>(this.numClasses).fill(0));
  }
  async update(predictions: Tensor, target: Tensor): Promise<void> {
    const [found, wanted] = classesOf("Confusion", predictions, target, 0.5);
    const more = (await counted(found, wanted, this.numClasses).tolist()) as number[][];
    const seen = more.flat().reduce((a, b) => a + b, 0);
    if (seen !== target.size) {
      throw new ArgumentError(
        `Confusion: ${target.size - seen} of ${target.size} samples have a class outside 0 to ${this.numClasses - 1}`,
      );
    }
    this.#counts = this.#counts.map((row, i) => row.map((n, j) => n + (more[i]?.[j] ?? 0)));
  }
  /** How often each class (row) was predicted as each class (column). */
  compute(): number[][] {
    return this.#counts.map((row) => [...row]);
  }
  accuracy(): number {
    const right = this.#counts.reduce((sum, row, i) => sum + (row[i] as number), 0);
    return right / this.#counts.flat().reduce((a, b) => a + b, 0);
  }
  /** Precision, recall and F1 of each class. */
  perClass(): ClassFigures[] {
    return this.#counts.map((row, i) => {
      const right = row[i] as number;
      return figuresOf(
        right,
        this.#counts.reduce((sum, r) => sum + (r[i] as number), 0),
        row.reduce((a, b) => a + b, 0),
      );
    });
  }
  /** Precision, recall and F1 as one figure each. */
  figures(average: Average = "macro"): ClassFigures {
    const sizes = this.#counts.map((row) => row.reduce((a, b) => a + b, 0));
    const all = sizes.reduce((a, b) => a + b, 0);
    if (average === "micro") {
      const right = this.#counts.reduce((sum, row, i) => sum + (row[i] as number), 0);
      return figuresOf(right, all, all);
    }
    if (average !== "macro" && average !== "weighted") {
      throw new ArgumentError(
        `Confusion: average is ${String(average)}, expected "macro", "weighted" or "micro"`,
      );
    }
    const weights = average === "macro" ? sizes.map(() => 1 / sizes.length) : sizes.map((n) => n / all);
    const mean = (key: keyof ClassFigures): number =>
      this.perClass().reduce((sum, f, i) => sum + f[key] * (weights[i] as number), 0);
    return { precision: mean("precision"), recall: mean("recall"), f1: mean("f1") };
  }
  reset(): void {
    this.#counts = this.#zeros();
  }
}
const part = (x: number, of: number): number => (of === 0 ? 0 : x / of);
const figuresOf = (right: number, predicted: number, actual: number): ClassFigures => ({
  precision: part(right, predicted),
  recall: part(right, actual),
  f1: part(2 * right, predicted + actual),
});

/**
 * MSE, RMSE, MAE and R² over many batches.
 * @example
 * const metric = new nn.metrics.Regression();
 * await metric.update(new Tensor([1.0, 2]), new Tensor([1.0, 4]));
 * metric.compute().mse // => 2
 */
export class Regression {
  #count = 0;
  #squares = 0;
  #sizes = 0;
  /** of the targets: the mean, and the sum of squared distances from it */
  #mean = 0;
  #spread = 0;

  async update(predictions: Tensor, target: Tensor): Promise<void> {
    requireTensors("Regression", predictions, target);
    requireSame("Regression", predictions, target);
    const t = target.detach().cast("float32").flatten();
    const d = predictions.detach().cast("float32").flatten().sub(t);
    const mean = t.mean();
    const figures = Tensor.stack([d.square().sum(), d.abs().sum(), mean, t.sub(mean).square().sum()]);
    const [squares, sizes, m, spread] = (await figures.tolist()) as [number, number, number, number];
    const [n, all] = [t.size, this.#count + t.size];
    const apart = m - this.#mean;
    this.#spread += spread + (apart * apart * this.#count * n) / all;
    this.#mean += (apart * n) / all;
    this.#squares += squares;
    this.#sizes += sizes;
    this.#count = all;
  }
  compute(): { readonly mse: number; readonly rmse: number; readonly mae: number; readonly r2: number } {
    const error = this.#squares / this.#count;
    return {
      mse: error,
      rmse: Math.sqrt(error),
      mae: this.#sizes / this.#count,
      r2: 1 - this.#squares / this.#spread,
    };
  }
  reset(): void {
    this.#count = this.#squares = this.#sizes = this.#mean = this.#spread = 0;
  }
}
