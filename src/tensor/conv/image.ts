// Between images, columns and channels: unfold and fold (im2col, col2im), pixel and channel shuffles, power
// pooling, and max unpooling. The first are views but fold, which adds what overlaps in one kernel.

import { ArgumentError, ShapeError } from "../../errors.ts";
import { prod, range } from "../../helpers.ts";
import type { Sint } from "../../shape/symbolic.ts";
import type { Interval } from "../../shape/view.ts";
import { detach, sizeAt, sizesFrom, wrap } from "../core.ts";
import { gather, indexed } from "../indexing/getitem.ts";
import { filled, scatter } from "../indexing/scatter.ts";
import { mul } from "../math/arithmetic.ts";
import { pow } from "../math/elementary.ts";
import { permute, reshape, transpose } from "../movement/views.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { batched, type Frame, fitWindows, overlap, type PerDim, perDim, places, windows } from "./conv.ts";

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

function windowOf(method: string, sizes: readonly number[], kernelSize: PerDim, options: WindowOptions) {
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

export function imUnfold(self: Tensor, kernelSize: PerDim, options: WindowOptions = {}): Tensor {
  const { x, undo } = batched(self, "imUnfold", 2);
  const { frame, pads, out } = windowOf("imUnfold", sizesFrom(x, 2), kernelSize, options);
  const seen = windows(
    fitWindows(
      x,
      pads.map((p): Interval => [p, p]),
    ),
    frame,
  );
  const [n] = x.lazydata.shape as readonly [Sint];
  return undo(reshape(permute(seen, 0, 1, 4, 5, 2, 3), [n, at(x.shape, 1) * prod(frame.kernel), prod(out)]));
}

export function imFold(
  self: Tensor,
  outputSize: PerDim,
  kernelSize: PerDim,
  options: WindowOptions = {},
): Tensor {
  const { x, undo } = batched(self, "imFold", 1);
  const sizes = perDim("imFold", "outputSize", outputSize, 2, 1);
  const { frame, pads, padded, out } = windowOf("imFold", sizes, kernelSize, options);
  const [n, rows, columns] = x.shape as readonly [number, number, number];
  if (rows % prod(frame.kernel) !== 0 || columns !== prod(out)) {
    throw new ShapeError(
      `imFold: shape ${showShape(self.shape)} has ${rows} rows and ${columns} columns; a window [${frame.kernel}] over ` +
        `[${sizes}] needs a multiple of ${prod(frame.kernel)} rows and ${prod(out)} columns`,
    );
  }
  const windows = permute(
    reshape(x, n, rows / prod(frame.kernel), ...frame.kernel, ...out),
    0,
    1,
    4,
    5,
    2,
    3,
  );
  return undo(
    fitWindows(
      overlap(windows, padded, frame),
      pads.map((p): Interval => [-p, -p]),
    ),
  );
}

function lpPool(
  self: Tensor,
  normType: number,
  kernelSize: PerDim,
  n: 1 | 2 | 3,
  options: LpPoolOptions,
): Tensor {
  const method = `lpPool${n}d` as const;
  if (normType === Infinity) return self[`maxPool${n}d`](kernelSize, options);
  if (!(normType > 0))
    throw new ArgumentError(`${method}: normType is ${normType}, expected a number above 0`);
  const window = prod(perDim(method, "kernelSize", kernelSize, n, 1));
  return pow(mul(pow(self, normType)[`avgPool${n}d`](kernelSize, options), window), 1 / normType);
}
export function lpPool1d(
  self: Tensor,
  normType: number,
  kernelSize: PerDim,
  options: LpPoolOptions = {},
): Tensor {
  return lpPool(self, normType, kernelSize, 1, options);
}
export function lpPool2d(
  self: Tensor,
  normType: number,
  kernelSize: PerDim,
  options: LpPoolOptions = {},
): Tensor {
  return lpPool(self, normType, kernelSize, 2, options);
}
export function lpPool3d(
  self: Tensor,
  normType: number,
  kernelSize: PerDim,
  options: LpPoolOptions = {},
): Tensor {
  return lpPool(self, normType, kernelSize, 3, options);
}

function factorOf(self: Tensor, method: string, name: string, factor: number): number {
  if (Number.isInteger(factor) && factor >= 1 && self.ndim >= 3) return factor;
  throw new ArgumentError(
    `${method}: ${name} is ${factor} for shape ${showShape(self.shape)}; expected an integer from 1 up and at least 3 dims`,
  );
}
export function pixelShuffle(self: Tensor, upscaleFactor: number): Tensor {
  const r = factorOf(self, "pixelShuffle", "upscaleFactor", upscaleFactor);
  const [c, h, w] = sizesFrom(self, -3) as [number, number, number];
  if (c % (r * r) !== 0) {
    throw new ShapeError(
      `pixelShuffle: shape ${showShape(self.shape)} has ${c} channels, expected a multiple of ${r * r} for factor ${r}`,
    );
  }
  const lead = self.lazydata.shape.slice(0, -3);
  const n = lead.length;
  return reshape(
    permute(reshape(self, [...lead, c / (r * r), r, r, h, w]), [...range(n + 1), n + 3, n + 1, n + 4, n + 2]),
    [...lead, c / (r * r), h * r, w * r],
  );
}
export function pixelUnshuffle(self: Tensor, downscaleFactor: number): Tensor {
  const r = factorOf(self, "pixelUnshuffle", "downscaleFactor", downscaleFactor);
  const [c, h, w] = sizesFrom(self, -3) as [number, number, number];
  if (h % r !== 0 || w % r !== 0) {
    throw new ShapeError(
      `pixelUnshuffle: shape ${showShape(self.shape)} has pixels [${h}, ${w}], expected multiples of ${r}`,
    );
  }
  const lead = self.lazydata.shape.slice(0, -3);
  const n = lead.length;
  return reshape(
    permute(reshape(self, [...lead, c, h / r, r, w / r, r]), [...range(n + 1), n + 2, n + 4, n + 1, n + 3]),
    [...lead, c * r * r, h / r, w / r],
  );
}
export function channelShuffle(self: Tensor, groups: number): Tensor {
  const c = sizeAt(self, 1);
  if (self.ndim < 3 || !Number.isInteger(groups) || groups < 1 || c % groups !== 0) {
    throw new ShapeError(
      `channelShuffle: shape ${showShape(self.shape)} with groups ${groups}; expected at least 3 dims and groups that divide dim 1`,
    );
  }
  const { shape } = self.lazydata;
  return reshape(
    transpose(reshape(self, [...shape.slice(0, 1), groups, c / groups, ...shape.slice(2)]), 1, 2),
    shape,
  );
}

// ---- maxima back to where they were ----

function maxUnpool(
  self: Tensor,
  method: string,
  n: number,
  indices: Tensor,
  kernelSize: PerDim,
  options: UnpoolOptions,
): Tensor {
  if (showShape(indices.shape) !== showShape(self.shape)) {
    throw new ShapeError(
      `${method}: indices ${showShape(indices.shape)} and input ${showShape(self.shape)} must have the same shape`,
    );
  }
  const { x, undo } = batched(self, method, n);
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
  const places = reshape(indexed(method, indices, prod(wanted)), rows);
  const empty = filled(self, [batch, channels, prod(wanted)], 0, "scatter");
  const flat = reshape(x, rows);
  // windows that overlapped have the same maximum: all of its copies get the gradient, as in torch
  const made = wrap(scatter(empty, 2, places, detach(flat)).lazydata, [flat], (g) => [gather(g, 2, places)]);
  return undo(reshape(made, [batch, channels, ...wanted]));
}
export function maxUnpool1d(
  self: Tensor,
  indices: Tensor,
  kernelSize: PerDim,
  options: UnpoolOptions = {},
): Tensor {
  return maxUnpool(self, "maxUnpool1d", 1, indices, kernelSize, options);
}
export function maxUnpool2d(
  self: Tensor,
  indices: Tensor,
  kernelSize: PerDim,
  options: UnpoolOptions = {},
): Tensor {
  return maxUnpool(self, "maxUnpool2d", 2, indices, kernelSize, options);
}
export function maxUnpool3d(
  self: Tensor,
  indices: Tensor,
  kernelSize: PerDim,
  options: UnpoolOptions = {},
): Tensor {
  return maxUnpool(self, "maxUnpool3d", 3, indices, kernelSize, options);
}
