// biome-ignore-all lint/complexity/noThisInStatic: a static method makes tensors of the class it is called on
// Random tensors: even, normal and integer ones, first weights of networks, samples, dropout. The bits come from
// threefry.ts; here they become numbers. A draw is one kernel.

import { type DType, dtypes, SMALL_FLOATS, toDType } from "../dtype.ts";
import { CacheCollector } from "../engine/jit/collector.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { prod, restoring } from "../helpers.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { copyTo, onEach } from "../lazy/multi.ts";
import { Device } from "../runtime/registry.ts";
import type { Shape } from "../shape/view.ts";
import { showShape } from "./base.ts";
import {
  CreationTensor,
  checkShape,
  leaf,
  type Maker,
  type SizeArgs,
  sizesOf,
  type TensorOptions,
} from "./creation.ts";
import { draw, type Pair, state, threefry, WORD } from "./threefry.ts";

/** Whether layers that behave differently in training (dropout, batch norm) should do so. */
const mode = { training: false };
CacheCollector.watch("Tensor.training", () => mode.training);

/** Bits behind the point of a number in [1, 2): so many random bits fit without rounding up. */
const mantissaBits = (d: DType): number =>
  SMALL_FLOATS.get(d)?.mantissa ?? (d === dtypes.float16 ? 10 : d === dtypes.bfloat16 ? 7 : 23);

export interface InitOptions extends TensorOptions {
  /** negative slope of the leaky relu that follows; 0 is a relu */
  readonly a?: number;
  /** which side's variance is kept: that of the inputs (forward) or of the outputs (backward) */
  readonly mode?: "fanIn" | "fanOut";
}

export abstract class RandomTensor extends CreationTensor {
  // ---- state ----

  /**
   * Starts the stream of random numbers anew; the same seed gives the same numbers, on every device. Without a call the
   * seed is 0.
   * @example
   * await (Tensor.manualSeed(1), Tensor.randint(0, 10, [4])).tolist() // => [0, 0, 4, 1]
   */
  static manualSeed(seed: number | bigint): void {
    if (typeof seed === "number" && !Number.isInteger(seed)) {
      throw new ArgumentError(
        `manualSeed: ${seed} is no integer; expected a number or bigint without fraction`,
      );
    }
    CacheCollector.forbid("manualSeed", "call it outside, before the jitted function");
    const bits = BigInt.asUintN(64, BigInt(seed));
    state.key = [Number(bits & 0xffffffffn), Number(bits >> 32n)];
    state.drawn = 0;
  }

  /**
   * Whether dropout drops and batch norm learns; see `train`.
   * @example
   * Tensor.training // => false
   */
  static get training(): boolean {
    return mode.training;
  }
  static set training(on: boolean) {
    mode.training = on;
  }
  /**
   * Runs `fn`, sync or async, with `Tensor.training` on (or off), and puts it back afterwards.
   * @example
   * Tensor.train(() => Tensor.training) // => true
   */
  static train<R>(fn: () => R, on = true): R {
    const before = mode.training;
    mode.training = on;
    return restoring(fn, () => {
      mode.training = before;
    });
  }

  // ---- bits ----

