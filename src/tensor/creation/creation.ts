// Making tensors out of nothing: constants, ranges, identities, and tensors like another one. Everything is a
// constant or an expression of ARANGE, so none of it costs memory or a kernel before it is used.

import { type DType, type DTypeLike, dtypes, toDType } from "../../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../../errors.ts";
import { isPlain, range } from "../../helpers.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { onEach } from "../../lazy/placement.ts";
import { Device } from "../../runtime/registry.ts";
import { type Sint, Sym } from "../../shape/symbolic.ts";
import type { Shape } from "../../shape/view.ts";
import { cast, counting, detach, type Element, make, placedLike, TensorHandle, to, wrap } from "../core.ts";
import {
  add,
  bitwiseAnd,
  div,
  eq,
  exp2,
  le,
  lt,
  mul,
  ne,
  neg,
  reciprocal,
  sub,
  trunc,
  where,
} from "../math/arithmetic.ts";
import { operandValue } from "../math/promotion.ts";
import { abs } from "../math/rounding.ts";
import { expand, reshape } from "../movement/views.ts";
import { showShape } from "../show.ts";
import type { Tensor } from "../tensor.ts";
import { noteSteps } from "../wholes.ts";

export interface TensorOptions {
  /** whether `backward` fills `.grad` of this tensor */
  readonly requiresGrad?: boolean;
  /**
   * default: int32 for integers, int64 for bigints, bool for booleans, float32 for the
   * rest, a typed array's own type
   */
  readonly dtype?: DTypeLike;
  /** default: Device.DEFAULT, or that of the tensor it is made like */
  readonly device?: string;
}

/** The type and the device of a tensor made like another one. */
export interface Like {
  readonly dtype?: DTypeLike;
  readonly device?: string;
}

/** `(2, 3)`, `([2, 3])`, and either of them with options behind. */
export type SizeArgs =
  | readonly Sint[]
  | readonly [...Sint[], TensorOptions]
  | readonly [Shape]
  | readonly [Shape, TensorOptions | undefined];

const isOptions = (x: unknown): x is TensorOptions => isPlain(x);

/** Shape and options out of the arguments of a method that takes sizes. */
export function sizesOf(method: string, args: SizeArgs): { shape: Shape; options: TensorOptions } {
  const last = args.at(-1);
  const options = isOptions(last) ? last : {};
  const rest = (isOptions(last) || last === undefined ? args.slice(0, -1) : args) as readonly unknown[];
  const shape = (Array.isArray(rest[0]) ? rest[0] : rest) as Shape;
  return { shape: checkShape(method, shape), options };
}

export function checkShape(method: string, shape: Shape): Shape {
  const isSize = (s: Sint): boolean =>
    typeof s === "number" ? Number.isSafeInteger(s) && s >= 0 : s instanceof Sym;
  if (shape.every(isSize)) return shape;
  throw new ShapeError(`${method}: ${showShape(shape)} is not a shape; sizes are integers from 0 up`);
}

/**
 * int32 where all numbers are integers of 32 bits, bool where all are booleans, int64 of bigints, float32
 * otherwise. Whole numbers that float32 would change, such as times, are refused.
 */
export function commonType(xs: readonly Element[]): DType {
  if (xs.length === 0) return dtypes.float32;
  let [bools, bigs, fits] = [true, false, true];
  let rounded: number | undefined;
  // one pass: this looks at every element of a host array
  for (let i = 0; i < xs.length; i++) {
    const x = xs[i] as Element;
    if (typeof x === "number") {
      bools = false;
      if (x === (x | 0) && (x !== 0 || 1 / x > 0)) continue;
      if (!Number.isInteger(x) || x === 0) return dtypes.float32; // a fraction, or -0
      if (Math.abs(x) <= Number.MAX_SAFE_INTEGER && Math.fround(x) !== x) rounded ??= x;
      fits = false;
    } else if (typeof x === "bigint") bigs = true;
  }
  bools &&= !bigs;
  if (bools) return dtypes.bool;
  if (bigs) return dtypes.int64;
  if (rounded === undefined) return fits ? dtypes.int32 : dtypes.float32;
  throw new DTypeError(
    `Tensor: ${rounded} fits neither int32 nor float32, which would change it; say what it is: ` +
      '{ dtype: "int64" } or "float64" keep it, "float32" rounds it',
  );
}

const deviceOf = (options: TensorOptions): string => options.device ?? Device.DEFAULT;

/**
 * What a fraction is computed in before it is stored: half-width floats and integers have not enough digits.
 */
