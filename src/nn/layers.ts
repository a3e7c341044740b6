// Layers. A layer, like a model, is a plain object with tensors in its properties and a `forward` method.
// Nothing is registered: `getStateDict` and `getParameters` find the tensors. Initial values are those of
// torch. Layers that behave differently in training (dropout, batch norm) ask module.ts.

import { type DTypeLike, dtypes } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { prod, range } from "../helpers.ts";
import type { ConvOptions, ConvTransposeOptions, PerDim } from "../tensor/conv/conv.ts";
import { Tensor } from "../tensor/tensor.ts";
import { Module, trains } from "./module.ts";
import {
  conv1d,
  conv2d,
  conv3d,
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
  linear,
} from "./operations.ts";

/** What Sequential takes: an object with `forward`, or a function. */
export type Layer = { forward(x: Tensor): Tensor } | ((x: Tensor) => Tensor);

/** The device and dtype of a layer's parameters. */
export interface LayerOptions {
  /** default: Device.DEFAULT */
  readonly device?: string;
  /** default: float32 */
  readonly dtype?: DTypeLike;
}
export interface BiasOptions extends LayerOptions {
  /** default: true */
  readonly bias?: boolean;
}

// ---- parameters ----

/**
 * A tensor that is trained: in memory of its own, with a gradient.
 * @example
 * nn.parameter(Tensor.ones(2)).requiresGrad // => true
 */
export function parameter(t: Tensor): Tensor {
  const own = t.detach().contiguous();
  own.requiresGrad = true;
  return own;
}
const place = ({ device, dtype = dtypes.float32 }: LayerOptions) => ({
  ...(device !== undefined && { device }),
  dtype,
});
export const uniform = (shape: readonly number[], bound: number, options: LayerOptions): Tensor =>
  parameter(Tensor.uniform(shape, -bound, bound, place(options)));
export const filled = (shape: readonly number[], value: number, options: LayerOptions): Tensor =>
  parameter(Tensor.full(shape, value, place(options)));
/** A tensor of the state that is not trained. */
export const statistic = (shape: readonly number[], value: number, options: LayerOptions): Tensor =>
  Tensor.full(shape, value, place(options)).contiguous();

export function positive(layer: string, sizes: Readonly<Record<string, number>>): void {
  for (const [name, n] of Object.entries(sizes)) {
    if (!Number.isInteger(n) || n < 1) {
      throw new ArgumentError(`${layer}: ${name} is ${n}, expected an integer >= 1`);
    }
  }
}

// ---- composition ----

/** Runs a layer or a function. */
export function call(layer: Layer, x: Tensor, who: string, i: number): Tensor {
  const y = typeof layer === "function" ? layer(x) : layer.forward(x);
  if (y !== undefined) return y;
  throw new ArgumentError(
    `${who}: ${who === "Compose" ? "transform" : "layer"} ${i} returned undefined; return the result`,
  );
}

/**
 * Layers and functions in sequence; in the state they are named 0, 1, … as in torch.
 * @example
 * await new nn.Sequential((x) => x.add(1), (x) => x.mul(2)).forward(new Tensor([1, 2])).tolist() // => [4, 6]
 */
export class Sequential extends Module {
  [index: number]: Layer;

  constructor(...layers: readonly Layer[] | readonly [readonly Layer[]]) {
    super();
    this.#put((Array.isArray(layers[0]) ? layers[0] : layers) as readonly Layer[]);
  }
  #put(list: readonly Layer[]): void {
    for (const [i, l] of list.entries()) {
      if (l === undefined || typeof l === "function" || typeof l?.forward === "function") continue;
      throw new ArgumentError(
        `Sequential: layer ${i} is ${String(l)}, expected a function or an object with a forward method`,
      );
    }
    for (const key in this) delete this[key];
    Object.assign(this, list);
  }
  /** The layers as an array; `layers[0] = other` and `layers.push(last)` change the model. */
  get layers(): Layer[] {
    return new Proxy(Object.values(this), {
      set: (list, key, value) => {
        const next = [...list];
        Reflect.set(next, key, value);
        this.#put(next);
        return Reflect.set(list, key, value);
      },
    });
  }
  forward(x: Tensor): Tensor {
    return Object.values(this).reduce((y: Tensor, layer: Layer, i) => call(layer, y, "Sequential", i), x);
  }
}

/**
 * x Wᵀ + b on the last dim.
 * @example
 * new nn.Linear(3, 2).forward(Tensor.ones(4, 3)).shape // => [4, 2]
 */
