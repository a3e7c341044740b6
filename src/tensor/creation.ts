// biome-ignore-all lint/complexity/noThisInStatic: a static method makes tensors of the class it is called on
// Making tensors out of nothing: constants, ranges, identities, and tensors like another one. Everything is a constant
// or an expression of ARANGE, so none of it costs memory or a kernel before it is used.

import { type DType, type DTypeLike, dtypes, toDType } from "../dtype.ts";
import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import { onEach } from "../lazy/multi.ts";
import { Device } from "../runtime/registry.ts";
import { type Sint, Sym } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";
import { type Element, showShape } from "./base.ts";
import { IndexTensor } from "./indexing.ts";
import { describe } from "./movement.ts";
import { operandValue } from "./promotion.ts";

export interface TensorOptions {
  /** whether `backward` fills `.grad` of this tensor */
  readonly requiresGrad?: boolean;
  /** default: int32 for integers, int64 for bigints, bool for booleans, float32 for the rest, a typed array's own type */
  readonly dtype?: DTypeLike;
  /** default: Device.DEFAULT, or that of the tensor it is made like */
  readonly device?: string;
}

/** `(2, 3)`, `([2, 3])`, and either of them with options behind. */
export type SizeArgs =
  | readonly Sint[]
  | readonly [...Sint[], TensorOptions]
  | readonly [Shape]
  | readonly [Shape, TensorOptions | undefined];

/** The class that a static method is called on: it makes the tensor. */
export type Maker<T> = new (data: LazyBuffer, options?: TensorOptions) => T;

const isOptions = (x: unknown): x is TensorOptions =>
  typeof x === "object" && x !== null && Object.getPrototypeOf(x) === Object.prototype;

/** Shape and options out of the arguments of a method that takes sizes. */
export function sizesOf(method: string, args: SizeArgs): { shape: Shape; options: TensorOptions } {
  const last = args.at(-1);
  const options = isOptions(last) ? last : {};
  const rest = (isOptions(last) || last === undefined ? args.slice(0, -1) : args) as readonly unknown[];
  const shape = (Array.isArray(rest[0]) ? rest[0] : rest) as Shape;
  return { shape: checkShape(method, shape), options };
}

export function checkShape(method: string, shape: Shape): Shape {
  const isSize = (s: unknown) => typeof s === "number" || s instanceof Sym;
  if (!Array.isArray(shape) || !shape.every(isSize)) {
    const got = Array.isArray(shape) ? describe(shape.find((s) => !isSize(s))) : describe(shape);
    throw new ArgumentError(`${method}: got ${got} for a shape, expected integers from 0 up, as in [2, 3]`);
  }
  const bad = shape.find((s) => typeof s === "number" && (!Number.isSafeInteger(s) || s < 0));
  if (bad === undefined) return shape;
  throw new ShapeError(`${method}: ${showShape(shape)} is no shape; sizes are integers from 0 up`);
}

/** int32 where all numbers are integers of 32 bits, bool where all are booleans, float32 otherwise. */
export function commonType(xs: readonly Element[]): DType {
  if (xs.length === 0) return dtypes.float32;
  let [bools, bigs, fits] = [true, false, true];
  // one pass: this looks at every element of a host array
  for (let i = 0; i < xs.length; i++) {
    const x = xs[i] as Element;
    if (typeof x === "number") {
      bools = false;
      if (x === (x | 0) && (x !== 0 || 1 / x > 0)) continue;
      if (!Number.isInteger(x) || x === 0) return dtypes.float32; // a fraction, or -0
      fits = false;
    } else if (typeof x === "bigint") bigs = true;
  }
  bools &&= !bigs;
  if (bools) return dtypes.bool;
  if (bigs) return dtypes.int64;
  return fits ? dtypes.int32 : dtypes.float32;
}

const deviceOf = (options: TensorOptions): string => options.device ?? Device.DEFAULT;

/** What a fraction is computed in before it is stored: half-width floats and integers have not enough digits. */
const workType = (d: DType): DType => (d.isInt || d === dtypes.float64 ? dtypes.float64 : dtypes.float32);

export abstract class CreationTensor extends IndexTensor {
  // ---- constants ----

