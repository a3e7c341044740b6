// What is known of integers that came from the host: their range and, where they are few or large, the values
// themselves. An index that is known to be out of range is refused, and so are sums, products and squares
// that are known to wrap. With CHECK=1, what only the device knows is checked when it is computed.

import { type DType, dtypes, type Value } from "../dtype.ts";
import { env } from "../env.ts";
import { ArgumentError, DTypeError } from "../errors.ts";
import { type MaybePromise, runAsync } from "../helpers.ts";
import { decodeArray } from "../hostarrays.ts";
import { LazyBuffer } from "../lazy/lazybuffer.ts";
import type { Buffer } from "../runtime/buffer.ts";
import { stridesFor, unflatten } from "../shape/view.ts";
import { contiguous, wrap } from "./core.ts";
import type { Tensor } from "./tensor.ts";

interface Wholes {
  readonly least: number;
  readonly most: number;
  readonly values: ArrayLike<Value> | undefined;
  /** where all elements are the same */
  readonly isEven?: boolean;
}
const known = new WeakMap<LazyBuffer, Wholes>();
/** More elements are not looked at; up to FEW are kept. */
const MANY = 2 ** 20;
const FEW = 2 ** 12;
const MAX = 2 ** 31 - 1;

/** Keeps the facts of the values of a node on one device. */
export function noteWholes(node: LazyBuffer, dtype: DType, bytes: Uint8Array): void {
  if (!dtype.isInt || dtype.isPacked || node.parts.length > 1) return;
  const values = decodeArray(dtype, bytes) as ArrayLike<Value>;
  const { length } = values;
  if (length > MANY) return;
  let [least, most]: Value[] = [Infinity, -Infinity] as [Value, Value];
  for (let i = 0; i < length; i++) {
    const x = values[i] as Value;
    if (x < (least as Value)) least = x;
    if (x > (most as Value)) most = x;
  }
  const facts = { least: Number(least), most: Number(most) };
  const isKept = length <= FEW || (dtype === dtypes.int32 && length * largest(facts) > MAX);
  known.set(node.base, { ...facts, values: isKept ? values : undefined });
}
const largest = ({ least, most }: Pick<Wholes, "least" | "most">): number => Math.max(-least, most);
function factsOf({ lazydata, dtype }: Tensor): Wholes | undefined {
  const { parts } = lazydata;
  if (parts.length !== 1) return undefined;
  const [part] = parts as readonly [LazyBuffer];
  if (part.isUnrealizedConst && dtype.isInt && !part.st.views.some((v) => v.mask)) {
    const x = Number(part.base.arg);
    return { least: x, most: x, values: undefined, isEven: true };
  }
  return lazydata.isWhole ? known.get(lazydata.base) : undefined;
}
/** Keeps the facts of `arange`: the values are made if they are asked for. */
export function noteSteps(node: LazyBuffer, dtype: DType, from: number, by: number, count: number): void {
  if (dtype !== dtypes.int32 || node.parts.length > 1 || !node.isWhole || count < 1 || count > MANY) return;
  const last = from + (count - 1) * by;
  let values: ArrayLike<Value> | undefined;
  known.set(node.base, {
    least: Math.min(from, last),
    most: Math.max(from, last),
    get values() {
      values ??= Array.from({ length: count }, (_, i) => from + i * by);
      return values;
    },
  });
}

const widest = ({ kind, bits }: DType): number => 2 ** (kind === "int" ? bits - 1 : bits);

/**
 * Whether `count` elements of a tensor of integers may add up to more than their sum holds: 32 bits, or those
 * of a 64-bit type, whose values are taken for small ones where they are not known.
 */
export function mayWrap(self: Tensor, count: number): boolean {
  const { isFloat, isBig } = self.dtype;
  const facts = factsOf(self);
  if (isFloat || (isBig && facts === undefined)) return false;
  return count * (facts === undefined ? widest(self.dtype) : largest(facts)) >= 2 ** (isBig ? 63 : 31);
}

// ---- indices ----

/** Which numbers an index may have: those of a dim of `size`, and perhaps others. */
export interface IndexRange {
  readonly size: number;
  /** negative numbers count from the end */
  readonly fromEnd?: boolean;
  /** this number is ignored */
  readonly ignored?: number;
}
function outside(
  method: string,
  x: Value,
  { size, fromEnd = false, ignored }: IndexRange,
): string | undefined {
  const least = fromEnd ? -size : 0;
  if ((x >= least && x < size) || Number(x) === ignored) return undefined;
  return `${method}: index ${x} is out of range, expected ${least} to ${size - 1}`;
}
/**
 * Returns the index, and throws if it is known to be out of range. CHECK=1 also checks it once it is
 * computed.
 */
