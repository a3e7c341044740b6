// What flows along the edges of a graph: tensors, sequences, optionals. A TensorValue is a Tensor, a small
// array known on the host, or both: shapes are computed on the host, so that a graph never waits for a device
// to learn one. `sources` says which inputs of the model a value was computed from: none for a constant.

import type { Value } from "../dtype.ts";
import { prod } from "../helpers.ts";
import { Tensor } from "../tensor/tensor.ts";
import { decodeElements, type ElementType, TYPES, typeOfDType } from "./elements.ts";
import { OnnxError } from "./errors.ts";

export type InputSources = ReadonlySet<string>;
export const NO_SOURCES: InputSources = new Set();

/** Elements on the host, in row-major order. */
export interface HostArray {
  readonly type: ElementType;
  readonly shape: readonly number[];
  /** numbers, or bigints for 64-bit integers */
  readonly data: ArrayLike<Value>;
}
/** A tensor of strings: it lives on the host alone. */
export interface TextArray {
  readonly shape: readonly number[];
  readonly data: readonly string[];
}

interface ValueParts {
  readonly tensor?: () => Tensor;
  readonly host?: () => HostArray;
  readonly texts?: readonly string[];
  readonly sources?: InputSources;
  readonly device?: string | undefined;
}

export class TensorValue {
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly sources: InputSources;
  readonly #device: string | undefined;
  readonly #texts: readonly string[] | undefined;
  #makeTensor: (() => Tensor) | undefined;
  #makeHost: (() => HostArray) | undefined;
  #tensor: Tensor | undefined;
  #host: HostArray | undefined;

  constructor(type: ElementType, shape: readonly number[], parts: ValueParts) {
    this.type = type;
    this.shape = shape;
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
    return new TensorValue(type, tensor.shape as readonly number[], parts);
  }
  static ofHost(
    host: HostArray,
    device: string | undefined,
    sources: InputSources = NO_SOURCES,
  ): TensorValue {
    return new TensorValue(host.type, host.shape, { host: () => host, device, sources });
  }
  static ofTexts(texts: TextArray, sources: InputSources = NO_SOURCES): TensorValue {
    return new TensorValue(TYPES.string, texts.shape, { texts: texts.data, sources });
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
      this.#tensor = this.#makeTensor?.() ?? tensorOf(this.host, this.#device);
      this.#makeTensor = undefined;
    }
    return this.#tensor;
  }
  /** Somebody wants its gradient. A weight that nothing has used is not made for this question. */
  get isTrained(): boolean {
    return this.#tensor?.requiresGrad === true;
  }
  /** Only where it `isKnown`. */
  get host(): HostArray {
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
  withHost(host: () => HostArray): TensorValue {
    return new TensorValue(this.type, this.shape, {
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
    const tensor = (): Tensor => Tensor.zeros([...this.shape], options);
    return new TensorValue(this.type, this.shape, { tensor, sources: this.sources, device: this.#device });
  }
  /** The same elements, computed from more. */
  withSources(sources: InputSources): TensorValue {
    if (this.sources === sources) return this;
    return new TensorValue(this.type, this.shape, {
      ...(this.isText ? { texts: this.texts } : { tensor: () => this.tensor }),
      ...(this.isKnown ? { host: () => this.host } : {}),
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

/** A Tensor with the elements of a host array. */
export function tensorOf({ type, shape, data }: HostArray, device: string | undefined): Tensor {
  const options = { dtype: type.dtype, ...(device === undefined ? {} : { device }) };
  if (data.length === 1 && shape.length === 0) return new Tensor(data[0] as number, options);
  if (data.length === 0) return Tensor.zeros([...shape], options);
  return new Tensor(Array.from(data), options).reshape([...shape]);
}

/** Elements that came from a device, in the type that a value has. */
export const hostOf = (type: ElementType, shape: readonly number[], data: ArrayLike<Value>): HostArray => ({
  type,
  shape,
  data,
});
export const rawHost = (type: ElementType, shape: readonly number[], raw: Uint8Array): HostArray =>
  hostOf(type, shape, decodeElements(type, raw, prod(shape)));

const describeDims = (shape: readonly number[]): string => `[${shape.join(", ")}]`;
/** A value for people: float[2, 3]. */
export function describe(value: Any | undefined): string {
  if (value === undefined) return "nothing";
  if (value instanceof SequenceValue) return `a sequence of ${value.items.length}`;
  if (value instanceof OptionalValue)
    return value.value === undefined ? "an empty optional" : `an optional of ${describe(value.value)}`;
  return `${value.type.name}${describeDims(value.shape)}`;
}
