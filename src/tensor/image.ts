// Between images, columns and channels: unfold and fold (im2col, col2im), pixel and channel shuffles, power pooling,
// and max unpooling. The first are views but fold, which adds what overlaps in one kernel.

import { ArgumentError, ShapeError } from "../errors.ts";
import { prod, range } from "../helpers.ts";
import type { Sint } from "../shape/symbolic.ts";
import type { Interval } from "../shape/view.ts";
import { showShape } from "./base.ts";
import { type Frame, type PerDim, perDim, places } from "./conv.ts";
import { requireTensors } from "./movement.ts";
import { PoolTensor } from "./pool.ts";

export interface WindowOptions {
  readonly dilation?: PerDim;
  readonly padding?: PerDim;
  readonly stride?: PerDim;
}

export interface UnpoolOptions {
  /** how far apart the windows were; default: the kernel's size */
  readonly stride?: PerDim | null;
  readonly padding?: PerDim;
  /** the spatial sizes before the pooling, where several lead to the same result */
  readonly outputSize?: readonly number[] | null;
}

export interface LpPoolOptions {
  readonly stride?: PerDim | null;
  readonly ceilMode?: boolean;
}

const at = (xs: readonly number[], i: number): number => xs[i] as number;

export abstract class ImageTensor extends PoolTensor {
  #window(method: string, sizes: readonly number[], kernelSize: PerDim, options: WindowOptions) {
    const { dilation = 1, padding = 0, stride = 1 } = options;
    const frame: Frame = {
      kernel: perDim(method, "kernelSize", kernelSize, 2, 1),
      stride: perDim(method, "stride", stride, 2, 1),
      dilation: perDim(method, "dilation", dilation, 2, 1),
    };
    const pads = perDim(method, "padding", padding, 2, 0);
    const padded = sizes.map((s, i) => s + 2 * at(pads, i));
    const out = padded.map((s, i) => places(s, frame, i));
    if (out.some((o) => o < 1)) {
      throw new ShapeError(
        `${method}: a window [${frame.kernel}] with dilation [${frame.dilation}] does not fit into [${padded}], padding included`,
      );
    }
    return { frame, pads, padded, out };
  }

  /**
   * The windows of images as columns: [n, c, h, w] becomes [n, c * kernel, places]. torch.nn.functional.unfold; the
   * method `unfold` is torch.Tensor's.
   *
   * @example
   * await new Tensor([[[[1, 2], [3, 4]]]]).imUnfold([1, 2]).tolist() // => [[[1, 3], [2, 4]]]
   */
  imUnfold(kernelSize: PerDim, options: WindowOptions = {}): this {
    const { x, undo } = this.batched("imUnfold", 2);
    const { frame, pads, out } = this.#window("imUnfold", x.shape.slice(2), kernelSize, options);
    const seen = x.fit(pads.map((p): Interval => [p, p])).windows(frame);
    const [n] = x.lazydata.shape as readonly [Sint];
    return undo(seen.permute(0, 1, 4, 5, 2, 3).reshape([n, at(x.shape, 1) * prod(frame.kernel), prod(out)]));
  }

  /**
   * The sum of the windows in columns, each at its place: [n, c * kernel, places] becomes [n, c, ...outputSize].
   *
   * @example
   * await new Tensor([[[1, 3], [2, 4]]]).imFold([2, 2], [1, 2]).tolist() // => [[[[1, 2], [3, 4]]]]
   */
  imFold(outputSize: PerDim, kernelSize: PerDim, options: WindowOptions = {}): this {
    const { x, undo } = this.batched("imFold", 1);
    const sizes = perDim("imFold", "outputSize", outputSize, 2, 1);
    const { frame, pads, padded, out } = this.#window("imFold", sizes, kernelSize, options);
    const [n, rows, columns] = x.shape as readonly [number, number, number];
    if (rows % prod(frame.kernel) !== 0 || columns !== prod(out)) {
      throw new ShapeError(
        `imFold: shape ${showShape(this.shape)} has ${rows} rows and ${columns} columns; a window [${frame.kernel}] over ` +
          `[${sizes}] needs a multiple of ${prod(frame.kernel)} rows and ${prod(out)} columns`,
      );
    }
    const windows = x
      .reshape(n, rows / prod(frame.kernel), ...frame.kernel, ...out)
      .permute(0, 1, 4, 5, 2, 3);
    return undo(windows.overlap(padded, frame).fit(pads.map((p): Interval => [-p, -p])));
  }

  #lpPool(normType: number, kernelSize: PerDim, n: 1 | 2 | 3, options: LpPoolOptions): this {
    const method = `lpPool${n}d` as const;
    if (normType === Infinity) return this[`maxPool${n}d`](kernelSize, options);
    if (!(normType > 0))
      throw new ArgumentError(`${method}: normType is ${normType}, expected a number above 0`);
    const window = prod(perDim(method, "kernelSize", kernelSize, n, 1));
    return this.pow(normType)
      [`avgPool${n}d`](kernelSize, options)
      .mul(window)
      .pow(1 / normType);
  }
  /**
   * The root of the sum of powers of windows along the last dim.
   *
   * @example
   * await new Tensor([[3, 4, 0, 2]]).lpPool1d(2, 2).tolist() // => [[5, 2]]
   */
  lpPool1d(normType: number, kernelSize: PerDim, options: LpPoolOptions = {}): this {
    return this.#lpPool(normType, kernelSize, 1, options);
  }
  /**
   * The root of the sum of powers of windows over the last two dims.
   *
   * @example
   * await new Tensor([[[3, 0], [0, 4]]]).lpPool2d(2, 2).tolist() // => [[[5]]]
   */
  lpPool2d(normType: number, kernelSize: PerDim, options: LpPoolOptions = {}): this {
    return this.#lpPool(normType, kernelSize, 2, options);
  }
  /**
   * The root of the sum of powers of windows over the last three dims.
   *
   * @example
   * await new Tensor([[[[3, 0], [0, 4]]]]).lpPool3d(2, [1, 2, 2]).tolist() // => [[[[5]]]]
   */
  lpPool3d(normType: number, kernelSize: PerDim, options: LpPoolOptions = {}): this {
    return this.#lpPool(normType, kernelSize, 3, options);
  }

  #factor(method: string, name: string, factor: number): number {
    if (Number.isInteger(factor) && factor >= 1 && this.ndim >= 3) return factor;
    throw new ArgumentError(
      `${method}: ${name} is ${factor} for shape ${showShape(this.shape)}; expected an integer from 1 up and at least 3 dims`,
    );
  }
  /**
   * Channels become pixels: [..., c * r * r, h, w] becomes [..., c, h * r, w * r].
   *
   * @example
   * await new Tensor([[[1]], [[2]], [[3]], [[4]]]).pixelShuffle(2).tolist() // => [[[1, 2], [3, 4]]]
   */
  pixelShuffle(upscaleFactor: number): this {
    const r = this.#factor("pixelShuffle", "upscaleFactor", upscaleFactor);
    const [c, h, w] = this.shape.slice(-3) as [number, number, number];
    if (c % (r * r) !== 0) {
      throw new ShapeError(
        `pixelShuffle: shape ${showShape(this.shape)} has ${c} channels, expected a multiple of ${r * r} for factor ${r}`,
      );
    }
    const lead = this.lazydata.shape.slice(0, -3);
    const n = lead.length;
    return this.reshape([...lead, c / (r * r), r, r, h, w])
      .permute([...range(n + 1), n + 3, n + 1, n + 4, n + 2])
      .reshape([...lead, c / (r * r), h * r, w * r]);
  }
  /**
   * Pixels become channels: [..., c, h * r, w * r] becomes [..., c * r * r, h, w].
   *
   * @example
   * await new Tensor([[[1, 2], [3, 4]]]).pixelUnshuffle(2).tolist() // => [[[1]], [[2]], [[3]], [[4]]]
   */
  pixelUnshuffle(downscaleFactor: number): this {
    const r = this.#factor("pixelUnshuffle", "downscaleFactor", downscaleFactor);
    const [c, h, w] = this.shape.slice(-3) as [number, number, number];
    if (h % r !== 0 || w % r !== 0) {
      throw new ShapeError(
        `pixelUnshuffle: shape ${showShape(this.shape)} has pixels [${h}, ${w}], expected multiples of ${r}`,
      );
    }
    const lead = this.lazydata.shape.slice(0, -3);
    const n = lead.length;
    return this.reshape([...lead, c, h / r, r, w / r, r])
      .permute([...range(n + 1), n + 2, n + 4, n + 1, n + 3])
      .reshape([...lead, c * r * r, h / r, w / r]);
  }
  /**
   * Channels (dim 1) in `groups` parts, dealt out in turn.
   *
   * @example
   * await new Tensor([[[1], [2], [3], [4]]]).channelShuffle(2).tolist() // => [[[1], [3], [2], [4]]]
   */
  channelShuffle(groups: number): this {
    const c = this.shape[1] ?? 0;
    if (this.ndim < 3 || !Number.isInteger(groups) || groups < 1 || c % groups !== 0) {
      throw new ShapeError(
        `channelShuffle: shape ${showShape(this.shape)} with groups ${groups}; expected at least 3 dims and groups that divide dim 1`,
      );
    }
    const { shape } = this.lazydata;
    return this.reshape([...shape.slice(0, 1), groups, c / groups, ...shape.slice(2)])
      .transpose(1, 2)
      .reshape(shape);
  }

  // ---- maxima back to where they were ----

  #maxUnpool(method: string, n: number, indices: this, kernelSize: PerDim, options: UnpoolOptions): this {
    if (showShape(indices.shape) !== showShape(this.shape)) {
      throw new ShapeError(
        `${method}: indices ${showShape(indices.shape)} and input ${showShape(this.shape)} must have one shape`,
      );
    }
    const { x, undo } = this.batched(method, n);
    const kernel = perDim(method, "kernelSize", kernelSize, n, 1);
    const stride = perDim(method, "stride", options.stride ?? kernel, n, 1);
    const padding = perDim(method, "padding", options.padding ?? 0, n, 0);
    const [batch, channels, ...sizes] = x.shape as [number, number, ...number[]];
    const usual = sizes.map((s, i) => (s - 1) * at(stride, i) - 2 * at(padding, i) + at(kernel, i));
    const wanted = options.outputSize?.slice(-n) ?? usual;
    const near = wanted.length === n && wanted.every((s, i) => Math.abs(s - at(usual, i)) < at(stride, i));
    if (!near) {
      throw new ShapeError(
        `${method}: outputSize is [${wanted}], expected [${usual}] or less than a stride [${stride}] away from it`,
      );
    }
    const rows = [batch, channels, prod(sizes)];
    const places = this.indexed(method, indices).reshape(rows);
    const empty = this.filled([batch, channels, prod(wanted)], 0);
    const flat = x.reshape(rows);
    // windows that overlapped have the same maximum: all of its copies get the gradient, as in torch
    const made = this.wrap(empty.scatter(2, places, flat.detach()).lazydata, [flat], (g) => [
      g.gather(2, places),
    ]);
    return undo(made.reshape([batch, channels, ...wanted]));
  }
  /**
   * The maxima of `maxPool1dWithIndices` at the places they came from, zeros elsewhere.
   *
   * @example
   * await new Tensor([[3, 7]]).maxUnpool1d(new Tensor([[1, 2]]), 2).tolist() // => [[0, 3, 7, 0]]
   */
  maxUnpool1d(indices: this, kernelSize: PerDim, options: UnpoolOptions = {}): this {
    requireTensors("maxUnpool1d", { indices });
    return this.#maxUnpool("maxUnpool1d", 1, indices, kernelSize, options);
  }
  /**
   * The maxima of `maxPool2dWithIndices` at the places they came from, zeros elsewhere.
   *
   * @example
   * await new Tensor([[[6]]]).maxUnpool2d(new Tensor([[[3]]]), 2).tolist() // => [[[0, 0], [0, 6]]]
   */
  maxUnpool2d(indices: this, kernelSize: PerDim, options: UnpoolOptions = {}): this {
    requireTensors("maxUnpool2d", { indices });
    return this.#maxUnpool("maxUnpool2d", 2, indices, kernelSize, options);
  }
  /**
   * The maxima of `maxPool3dWithIndices` at the places they came from, zeros elsewhere.
   *
   * @example
   * await new Tensor([[[[6]]]]).maxUnpool3d(new Tensor([[[[1]]]]), [1, 1, 2]).tolist() // => [[[[0, 6]]]]
   */
  maxUnpool3d(indices: this, kernelSize: PerDim, options: UnpoolOptions = {}): this {
    requireTensors("maxUnpool3d", { indices });
    return this.#maxUnpool("maxUnpool3d", 3, indices, kernelSize, options);
  }
}