export class Linear {
  weight: Tensor;
  bias: Tensor | undefined;

  constructor(inFeatures: number, outFeatures: number, options: BiasOptions = {}) {
    positive("Linear", { inFeatures, outFeatures });
    const bound = 1 / Math.sqrt(inFeatures);
    this.weight = uniform([outFeatures, inFeatures], bound, options);
    this.bias = options.bias === false ? undefined : uniform([outFeatures], bound, options);
  }
  forward(x: Tensor): Tensor {
    return linear(x, this.weight, this.bias);
  }
}

export interface EmbeddingOptions extends LayerOptions {
  /** a row that is zero initially and gets no gradient */
  readonly paddingIdx?: number;
}

/**
 * A table of vectors, looked up by integers.
 * @example
 * new nn.Embedding(10, 4).forward(new Tensor([[1, 2, 3]])).shape // => [1, 3, 4]
 */
export class Embedding {
  weight: Tensor;
  readonly paddingIdx: number | undefined;

  constructor(numEmbeddings: number, embeddingDim: number, options: EmbeddingOptions = {}) {
    positive("Embedding", { numEmbeddings, embeddingDim });
    const { paddingIdx } = options;
    if (paddingIdx !== undefined && !(paddingIdx >= -numEmbeddings && paddingIdx < numEmbeddings)) {
      throw new ArgumentError(`Embedding: paddingIdx ${paddingIdx} is not one of the ${numEmbeddings} rows`);
    }
    const shape = [numEmbeddings, embeddingDim];
    const weight = Tensor.randn(shape, place(options));
    this.paddingIdx = paddingIdx === undefined || paddingIdx >= 0 ? paddingIdx : paddingIdx + numEmbeddings;
    const rows = Tensor.arange(numEmbeddings, place({ ...options, dtype: "int32" }))
      .reshape(-1, 1)
      .expand(shape);
    const padded = this.paddingIdx === undefined ? weight : rows.eq(this.paddingIdx).where(0, weight);
    this.weight = parameter(padded.cast(options.dtype ?? dtypes.float32));
  }
  forward(x: Tensor): Tensor {
    return x.embedding(this.weight, this.paddingIdx === undefined ? {} : { paddingIdx: this.paddingIdx });
  }
}

/**
 * In training, sets elements to zero with probability `p` and scales up the rest to keep the expected value.
 * @example
 * await new nn.Dropout(0.5).eval().forward(new Tensor([1, 2])).tolist() // => [1, 2]
 */
export class Dropout extends Module {
  training: boolean | undefined = undefined;
  readonly p: number;
  constructor(p = 0.5) {
    super();
    if (!(p >= 0 && p <= 1))
      throw new ArgumentError(`Dropout: p is ${p}, expected a probability from 0 to 1`);
    this.p = p;
  }
  forward(x: Tensor): Tensor {
    return this.p === 0 ? x : x.dropout(this.p, trains(this));
  }
}

// ---- convolutions ----

export type ConvLayerOptions = ConvOptions & BiasOptions;
export type ConvTransposeLayerOptions = ConvTransposeOptions & BiasOptions;

const sizesOf = (kernel: PerDim, dims: number): number[] =>
  typeof kernel === "number" ? range(dims).map(() => kernel) : [...kernel];

/**
 * The common part of convolutions with 1, 2 and 3 dims: the weight is [out, in / groups, kernel], or
 * transposed.
 */
abstract class Conv<O extends ConvLayerOptions> {
  weight: Tensor;
  bias: Tensor | undefined;
  readonly options: O;

  constructor(
    dims: number,
    inner: number,
    outer: number,
    kernelSize: PerDim,
    options: O,
    transposed: boolean,
  ) {
    const name = this.constructor.name;
    const kernel = sizesOf(kernelSize, dims);
    const { groups = 1 } = options;
    positive(name, { inChannels: inner, outChannels: outer, groups });
    for (const k of kernel) positive(name, { kernelSize: k });
    if (kernel.length !== dims) {
      throw new ArgumentError(`${name}: kernelSize is [${kernel}], expected one integer or ${dims} of them`);
    }
    if (inner % groups !== 0 || outer % groups !== 0) {
      throw new ArgumentError(
        `${name}: groups ${groups} must divide inChannels ${inner} and outChannels ${outer}`,
      );
    }
    const shape = transposed ? [inner, outer / groups, ...kernel] : [outer, inner / groups, ...kernel];
    const bound = 1 / Math.sqrt(prod(shape.slice(1)));
    this.options = options;
    this.weight = uniform(shape, bound, options);
    this.bias = options.bias === false ? undefined : uniform([outer], bound, options);
  }
}