  /**
   * One value everywhere.
   * @example
   * await Tensor.full([2, 2], 7).tolist() // => [[7, 7], [7, 7]]
   */
  static full<T extends CreationTensor>(
    this: Maker<T>,
    shape: Shape | number,
    value: Element,
    options: TensorOptions = {},
  ): T {
    const sizes = checkShape("full", typeof shape === "number" ? [shape] : shape);
    const dtype = options.dtype === undefined ? commonType([value]) : toDType(options.dtype);
    const made = onEach(deviceOf(options), (d) =>
      LazyBuffer.constant(d, sizes, dtype, operandValue("full", value, dtype)),
    );
    return new this(made, options);
  }
  /**
   * Zeros of float32, or of the dtype in the options: `Tensor.zeros(2, 3)`, `Tensor.zeros([2, 3], { dtype: "int32" })`.
   * @example
   * await Tensor.zeros(2, 3).tolist() // => [[0, 0, 0], [0, 0, 0]]
   */
  static zeros<T extends CreationTensor>(this: Maker<T>, ...args: SizeArgs): T {
    return constant(this, "zeros", args, 0);
  }
  /**
   * Ones of float32, or of the dtype in the options.
   * @example
   * await Tensor.ones([2], { dtype: "bool" }).tolist() // => [true, true]
   */
  static ones<T extends CreationTensor>(this: Maker<T>, ...args: SizeArgs): T {
    return constant(this, "ones", args, 1);
  }
  /**
   * Memory with whatever is in it. On DISK:path it is the file.
   * @example
   * Tensor.empty(2, 3).shape // => [2, 3]
   */
  static empty<T extends CreationTensor>(this: Maker<T>, ...args: SizeArgs): T {
    const { shape, options } = sizesOf("empty", args);
    const dtype = toDType(options.dtype ?? dtypes.float32);
    const made = onEach(deviceOf(options), (d) => LazyBuffer.loadop("EMPTY", shape, dtype, d));
    return new this(made, options);
  }

  // ---- ranges ----

  /**
   * `start`, `start + step`, … as long as it is before `end`: int32 when all are integers, float32 otherwise.
   * @example
   * await Tensor.arange(1, 10, 3).tolist() // => [1, 4, 7]
   */
  static arange<T extends CreationTensor>(this: Maker<T>, end: number, options?: TensorOptions): T;
  static arange<T extends CreationTensor>(
    this: Maker<T>,
    start: number,
    end: number,
    options?: TensorOptions,
  ): T;
  static arange<T extends CreationTensor>(
    this: Maker<T>,
    start: number,
    end: number,
    step: number,
    options?: TensorOptions,
  ): T;
  static arange<T extends CreationTensor>(
    this: Maker<T>,
    ...args: (number | TensorOptions | undefined)[]
  ): T {
    const options = args.find(isOptions) ?? {};
    const numbers = args.filter((x): x is number => typeof x === "number");
    const [start, end, step] =
      numbers.length === 1
        ? [0, numbers[0] as number, 1]
        : [...(numbers as [number, number]), numbers[2] ?? 1];
    const count = Math.ceil(((end as number) - (start as number)) / (step as number));
    if (!(count >= 0 && Number.isFinite(count)) || step === 0) {
      throw new ArgumentError(
        `arange: from ${start} to ${end} in steps of ${step} never gets there; expected finite bounds and a step, ` +
          "not 0, that goes from start towards end",
      );
    }
    const dtype = options.dtype === undefined ? commonType(numbers) : toDType(options.dtype);
    const places = new this(onEach(deviceOf(options), (d) => LazyBuffer.arange(d, count)));
    // the affine expression is computed wherever it is used, in a type that holds its steps
    // of integers, start and step lose their fractions first, as in torch
    const [from, by] = [start as number, step as number].map((x) => (dtype.isInt ? Math.trunc(x) : x));
    const steps = by === 1 ? places.cast(dtype) : places.cast(dtype).mul(by as number);
    return leaf(from === 0 ? steps : steps.add(from as number), options);
  }
  /**
   * `steps` values from `start` to `end`, both included, evenly apart; the ends may be 0-d tensors.
   * @example
   * await Tensor.linspace(0, 1, 5).tolist() // => [0, 0.25, 0.5, 0.75, 1]
   */
  static linspace<T extends CreationTensor>(
    this: Maker<T>,
    start: number | T,
    end: number | T,
    steps: number,
    options: TensorOptions = {},
  ): T {
    const dtype = toDType(options.dtype ?? dtypes.float32);
    return leaf(spaced(this, "linspace", start, end, steps, dtype, options).cast(dtype), options);
  }
  /**
   * `base` to the power of `linspace(start, end, steps)`.
   * @example
   * await Tensor.logspace(0, 4, 3, 2).tolist() // => [1, 4, 16]
   */
  static logspace<T extends CreationTensor>(
    this: Maker<T>,
    start: number | T,
    end: number | T,
    steps: number,
    base = 10,
    options: TensorOptions = {},
  ): T {
    const dtype = toDType(options.dtype ?? dtypes.float32);
    const powers = spaced(this, "logspace", start, end, steps, dtype, options);
    // whole powers are products, so that integers come out exact
    const whole = powers.trunc();
    const size = whole.abs().cast(dtypes.int32);
    let exact: T = powers.onesLike() as T;
    for (let bit = 0; bit < 11; bit++) {
      exact = exact.mul(
        size
          .bitwiseAnd(2 ** bit)
          .ne(0)
          .where(base ** (2 ** bit), exact.onesLike()) as T,
      ) as T;
    }
    const power = whole.lt(0).where(exact.reciprocal(), exact);
    const rest = powers.sub(whole).mul(Math.log2(base)).exp2();
    return leaf(whole.eq(powers).where(power, power.mul(rest)).cast(dtype), options);
  }

