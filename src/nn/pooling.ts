// Pooling, resizing and changes of shape as layers, with torch's names: for nn.Sequential and for fields of a
// model. In: a tensor. Out: what the method of Tensor gives.

import { ArgumentError } from "../errors.ts";
import type { PerDim } from "../tensor/conv/conv.ts";
import { channelShuffle, pixelShuffle, pixelUnshuffle } from "../tensor/conv/image.ts";
import type { AvgPoolOptions, MaxPoolOptions, OutputSize } from "../tensor/conv/pool.ts";
import * as pool from "../tensor/conv/pool.ts";
import { type InterpolateOptions, interpolate } from "../tensor/conv/resample.ts";
import { unflatten } from "../tensor/movement/arrange.ts";
import { flatten } from "../tensor/movement/views.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { checkOptions } from "./options.ts";

const isSizes = (x: unknown): x is PerDim => typeof x === "number" || Array.isArray(x);

/** Options given by name, or as in torch by position: stride, then padding. */
function poolOptions<O extends { readonly stride?: PerDim | null; readonly padding?: PerDim }>(
  layer: string,
  given: O | PerDim | null,
  padding: PerDim | undefined,
  known: readonly string[],
): O {
  const byPosition = given === null || isSizes(given);
  const options = byPosition ? { stride: given, ...(padding !== undefined && { padding }) } : given;
  if (!byPosition && padding !== undefined) {
    throw new ArgumentError(`${layer}: padding is given after the options; put it into them: { padding }`);
  }
  return checkOptions(layer, options as O, ["stride", "padding", "ceilMode", ...known]);
}
function requireKernel(layer: string, kernelSize: unknown): void {
  if (isSizes(kernelSize)) return;
  throw new ArgumentError(
    `${layer}: kernelSize is ${String(kernelSize)}, expected a size or one for each dim`,
  );
}

/**
 * The largest element of every window over the last dim. Arguments are torch's: the size of the
 * window, its stride, the padding; or options by name.
 * @example
 * new nn.MaxPool1d(2).forward(Tensor.ones(1, 2, 6)).shape // => [1, 2, 3]
 */
export class MaxPool1d {
  readonly kernelSize: PerDim;
  readonly options: MaxPoolOptions;
  constructor(kernelSize: PerDim, options: MaxPoolOptions | PerDim | null = {}, padding?: PerDim) {
    requireKernel("MaxPool1d", kernelSize);
    this.kernelSize = kernelSize;
    this.options = poolOptions("MaxPool1d", options, padding, ["dilation"]);
  }
  forward(x: Tensor): Tensor {
    return pool.maxPool1d(x, this.kernelSize, this.options);
  }
}
/**
 * The largest element of every window over the last two dims. Arguments are torch's: the size of the
 * window, its stride, the padding; or options by name.
 * @example
 * new nn.MaxPool2d(2).forward(Tensor.ones(1, 2, 6, 6)).shape // => [1, 2, 3, 3]
 */
export class MaxPool2d {
  readonly kernelSize: PerDim;
  readonly options: MaxPoolOptions;
  constructor(kernelSize: PerDim, options: MaxPoolOptions | PerDim | null = {}, padding?: PerDim) {
    requireKernel("MaxPool2d", kernelSize);
    this.kernelSize = kernelSize;
    this.options = poolOptions("MaxPool2d", options, padding, ["dilation"]);
  }
  forward(x: Tensor): Tensor {
    return pool.maxPool2d(x, this.kernelSize, this.options);
  }
}
/**
 * The largest element of every window over the last three dims. Arguments are torch's: the size of the
 * window, its stride, the padding; or options by name.
 * @example
 * new nn.MaxPool3d(2).forward(Tensor.ones(1, 2, 6, 6, 6)).shape // => [1, 2, 3, 3, 3]
 */
export class MaxPool3d {
  readonly kernelSize: PerDim;
  readonly options: MaxPoolOptions;
  constructor(kernelSize: PerDim, options: MaxPoolOptions | PerDim | null = {}, padding?: PerDim) {
    requireKernel("MaxPool3d", kernelSize);
    this.kernelSize = kernelSize;
    this.options = poolOptions("MaxPool3d", options, padding, ["dilation"]);
  }
  forward(x: Tensor): Tensor {
    return pool.maxPool3d(x, this.kernelSize, this.options);
  }
}
/**
 * The mean of every window over the last dim. Arguments are torch's: the size of the
 * window, its stride, the padding; or options by name.
 * @example
 * new nn.AvgPool1d(2).forward(Tensor.ones(1, 2, 6)).shape // => [1, 2, 3]
 */
