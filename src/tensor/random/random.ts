// Random tensors: even, normal and integer ones, first weights of networks, dropout. The bits come from
// threefry.ts; here they become numbers. A draw is one kernel. distributions.ts has the rarer ones.

import { type DType, dtypes, SMALL_FLOATS, toDType } from "../../dtype.ts";
import { CacheCollector } from "../../engine/jit/collector.ts";
import { scopes } from "../../engine/scope.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../errors.ts";
import { prod } from "../../helpers.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { copyTo, onEach } from "../../lazy/placement.ts";
import { Device } from "../../runtime/registry.ts";
import type { Shape } from "../../shape/view.ts";
import {
  bitcast,
  cast,
  constant,
  contiguous,
  counting,
  detach,
  make,
  placedLike,
  TensorHandle,
  wrap,
} from "../core.ts";
import { checkShape, leaf, type SizeArgs, sizesOf, type TensorOptions } from "../creation/creation.ts";
import {
  add,
  bitwiseAnd,
  bitwiseOr,
  bitwiseXor,
  fmod,
  ge,
  le,
  log,
  lshift,
  lt,
  mul,
  neg,
  rshift,
  sqrt,
  sub,
  where,
} from "../math/arithmetic.ts";
import { cos } from "../math/elementary.ts";
import { narrow } from "../movement/join.ts";
import { expand, reshape, shrink, unsqueeze } from "../movement/views.ts";
import { sum } from "../reduce/reduce.ts";
import { cumsum } from "../reduce/scan.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { draw, type Pair, state, threefry, WORD } from "./threefry.ts";

/** Bits behind the point of a number in [1, 2): this many random bits fit without rounding up. */
const mantissaBits = (d: DType): number =>
  SMALL_FLOATS.get(d)?.mantissa ?? (d === dtypes.float16 ? 10 : d === dtypes.bfloat16 ? 7 : 23);

export interface InitOptions extends TensorOptions {
  /** negative slope of the leaky relu that follows; 0 is a relu */
  readonly a?: number;
  /** which side's variance is kept: that of the inputs (forward) or of the outputs (backward) */
  readonly mode?: "fanIn" | "fanOut";
}

// ---- state ----

export function manualSeed(seed: number | bigint): void {
  if (typeof seed === "number" && !Number.isInteger(seed)) {
    throw new ArgumentError(
      `manualSeed: ${seed} is not an integer; expected a number or bigint without fraction`,
    );
  }
  CacheCollector.forbid("manualSeed", "call it outside, before the jitted function");
  const bits = BigInt.asUintN(64, BigInt(seed));
  state.key = [Number(bits & 0xffffffffn), Number(bits >> 32n)];
  state.drawn = 0;
}

/** Whether layers train here; a jit that asks holds only while the answer is the same. */
export const isTraining = (): boolean =>
  CacheCollector.depend("Tensor.training", scopes, () => scopes.training);

// ---- bits ----

