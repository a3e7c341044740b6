// What an op is: its attributes by name and type, and a function from the node that is run to its outputs.
// A Call is that node with its inputs. Ops are written with the methods of Tensor; what they must know on the
// host (a shape, axes, a condition) they ask the call for.

import type { MaybePromise } from "../../helpers.ts";
import type { Sint } from "../../shape/symbolic.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { type ElementType, typeOfDType } from "../elements.ts";
import { OnnxError, quoted } from "../errors.ts";
import type { AttributeProto, TypeProto } from "../model.ts";
import type { Plan } from "../plan.ts";
import {
  type Any,
  describe,
  type HostArray,
  type InputSources,
  OptionalValue,
  SequenceValue,
  type SizeArray,
  sintOf,
  sourcesOf,
  TensorValue,
} from "../values.ts";

// ---- attributes ----

/** How attributes that are tensors or graphs become what a run needs. */
export interface AttributeReader {
  tensor(attribute: AttributeProto): TensorValue;
  graph(attribute: AttributeProto): Plan;
}
export interface Attribute<T> {
  /** the number of its type in a file */
  readonly code: number;
  readonly isRequired: boolean;
  readonly fallback: T;
  read(a: AttributeProto, reader: AttributeReader): T;
}
type Attributes = Readonly<Record<string, Attribute<unknown>>>;
type Decoded<A> = { readonly [K in keyof A]: A[K] extends Attribute<infer T> ? T : never };

const utf8 = new TextDecoder();
interface AttributeMaker<T> {
  /** may be missing */
  (): Attribute<T | undefined>;
  (fallback: T): Attribute<T>;
  /** must be there */
  readonly required: Attribute<T>;
}
function maker<T>(code: number, read: (a: AttributeProto, reader: AttributeReader) => T): AttributeMaker<T> {
  const make = (fallback?: T): Attribute<T | undefined> => ({ code, isRequired: false, fallback, read });
  return Object.assign(make, {
    required: { code, isRequired: true, fallback: undefined, read },
  }) as AttributeMaker<T>;
}
export const float = maker(1, (a) => a.f);
export const int = maker(2, (a) => Number(a.i));
export const flag = maker(2, (a) => a.i !== 0n);
export const bigInt = maker(2, (a) => a.i);
export const string = maker(3, (a) => (a.s === undefined ? "" : utf8.decode(a.s)));
export const tensor = maker<TensorValue>(4, (a, reader) => reader.tensor(a));
export const graph = maker<Plan>(5, (a, reader) => reader.graph(a));
export const floats = maker<readonly number[]>(6, (a) => a.floats);
export const ints = maker<readonly number[]>(7, (a) => a.ints.map(Number));
export const bigInts = maker<readonly bigint[]>(7, (a) => a.ints);
export const strings = maker<readonly string[]>(8, (a) => a.strings.map((s) => utf8.decode(s)));
export const sparse = maker<TensorValue>(11, (a, reader) => reader.tensor(a));
export const type = maker<TypeProto | undefined>(13, (a) => a.tp);

/** Old files do not say the type of an attribute. */
const UNSAID = 0;

/** The attributes of a node by the declaration of its op. */
export function readAttributes(
  declared: Attributes,
  given: readonly AttributeProto[],
  reader: AttributeReader,
  where: string,
): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [name, { fallback }] of Object.entries(declared)) out[name] = fallback;
  for (const a of given) {
    const attribute = Object.hasOwn(declared, a.name) ? declared[a.name] : undefined;
    if (attribute === undefined) {
      const known = Object.keys(declared).join(", ") || "none";
      throw new OnnxError(`${where}: there is no attribute ${quoted(a.name)}; it has ${known}`);
    }
    if (a.type !== attribute.code && a.type !== UNSAID) {
      throw new OnnxError(
        `${where}: attribute ${a.name} has type ${a.type} of the standard, expected ${attribute.code}`,
      );
    }
    out[a.name] = attribute.read(a, reader);
  }
  const given_ = new Set(given.map((a) => a.name));
  const missing = Object.keys(declared).find((name) => declared[name]?.isRequired && !given_.has(name));
  if (missing !== undefined) throw new OnnxError(`${where}: attribute ${missing} is missing`);
  return out;
}