export class AvgPool1d {
  readonly kernelSize: PerDim;
  readonly options: AvgPoolOptions;
  constructor(kernelSize: PerDim, options: AvgPoolOptions | PerDim | null = {}, padding?: PerDim) {
    requireKernel("AvgPool1d", kernelSize);
    this.kernelSize = kernelSize;
    this.options = poolOptions("AvgPool1d", options, padding, ["countIncludePad", "divisorOverride"]);
  }
  forward(x: Tensor): Tensor {
    return pool.avgPool1d(x, this.kernelSize, this.options);
  }
}
/**
 * The mean of every window over the last two dims. Arguments are torch's: the size of the
 * window, its stride, the padding; or options by name.
 * @example
 * new nn.AvgPool2d(2).forward(Tensor.ones(1, 2, 6, 6)).shape // => [1, 2, 3, 3]
 */
export class AvgPool2d {
  readonly kernelSize: PerDim;
  readonly options: AvgPoolOptions;
  constructor(kernelSize: PerDim, options: AvgPoolOptions | PerDim | null = {}, padding?: PerDim) {
    requireKernel("AvgPool2d", kernelSize);
    this.kernelSize = kernelSize;
    this.options = poolOptions("AvgPool2d", options, padding, ["countIncludePad", "divisorOverride"]);
  }
  forward(x: Tensor): Tensor {
    return pool.avgPool2d(x, this.kernelSize, this.options);
  }
}
/**
 * The mean of every window over the last three dims. Arguments are torch's: the size of the
 * window, its stride, the padding; or options by name.
 * @example
 * new nn.AvgPool3d(2).forward(Tensor.ones(1, 2, 6, 6, 6)).shape // => [1, 2, 3, 3, 3]
 */
export class AvgPool3d {
  readonly kernelSize: PerDim;
  readonly options: AvgPoolOptions;
  constructor(kernelSize: PerDim, options: AvgPoolOptions | PerDim | null = {}, padding?: PerDim) {
    requireKernel("AvgPool3d", kernelSize);
    this.kernelSize = kernelSize;
    this.options = poolOptions("AvgPool3d", options, padding, ["countIncludePad", "divisorOverride"]);
  }
  forward(x: Tensor): Tensor {
    return pool.avgPool3d(x, this.kernelSize, this.options);
  }
}
/**
 * As many means over the last dim as asked for, whatever the size of the input.
 * @example
 * new nn.AdaptiveAvgPool1d(3).forward(Tensor.ones(1, 2, 6)).shape // => [1, 2, 3]
 */
export class AdaptiveAvgPool1d {
  readonly outputSize: OutputSize;
  constructor(outputSize: OutputSize) {
    this.outputSize = outputSize;
  }
  forward(x: Tensor): Tensor {
    return pool.adaptiveAvgPool1d(x, this.outputSize);
  }
}
/**
 * As many means over the last two dims as asked for, whatever the size of the input.
 * @example
 * new nn.AdaptiveAvgPool2d(3).forward(Tensor.ones(1, 2, 6, 6)).shape // => [1, 2, 3, 3]
 */
export class AdaptiveAvgPool2d {
  readonly outputSize: OutputSize;
  constructor(outputSize: OutputSize) {
    this.outputSize = outputSize;
  }
  forward(x: Tensor): Tensor {
    return pool.adaptiveAvgPool2d(x, this.outputSize);
  }
}
/**
 * As many means over the last three dims as asked for, whatever the size of the input.
 * @example
 * new nn.AdaptiveAvgPool3d(3).forward(Tensor.ones(1, 2, 6, 6, 6)).shape // => [1, 2, 3, 3, 3]
 */
export class AdaptiveAvgPool3d {
  readonly outputSize: OutputSize;
  constructor(outputSize: OutputSize) {
    this.outputSize = outputSize;
  }
  forward(x: Tensor): Tensor {
    return pool.adaptiveAvgPool3d(x, this.outputSize);
  }
}
/**
 * As many largest elements over the last dim as asked for, whatever the size of the input.
 * @example
 * new nn.AdaptiveMaxPool1d(3).forward(Tensor.ones(1, 2, 6)).shape // => [1, 2, 3]
 */
export class AdaptiveMaxPool1d {
  readonly outputSize: OutputSize;
  constructor(outputSize: OutputSize) {
    this.outputSize = outputSize;
  }
  forward(x: Tensor): Tensor {
    return pool.adaptiveMaxPool1d(x, this.outputSize);
  }
}
/**
 * As many largest elements over the last two dims as asked for, whatever the size of the input.
 * @example
 * new nn.AdaptiveMaxPool2d(3).forward(Tensor.ones(1, 2, 6, 6)).shape // => [1, 2, 3, 3]
 */
