// Samples to batches: samples of one structure become that structure with a Tensor for each leaf. In:
// numbers, nested arrays of numbers, typed arrays, Tensors, in arrays and plain objects. Out: the same with
// the batch as first dim; texts and other values stay arrays. The type of a leaf never depends on which
// samples are in a batch.

import { type DTypeLike, type TypedArray, toDType } from "../dtype.ts";
import { ArgumentError, DTypeError, ShapeError } from "../errors.ts";
import { isPlain, tagOf } from "../helpers.ts";
import { dtypeOfTyped } from "../hostarrays.ts";
import { stackAll } from "../tensor/movement/join.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";

/** A type for all numbers, or one for each leaf in the structure of a sample. */
export type Types = DTypeLike | readonly Types[] | { readonly [key: string]: Types };
type Nested = number | readonly Nested[];

export const isTypedArray = (x: unknown): x is TypedArray =>
  ArrayBuffer.isView(x) && dtypeOfTyped(x) !== undefined;
/** The sizes of nested arrays of numbers that are all equal; undefined for anything else. */
export function numericShape(x: unknown): number[] | undefined {
  if (typeof x === "number") return [];
  if (!Array.isArray(x) || x.length === 0) return undefined;
  const [first, ...rest] = x.map(numericShape);
  const isEven = rest.every((s) => s !== undefined && String(s) === String(first));
  return first !== undefined && isEven ? [x.length, ...first] : undefined;
}

/** What a leaf is made into; decided by the first sample. */
type LeafPlan =
  | { readonly kind: "list"; readonly parts: readonly LeafPlan[] }
  | { readonly kind: "record"; readonly parts: Readonly<Record<string, LeafPlan>> }
  | { readonly kind: "tensor" | "array" | "flag" | "big" | "other"; readonly path: string }
  | { readonly kind: "numbers"; readonly path: string; readonly shape: readonly number[]; dtype: DTypeLike };

function planOf(x: unknown, path: string, types: unknown): LeafPlan {
  const at = (key: string | number): unknown =>
    typeof types === "object" && types !== null ? (types as Record<string, unknown>)[key] : types;
  if (x instanceof Tensor) return { kind: "tensor", path };
  if (isTypedArray(x)) return { kind: "array", path };
  if (typeof x === "boolean") return { kind: "flag", path };
  if (typeof x === "bigint") return { kind: "big", path };
  const shape = numericShape(x);
  if (shape !== undefined) {
    const given = typeof types === "object" && !("itemsize" in (types as object)) ? undefined : types;
    // a number by itself is a class or a count until a fraction comes; numbers of an array are features
    const usual = typeof x === "number" && Number.isInteger(x) ? "int32" : "float32";
    return { kind: "numbers", path, shape, dtype: (given ?? usual) as DTypeLike };
  }
  if (Array.isArray(x)) return { kind: "list", parts: x.map((p, i) => planOf(p, `${path}[${i}]`, at(i))) };
  if (!isPlain(x)) return { kind: "other", path };
  if (isPlain(types)) {
    const stray = Object.keys(types).find((k) => !(k in x));
    if (stray !== undefined) {
      throw new ArgumentError(
        `DataLoader: dtype names ${stray}, and ${path} has ${Object.keys(x).join(", ")}; use one of its names`,
      );
    }
  }
  const parts = Object.entries(x).map(([k, p]) => [k, planOf(p, `${path}.${k}`, at(k))] as const);
  return { kind: "record", parts: Object.fromEntries(parts) };
}

/** Makes batches out of samples, all by the plan of the first sample. */
export class Collator {
  readonly #types: Types | undefined;
  readonly #device: string | undefined;
  #plan: LeafPlan | undefined;

