// Transforms of images [..., channels, height, width], as torchvision has them: functions, and classes whose
// `forward` is one of them, for nn.Sequential, for `transform` of a DataLoader and for Compose. Random ones
// draw from a stream of their own that a seed decides; one call makes one choice for all images of a batch.

import { ArgumentError, ShapeError } from "../errors.ts";
import { interpolate } from "../tensor/conv/resample.ts";
import { narrow } from "../tensor/movement/join.ts";
import { flip, padConstant } from "../tensor/movement/views.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { call } from "./layers.ts";
import { checkOptions } from "./options.ts";

/** One length, or height and width. */
export type ImageSize = number | readonly [height: number, width: number];
export interface SeedOptions {
  /** decides the choices; default: 0 */
  readonly seed?: number;
}
export interface RandomFlipOptions extends SeedOptions {
  /** the probability of a flip; default: 0.5 */
  readonly p?: number;
}
export interface RandomCropOptions extends SeedOptions {
  /** zeros around the image before it is cut; default: 0 */
  readonly padding?: number;
}

// ---- checks ----

function sidesOf(who: string, x: unknown): [number, number] {
  if (!(x instanceof Tensor)) throw new ArgumentError(`${who}: got ${typeof x}, expected a Tensor of images`);
  if (x.ndim >= 3) return [x.shape.at(-2) as number, x.shape.at(-1) as number];
  throw new ShapeError(
    `${who}: shape ${showShape(x.shape)}, expected [channels, height, width] or more dims before`,
  );
}
function sizeOf(who: string, size: ImageSize): [number, number] {
  const [h, w] = typeof size === "number" ? [size, size] : size;
  if (
    (typeof size === "number" || size.length === 2) &&
    Number.isInteger(h) &&
    Number.isInteger(w) &&
    h > 0 &&
    w > 0
  )
    return [h, w];
  throw new ArgumentError(`${who}: size is ${String(size)}, expected an integer above 0, or [height, width]`);
}

// ---- functions ----

/**
 * Another size, bilinear and smoothed: [height, width], or one length for the shorter side. Bytes stay bytes.
 * @example
 * nn.transforms.resize(Tensor.rand(3, 10, 20), 5).shape // => [3, 5, 10]
 */
export function resize(x: Tensor, size: ImageSize): Tensor {
  const [h, w] = sidesOf("resize", x);
  const [height, width] = sizeOf("resize", size);
  const long = Math.floor((height * Math.max(h, w)) / Math.min(h, w));
  const [toH, toW] = typeof size !== "number" ? [height, width] : h <= w ? [height, long] : [long, height];
  if (toH === h && toW === w) return x;
  const isFloat = x.dtype.isFloat;
  const flat = (isFloat ? x : x.cast("float32")).reshape([1, -1, h, w]);
  const y = interpolate(flat, { size: [toH, toW], mode: "bilinear", antialias: true });
  const shaped = y.reshape([...x.shape.slice(0, -2), toH, toW]);
  return isFloat ? shaped : shaped.round().cast(x.dtype);
}
/**
 * The part of an image that begins at a row and a column.
 * @example
 * await nn.transforms.crop(Tensor.arange(9).reshape(1, 3, 3), 1, 0, 2, 2).tolist() // => [[[3, 4], [6, 7]]]
 */
export function crop(x: Tensor, top: number, left: number, height: number, width: number): Tensor {
  const [h, w] = sidesOf("crop", x);
  const isInside =
    [top, left].every((n) => Number.isInteger(n) && n >= 0) && top + height <= h && left + width <= w;
  if (!isInside || !(height > 0) || !(width > 0)) {
    throw new ShapeError(
      `crop: ${height} × ${width} at row ${top}, column ${left} is not inside an image of ${h} × ${w}`,
    );
  }
  return narrow(narrow(x, -2, top, height), -1, left, width);
}
/** Zeros around the last two dims. */
function padded(
  x: Tensor,
  [top, bottom]: readonly [number, number],
  [left, right]: readonly [number, number],
): Tensor {
  if (top + bottom + left + right === 0) return x;
  return padConstant(x, [...x.shape.slice(0, -2).map(() => null), [top, bottom], [left, right]]);
}
/** To the nearest integer, halves to the even one, as Python rounds. */
const halfEven = (x: number): number =>
  x % 1 === 0.5 && Math.floor(x) % 2 === 0 ? Math.floor(x) : Math.round(x);
