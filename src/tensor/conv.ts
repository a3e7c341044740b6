// Convolution. Windows are views: padding, repeating and cutting make one index expression, so that a convolution is
// one product summed in one kernel and no column matrix is ever stored. A convolution's gradients are convolutions.
// Pooling and resampling are in the layers above.

import { dtypes, promote } from "../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import type { Sint } from "../shape/symbolic.ts";
import type { Interval } from "../shape/view.ts";
import { showShape } from "./base.ts";
import { LinalgTensor } from "./linalg.ts";
import { isNarrow } from "./math.ts";
import { requireTensors } from "./movement.ts";

/** One number for all spatial dims, or one a dim. */
export type PerDim = number | readonly number[];

export interface ConvOptions {
  /** how far the window moves; default 1 */
  readonly stride?: PerDim;
  /** zeros on both sides, or "valid" (none), or "same": the output has the size of the input; default 0 */
  readonly padding?: PerDim | "same" | "valid";
  /** the distance between the taps of the window; default 1 */
  readonly dilation?: PerDim;
  /** input and output channels come in this many parts that do not meet; default 1 */
  readonly groups?: number;
}
export interface ConvTransposeOptions extends ConvOptions {
  readonly padding?: PerDim;
  /** sizes added at the end of each spatial dim; default 0 */
  readonly outputPadding?: PerDim;
}

const at = (xs: readonly number[], i: number): number => xs[i] as number;

/** One integer a spatial dim; `least` is the smallest that makes sense. */
export function perDim(method: string, name: string, value: PerDim, n: number, least: number): number[] {
  const given = typeof value === "number" ? [value] : [...value];
  const list = given.length === 1 ? range(n).map(() => at(given, 0)) : given;
  if (list.length === n && list.every((x) => Number.isInteger(x) && x >= least)) return list;
  throw new ArgumentError(
    `${method}: ${name} is [${given}], expected one integer or ${n} of them, each at least ${least}`,
  );
}

/** How a window moves over each spatial dim, and how many places it has. */
export interface Frame {
  readonly kernel: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
}
/** A convolution: its window, the sizes it moves over, and the zeros around them. */
interface Convolution extends Frame {
  readonly sizes: readonly number[];
  readonly pads: readonly Interval[];
}
/** A tensor with a batch dim; `undo` takes the dim off a result where the tensor had none. */
export interface Batched<T> {
  readonly x: T;
  readonly undo: (y: T) => T;
}
/** The elements from the first tap of a window to its last. */
export const reach = ({ kernel, dilation }: Frame, i: number): number =>
  at(dilation, i) * (at(kernel, i) - 1) + 1;
export const places = (size: number, f: Frame, i: number): number =>
  Math.floor((size - reach(f, i)) / at(f.stride, i)) + 1;

export abstract class ConvTensor extends LinalgTensor {
  // ---- windows ----

  /** Adds zeros to, or cuts elements off, the ends of the last dims: amounts may be negative. */
  protected fit(amounts: readonly Interval[]): this {
    const lead = range(this.ndim - amounts.length).map(() => null);
    const sizes = this.shape.slice(lead.length);
    const ends = amounts as readonly (readonly [number, number])[];
    const cut = ends.map(([a, b], i): Interval => [Math.max(0, -a), at(sizes, i) - Math.max(0, -b)]);
    const grown = ends.map(([a, b]): Interval => [Math.max(0, a), Math.max(0, b)]);
    const cuts = cut.some(([a, b], i) => a !== 0 || b !== sizes[i]);
    const kept = cuts ? this.shrink([...lead, ...cut]) : this;
    return grown.every(([a, b]) => a === 0 && b === 0) ? kept : kept.pad([...lead, ...grown]);
  }

  /**
   * The windows over the last dims, as a view: [..., i] becomes [..., o, k], where (o, k) is element
   * `o * stride + k * dilation`.
   */
  protected windows(f: Frame): this {
    const n = f.kernel.length;
    const sizes = this.shape.slice(this.ndim - n);
    const out = sizes.map((s, i) => places(s, f, i));
    const apart = out.every((o, i) => {
      const [k, s] = [at(f.kernel, i), at(f.stride, i)];
      return (k === 1 || at(f.dilation, i) === 1) && s >= k && o * s <= at(sizes, i);
    });
    if (apart) return this.#blocks(out, f);
    return this.wrap(this.detach().#sliding(sizes, out, f).lazydata, [this], (g) => [g.overlap(sizes, f)]);
  }

  /** Windows that do not meet are the blocks of a reshape. */
  #blocks(out: readonly number[], { kernel, stride }: Frame): this {
    const n = out.length;
    const lead = this.lazydata.shape.slice(0, this.ndim - n);
    const whole = lead.map(() => null);
    const cut = this.shrink([...whole, ...out.map((o, i): Interval => [0, o * at(stride, i)])]);
    const split = cut.reshape([...lead, ...out.flatMap((o, i) => [o, at(stride, i)])]);
    const blocks = split.shrink([...whole, ...kernel.flatMap((k): [null, Interval] => [null, [0, k]])]);
    return blocks.permute(interleaved(lead.length, n, 0));
  }