export function requireRange(method: string, index: Tensor, range: IndexRange): Tensor {
  const facts = factsOf(index);
  if (facts === undefined) {
    return env.CHECK === 0 ? index : watched(index, (x) => outside(method, x, range));
  }
  const { least, most } = facts;
  if ([least, most].every((x) => outside(method, x, range) === undefined)) return index;
  const { values = [least, most] } = facts;
  for (let i = 0; i < values.length; i++) {
    const wrong = outside(method, values[i] as Value, range);
    if (wrong !== undefined) throw new ArgumentError(wrong);
  }
  return index;
}

/** The same values; `complain` sees each when they are computed, and says what is wrong with it. */
function watched(self: Tensor, complain: (x: Value) => string | undefined): Tensor {
  const { lazydata, dtype } = contiguous(self);
  if (lazydata.parts.length > 1 || lazydata.shape.some((s) => typeof s !== "number")) return self;
  const check = ([out, given]: readonly Buffer[]): MaybePromise<void> => {
    const look = (bytes: Uint8Array): MaybePromise<void> => {
      for (const x of decodeArray(dtype, bytes, self.size)) {
        const wrong = complain(x);
        if (wrong !== undefined) throw new ArgumentError(wrong);
      }
      return out?.copyin(bytes);
    };
    if (given === undefined) return;
    let bytes: Uint8Array;
    try {
      bytes = given.asBuffer();
    } catch {
      return runAsync(given.read()).then(look); // the device cannot wait synchronously
    }
    return look(bytes);
  };
  return wrap(LazyBuffer.loadop("CUSTOM", lazydata.shape, dtype, lazydata.device, check, [lazydata]));
}

// ---- sums, products and squares ----

/** Where in the results an element goes: `axes` are reduced, and those of size 1 have no stride. */
function placesOf(shape: readonly number[], axes: readonly number[]): (i: number) => number {
  const strides = stridesFor(shape.map((s, d) => (axes.includes(d) ? 1 : s))) as number[];
  return (i) =>
    unflatten(i, shape).reduce<number>((at, x, d) => at + (x as number) * (strides[d] as number), 0);
}

type TotalMethod = "sum" | "cumsum" | "prod" | "cumprod" | "square";
/** Refuses what is known not to fit: sums and squares of int32 are int32, products int64. */
export function requireFit(self: Tensor, method: TotalMethod, axes: readonly number[] = []): void {
  const facts = self.dtype === dtypes.int32 ? factsOf(self) : undefined;
  if (facts === undefined) return;
  const isProduct = method.endsWith("prod");
  const most = largest(facts);
  if (method === "square") requireBelow(method, most ** 2, MAX);
  const limit = isProduct ? 2 ** 63 : MAX;
  const count = axes.reduce((n, a) => n * (self.shape[a] as number), 1);
  if ((isProduct ? most ** count : most * count) <= limit) return;
  if (facts.isEven === true) {
    requireBelow(method, isProduct ? facts.most ** count : facts.most * count, limit);
    return;
  }
  const { values = [] } = facts;
  const placeOf = placesOf(self.shape, axes);
  const totals: number[] = [];
  for (let i = 0; i < values.length; i++) {
    const at = placeOf(i);
    const [before, x] = [totals[at], values[i] as number];
    const total = before === undefined ? x : isProduct ? before * x : before + x;
    totals[at] = total;
    if (method.startsWith("cum")) requireBelow(method, total, limit);
  }
  for (const total of totals) requireBelow(method, total, limit);
}
/** The same for a product of two vectors or matrices. */
export function requireProduct(method: string, a: Tensor, b: Tensor): void {
  const [x, y] = [a, b].map((t) => (t.dtype === dtypes.int32 && t.ndim < 3 ? factsOf(t) : undefined));
  if (x?.values === undefined || y?.values === undefined) return;
  const k = a.shape.at(-1) as number;
  const [m, n] = [a.size / k, b.size / k];
  if (k * largest(x) * largest(y) <= MAX || m * n * k > MANY) return;
  for (let i = 0; i < m * n; i++) {
    const [row, column] = [Math.floor(i / n), i % n];
    let total = 0;
    for (let j = 0; j < k; j++)
      total += (x.values[row * k + j] as number) * (y.values[j * n + column] as number);
    requireBelow(method, total, MAX);
  }
}
function requireBelow(method: string, value: number, limit: number): void {
  if (value >= -limit - 1 && value <= limit) return;
  const [type, wider] =
    limit === MAX ? ["int32, the type of whole numbers in arrays", "int64"] : ["int64", "float64"];
  throw new DTypeError(
    `${method}: ${value} does not fit ${type}; name a type that holds it: new Tensor(data, { dtype: "float32" }) or "${wider}"`,
  );
}
/** With CHECK=1: a sum of int32 that is computed in int64 and checked before it becomes int32 again. */
export function watchedSum(method: string, total: Tensor): Tensor {
  return watched(total, (x) =>
    x > MAX || x < -MAX - 1
      ? `${method}: ${x} does not fit int32; cast to int64 or a float type before`
      : undefined,
  );
}