// ---- ops ----

/** A Tensor has the element type of the first input if its dtype is the same, or that of its own dtype. */
export type Output = Tensor | Any | undefined;
export type Outputs = Output | readonly Output[];

export interface Op {
  readonly attributes: Attributes;
  run(call: Call): MaybePromise<Outputs>;
  /** the same inputs give other outputs each time */
  readonly isRandom?: boolean;
  /** only the shapes of its inputs count, not their elements */
  readonly isOfShapes?: boolean;
}
/** From which version of the operator set on an op does what; the last that is not newer counts. */
export type Versions = readonly (readonly [since: number, op: Op])[];
export type OpTable = Readonly<Record<string, Versions>>;

/** An op that means the same in all versions, or from `since` on. */
export function op<A extends Attributes>(
  attributes: A,
  run: (call: Call<Decoded<A>>) => MaybePromise<Outputs>,
  since = 1,
): Versions {
  return [[since, { attributes, run: run as Op["run"] }]];
}
export const versions = (...list: readonly Versions[]): Versions => list.flat();
export const random = (list: Versions): Versions =>
  list.map(([since, o]) => [since, { ...o, isRandom: true }]);
export const ofShapes = (list: Versions): Versions =>
  list.map(([since, o]) => [since, { ...o, isOfShapes: true }]);

/** What a call can ask of the run that it is part of. */
export interface Environment {
  readonly device: string | undefined;
  /** The elements on the host; this may have to wait for a device. */
  read(value: TensorValue): MaybePromise<HostArray>;
  /** The same, where elements may be symbolic. */
  readSizes(value: TensorValue): MaybePromise<SizeArray>;
  /** Runs a graph of this node with these inputs; it sees the values around the node. */
  subgraph(
    plan: Plan,
    inputs: readonly (Any | undefined)[],
    call: Call,
  ): MaybePromise<readonly (Any | undefined)[]>;
}

/** A node with its inputs. */
export class Call<A = unknown> {
  readonly op: string;
  /** the node for people: Conv "layer1.conv" */
  readonly where: string;
  readonly attr: A;
  readonly inputs: readonly (Any | undefined)[];
  /** the names of its outputs; empty where nobody uses one */
  readonly outputs: readonly string[];
  readonly opset: number;
  readonly env: Environment;
  readonly sources: InputSources;
  /** what the names around the node mean */
  readonly scope: unknown;

  constructor(parts: CallParts<A>) {
    this.op = parts.op;
    this.where = parts.where;
    this.attr = parts.attr;
    this.inputs = parts.inputs;
    this.outputs = parts.outputs;
    this.opset = parts.opset;
    this.env = parts.env;
    this.sources = parts.sources;
    this.scope = parts.scope;
  }

  /** The same node with other inputs. */
  withInputs(inputs: readonly (Any | undefined)[]): Call<A> {
    const { op, where, attr, outputs, opset, env, sources, scope } = this;
    return new Call({ op, where, attr, inputs, outputs, opset, env, sources, scope });
  }

  withAttributes<B>(attr: B): Call<B> {
    const { op, where, inputs, outputs, opset, env, sources, scope } = this;
    return new Call({ op, where, attr, inputs, outputs, opset, env, sources, scope });
  }

  get device(): string | undefined {
    return this.env.device;
  }
  /** Options that make a new Tensor where the others are. */
  get on(): { readonly device?: string } {
    return this.env.device === undefined ? {} : { device: this.env.device };
  }
  wants(output: number): boolean {
    return (this.outputs[output] ?? "") !== "";
  }
  has(i: number): boolean {
    return this.inputs[i] !== undefined;
  }

  fail(why: string): never {
    throw new OnnxError(`${this.where}: ${why}`, { op: this.op });
  }
  unsupported(why: string): never {
    throw new OnnxError(`${this.where}: ${why}`, { op: this.op, isUnsupported: true });
  }