  /**
   * A row of i elements, repeated and read again in rows of i + d, is moved on by d in each row: row k has element
   * o + k * d at o. (Rows of a * i + d, where the stride needs more room.)
   */
  #sliding(sizes: readonly number[], out: readonly number[], { kernel, stride, dilation }: Frame): this {
    const n = sizes.length;
    const lead = this.lazydata.shape.slice(0, this.ndim - n);
    const whole = lead.map(() => null);
    const rows = sizes.map((s, i) => {
      const d = at(dilation, i);
      return s * Math.max(1, Math.ceil((at(out, i) * at(stride, i) - d) / s)) + d;
    });
    const times = sizes.map((s, i) => Math.ceil((at(kernel, i) * at(rows, i)) / s));
    const repeated = this.reshape([...lead, ...sizes.flatMap((s) => [1, s])])
      .expand([...lead, ...sizes.flatMap((s, i) => [at(times, i), s])])
      .reshape([...lead, ...sizes.map((s, i) => s * at(times, i))]);
    return repeated
      .shrink([...whole, ...rows.map((r, i): Interval => [0, r * at(kernel, i)])])
      .reshape([...lead, ...rows.flatMap((r, i) => [at(kernel, i), r])])
      .shrink([...whole, ...out.flatMap((o, i): [null, Interval] => [null, [0, o * at(stride, i)]])])
      .reshape([...lead, ...out.flatMap((o, i) => [at(kernel, i), o, at(stride, i)])])
      .shrink([...whole, ...out.flatMap((): [null, null, Interval] => [null, null, [0, 1]])])
      .reshape([...lead, ...out.flatMap((o, i) => [at(kernel, i), o])])
      .permute(interleaved(lead.length, n, 1));
  }

  /**
   * The sum of windows laid over each other, each at its place: [..., o, k] becomes [..., i]. The gradient of `windows`,
   * as that is the gradient of this.
   */
  protected overlap(sizes: readonly number[], f: Frame): this {
    const n = sizes.length;
    const g = this.detach();
    const lead = g.lazydata.shape.slice(0, g.ndim - 2 * n);
    const whole = lead.map(() => null);
    const out = g.shape.slice(lead.length, lead.length + n);
    // taps backwards, and room for a window before the first place: then element p is the sum of (p + k * d, k)
    const taps = range(n).map((i) => lead.length + n + i);
    const steps = [...lead.map(() => 1), ...f.stride, ...f.kernel.map(() => 1)];
    const far = out.map((o, i) => (o - 1) * at(f.stride, i) + 1);
    const room = far.map((m, i): Interval => [reach(f, i) - 1, at(sizes, i) - m]);
    const pairs = g
      .flip(taps)
      .spread(steps, [...g.shape.slice(0, lead.length), ...far, ...f.kernel])
      .pad([...whole, ...room, ...taps.map(() => null)])
      .permute([...range(lead.length), ...range(n).flatMap((i) => [lead.length + i, lead.length + n + i])]);
    const flat = sizes.map((size, i) => (size + reach(f, i) - 1) * at(f.kernel, i));
    // that diagonal is a window again: one place is a row of taps, one tap is d rows and a tap
    const diagonal = {
      kernel: f.kernel,
      stride: f.kernel,
      dilation: f.dilation.map((d, i) => d * at(f.kernel, i) + 1),
    };
    const sum = pairs
      .reshape([...lead, ...flat])
      .windows(diagonal)
      .reduceSum(taps)
      .reshape([...lead, ...sizes]);
    return this.wrap(sum.lazydata, [this], (x) => [x.windows(f)]);
  }

  // ---- convolution ----

  /** This [n, group, in, i] under `w` [group, out, in, k], no gradient recorded: [n, group, out, o] in one kernel. */
  #correlate(w: this, stride: readonly number[], dilation: readonly number[]): this {
    const n = stride.length;
    const f: Frame = { kernel: w.shape.slice(3), stride, dilation };
    const out = this.shape.slice(3).map((s, i) => places(s, f, i));
    const [batch, groups, inner] = this.lazydata.shape as readonly [Sint, Sint, Sint];
    const outer = w.lazydata.shape[1] as Sint;
    const full = [batch, groups, outer, ...out, inner, ...f.kernel];
    // [n, g, in, o, k] -> [n, g, 1, o, in, k]; the product is summed over in and k
    const seen = this.windows(f)
      .permute([0, 1, ...range(n).map((i) => 3 + i), 2, ...range(n).map((i) => 3 + n + i)])
      .reshape([batch, groups, 1, ...out, inner, ...f.kernel])
      .expand(full);
    const by = w.reshape([1, groups, outer, ...out.map(() => 1), inner, ...f.kernel]).expand(full);
    const sum = seen.mul(by).reduceSum(range(1 + n).map((i) => 3 + n + i));
    return sum.reshape([batch, groups, outer, ...out]);
  }

  /** `fit`, with the zeros in memory: every window that meets them would ask for each element whether it is one. */
  #framed(amounts: readonly Interval[], f: Frame): this {
    const fitted = this.fit(amounts);
    const pads = amounts.some(([a, b]) => Number(a) > 0 || Number(b) > 0);
    return pads && f.kernel.some((k) => k > 1) ? fitted.contiguous() : fitted;
  }

  // Input, weights and output are bound by one trilinear form. Each of the three methods computes one of them from the
  // other two, so each is the gradient of both others, to any order.

  /** The output: this [n, group, in, i], `w` [group, out, in, k], result [n, group, out, o]. */
  protected convolve(w: this, c: Convolution): this {
    const made = this.detach().#framed(c.pads, c).#correlate(w.detach(), c.stride, c.dilation);
    return this.wrap(made.lazydata, [this, w], (g) => [
      this.requiresGrad ? g.unconvolve(w, c) : undefined,
      w.requiresGrad ? this.#weightsOf(g, c) : undefined,
    ]);
  }

  /** The input, from the output and the weights: what a transposed convolution computes. */
  protected unconvolve(w: this, c: Convolution): this {
    const spatial = c.kernel.map((_, i) => 3 + i);
    const far = this.shape.slice(3).map((o, i) => (o - 1) * at(c.stride, i) + 1);
    const steps = [1, 1, 1, ...c.stride];
    const g = this.detach();
    const spread = c.stride.every((s) => s === 1) ? g : g.spread(steps, [...this.shape.slice(0, 3), ...far]);
    const room = far.map((m, i): Interval => {
      const left = reach(c, i) - 1 - Number(c.pads[i]?.[0]);
      return [left, at(c.sizes, i) + reach(c, i) - 1 - m - left];
    });
    const turned = w
      .detach()
      .flip(spatial)
      .permute([0, 2, 1, ...spatial]);
    const made = spread.#framed(room, c).#correlate(
      turned,
      c.kernel.map(() => 1),
      c.dilation,
    );
    return this.wrap(made.lazydata, [this, w], (x) => [
      this.requiresGrad ? x.convolve(w, c) : undefined,
      w.requiresGrad ? x.#weightsOf(this, c) : undefined,
    ]);
  }

  /** The weights, from this input and an output: taps and places change roles, and so do samples and channels. */
  #weightsOf(g: this, c: Convolution): this {
    const spatial = c.kernel.map((_, i) => 3 + i);
    const used = c.pads.map(([before], i): Interval => {
      const last = (at(g.shape, 3 + i) - 1) * at(c.stride, i) + reach(c, i);
      return [before, last - Number(before) - at(c.sizes, i)];
    });
    const made = this.detach()
      .#framed(used, c)
      .permute([2, 1, 0, ...spatial])
      .#correlate(g.detach().permute([1, 2, 0, ...spatial]), c.dilation, c.stride)
      .permute([1, 2, 0, ...spatial]);
    return this.wrap(made.lazydata, [this, g], (w) => [
      this.requiresGrad ? g.unconvolve(w, c) : undefined,
      g.requiresGrad ? this.convolve(w, c) : undefined,
    ]);
  }

  protected batched(method: string, n: number): Batched<this> {
    if (this.ndim === n + 2) return { x: this, undo: (y) => y };
    if (this.ndim === n + 1) return { x: this.unsqueeze(0), undo: (y) => y.squeeze(0) };
    throw new ShapeError(
      `${method}: shape ${showShape(this.shape)} has ${this.ndim} dims, expected ${n + 2} (batch, channels, ${n} spatial) or ${n + 1}`,
    );
  }

  #operands(method: string, w: this, bias: this | null | undefined, n: number, groups: number, axis: 0 | 1) {
    const { x, undo } = this.batched(method, n);
    const [c, cw] = [at(x.shape, 1), at(w.shape, 0)];
    const channels = axis === 0 ? at(w.shape, 1) * groups : cw;
    const outputs = axis === 0 ? cw : at(w.shape, 1) * groups;
    const split = Number.isInteger(groups) && groups >= 1 && c % groups === 0 && cw % groups === 0;
    if (w.ndim !== n + 2 || c !== channels || !split) {
      const layout = axis === 0 ? "[out, in / groups, kernel]" : "[in, out / groups, kernel]";
      throw new ShapeError(
        `${method}: input ${showShape(this.shape)}, weight ${showShape(w.shape)} and groups ${groups} do not fit; ` +
          `the weight is ${layout} with ${n} kernel sizes, and groups divides its channels and the input's ${c}`,
      );
    }
    if (bias != null && (bias.ndim !== 1 || bias.size !== outputs)) {
      throw new ShapeError(`${method}: bias has shape ${showShape(bias.shape)}, expected [${outputs}]`);
    }
    const type = promote(x.dtype, w.dtype);
    if (type.kind === "bool") throw new DTypeError(`${method}: bool cannot be convolved; cast to float32`);
    // half-width floats would lose what they add: float32 holds the running sum
    const wide = isNarrow(type) ? dtypes.float32 : type;
    const finish = (y: this): this => {
      const joined = y.reshape([...y.lazydata.shape.slice(0, 1), outputs, ...y.lazydata.shape.slice(3)]);
      const shifted =
        bias == null ? joined : joined.add(bias.cast(wide).reshape([outputs, ...range(n).map(() => 1)]));
      return undo(shifted.cast(type));
    };
    const [batch, , ...spatial] = x.lazydata.shape as readonly [Sint, Sint, ...Sint[]];
    const grouped = x.cast(wide).reshape([batch, groups, c / groups, ...spatial]);
    const weights = w.cast(wide).reshape([groups, cw / groups, ...w.shape.slice(1)]);
    return { grouped, weights, finish };
  }

  #conv(method: string, w: this, bias: this | null | undefined, n: number, options: ConvOptions): this {
    const { stride = 1, padding = 0, dilation = 1, groups = 1 } = options;
    const { grouped, weights, finish } = this.#operands(method, w, bias, n, groups, 0);
    const f: Frame = {
      kernel: weights.shape.slice(3),
      stride: perDim(method, "stride", stride, n, 1),
      dilation: perDim(method, "dilation", dilation, n, 1),
    };
    const sizes = grouped.shape.slice(3);
    const pads = paddingOf(method, padding, f);
    const room = pads.map(([before, after], i) => at(sizes, i) + Number(before) + Number(after));
    const short = range(n).find((i) => at(room, i) < reach(f, i) || f.kernel[i] === 0);
    if (short !== undefined) {
      throw new ShapeError(
        `${method}: a kernel of ${f.kernel[short]} with dilation ${f.dilation[short]} does not fit into ` +
          `${room[short]} elements (input ${showShape(this.shape)}, padding included); pad more or use a smaller kernel`,
      );
    }
    return finish(grouped.convolve(weights, { ...f, sizes, pads }));
  }

  #convTranspose(
    method: string,
    w: this,
    bias: this | null | undefined,
    n: number,
    options: ConvTransposeOptions,
  ): this {
    const { stride = 1, padding = 0, outputPadding = 0, dilation = 1, groups = 1 } = options;
    const { grouped, weights, finish } = this.#operands(method, w, bias, n, groups, 1);
    const f: Frame = {
      kernel: weights.shape.slice(3),
      stride: perDim(method, "stride", stride, n, 1),
      dilation: perDim(method, "dilation", dilation, n, 1),
    };
    const before = perDim(method, "padding", padding, n, 0);
    const after = perDim(method, "outputPadding", outputPadding, n, 0);
    const large = after.findIndex((a, i) => a >= Math.max(at(f.stride, i), at(f.dilation, i)));
    if (large >= 0) {
      throw new ArgumentError(
        `${method}: outputPadding ${after[large]} must be smaller than stride ${f.stride[large]} or dilation ${f.dilation[large]}`,
      );
    }
    const sizes = grouped.shape
      .slice(3)
      .map((o, i) => (o - 1) * at(f.stride, i) + reach(f, i) - 2 * at(before, i) + at(after, i));
    const empty = sizes.findIndex((s) => s < 1);
    if (empty >= 0) {
      throw new ShapeError(
        `${method}: input ${showShape(this.shape)} with padding [${before}] leaves size ${sizes[empty]} in spatial dim ${empty}; pad less`,
      );
    }
    const pads = before.map((b, i): Interval => [b, b - at(after, i)]);
    return finish(grouped.unconvolve(weights, { ...f, sizes, pads }));
  }

  /**
   * The convolution over the last dim. `weight` is [out, in / groups, kernel].
   *
   * @example
   * await new Tensor([[1, 2, 3, 4]]).conv1d(new Tensor([[[1, 10]]])).tolist() // => [[21, 32, 43]]
   */
  conv1d(weight: this, bias?: this | null, options: ConvOptions = {}): this {
    requireTensors("conv1d", { weight });
    return this.#conv("conv1d", weight, bias, 1, options);
  }
  /**
   * The convolution over the last two dims. `weight` is [out, in / groups, height, width].
   *
   * @example
   * await new Tensor([[[1, 2], [3, 4]]]).conv2d(new Tensor([[[[1, 1], [1, 1]]]])).tolist() // => [[[10]]]
   */
  conv2d(weight: this, bias?: this | null, options: ConvOptions = {}): this {
    requireTensors("conv2d", { weight });
    return this.#conv("conv2d", weight, bias, 2, options);
  }
  /**
   * The convolution over the last three dims. `weight` is [out, in / groups, depth, height, width].
   *
   * @example
   * await new Tensor([[[[1, 2]]]]).conv3d(new Tensor([[[[[3]]]]]), new Tensor([1])).tolist() // => [[[[4, 7]]]]
   */
  conv3d(weight: this, bias?: this | null, options: ConvOptions = {}): this {
    requireTensors("conv3d", { weight });
    return this.#conv("conv3d", weight, bias, 3, options);
  }
  /**
   * The transposed convolution: what a convolution does to gradients. `weight` is [in, out / groups, kernel].
   *
   * @example
   * await new Tensor([[1, 2]]).convTranspose1d(new Tensor([[[1, 10]]]), null, { stride: 2 }).tolist() // => [[1, 10, 2, 20]]
   */
  convTranspose1d(weight: this, bias?: this | null, options: ConvTransposeOptions = {}): this {
    requireTensors("convTranspose1d", { weight });
    return this.#convTranspose("convTranspose1d", weight, bias, 1, options);
  }
  /**
   * The transposed convolution over two dims. `weight` is [in, out / groups, height, width].
   *
   * @example
   * await new Tensor([[[2]]]).convTranspose2d(new Tensor([[[[1, 2], [3, 4]]]])).tolist() // => [[[2, 4], [6, 8]]]
   */
  convTranspose2d(weight: this, bias?: this | null, options: ConvTransposeOptions = {}): this {
    requireTensors("convTranspose2d", { weight });
    return this.#convTranspose("convTranspose2d", weight, bias, 2, options);
  }
  /**
   * The transposed convolution over three dims. `weight` is [in, out / groups, depth, height, width].
   *
   * @example
   * await new Tensor([[[[2]]]]).convTranspose3d(new Tensor([[[[[1, 3]]]]])).tolist() // => [[[[2, 6]]]]
   */
  convTranspose3d(weight: this, bias?: this | null, options: ConvTransposeOptions = {}): this {
    requireTensors("convTranspose3d", { weight });
    return this.#convTranspose("convTranspose3d", weight, bias, 3, options);
  }
}