/** Two words of random bits for each of `n` draws, flat, on this tensor's device. */
export function randomWords(self: Tensor, n: number): Pair<Tensor> {
  const words = wrap(copyTo(LazyBuffer.fromBuffer(draw(n), [4]), self.device));
  const word = (i: number): Tensor => expand(shrink(words, [[i, i + 1]]), n);
  const numbers = counting(self, n);
  const { isBig } = numbers.dtype;
  const at = isBig ? cast(numbers, dtypes.uint32) : bitcast(numbers, dtypes.uint32);
  const low = add(word(2), at);
  const carry = cast(lt(low, at), dtypes.uint32);
  const high = add(word(3), carry);
  const wide = isBig ? add(high, cast(rshift(numbers, 32), dtypes.uint32)) : high;
  return threefry([word(0), word(1)], [low, wide]);
}
/** Evenly distributed in [0, 1), out of words: the bits become the fraction of a number in [1, 2). */
function unitOf([x, y]: Pair<Tensor>, dtype: DType): Tensor {
  if (dtype === dtypes.float64) {
    const high = mul(cast(rshift(x, 5), dtype), 2 ** -27);
    return add(high, mul(cast(rshift(y, 6), dtype), 2 ** -53));
  }
  const bits = mantissaBits(dtype);
  const fraction = lshift(rshift(x, 32 - bits), 23 - bits);
  return cast(sub(bitcast(bitwiseOr(fraction, 0x3f800000), dtypes.float32), 1), dtype);
}
export function uniformLike(self: Tensor, shape: Shape, dtype: DType): Tensor {
  const n = prod(shape as readonly number[]);
  if (n === 0) return constant(self, shape, dtype, 0);
  return reshape(unitOf(randomWords(self, n), dtype), shape);
}
/** Box-Muller: one word gives the radius, the other the angle. */
export function normalLike(self: Tensor, shape: Shape, dtype: DType): Tensor {
  const n = prod(shape as readonly number[]);
  if (n === 0) return constant(self, shape, dtype, 0);
  const [x, y] = randomWords(self, n);
  const work = dtype === dtypes.float64 ? dtype : dtypes.float32;
  const radius = sqrt(mul(log(add(neg(unitOf([x, bitwiseXor(x, y)], work)), 1)), -2));
  return reshape(cast(mul(radius, cos(mul(unitOf([y, y], work), 2 * Math.PI))), dtype), shape);
}
/** Integers from `low` up to below `high`. */
export function integers(self: Tensor, shape: Shape, low: number, high: number, dtype: DType): Tensor {
  const n = prod(shape as readonly number[]);
  if (n === 0) return constant(self, shape, dtype, 0);
  const [x, y] = randomWords(self, n);
  const span = high - low;
  if (span < WORD)
    return reshape(cast(add(cast(fmod(x, span), dtype.isBig ? dtype : dtypes.int32), low), dtype), shape);
  const wide = bitwiseOr(lshift(cast(x, dtypes.uint64), 32n), cast(y, dtypes.uint64));
  return reshape(cast(add(cast(fmod(wide, BigInt(span)), dtypes.int64), BigInt(low)), dtype), shape);
}

// ---- tensors of random numbers ----

export function rand(...args: SizeArgs): Tensor {
  const { shape, options } = sizesOf("rand", args);
  const dtype = floatOption("rand", options);
  return leaf(uniformLike(origin(options), shape, dtype), options);
}
export function randn(...args: SizeArgs): Tensor {
  const { shape, options } = sizesOf("randn", args);
  const dtype = floatOption("randn", options);
  return leaf(normalLike(origin(options), shape, dtype), options);
}
export function randint(args: readonly (number | Shape | TensorOptions | undefined)[]): Tensor {
  const [low, high, size, given] = (typeof args[1] === "number" ? args : [0, ...args]) as [
    number,
    number,
    Shape,
    TensorOptions | undefined,
  ];
  const options = given ?? {};
  const dtype = toDType(options.dtype ?? dtypes.int32);
  checkRange(low, high, dtype);
  return leaf(integers(origin(options), checkShape("randint", size), low, high, dtype), options);
}
export function uniform(shape: Shape, low = 0, high = 1, options: TensorOptions = {}): Tensor {
  const dtype = floatOption("uniform", options);
  if (low > high) throw new ArgumentError(`uniform: low is ${low} and high ${high}; expected low <= high`);
  const unit = uniformLike(origin(options), checkShape("uniform", shape), dtype);
  return leaf(scaled(unit, low, high), options);
}
export function normal(
  mean: number | Tensor = 0,
  std: number | Tensor = 1,
  shape?: Shape,
  options: TensorOptions = {},
): Tensor {
  if (typeof std === "number" && std < 0) {
    throw new ArgumentError(`normal: std is ${std}, expected a standard deviation from 0 up`);
  }
  const tensors = [mean, std].filter((x): x is Tensor => x instanceof TensorHandle);
  const device = options.device ?? tensors[0]?.device;
  const dtype = floatOption("normal", {
    dtype: tensors.find((t) => t.dtype.isFloat)?.dtype ?? dtypes.float32,
    ...options,
  });
  const given =
    tensors.length === 2
      ? add(tensors[0] as Tensor, tensors[1] as Tensor).lazydata.shape
      : tensors[0]?.lazydata.shape;
  const sizes = shape ?? given;
  if (sizes === undefined) {
    throw new ArgumentError(
      "normal: mean and std are numbers, so the shape is missing: normal(0, 1, [2, 3])",
    );
  }
  const base = origin(device === undefined ? options : { ...options, device });
  const z = normalLike(base, checkShape("normal", sizes), dtype);
  return leaf(cast(detach(add(mul(z, std), mean)), dtype), options);
}
// ---- like another tensor ----