export class AdaptiveMaxPool2d {
  readonly outputSize: OutputSize;
  constructor(outputSize: OutputSize) {
    this.outputSize = outputSize;
  }
  forward(x: Tensor): Tensor {
    return pool.adaptiveMaxPool2d(x, this.outputSize);
  }
}
/**
 * As many largest elements over the last three dims as asked for, whatever the size of the input.
 * @example
 * new nn.AdaptiveMaxPool3d(3).forward(Tensor.ones(1, 2, 6, 6, 6)).shape // => [1, 2, 3, 3, 3]
 */
export class AdaptiveMaxPool3d {
  readonly outputSize: OutputSize;
  constructor(outputSize: OutputSize) {
    this.outputSize = outputSize;
  }
  forward(x: Tensor): Tensor {
    return pool.adaptiveMaxPool3d(x, this.outputSize);
  }
}

/**
 * Resizes the dims after the second: `{ scaleFactor: 2 }` or `{ size: [32, 32] }`, with `mode` "nearest" by
 * default.
 * @example
 * new nn.Upsample({ scaleFactor: 2 }).forward(Tensor.ones(1, 3, 4, 4)).shape // => [1, 3, 8, 8]
 */
export class Upsample {
  readonly options: InterpolateOptions;
  constructor(options: InterpolateOptions) {
    this.options = options;
  }
  forward(x: Tensor): Tensor {
    return interpolate(x, this.options);
  }
}
/**
 * Makes images larger out of their channels: [n, c r², h, w] becomes [n, c, h r, w r].
 * @example
 * new nn.PixelShuffle(2).forward(Tensor.ones(1, 8, 3, 3)).shape // => [1, 2, 6, 6]
 */
export class PixelShuffle {
  readonly upscaleFactor: number;
  constructor(upscaleFactor: number) {
    this.upscaleFactor = upscaleFactor;
  }
  forward(x: Tensor): Tensor {
    return pixelShuffle(x, this.upscaleFactor);
  }
}
/**
 * Undoes PixelShuffle: [n, c, h r, w r] becomes [n, c r², h, w].
 * @example
 * new nn.PixelUnshuffle(2).forward(Tensor.ones(1, 2, 6, 6)).shape // => [1, 8, 3, 3]
 */
export class PixelUnshuffle {
  readonly downscaleFactor: number;
  constructor(downscaleFactor: number) {
    this.downscaleFactor = downscaleFactor;
  }
  forward(x: Tensor): Tensor {
    return pixelUnshuffle(x, this.downscaleFactor);
  }
}
/**
 * Mixes channels between groups: [n, g c, ...], read as [n, g, c, ...], becomes [n, c g, ...].
 * @example
 * new nn.ChannelShuffle(2).forward(Tensor.ones(1, 4, 3, 3)).shape // => [1, 4, 3, 3]
 */
export class ChannelShuffle {
  readonly groups: number;
  constructor(groups: number) {
    this.groups = groups;
  }
  forward(x: Tensor): Tensor {
    return channelShuffle(x, this.groups);
  }
}
/**
 * Makes the dims from `startDim` to `endDim` one; by default all but the batch.
 * @example
 * new nn.Flatten().forward(Tensor.ones(2, 3, 4)).shape // => [2, 12]
 */
export class Flatten {
  readonly startDim: number;
  readonly endDim: number;
  constructor(startDim = 1, endDim = -1) {
    for (const [name, dim] of Object.entries({ startDim, endDim })) {
      if (!Number.isInteger(dim)) {
        throw new ArgumentError(`Flatten: ${name} is ${String(dim)}, expected the number of a dim`);
      }
    }
    this.startDim = startDim;
    this.endDim = endDim;
  }
  forward(x: Tensor): Tensor {
    return flatten(x, this.startDim, this.endDim);
  }
}
/**
 * Makes one dim several; one size may be -1.
 * @example
 * new nn.Unflatten(1, [3, -1]).forward(Tensor.ones(2, 12)).shape // => [2, 3, 4]
 */
export class Unflatten {
  readonly dim: number;
  readonly unflattenedSize: readonly number[];
  constructor(dim: number, unflattenedSize: readonly number[]) {
    this.dim = dim;
    this.unflattenedSize = unflattenedSize;
  }
  forward(x: Tensor): Tensor {
    return unflatten(x, this.dim, this.unflattenedSize);
  }
}
/**
 * Gives what it is given: a layer that was switched off. Arguments are ignored, as in torch.
 * @example
 * await new nn.Identity().forward(new Tensor([1, 2])).tolist() // => [1, 2]
 */
export class Identity {
  // biome-ignore lint/complexity/noUselessConstructor: it says that arguments are welcome
  constructor(..._ignored: readonly unknown[]) {}
  forward(x: Tensor): Tensor {
    return x;
  }
}