/** [lead, a0, b0, a1, b1, ...] -> [lead, first of each pair, other of each pair]. */
function interleaved(lead: number, n: number, first: 0 | 1): number[] {
  const pairs = (part: number): number[] => range(n).map((i) => lead + 2 * i + part);
  return [...range(lead), ...pairs(first), ...pairs(1 - first)];
}

/** Zeros before and after each spatial dim. */
function paddingOf(method: string, padding: PerDim | "same" | "valid", f: Frame): Interval[] {
  if (typeof padding !== "string") {
    return perDim(method, "padding", padding, f.kernel.length, 0).map((p): Interval => [p, p]);
  }
  if (padding === "valid") return f.kernel.map((): Interval => [0, 0]);
  if (padding !== "same") {
    throw new ArgumentError(`${method}: padding is "${padding}", expected numbers, "same" or "valid"`);
  }
  if (f.stride.some((s) => s !== 1)) {
    throw new ArgumentError(
      `${method}: padding "same" takes stride 1, got [${f.stride}]; give the padding in numbers`,
    );
  }
  // an odd number of zeros leaves the larger part at the end
  return f.kernel.map((_, i): Interval => {
    const all = reach(f, i) - 1;
    return [Math.floor(all / 2), all - Math.floor(all / 2)];
  });
}
