// What flows along the edges of a graph: tensors, sequences, optionals. A TensorValue is a Tensor, a small
// array known on the host, or both: shapes are computed on the host, so that a graph never waits for a device
// to learn one. `sources` says which inputs of the model a value was computed from: none for a constant.

import { dtypes, type Value } from "../dtype.ts";
import { prod } from "../helpers.ts";
import { plainSize } from "../shape/guards.ts";
import { type Sint, Sym } from "../shape/symbolic.ts";
import { counting } from "../tensor/core.ts";
import { Tensor } from "../tensor/tensor.ts";
import { decodeElements, type ElementType, TYPES, typeOfDType } from "./elements.ts";
import { OnnxError } from "./errors.ts";

export type InputSources = ReadonlySet<string>;
export const NO_SOURCES: InputSources = new Set();
/** Stands among the sources of what depends on weights that may be trained or assigned. */
const WEIGHTS = "\0weights";
export const WEIGHT_SOURCES: InputSources = new Set([WEIGHTS]);
/** The inputs of the model among the sources. */
export const inputsAmong = (sources: InputSources): readonly string[] =>
  [...sources].filter((name) => name !== WEIGHTS);

/** Elements on the host, in row-major order. */
export interface HostArray {
  readonly type: ElementType;
  readonly shape: readonly number[];
  /** numbers, or bigints for 64-bit integers */
  readonly data: ArrayLike<Value>;
}
/** An element that depends on sizes of inputs is an expression of Variables. */
export type SizeElement = Value | Sym;
/** The same with elements that may be symbolic: what shapes are computed from. */
export interface SizeArray {
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly data: ArrayLike<SizeElement>;
}
/** A tensor of strings: it lives on the host alone. */
export interface TextArray {
  readonly shape: readonly number[];
  readonly data: readonly string[];
}

interface ValueParts {
  readonly tensor?: () => Tensor;
  readonly host?: () => SizeArray;
  readonly texts?: readonly string[];
  readonly sources?: InputSources;
  readonly device?: string | undefined;
}

export class TensorValue {
  readonly type: ElementType;
  /** its shape, where sizes of inputs may be symbolic */
  readonly dims: readonly Sint[];
  readonly sources: InputSources;
  readonly #device: string | undefined;
  readonly #texts: readonly string[] | undefined;
  #makeTensor: (() => Tensor) | undefined;
  #makeHost: (() => SizeArray) | undefined;
  #tensor: Tensor | undefined;
  #host: SizeArray | undefined;

  constructor(type: ElementType, dims: readonly Sint[], parts: ValueParts) {
    this.type = type;
    this.dims = dims;
    this.sources = parts.sources ?? NO_SOURCES;
    this.#device = parts.device;
    this.#texts = parts.texts;
    this.#makeTensor = parts.tensor;
    this.#makeHost = parts.host;
  }

  static of(
    tensor: Tensor,
    type: ElementType = typeOfDType(tensor.dtype),
    sources?: InputSources,
  ): TensorValue {
    const parts = { tensor: () => tensor, ...(sources === undefined ? {} : { sources }) };
    return new TensorValue(type, tensor.lazydata.shape, parts);
  }
  static ofHost(
    host: SizeArray,
    device: string | undefined,
    sources: InputSources = NO_SOURCES,
  ): TensorValue {
    return new TensorValue(host.type, host.shape, { host: () => host, device, sources });
  }
  static ofTexts(texts: TextArray, sources: InputSources = NO_SOURCES): TensorValue {
    return new TensorValue(TYPES.string, texts.shape, { texts: texts.data, sources });
  }

  /** The shape as numbers: what is made of symbolic sizes is made for their present values alone. */
  get shape(): readonly number[] {
    return this.dims.every((d) => typeof d === "number") ? this.dims : this.dims.map(plainSize);
  }
  get size(): number {
    return prod(this.shape);
  }
  /** Its elements can be had without waiting for a device. */
  get isKnown(): boolean {
    return this.#host !== undefined || this.#makeHost !== undefined;
  }
  get isText(): boolean {
    return this.#texts !== undefined;
  }