/**
 * The middle of an image; one that is too small gets zeros around it.
 * @example
 * await nn.transforms.centerCrop(Tensor.arange(9).reshape(1, 3, 3), 1).tolist() // => [[[4]]]
 */
export function centerCrop(x: Tensor, size: ImageSize): Tensor {
  const [h, w] = sidesOf("centerCrop", x);
  const [height, width] = sizeOf("centerCrop", size);
  const missing = (want: number, have: number): [number, number] => {
    const n = Math.max(0, want - have);
    return [Math.floor(n / 2), Math.ceil(n / 2)];
  };
  const large = padded(x, missing(height, h), missing(width, w));
  const at = (have: number, want: number): number => halfEven((Math.max(have, want) - want) / 2);
  return crop(large, at(h, height), at(w, width), height, width);
}
/**
 * Left and right exchanged.
 * @example
 * await nn.transforms.hflip(new Tensor([[[1, 2]]])).tolist() // => [[[2, 1]]]
 */
export function hflip(x: Tensor): Tensor {
  sidesOf("hflip", x);
  return flip(x, [-1]);
}
/**
 * Top and bottom exchanged.
 * @example
 * await nn.transforms.vflip(new Tensor([[[1], [2]]])).tolist() // => [[[2], [1]]]
 */
export function vflip(x: Tensor): Tensor {
  sidesOf("vflip", x);
  return flip(x, [-2]);
}
/**
 * Minus the mean, divided by the standard deviation of each channel. Bytes become floats from 0 to 1 first.
 * @example
 * await nn.transforms.normalize(new Tensor([[[0.5, 1]]]), [0.5], [0.25]).tolist() // => [[[0, 2]]]
 */
export function normalize(x: Tensor, mean: readonly number[], std: readonly number[]): Tensor {
  sidesOf("normalize", x);
  const channels = x.shape.at(-3) as number;
  for (const [name, list] of Object.entries({ mean, std })) {
    if (Array.isArray(list) && [1, channels].includes(list.length) && list.every(Number.isFinite)) continue;
    throw new ArgumentError(
      `normalize: ${name} is [${String(list)}], expected one number, or ${channels}: one for each channel`,
    );
  }
  if (std.includes(0)) throw new ArgumentError("normalize: std has a 0, which would divide by zero");
  const float = x.dtype.isFloat ? x : x.cast("float32").div(x.dtype.name === "uint8" ? 255 : 1);
  const each = (list: readonly number[]): Tensor =>
    new Tensor([...list], { dtype: float.dtype, device: x.device }).reshape(list.length, 1, 1);
  return float.sub(each(mean)).div(each(std));
}

// ---- classes ----

type Transform = { forward(x: Tensor): Tensor } | ((x: Tensor) => Tensor);
/**
 * Transforms one after the other.
 * @example
 * const prepare = new nn.transforms.Compose([new nn.transforms.Resize(8), new nn.transforms.CenterCrop(6)]);
 * prepare.forward(Tensor.rand(3, 16, 20)).shape // => [3, 6, 6]
 */
export class Compose {
  readonly transforms: readonly Transform[];
  constructor(transforms: readonly Transform[]) {
    const isOne = (t: Transform): boolean => typeof t === "function" || typeof t?.forward === "function";
    if (!Array.isArray(transforms) || !transforms.every(isOne)) {
      throw new ArgumentError("Compose: expected an array of transforms: objects with forward, or functions");
    }
    this.transforms = transforms;
  }
  forward(x: Tensor): Tensor {
    return this.transforms.reduce((y, t, i) => call(t, y, "Compose", i), x);
  }
}
/**
 * `resize` as an object.
 * @example
 * new nn.transforms.Resize([4, 6]).forward(Tensor.rand(2, 3, 9, 9)).shape // => [2, 3, 4, 6]
 */
export class Resize {
  readonly size: ImageSize;
  constructor(size: ImageSize) {
    sizeOf("Resize", size);
    this.size = size;
  }
  forward(x: Tensor): Tensor {
    return resize(x, this.size);
  }
}
/**
 * `centerCrop` as an object.
 * @example
 * new nn.transforms.CenterCrop(4).forward(Tensor.rand(3, 9, 9)).shape // => [3, 4, 4]
 */