  any(i: number): Any {
    const value = this.inputs[i];
    return value ?? this.fail(`input ${i} is missing`);
  }
  value(i: number): TensorValue {
    const value = this.any(i);
    if (value instanceof TensorValue) return value;
    if (value instanceof OptionalValue && value.value instanceof TensorValue) return value.value;
    return this.fail(`input ${i} is ${describe(value)}, expected a tensor`);
  }
  sequence(i: number): SequenceValue {
    const value = this.any(i);
    if (value instanceof SequenceValue) return value;
    if (value instanceof OptionalValue && value.value instanceof SequenceValue) return value.value;
    return this.fail(`input ${i} is ${describe(value)}, expected a sequence`);
  }
  t(i: number): Tensor {
    return this.value(i).tensor;
  }
  maybe(i: number): Tensor | undefined {
    return this.has(i) ? this.t(i) : undefined;
  }
  shape(i: number): readonly number[] {
    return this.value(i).shape;
  }
  /** The same, where sizes may be symbolic. */
  dims(i: number): readonly Sint[] {
    return this.value(i).dims;
  }
  type(i: number): ElementType {
    return this.value(i).type;
  }
  /** All inputs; none may be missing. */
  all(): Tensor[] {
    return this.inputs.map((_, i) => this.t(i));
  }

  host(i: number): MaybePromise<HostArray> {
    return this.env.read(this.value(i));
  }
  async ints(i: number): Promise<number[]> {
    const { data, type: element } = await this.host(i);
    if (!element.dtype.isInt) this.fail(`input ${i} is ${element.name}, expected integers`);
    return Array.from(data, Number);
  }
  /** Integers that sizes are made of: they may be symbolic. */
  async sizes(i: number): Promise<Sint[]> {
    const value = this.value(i);
    if (!value.type.dtype.isInt) this.fail(`input ${i} is ${value.type.name}, expected integers`);
    return Array.from((await this.env.readSizes(value)).data, sintOf);
  }
  async maybeInts(i: number): Promise<number[] | undefined> {
    return this.has(i) ? this.ints(i) : undefined;
  }
  async numbers(i: number): Promise<number[]> {
    return Array.from((await this.host(i)).data, Number);
  }
  async scalar(i: number): Promise<number> {
    const all = await this.numbers(i);
    if (all.length !== 1) this.fail(`input ${i} has ${all.length} elements, expected one`);
    return all[0] as number;
  }

  /** A value known on the host. */
  known(element: ElementType, shape: readonly number[], data: SizeArray["data"]): TensorValue {
    return TensorValue.ofHost({ type: element, shape, data }, this.device, this.sources);
  }
  /** Not a negative one: an axis from the end counts from there. */
  axis(axis: number, ndim: number): number {
    const at = axis < 0 ? axis + ndim : axis;
    if (at < 0 || at >= Math.max(ndim, 1) || !Number.isInteger(at))
      this.fail(`axis ${axis} is not one of ${ndim} dims`);
    return at;
  }
  axes(axes: readonly number[], ndim: number): number[] {
    const list = axes.map((a) => this.axis(a, ndim));
    if (new Set(list).size !== list.length) this.fail(`axes [${axes.join(", ")}] name a dim twice`);
    return list;
  }
}
type CallParts<A> = Pick<
  Call<A>,
  "op" | "where" | "attr" | "inputs" | "outputs" | "opset" | "env" | "sources" | "scope"
>;

/** What an op returned, as values. */
export function settled(call: Call, outputs: Outputs): (Any | undefined)[] {
  const list = Array.isArray(outputs) ? (outputs as readonly Output[]) : [outputs as Output];
  const first = call.inputs[0];
  const like = first instanceof TensorValue ? first.type : undefined;
  return list.map((output) => {
    if (output === undefined || output instanceof SequenceValue || output instanceof OptionalValue)
      return output;
    // what a branch gives was computed from more than its condition
    if (output instanceof TensorValue) return output.withSources(sourcesOf([call, output]));
    const element = like !== undefined && like.dtype === output.dtype ? like : typeOfDType(output.dtype);
    return TensorValue.of(output, element, call.sources);
  });
}