export function randLike(self: Tensor, options: TensorOptions = {}): Tensor {
  const dtype = floatOption("randLike", { dtype: self.dtype, ...options });
  return leaf(like(self, uniformLike(atOf(self, options), self.lazydata.shape, dtype), options), options);
}
export function randnLike(self: Tensor, options: TensorOptions = {}): Tensor {
  const dtype = floatOption("randnLike", { dtype: self.dtype, ...options });
  return leaf(like(self, normalLike(atOf(self, options), self.lazydata.shape, dtype), options), options);
}
/** A draw on this tensor's devices, cut as this tensor is: the numbers are those of one device. */
export function like(self: Tensor, made: Tensor, options: TensorOptions): Tensor {
  return options.device === undefined ? placedLike(made, self) : made;
}
export function atOf(self: Tensor, options: TensorOptions): Tensor {
  const device = options.device ?? self.device;
  return wrap(onEach(device, (d) => LazyBuffer.constant(d, [], dtypes.int32, 0)));
}

// ---- first weights of a network ----

export function kaimingUniform(shape: Shape, options: InitOptions = {}): Tensor {
  const bound = Math.sqrt(3) * kaimingStd("kaimingUniform", shape, options);
  const unit = uniformLike(origin(options), shape, floatOption("kaimingUniform", options));
  return leaf(scaled(unit, -bound, bound), options);
}
export function scaledUniform(shape: Shape, options: TensorOptions = {}): Tensor {
  const bound = prod(checkShape("scaledUniform", shape) as readonly number[]) ** -0.5;
  const unit = uniformLike(origin(options), shape, floatOption("scaledUniform", options));
  return leaf(scaled(unit, -bound, bound), options);
}

/** Where the running sum of the weights passes a random part of their total. */
export function drawn(self: Tensor, numSamples: number): Tensor {
  const lead = self.lazydata.shape.slice(0, -1);
  const places = self.shape.at(-1) as number;
  const running = contiguous(cumsum(self, -1));
  const total = unsqueeze(narrow(running, -1, places - 1, 1), -1);
  const point = mul(
    unsqueeze(contiguous(uniformLike(atOf(self, {}), [...lead, numSamples], self.dtype)), -1),
    total,
  );
  // a point at the very end belongs to the last index that has a weight
  const passed = bitwiseAnd(le(unsqueeze(running, -2), point), lt(unsqueeze(running, -2), total));
  return sum(cast(passed, dtypes.int32), -1);
}
export function dropout(self: Tensor, p = 0.5, training = isTraining()): Tensor {
  if (!(p >= 0 && p <= 1)) {
    throw new ArgumentError(`dropout: p is ${p}, expected a probability from 0 to 1`);
  }
  if (!training || p === 0) return self;
  const kept = ge(uniformLike(atOf(self, {}), self.lazydata.shape, dtypes.float32), p);
  return where(kept, p === 1 ? self : mul(self, 1 / (1 - p)), 0);
}

/** A tensor of the class and device that a static method was asked for: what draws are made on. */
export function origin(options: TensorOptions): Tensor {
  const device = options.device ?? Device.DEFAULT;
  return make(onEach(device, (d) => LazyBuffer.constant(d, [], dtypes.int32, 0)));
}

export function scaled(unit: Tensor, low: number, high: number): Tensor {
  return add(mul(unit, high - low), low);
}

export function floatOption(method: string, options: TensorOptions): DType {
  const dtype = toDType(options.dtype ?? dtypes.float32);
  if (dtype.isFloat) return dtype;
  throw new DTypeError(
    `${method}: gives fractions, which ${dtype.name} cannot hold; use a float dtype, or randint`,
  );
}

export function checkRange(low: number, high: number, dtype: DType): void {
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
export function fan(method: string, shape: Shape, mode: "fanIn" | "fanOut"): number {
  const [out, inputs, ...window] = checkShape(method, shape) as readonly number[];
  if (out === undefined || inputs === undefined) {
    throw new ShapeError(
      `${method}: shape ${showShape(shape)} has no inputs and outputs; it takes at least 2 dims`,
    );
  }
  return (mode === "fanIn" ? inputs : out) * prod(window);
}
export const kaimingStd = (method: string, shape: Shape, { a = 0, mode = "fanIn" }: InitOptions): number =>
  Math.sqrt(2 / (1 + a * a) / fan(method, shape, mode));