  // ---- matrices ----

  /**
   * The identity matrix, `n` by `n` or `n` by `m`.
   * @example
   * await Tensor.eye(2, 3).tolist() // => [[1, 0, 0], [0, 1, 0]]
   */
  static eye<T extends CreationTensor>(
    this: Maker<T>,
    n: number,
    m: number | TensorOptions = n,
    options: TensorOptions = isOptions(m) ? m : {},
  ): T {
    const [rows, columns] = places(this, "eye", n, isOptions(m) ? n : m, options);
    return leaf(rows.eq(columns).cast(toDType(options.dtype ?? dtypes.float32)), options);
  }
  /**
   * Ones on and below a diagonal, zeros above.
   * @example
   * await Tensor.tri(2, 3, 1).tolist() // => [[1, 1, 0], [1, 1, 1]]
   */
  static tri<T extends CreationTensor>(
    this: Maker<T>,
    n: number,
    m: number = n,
    diagonal = 0,
    options: TensorOptions = {},
  ): T {
    const [rows, columns] = places(this, "tri", n, m, options);
    return leaf(columns.le(rows.add(diagonal)).cast(toDType(options.dtype ?? dtypes.float32)), options);
  }

  // ---- like another tensor: its shape, and its dtype and device unless the options say otherwise ----

  /**
   * One value in the shape, type and place of this tensor.
   * @example
   * await new Tensor([1, 2]).fullLike(7).tolist() // => [7, 7]
   */
  override fullLike(value: Element, options: TensorOptions = {}): this {
    return leaf(super.fullLike(value, options), options);
  }
  /**
   * Zeros in the shape, type and place of this tensor.
   * @example
   * await new Tensor([1, 2]).zerosLike().tolist() // => [0, 0]
   */
  override zerosLike(options: TensorOptions = {}): this {
    return this.fullLike(0, options);
  }
  /**
   * Ones in the shape, type and place of this tensor.
   * @example
   * await new Tensor([3, 4]).onesLike().tolist() // => [1, 1]
   */
  override onesLike(options: TensorOptions = {}): this {
    return this.fullLike(1, options);
  }
  /**
   * Memory with whatever is in it, in the shape, type and place of this tensor.
   * @example
   * new Tensor([3, 4]).emptyLike().shape // => [2]
   */
  emptyLike(options: TensorOptions = {}): this {
    const dtype = options.dtype === undefined ? this.dtype : toDType(options.dtype);
    const { shape } = this.lazydata;
    const empty = (d: string) => LazyBuffer.loadop("EMPTY", shape, dtype, d);
    const made = this.wrap(onEach(options.device ?? this.device, empty));
    return leaf(options.device === undefined ? made.placedLike(this) : made, options);
  }
  /**
   * torch's form of `t.fullLike(value)`.
   * @example
   * await Tensor.fullLike(new Tensor([1, 2]), 7).tolist() // => [7, 7]
   */
  static fullLike<T extends CreationTensor>(t: T, value: Element, options?: TensorOptions): T {
    return t.fullLike(value, options);
  }
  /**
   * torch's form of `t.zerosLike()`.
   * @example
   * await Tensor.zerosLike(new Tensor([1, 2])).tolist() // => [0, 0]
   */
  static zerosLike<T extends CreationTensor>(t: T, options?: TensorOptions): T {
    return t.zerosLike(options);
  }
  /**
   * torch's form of `t.onesLike()`.
   * @example
   * await Tensor.onesLike(new Tensor([3, 4])).tolist() // => [1, 1]
   */
  static onesLike<T extends CreationTensor>(t: T, options?: TensorOptions): T {
    return t.onesLike(options);
  }
  /**
   * torch's form of `t.emptyLike()`.
   * @example
   * Tensor.emptyLike(new Tensor([3, 4])).shape // => [2]
   */
  static emptyLike<T extends CreationTensor>(t: T, options?: TensorOptions): T {
    return t.emptyLike(options);
  }