/**
 * Convolution over the last dim: one learned filter per output channel.
 * @example
 * new nn.Conv1d(3, 8, 5).forward(Tensor.ones(2, 3, 10)).shape // => [2, 8, 6]
 */
export class Conv1d extends Conv<ConvLayerOptions> {
  static override readonly name: string = "Conv1d";
  constructor(inChannels: number, outChannels: number, kernelSize: PerDim, options: ConvLayerOptions = {}) {
    super(1, inChannels, outChannels, kernelSize, options, false);
  }
  forward(x: Tensor): Tensor {
    return conv1d(x, this.weight, this.bias, this.options);
  }
}
/**
 * Convolution over the last two dims: one learned filter per output channel.
 * @example
 * new nn.Conv2d(1, 8, 3, { padding: 1 }).forward(Tensor.ones(2, 1, 6, 6)).shape // => [2, 8, 6, 6]
 */
export class Conv2d extends Conv<ConvLayerOptions> {
  static override readonly name: string = "Conv2d";
  constructor(inChannels: number, outChannels: number, kernelSize: PerDim, options: ConvLayerOptions = {}) {
    super(2, inChannels, outChannels, kernelSize, options, false);
  }
  forward(x: Tensor): Tensor {
    return conv2d(x, this.weight, this.bias, this.options);
  }
}
/**
 * Convolution over the last three dims: one learned filter per output channel.
 * @example
 * new nn.Conv3d(1, 2, 3).forward(Tensor.ones(1, 1, 4, 4, 4)).shape // => [1, 2, 2, 2, 2]
 */
export class Conv3d extends Conv<ConvLayerOptions> {
  static override readonly name: string = "Conv3d";
  constructor(inChannels: number, outChannels: number, kernelSize: PerDim, options: ConvLayerOptions = {}) {
    super(3, inChannels, outChannels, kernelSize, options, false);
  }
  forward(x: Tensor): Tensor {
    return conv3d(x, this.weight, this.bias, this.options);
  }
}
/**
 * Transposed convolution over the last dim: every element adds a scaled copy of a learned filter.
 * @example
 * new nn.ConvTranspose1d(3, 2, 4, { stride: 2 }).forward(Tensor.ones(1, 3, 5)).shape // => [1, 2, 12]
 */
export class ConvTranspose1d extends Conv<ConvTransposeLayerOptions> {
  static override readonly name: string = "ConvTranspose1d";
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: PerDim,
    options: ConvTransposeLayerOptions = {},
  ) {
    super(1, inChannels, outChannels, kernelSize, options, true);
  }
  forward(x: Tensor): Tensor {
    return convTranspose1d(x, this.weight, this.bias, this.options);
  }
}
/**
 * Transposed convolution over the last two dims: every element adds a scaled copy of a learned filter.
 * @example
 * new nn.ConvTranspose2d(3, 2, 2, { stride: 2 }).forward(Tensor.ones(1, 3, 4, 4)).shape // => [1, 2, 8, 8]
 */
export class ConvTranspose2d extends Conv<ConvTransposeLayerOptions> {
  static override readonly name: string = "ConvTranspose2d";
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: PerDim,
    options: ConvTransposeLayerOptions = {},
  ) {
    super(2, inChannels, outChannels, kernelSize, options, true);
  }
  forward(x: Tensor): Tensor {
    return convTranspose2d(x, this.weight, this.bias, this.options);
  }
}
/**
 * Transposed convolution over the last three dims: every element adds a scaled copy of a learned filter.
 * @example
 * new nn.ConvTranspose3d(1, 1, 2).forward(Tensor.ones(1, 1, 2, 2, 2)).shape // => [1, 1, 3, 3, 3]
 */
export class ConvTranspose3d extends Conv<ConvTransposeLayerOptions> {
  static override readonly name: string = "ConvTranspose3d";
  constructor(
    inChannels: number,
    outChannels: number,
    kernelSize: PerDim,
    options: ConvTransposeLayerOptions = {},
  ) {
    super(3, inChannels, outChannels, kernelSize, options, true);
  }
  forward(x: Tensor): Tensor {
    return convTranspose3d(x, this.weight, this.bias, this.options);
  }
}