  /** Two words of random bits for each of `n` draws, flat, on this tensor's device. */
  protected randomWords(n: number): Pair<this> {
    const words = this.wrap(copyTo(LazyBuffer.fromBuffer(draw(n), [4]), this.device));
    const word = (i: number): this => words.shrink([[i, i + 1]]).expand(n);
    const at = this.counting(n).bitcast(dtypes.uint32);
    const low = word(2).add(at);
    const carry = low.lt(at).cast(dtypes.uint32);
    return threefry([word(0), word(1)], [low, word(3).add(carry)]);
  }
  /** Evenly distributed in [0, 1), out of words: the bits become the fraction of a number in [1, 2). */
  #unit([x, y]: Pair<this>, dtype: DType): this {
    if (dtype === dtypes.float64) {
      const high = x
        .rshift(5)
        .cast(dtype)
        .mul(2 ** -27);
      return high.add(
        y
          .rshift(6)
          .cast(dtype)
          .mul(2 ** -53),
      );
    }
    const bits = mantissaBits(dtype);
    const fraction = x.rshift(32 - bits).lshift(23 - bits);
    return fraction.bitwiseOr(0x3f800000).bitcast(dtypes.float32).sub(1).cast(dtype);
  }
  #uniform(shape: Shape, dtype: DType): this {
    const n = prod(shape as readonly number[]);
    if (n === 0) return this.constant(shape, dtype, 0);
    return this.#unit(this.randomWords(n), dtype).reshape(shape);
  }
  /** Box-Muller: one word gives the radius, the other the angle. */
  #normal(shape: Shape, dtype: DType): this {
    const n = prod(shape as readonly number[]);
    if (n === 0) return this.constant(shape, dtype, 0);
    const [x, y] = this.randomWords(n);
    const work = dtype === dtypes.float64 ? dtype : dtypes.float32;
    const radius = this.#unit([x, x.bitwiseXor(y)], work)
      .neg()
      .add(1)
      .log()
      .mul(-2)
      .sqrt();
    return radius
      .mul(
        this.#unit([y, y], work)
          .mul(2 * Math.PI)
          .cos(),
      )
      .cast(dtype)
      .reshape(shape);
  }
  /** Integers from `low` up to below `high`. */
  #integers(shape: Shape, low: number, high: number, dtype: DType): this {
    const n = prod(shape as readonly number[]);
    if (n === 0) return this.constant(shape, dtype, 0);
    const [x, y] = this.randomWords(n);
    const span = high - low;
    if (span < WORD)
      return x
        .fmod(span)
        .cast(dtype.isBig ? dtype : dtypes.int32)
        .add(low)
        .cast(dtype)
        .reshape(shape);
    const wide = x.cast(dtypes.uint64).lshift(32n).bitwiseOr(y.cast(dtypes.uint64));
    return wide.fmod(BigInt(span)).cast(dtypes.int64).add(BigInt(low)).cast(dtype).reshape(shape);
  }

  // ---- tensors of random numbers ----

  /**
   * Evenly distributed in [0, 1).
   * @example
   * Tensor.rand(2, 3).shape // => [2, 3]
   */
  static rand<T extends RandomTensor>(this: Maker<T>, ...args: SizeArgs): T {
    const { shape, options } = sizesOf("rand", args);
    const dtype = floatOption("rand", options);
    return leaf(origin(this, options).#uniform(shape, dtype), options);
  }
  /**
   * Normally distributed with mean 0 and variance 1.
   * @example
   * Tensor.randn([2, 3], { dtype: "float64" }).shape // => [2, 3]
   */
  static randn<T extends RandomTensor>(this: Maker<T>, ...args: SizeArgs): T {
    const { shape, options } = sizesOf("randn", args);
    const dtype = floatOption("randn", options);
    return leaf(origin(this, options).#normal(shape, dtype), options);
  }
  /**
   * Integers from `low` (0 when left out) up to below `high`.
   * @example
   * await Tensor.randint(3, 4, [2]).tolist() // => [3, 3]
   */
  static randint<T extends RandomTensor>(
    this: Maker<T>,
    high: number,
    shape: Shape,
    options?: TensorOptions,
  ): T;
  static randint<T extends RandomTensor>(
    this: Maker<T>,
    low: number,
    high: number,
    shape: Shape,
    options?: TensorOptions,
  ): T;
  static randint<T extends RandomTensor>(
    this: Maker<T>,
    ...args: readonly (number | Shape | TensorOptions | undefined)[]
  ): T {
    const [low, high, size, given] = (typeof args[1] === "number" ? args : [0, ...args]) as [
      number,
      number,
      Shape,
      TensorOptions | undefined,
    ];
    const options = given ?? {};
    const dtype = toDType(options.dtype ?? dtypes.int32);
    checkRange(low, high, dtype);
    return leaf(origin(this, options).#integers(checkShape("randint", size), low, high, dtype), options);
  }
  /**
   * Evenly distributed in [low, high).
   * @example
   * await Tensor.uniform([2], 3, 3).tolist() // => [3, 3]
   */
  static uniform<T extends RandomTensor>(
    this: Maker<T>,
    shape: Shape,
    low = 0,
    high = 1,
    options: TensorOptions = {},
  ): T {
    const dtype = floatOption("uniform", options);
    const unit = origin(this, options).#uniform(checkShape("uniform", shape), dtype);
    return leaf(scaled(unit, low, high), options);
  }
  /**
   * Normally distributed; mean and standard deviation are numbers, then `shape` says how many, or tensors.
   * @example
   * await Tensor.normal(5, 0, [2]).tolist() // => [5, 5]
   */
  static normal<T extends RandomTensor>(
    this: Maker<T>,
    mean: number | T = 0,
    std: number | T = 1,
    shape?: Shape,
    options: TensorOptions = {},
  ): T {
    const tensors = [mean, std].filter((x): x is T => x instanceof RandomTensor);
    const device = options.device ?? tensors[0]?.device;
    const dtype = floatOption("normal", {
      dtype: tensors.find((t) => t.dtype.isFloat)?.dtype ?? dtypes.float32,
      ...options,
    });
    const given =
      tensors.length === 2
        ? (tensors[0] as T).add(tensors[1] as T).lazydata.shape
        : tensors[0]?.lazydata.shape;
    const sizes = shape ?? given;
    if (sizes === undefined) {
      throw new ArgumentError(
        "normal: mean and std are numbers, so the shape is missing: normal(0, 1, [2, 3])",
      );
    }
    const base = origin(this, device === undefined ? options : { ...options, device });
    const z = base.#normal(checkShape("normal", sizes), dtype);
    return leaf(z.mul(std).add(mean).detach().cast(dtype), options);
  }
  /**
   * The numbers from 0 to n - 1 in random order.
   * @example
   * await Tensor.randperm(5).sum().item() // => 10
   */
  static randperm<T extends RandomTensor>(this: Maker<T>, n: number, options: TensorOptions = {}): T {
    const dtype = toDType(options.dtype ?? dtypes.int32);
    checkShape("randperm", [n]);
    const base = origin(this, options);
    if (n < 2) return leaf(base.counting(n).cast(dtype), options);
    return leaf(base.randomWords(n)[0].argsort().cast(dtype), options);
  }

  // ---- like another tensor ----

  /**
   * Evenly distributed in [0, 1), in the shape, type and place of this tensor.
   * @example
   * Tensor.zeros(2, 3).randLike().shape // => [2, 3]
   */
  randLike(options: TensorOptions = {}): this {
    const dtype = floatOption("randLike", { dtype: this.dtype, ...options });
    return leaf(this.#like(this.#at(options).#uniform(this.lazydata.shape, dtype), options), options);
  }
  /**
   * Normally distributed, in the shape, type and place of this tensor.
   * @example
   * Tensor.zeros(2, 3).randnLike().shape // => [2, 3]
   */
  randnLike(options: TensorOptions = {}): this {
    const dtype = floatOption("randnLike", { dtype: this.dtype, ...options });
    return leaf(this.#like(this.#at(options).#normal(this.lazydata.shape, dtype), options), options);
  }
  /**
   * Integers from `low` up to below `high`, in the shape, type and place of this tensor.
   * @example
   * await new Tensor([1, 2]).randintLike(3, 4).tolist() // => [3, 3]
   */
  randintLike(low: number, high: number, options: TensorOptions = {}): this {
    const dtype = toDType(options.dtype ?? this.dtype);
    checkRange(low, high, dtype);
    const made = this.#at(options).#integers(this.lazydata.shape, low, high, dtype);
    return leaf(this.#like(made, options), options);
  }
  /**
   * torch's form of `t.randLike()`.
   * @example
   * Tensor.randLike(Tensor.zeros(2, 3)).shape // => [2, 3]
   */
  static randLike<T extends RandomTensor>(t: T, options?: TensorOptions): T {
    return t.randLike(options);
  }
  /**
   * torch's form of `t.randnLike()`.
   * @example
   * Tensor.randnLike(Tensor.zeros(2, 3)).shape // => [2, 3]
   */
  static randnLike<T extends RandomTensor>(t: T, options?: TensorOptions): T {
    return t.randnLike(options);
  }
  /** A draw on this tensor's devices, cut as this tensor is: the numbers are those of one device. */
  #like(made: this, options: TensorOptions): this {
    return options.device === undefined ? made.placedLike(this) : made;
  }
  #at(options: TensorOptions): this {
    const device = options.device ?? this.device;
    return this.wrap(onEach(device, (d) => LazyBuffer.constant(d, [], dtypes.int32, 0)));
  }

  // ---- first weights of a network ----

  /**
   * He's bounds: even in ±sqrt(6 / (1 + a²) / fan), so that a relu network keeps its variance.
   * @example
   * Tensor.kaimingUniform([8, 4]).shape // => [8, 4]
   */
  static kaimingUniform<T extends RandomTensor>(this: Maker<T>, shape: Shape, options: InitOptions = {}): T {
    const bound = Math.sqrt(3) * kaimingStd("kaimingUniform", shape, options);
    const unit = origin(this, options).#uniform(shape, floatOption("kaimingUniform", options));
    return leaf(scaled(unit, -bound, bound), options);
  }
  /**
   * He's deviation: normal with std sqrt(2 / (1 + a²) / fan).
   * @example
   * Tensor.kaimingNormal([8, 4]).shape // => [8, 4]
   */
  static kaimingNormal<T extends RandomTensor>(this: Maker<T>, shape: Shape, options: InitOptions = {}): T {
    const std = kaimingStd("kaimingNormal", shape, options);
    const unit = origin(this, options).#normal(shape, floatOption("kaimingNormal", options));
    return leaf(unit.mul(std), options);
  }
  /**
   * Glorot's (Xavier's) bounds: even in ±sqrt(6 / (inputs + outputs)).
   * @example
   * Tensor.glorotUniform([8, 4]).shape // => [8, 4]
   */
  static glorotUniform<T extends RandomTensor>(this: Maker<T>, shape: Shape, options: TensorOptions = {}): T {
    const bound = Math.sqrt(
      6 / (fan("glorotUniform", shape, "fanIn") + fan("glorotUniform", shape, "fanOut")),
    );
    const unit = origin(this, options).#uniform(shape, floatOption("glorotUniform", options));
    return leaf(scaled(unit, -bound, bound), options);
  }
  /**
   * Even in ±1 / sqrt(number of elements).
   * @example
   * Tensor.scaledUniform([8, 4]).shape // => [8, 4]
   */
  static scaledUniform<T extends RandomTensor>(this: Maker<T>, shape: Shape, options: TensorOptions = {}): T {
    const bound = prod(checkShape("scaledUniform", shape) as readonly number[]) ** -0.5;
    const unit = origin(this, options).#uniform(shape, floatOption("scaledUniform", options));
    return leaf(scaled(unit, -bound, bound), options);
  }

  // ---- samples of given probabilities ----

  /**
   * 1 with the probability that the element says, 0 otherwise; or with probability `p` everywhere.
   * @example
   * await new Tensor([0, 1, 0]).bernoulli().tolist() // => [0, 1, 0]
   */
  bernoulli(p?: number): this {
    const work = this.dtype.isFloat ? this.dtype : dtypes.float32;
    const chance = this.#at({}).#uniform(this.lazydata.shape, work);
    return chance.lt(p ?? this.detach().cast(work)).cast(this.dtype);
  }
  /**
   * Places drawn with the probabilities in this vector, or in each row of this matrix; they need not sum to 1. Without
   * `replacement` no place comes twice, as long as enough are above 0.
   * @example
   * await new Tensor([0, 3, 0]).multinomial(2, true).tolist() // => [1, 1]
   */
  multinomial(numSamples = 1, replacement = false): this {
    if (this.ndim < 1 || this.ndim > 2) {
      throw new ShapeError(
        `multinomial: shape ${showShape(this.shape)} is neither a vector nor a matrix of weights`,
      );
    }
    const places = this.shape.at(-1) as number;
    if (!Number.isInteger(numSamples) || numSamples < 1 || (!replacement && numSamples > places)) {
      throw new ArgumentError(
        `multinomial: cannot draw ${numSamples} of ${places} places${replacement ? "" : " without replacement"}; ` +
          `expected 1 ${replacement ? "or more" : `to ${places}`}`,
      );
    }
    const weights = this.detach().cast(this.dtype === dtypes.float64 ? this.dtype : dtypes.float32);
    return replacement ? weights.#drawn(numSamples) : weights.#raced(numSamples);
  }
  /** Where the running sum of the weights passes a random part of their total. */
  #drawn(numSamples: number): this {
    const lead = this.lazydata.shape.slice(0, -1);
    const places = this.shape.at(-1) as number;
    const running = this.cumsum(-1).contiguous();
    const total = running.narrow(-1, places - 1, 1).unsqueeze(-1);
    const point = this.#at({})
      .#uniform([...lead, numSamples], this.dtype)
      .contiguous()
      .unsqueeze(-1)
      .mul(total);
    // a point at the very end belongs to the last place that has a weight
    const passed = running.unsqueeze(-2).le(point).bitwiseAnd(running.unsqueeze(-2).lt(total));
    return passed.cast(dtypes.int32).sum(-1);
  }
  /** Every place arrives after an exponential time of its rate; the first ones are the sample. */
  #raced(numSamples: number): this {
    const waits = this.#at({}).#uniform(this.lazydata.shape, this.dtype).neg().add(1).log().neg();
    const arrivals = this.gt(0).where(waits.div(this), Infinity);
    return arrivals.argsort(-1).narrow(-1, 0, numSamples).cast(dtypes.int32);
  }
  /**
   * In training (`Tensor.train`) sets elements to zero with probability `p` and scales the others by 1 / (1 - p), so
   * that the mean stays; otherwise changes nothing.
   * @example
   * await new Tensor([1, 2]).dropout(0.5).tolist() // => [1, 2]
   */
  dropout(p = 0.5, training = mode.training): this {
    if (!(p >= 0 && p <= 1)) {
      throw new ArgumentError(`dropout: p is ${p}, expected a probability from 0 to 1`);
    }
    if (!training || p === 0) return this;
    const kept = this.#at({}).#uniform(this.lazydata.shape, dtypes.float32).ge(p);
    return kept.where(p === 1 ? this : this.mul(1 / (1 - p)), 0);
  }
}

/** A tensor of the class and place that a static method was asked for: what draws are made on. */
function origin<T extends RandomTensor>(make: Maker<T>, options: TensorOptions): T {
  const device = options.device ?? Device.DEFAULT;
  return new make(onEach(device, (d) => LazyBuffer.constant(d, [], dtypes.int32, 0)));
}

function scaled<T extends RandomTensor>(unit: T, low: number, high: number): T {
  return unit.mul(high - low).add(low);
}

function floatOption(method: string, options: TensorOptions): DType {
  const dtype = toDType(options.dtype ?? dtypes.float32);
  if (dtype.isFloat) return dtype;
  throw new DTypeError(
    `${method}: gives fractions, which ${dtype.name} cannot hold; use a float dtype, or randint`,
  );
}

function checkRange(low: number, high: number, dtype: DType): void {
  if (!Number.isSafeInteger(low) || !Number.isSafeInteger(high) || low >= high) {
    throw new ArgumentError(
      `randint: from ${low} to below ${high} there is no integer; expected integers, low < high`,
    );
  }
  if (high - low >= WORD && !(dtype.isBig || dtype.isFloat)) {
    throw new ArgumentError(
      `randint: ${dtype.name} does not hold every number from ${low} to ${high}; use int64`,
    );
  }
}

/** How many inputs an output has (fanIn), or outputs an input; dims after the second are a window. */
function fan(method: string, shape: Shape, mode: "fanIn" | "fanOut"): number {
  const [out, inputs, ...window] = checkShape(method, shape) as readonly number[];
  if (out === undefined || inputs === undefined) {
    throw new ShapeError(
      `${method}: shape ${showShape(shape)} has no inputs and outputs; it takes at least 2 dims`,
    );
  }
  return (mode === "fanIn" ? inputs : out) * prod(window);
}
const kaimingStd = (method: string, shape: Shape, { a = 0, mode = "fanIn" }: InitOptions): number =>
  Math.sqrt(2 / (1 + a * a) / fan(method, shape, mode));