const workType = (d: DType): DType => (d.isInt || d === dtypes.float64 ? dtypes.float64 : dtypes.float32);

// ---- constants ----

export function full(shape: Shape | number, value: Element, options: TensorOptions = {}): Tensor {
  const sizes = checkShape("full", typeof shape === "number" ? [shape] : shape);
  const dtype = options.dtype === undefined ? commonType([value]) : toDType(options.dtype);
  const made = onEach(deviceOf(options), (d) =>
    LazyBuffer.constant(d, sizes, dtype, operandValue("full", value, dtype)),
  );
  return make(made, options);
}
export function zeros(...args: SizeArgs): Tensor {
  return constant("zeros", args, 0);
}
export function ones(...args: SizeArgs): Tensor {
  return constant("ones", args, 1);
}
export function empty(...args: SizeArgs): Tensor {
  const { shape, options } = sizesOf("empty", args);
  const dtype = toDType(options.dtype ?? dtypes.float32);
  const made = onEach(deviceOf(options), (d) => LazyBuffer.loadop("EMPTY", shape, dtype, d));
  return make(made, options);
}

// ---- ranges ----

export function arange(args: readonly (number | TensorOptions | undefined)[]): Tensor {
  const options = args.find(isOptions) ?? {};
  const numbers = args.filter((x): x is number => typeof x === "number");
  const [start, end, step] =
    numbers.length === 1 ? [0, numbers[0] as number, 1] : [...(numbers as [number, number]), numbers[2] ?? 1];
  const count = Math.ceil(((end as number) - (start as number)) / (step as number));
  if (!(count >= 0 && Number.isFinite(count)) || step === 0) {
    throw new ArgumentError(
      `arange: from ${start} to ${end} in steps of ${step} never gets there; expected finite bounds and a step, ` +
        "not 0, that goes from start towards end",
    );
  }
  const dtype = options.dtype === undefined ? commonType(numbers) : toDType(options.dtype);
  const places = make(onEach(deviceOf(options), (d) => LazyBuffer.arange(d, count)));
  // of integers, start and step lose their fractions first, as in torch
  const [from, by] = [start as number, step as number].map((x) => (dtype.isInt ? Math.trunc(x) : x)) as [
    number,
    number,
  ];
  if (count > 0) for (const x of [from, from + (count - 1) * by]) operandValue("arange", x, dtype);
  // the affine expression is computed wherever it is used, in a type that holds its steps
  const steps = by === 1 ? cast(places, dtype) : mul(cast(places, dtype), by);
  const made = leaf(from === 0 ? steps : add(steps, from), options);
  noteSteps(made.lazydata, dtype, from, by, count);
  return made;
}
export function linspace(
  start: number | Tensor,
  end: number | Tensor,
  steps: number,
  options: TensorOptions = {},
): Tensor {
  const dtype = toDType(options.dtype ?? dtypes.float32);
  return leaf(cast(spaced("linspace", start, end, steps, dtype, options), dtype), options);
}
export function logspace(
  start: number | Tensor,
  end: number | Tensor,
  steps: number,
  base = 10,
  options: TensorOptions = {},
): Tensor {
  const dtype = toDType(options.dtype ?? dtypes.float32);
  const powers = spaced("logspace", start, end, steps, dtype, options);
  // whole powers are products, so that integers come out exact
  const whole = trunc(powers);
  const size = cast(abs(whole), dtypes.int32);
  let exact: Tensor = onesLike(powers) as Tensor;
  for (let bit = 0; bit < 11; bit++) {
    exact = mul(
      exact,
      where(ne(bitwiseAnd(size, 2 ** bit), 0), base ** (2 ** bit), onesLike(exact)) as Tensor,
    ) as Tensor;
  }
  const power = where(lt(whole, 0), reciprocal(exact), exact);
  const rest = exp2(mul(sub(powers, whole), Math.log2(base)));
  return leaf(cast(where(eq(whole, powers), power, mul(power, rest)), dtype), options);
}

// ---- matrices ----

export function eye(
  n: number,
  m: number | TensorOptions = n,
  options: TensorOptions = isOptions(m) ? m : {},
): Tensor {
  const [rows, columns] = places("eye", n, isOptions(m) ? n : m, options);
  return leaf(cast(eq(rows, columns), toDType(options.dtype ?? dtypes.float32)), options);
}
export function tri(n: number, m: number = n, diagonal = 0, options: TensorOptions = {}): Tensor {
  const [rows, columns] = places("tri", n, m, options);
  return leaf(cast(le(columns, add(rows, diagonal)), toDType(options.dtype ?? dtypes.float32)), options);
}