  get tensor(): Tensor {
    if (this.#tensor === undefined) {
      if (this.isText) throw new OnnxError("strings are not numbers: a tensor of strings has no Tensor");
      this.#tensor = this.#makeTensor?.() ?? tensorOf(this.sizes, this.#device);
      this.#makeTensor = undefined;
    }
    return this.#tensor;
  }
  /** Somebody wants its gradient. A weight that nothing has used is not made for this question. */
  get isTrained(): boolean {
    return this.#tensor?.requiresGrad === true;
  }
  /** Only where it `isKnown`; symbolic elements count with their present values alone. */
  get host(): HostArray {
    const { type, shape, data } = this.sizes;
    return isPlain(data)
      ? { type, shape, data }
      : { type, shape, data: Array.from(data, (x) => plainElement(x, type)) };
  }
  /** The same, with symbolic elements as they are. */
  get sizes(): SizeArray {
    if (this.#host === undefined) {
      if (this.#makeHost === undefined)
        throw new OnnxError("internal: a value that is not on the host was read");
      this.#host = this.#makeHost();
      this.#makeHost = undefined;
    }
    return this.#host;
  }
  get texts(): readonly string[] {
    if (this.#texts === undefined) throw new OnnxError(`expected strings, got ${this.type.name}`);
    return this.#texts;
  }
  /** The same elements, and what the host can know of them. */
  withHost(host: () => SizeArray): TensorValue {
    return new TensorValue(this.type, this.dims, {
      tensor: () => this.tensor,
      host,
      sources: this.sources,
      device: this.#device,
    });
  }
  /** Another value of this type and shape, for an input that only its shape counts of. */
  withoutElements(): TensorValue {
    const options = {
      dtype: this.type.dtype,
      ...(this.#device === undefined ? {} : { device: this.#device }),
    };
    const tensor = (): Tensor => Tensor.zeros([...this.dims], options);
    return new TensorValue(this.type, this.dims, { tensor, sources: this.sources, device: this.#device });
  }
  /** The same elements, computed from more. */
  withSources(sources: InputSources): TensorValue {
    if (this.sources === sources) return this;
    return new TensorValue(this.type, this.dims, {
      ...(this.isText ? { texts: this.texts } : { tensor: () => this.tensor }),
      ...(this.isKnown ? { host: () => this.sizes } : {}),
      sources,
      device: this.#device,
    });
  }
}

export class SequenceValue {
  readonly items: readonly Any[];
  constructor(items: readonly Any[]) {
    this.items = items;
  }
  get sources(): InputSources {
    return sourcesOf(this.items);
  }
}
export class OptionalValue {
  readonly value: Any | undefined;
  constructor(value?: Any) {
    this.value = value;
  }
  get sources(): InputSources {
    return this.value?.sources ?? NO_SOURCES;
  }
}
export type Any = TensorValue | SequenceValue | OptionalValue;

/** What several values were computed from. */
export function sourcesOf(values: readonly ({ readonly sources: InputSources } | undefined)[]): InputSources {
  let all = NO_SOURCES;
  for (const value of values) {
    const own = value?.sources ?? NO_SOURCES;
    if (own.size === 0 || own === all) continue;
    all = all.size === 0 ? own : new Set([...all, ...own]);
  }
  return all;
}

const isPlain = (data: ArrayLike<SizeElement>): data is ArrayLike<Value> => {
  for (let i = 0; i < data.length; i++) if (data[i] instanceof Sym) return false;
  return true;
};
/** The present value of a symbolic element. */
export const plainElement = (x: SizeElement, { dtype }: ElementType): Value => {
  if (!(x instanceof Sym)) return x;
  return dtype.isBig ? BigInt(plainSize(x)) : plainSize(x);
};
export const sintOf = (x: SizeElement): Sint => (x instanceof Sym ? x : Number(x));

/** A Tensor with the elements of a host array. */
export function tensorOf({ type, shape, data }: SizeArray, device: string | undefined): Tensor {
  const options = { dtype: type.dtype, ...(device === undefined ? {} : { device }) };
  if (!isPlain(data)) {
    const all = Array.from(data, (x) => sizeTensor(sintOf(x), options));
    return Tensor.stack(all)
      .cast(type.dtype)
      .reshape([...shape]);
  }
  if (data.length === 1 && shape.length === 0) return new Tensor(data[0] as number, options);
  if (data.length === 0) return Tensor.zeros([...shape], options);
  return new Tensor(Array.from(data), options).reshape([...shape]);
}

/** A size as a tensor: the last of as many places. */
export function sizeTensor(x: Sint, options: { readonly device?: string }): Tensor {
  const isPlace = typeof x !== "number" && x.min >= 0;
  if (!isPlace) return new Tensor(plainSize(x), { ...options, dtype: dtypes.int32 });
  return countTo(x.add(1), options)
    .shrink([[x, x.add(1)]])
    .reshape([]);
}
/** 0, 1, … n-1. */
export const countTo = (n: Sint, on: { readonly device?: string }): Tensor => counting(new Tensor(0, on), n);

/** Elements that came from a device, in the type that a value has. */
export const hostOf = (type: ElementType, shape: readonly number[], data: ArrayLike<Value>): HostArray => ({
  type,
  shape,
  data,
});
export const rawHost = (type: ElementType, shape: readonly number[], raw: Uint8Array): HostArray =>
  hostOf(type, shape, decodeElements(type, raw, prod(shape)));

const describeDims = (shape: readonly Sint[]): string => `[${shape.join(", ")}]`;
/** A value for people: float[2, 3]. */
export function describe(value: Any | undefined): string {
  if (value === undefined) return "nothing";
  if (value instanceof SequenceValue) return `a sequence of ${value.items.length}`;
  if (value instanceof OptionalValue)
    return value.value === undefined ? "an empty optional" : `an optional of ${describe(value.value)}`;
  return `${value.type.name}${describeDims(value.dims)}`;
}