  constructor(types?: Types, device?: string) {
    if (typeof types === "string") toDType(types); // throws before the first batch
    this.#types = types;
    this.#device = device;
  }
  /** Looks at samples without making a batch: a leaf with a fraction in any of them is float32. */
  learn(samples: readonly unknown[]): void {
    for (const s of samples) {
      this.#plan ??= planOf(s, "sample", this.#types);
      if (this.#types === undefined) widen(this.#plan, s);
    }
  }
  batch(samples: readonly unknown[]): unknown {
    const isFirst = this.#plan === undefined;
    if (isFirst) this.learn(samples);
    return this.#made(this.#plan as LeafPlan, samples);
  }

  #made(plan: LeafPlan, xs: readonly unknown[]): unknown {
    if (plan.kind === "list") {
      requireAll(xs, "an array", (x) => Array.isArray(x) && x.length === plan.parts.length);
      return plan.parts.map((part, i) =>
        this.#made(
          part,
          xs.map((x) => (x as unknown[])[i]),
        ),
      );
    }
    if (plan.kind === "record") {
      const keys = Object.keys(plan.parts);
      requireAll(xs, `an object with ${keys.join(", ")}`, (x) => isPlain(x) && keys.every((k) => k in x));
      const parts = keys.map((k) => [
        k,
        this.#made(
          plan.parts[k] as LeafPlan,
          xs.map((x) => (x as Record<string, unknown>)[k]),
        ),
      ]);
      return Object.fromEntries(parts);
    }
    const on = this.#device === undefined ? {} : { device: this.#device };
    switch (plan.kind) {
      case "tensor":
        return this.#stacked(plan.path, xs);
      case "array":
        return new Tensor(joined(plan.path, xs), on).reshape(xs.length, -1);
      case "flag":
        requireAll(xs, "a boolean", (x) => typeof x === "boolean", plan.path);
        return new Tensor(xs as boolean[], { ...on, dtype: "bool" });
      case "big":
        requireAll(xs, "a bigint", (x) => typeof x === "bigint", plan.path);
        return new Tensor(xs as bigint[], { ...on, dtype: "int64" });
      case "numbers":
        requireNumbers(plan, xs);
        return new Tensor(xs as Nested as never, { ...on, dtype: plan.dtype });
      default:
        return [...xs];
    }
  }
  #stacked(path: string, xs: readonly unknown[]): Tensor {
    requireAll(xs, "a Tensor", (x) => x instanceof Tensor, path);
    const list = xs as readonly Tensor[];
    const [first] = list as readonly [Tensor];
    const odd = list.findIndex((t) => showShape(t.shape) !== showShape(first.shape));
    if (odd > 0) throw uneven(path, showShape(first.shape), odd, showShape((list[odd] as Tensor).shape));
    const all = stackAll(list.map((t) => t.detach()));
    return this.#device === undefined ? all : all.to(this.#device);
  }
}

/** Integers become float32 for good once a fraction is seen. */
function widen(plan: LeafPlan, x: unknown): void {
  if (plan.kind === "numbers") {
    if (plan.dtype === "int32" && typeof x === "number" && !Number.isInteger(x)) plan.dtype = "float32";
  } else if (plan.kind === "list" && Array.isArray(x)) plan.parts.forEach((p, i) => void widen(p, x[i]));
  else if (plan.kind === "record" && isPlain(x)) {
    for (const [k, p] of Object.entries(plan.parts)) widen(p, x[k]);
  }
}
const uneven = (path: string, want: string, at: number, got: string): ShapeError =>
  new ShapeError(
    `DataLoader: ${path} has shape ${want} in the first sample of a batch and ${got} in number ${at}; ` +
      "make them equal (pad or crop), or give a collate function",
  );
function requireAll(
  xs: readonly unknown[],
  what: string,
  is: (x: unknown) => boolean,
  path = "sample",
): void {
  const at = xs.findIndex((x) => !is(x));
  if (at < 0) return;
  throw new ArgumentError(
    `DataLoader: ${path} number ${at} of a batch is not ${what}, as those before it are; give samples of one structure, or a collate function`,
  );
}
function requireNumbers(plan: LeafPlan & { readonly kind: "numbers" }, xs: readonly unknown[]): void {
  for (const [i, x] of xs.entries()) {
    const shape = numericShape(x);
    if (shape === undefined || String(shape) !== String(plan.shape)) {
      throw uneven(
        plan.path,
        showShape(plan.shape),
        i,
        shape === undefined ? "something else" : showShape(shape),
      );
    }
    if (plan.dtype === "int32" && typeof x === "number" && !Number.isInteger(x)) {
      throw new DTypeError(
        `DataLoader: ${plan.path} is ${x}, after integers that were made int32; say which type it has: { dtype: "float32" }`,
      );
    }
  }
}
function joined(path: string, xs: readonly unknown[]): TypedArray {
  requireAll(xs, "a typed array", isTypedArray, path);
  const list = xs as readonly TypedArray[];
  const [first] = list as readonly [TypedArray];
  const odd = list.findIndex((a) => a.length !== first.length || tagOf(a) !== tagOf(first));
  if (odd > 0) throw uneven(path, `[${first.length}]`, odd, `[${(list[odd] as TypedArray).length}]`);
  // Buffer and other subclasses have constructors of their own
  const type = Reflect.get(globalThis, tagOf(first)) as new (n: number) => TypedArray;
  const all = new type(first.length * list.length);
  list.forEach((a, i) => void all.set(a as never, i * first.length));
  return all;
}