// ---- like another tensor: its shape, and its dtype and device unless the options say otherwise ----

/** One value in the shape of this tensor, as a constant. */
function constantLike(
  self: Tensor,
  value: Element,
  { dtype = self.dtype, device = self.device }: Like = {},
): Tensor {
  const v = operandValue("fullLike", value, toDType(dtype));
  const { lazydata: lb } = self;
  if (device === self.device) return wrap(lb.const(v, toDType(dtype)));
  return wrap(onEach(device, (d) => LazyBuffer.constant(d, lb.shape, toDType(dtype), v)));
}
export function fullLike(self: Tensor, value: Element, options: TensorOptions = {}): Tensor {
  return leaf(constantLike(self, value, options), options);
}
export function zerosLike(self: Tensor, options: TensorOptions = {}): Tensor {
  return fullLike(self, 0, options);
}
export function onesLike(self: Tensor, options: TensorOptions = {}): Tensor {
  return fullLike(self, 1, options);
}
export function emptyLike(self: Tensor, options: TensorOptions = {}): Tensor {
  const dtype = options.dtype === undefined ? self.dtype : toDType(options.dtype);
  const { shape } = self.lazydata;
  const empty = (d: string) => LazyBuffer.loadop("EMPTY", shape, dtype, d);
  const made = wrap(onEach(options.device ?? self.device, empty));
  return leaf(options.device === undefined ? placedLike(made, self) : made, options);
}

/** The index of each element along `dim`, seen at every element of `shape`; costs nothing. */
export function placesAlong(self: Tensor, shape: Shape, dim: number): Tensor {
  const at = dim < 0 ? dim + shape.length : dim;
  const flat = shape.map((s, i) => (i === at ? s : 1));
  return expand(reshape(counting(self, shape[at] as Sint), flat), shape);
}

/** A new tensor as the options want it; it was made of nothing that a gradient could reach. */
export function leaf(t: Tensor, options: TensorOptions): Tensor {
  t.requiresGrad = options.requiresGrad ?? false;
  return t;
}

function constant(method: string, args: SizeArgs, value: number): Tensor {
  const { shape, options } = sizesOf(method, args);
  const dtype = toDType(options.dtype ?? dtypes.float32);
  return make(
    onEach(deviceOf(options), (d) => LazyBuffer.constant(d, shape, dtype, value)),
    options,
  );
}

/** Row and column numbers of an `n` by `m` matrix. */
function places(method: string, n: number, m: number, options: TensorOptions): [Tensor, Tensor] {
  const shape = checkShape(method, [n, m]);
  const [rows, columns] = range(2).map((i) =>
    make(onEach(deviceOf(options), (d) => LazyBuffer.arange(d, shape[i] as Sint))),
  );
  return [expand(reshape(rows as Tensor, n, 1), shape), expand(reshape(columns as Tensor, 1, m), shape)];
}

/** Counted from both ends, as torch does, so that either end is met exactly. */
function spaced(
  method: string,
  start: number | Tensor,
  end: number | Tensor,
  steps: number,
  dtype: DType,
  options: TensorOptions,
): Tensor {
  if (!Number.isInteger(steps) || steps < 0) {
    throw new ArgumentError(`${method}: steps is ${steps}, expected an integer from 0 up`);
  }
  const given = [start, end].find((x): x is Tensor => x instanceof TensorHandle);
  const device = options.device ?? given?.device ?? Device.DEFAULT;
  const work = workType(dtype);
  const [a, b] = [start, end].map((x) => {
    if (!(x instanceof TensorHandle)) {
      const value = dtype.isInt ? Math.trunc(x) : x;
      return make(onEach(device, (d) => LazyBuffer.constant(d, [steps], work, value)));
    }
    if (x.ndim !== 0) {
      throw new ShapeError(
        `${method}: start and end are numbers or 0-d tensors, got shape ${showShape(x.shape)}`,
      );
    }
    const value = to(detach(x) as Tensor, device);
    return expand(cast(dtype.isInt ? cast(value, dtype) : value, work), steps);
  }) as [Tensor, Tensor];
  if (steps < 2) return a;
  const at = make(onEach(device, (d) => LazyBuffer.arange(d, steps)));
  const step = div(sub(b, a), steps - 1);
  const fromStart = add(a, mul(step, cast(at, work)));
  const fromEnd = sub(b, mul(step, cast(add(neg(at), steps - 1), work)));
  return where(lt(at, Math.floor(steps / 2)), fromStart, fromEnd);
}