export class CenterCrop {
  readonly size: ImageSize;
  constructor(size: ImageSize) {
    sizeOf("CenterCrop", size);
    this.size = size;
  }
  forward(x: Tensor): Tensor {
    return centerCrop(x, this.size);
  }
}
/**
 * `normalize` as an object.
 * @example
 * await new nn.transforms.Normalize([0.5], [0.5]).forward(new Tensor([[[1.0, 0.5]]])).tolist() // => [[[1, 0]]]
 */
export class Normalize {
  readonly mean: readonly number[];
  readonly std: readonly number[];
  constructor(mean: readonly number[], std: readonly number[]) {
    this.mean = mean;
    this.std = std;
  }
  forward(x: Tensor): Tensor {
    return normalize(x, this.mean, this.std);
  }
}

/** Numbers from 0 up to 1 that a seed decides (splitmix32). */
class Choices {
  #state: number;
  constructor(who: string, seed: number) {
    if (!Number.isInteger(seed))
      throw new ArgumentError(`${who}: seed is ${String(seed)}, expected an integer`);
    this.#state = seed >>> 0;
  }
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return ((z ^ (z >>> 16)) >>> 0) / 2 ** 32;
  }
  below(n: number): number {
    return Math.floor(this.next() * n);
  }
}
abstract class RandomFlip {
  readonly #choices: Choices;
  readonly p: number;
  constructor(options: RandomFlipOptions) {
    const { p = 0.5, seed = 0 } = checkOptions(this.constructor.name, options, ["p", "seed"]);
    if (!(p >= 0 && p <= 1))
      throw new ArgumentError(`${this.constructor.name}: p is ${p}, expected a probability`);
    this.p = p;
    this.#choices = new Choices(this.constructor.name, seed);
  }
  protected abstract flipped(x: Tensor): Tensor;
  forward(x: Tensor): Tensor {
    return this.#choices.next() < this.p ? this.flipped(x) : x;
  }
}
/**
 * Exchanges left and right with a probability.
 * @example
 * await new nn.transforms.RandomHorizontalFlip({ p: 1 }).forward(new Tensor([[[1, 2]]])).tolist() // => [[[2, 1]]]
 */
export class RandomHorizontalFlip extends RandomFlip {
  constructor(options: RandomFlipOptions = {}) {
    super(options);
  }
  protected flipped(x: Tensor): Tensor {
    return hflip(x);
  }
}
/**
 * Exchanges top and bottom with a probability.
 * @example
 * await new nn.transforms.RandomVerticalFlip({ p: 1 }).forward(new Tensor([[[1], [2]]])).tolist() // => [[[2], [1]]]
 */
export class RandomVerticalFlip extends RandomFlip {
  constructor(options: RandomFlipOptions = {}) {
    super(options);
  }
  protected flipped(x: Tensor): Tensor {
    return vflip(x);
  }
}
/**
 * A part of an image at a random place.
 * @example
 * new nn.transforms.RandomCrop(28, { padding: 4, seed: 1 }).forward(Tensor.rand(1, 28, 28)).shape // => [1, 28, 28]
 */
export class RandomCrop {
  readonly #choices: Choices;
  readonly size: ImageSize;
  readonly padding: number;
  constructor(size: ImageSize, options: RandomCropOptions = {}) {
    const { padding = 0, seed = 0 } = checkOptions("RandomCrop", options, ["padding", "seed"]);
    if (!Number.isInteger(padding) || padding < 0)
      throw new ArgumentError(`RandomCrop: padding is ${String(padding)}, expected an integer >= 0`);
    sizeOf("RandomCrop", size);
    this.size = size;
    this.padding = padding;
    this.#choices = new Choices("RandomCrop", seed);
  }
  forward(x: Tensor): Tensor {
    sidesOf("RandomCrop", x);
    const around = [this.padding, this.padding] as const;
    const large = padded(x, around, around);
    const [h, w] = sidesOf("RandomCrop", large);
    const [height, width] = sizeOf("RandomCrop", this.size);
    const place = (have: number, want: number): number =>
      have < want ? 0 : this.#choices.below(have - want + 1);
    return crop(large, place(h, height), place(w, width), height, width);
  }
}