  /** The number of each element's place along `dim`, seen at every element of `shape`; costs nothing. */
  protected placesAlong(shape: Shape, dim: number): this {
    const at = dim < 0 ? dim + shape.length : dim;
    const flat = shape.map((s, i) => (i === at ? s : 1));
    return this.counting(shape[at] as Sint)
      .reshape(flat)
      .expand(shape);
  }
}

/** A new tensor as the options want it; it was made of nothing that a gradient could reach. */
export function leaf<T extends CreationTensor>(t: T, options: TensorOptions): T {
  t.requiresGrad = options.requiresGrad ?? false;
  return t;
}

function constant<T extends CreationTensor>(
  make: Maker<T>,
  method: string,
  args: SizeArgs,
  value: number,
): T {
  const { shape, options } = sizesOf(method, args);
  const dtype = toDType(options.dtype ?? dtypes.float32);
  return new make(
    onEach(deviceOf(options), (d) => LazyBuffer.constant(d, shape, dtype, value)),
    options,
  );
}

/** Row and column numbers of an `n` by `m` matrix. */
function places<T extends CreationTensor>(
  make: Maker<T>,
  method: string,
  n: number,
  m: number,
  options: TensorOptions,
): [T, T] {
  const shape = checkShape(method, [n, m]);
  const [rows, columns] = range(2).map(
    (i) => new make(onEach(deviceOf(options), (d) => LazyBuffer.arange(d, shape[i] as Sint))),
  );
  return [(rows as T).reshape(n, 1).expand(shape), (columns as T).reshape(1, m).expand(shape)];
}

/** Counted from both ends, as torch does, so that either end is met exactly. */
function spaced<T extends CreationTensor>(
  make: Maker<T>,
  method: string,
  start: number | T,
  end: number | T,
  steps: number,
  dtype: DType,
  options: TensorOptions,
): T {
  if (!Number.isInteger(steps) || steps < 0) {
    throw new ArgumentError(`${method}: steps is ${steps}, expected an integer from 0 up`);
  }
  const given = [start, end].find((x): x is T => x instanceof CreationTensor);
  const device = options.device ?? given?.device ?? Device.DEFAULT;
  const work = workType(dtype);
  const [a, b] = [start, end].map((x) => {
    if (!(x instanceof CreationTensor)) {
      const value = dtype.isInt ? Math.trunc(x) : x;
      return new make(onEach(device, (d) => LazyBuffer.constant(d, [steps], work, value)));
    }
    if (x.ndim !== 0) {
      throw new ShapeError(
        `${method}: start and end are numbers or 0-d tensors, got shape ${showShape(x.shape)}`,
      );
    }
    const value = (x.detach() as T).to(device);
    return (dtype.isInt ? value.cast(dtype) : value).cast(work).expand(steps);
  }) as [T, T];
  if (steps < 2) return a;
  const at = new make(onEach(device, (d) => LazyBuffer.arange(d, steps)));
  const step = b.sub(a).div(steps - 1);
  const fromStart = a.add(step.mul(at.cast(work)));
  const fromEnd = b.sub(
    step.mul(
      at
        .neg()
        .add(steps - 1)
        .cast(work),
    ),
  );
  return at.lt(Math.floor(steps / 2)).where(fromStart, fromEnd);
}
