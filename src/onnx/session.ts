// A loaded model: what it takes and gives, its parameters, and `run`. The first run with inputs of some
// shapes builds the graph and learns whether its kernels depend on values; if not, the next runs replay a
// capture.

import { JitError } from "../errors.ts";
import { prod, toposort } from "../helpers.ts";
import type { TensorData } from "../tensor/creation/hostdata.ts";
import { knownValues } from "../tensor/known.ts";
import { Tensor } from "../tensor/tensor.ts";
import { SymbolicCaptures, type TensorValues } from "./captures.ts";
import { type ElementType, typeOfCode } from "./elements.ts";
import { OnnxError, quoted } from "./errors.ts";
import { GraphRun, newFindings, type RunFindings } from "./execute.ts";
import type { TypeProto, ValueInfoProto } from "./model.ts";
import type { Plan } from "./plan.ts";
import { ModelReplay } from "./replay.ts";
import { isSaving } from "./save/saving.ts";
import { type Any, describe, type HostArray, OptionalValue, SequenceValue, TensorValue } from "./values.ts";

/** What a model takes or gives under a name. */
export interface OnnxPort {
  readonly name: string;
  /** "float", "int64", "string", …; "sequence(float)", "optional(float)" */
  readonly type: string;
  /** a number, the name of a size that is not fixed, or null; missing where nothing is said */
  readonly dims: readonly (number | string | null)[] | undefined;
}

/** What `run` takes: tensors, numbers, strings, and lists of tensors where the model wants a sequence. */
export type OnnxInput = Tensor | TensorData | OnnxShaped | OnnxTexts | readonly OnnxInput[] | null;
/** A typed array with its dims, as onnxruntime has tensors. */
export interface OnnxShaped {
  readonly data: ArrayBufferView;
  readonly dims: readonly number[];
}
/** What it gives. A tensor of strings comes as strings with a shape, a sequence as a list. */
export type OnnxOutput = Tensor | OnnxTexts | readonly OnnxOutput[] | null;
/** A tensor of strings. */
export interface OnnxTexts {
  readonly shape: readonly number[];
  readonly data: readonly string[];
}

/** Signatures that are kept; a model whose inputs never repeat must not fill the memory. */
const MAX_ENTRIES = 64;
/** Signatures that a call is compared with before anything else is done. */
const MAX_RECENT = 4;

/**
 * Runs that build graphs come one after the other, those of other models too: a capture would take what
 * another one builds meanwhile for its own.
 */
let line: Promise<unknown> = Promise.resolve();
function inLine<T>(work: () => Promise<T>): Promise<T> {
  const mine = line.then(work);
  line = mine.then(
    () => {},
    () => {},
  );
  return mine;
}

/** What `onnx.load` gives. */
export class OnnxModel {
  /** what `run` takes, in the order of the file */
  readonly inputs: readonly OnnxPort[];
  /** what `run` gives */
  readonly outputs: readonly OnnxPort[];
  /** where it runs; undefined: on Device.DEFAULT */
  readonly device: string | undefined;
  /** what the exporter wrote beside the graph, by name: the classes of a detector, a version, an author */
  readonly metadata: Readonly<Record<string, string>>;
  readonly #plan: Plan;
  /** by shapes and types of the inputs, then by the values that decided */
  readonly #entries = new Map<string, ModelReplay | "dynamic">();
  readonly #deciding = new Map<string, ReadonlySet<string>>();
  /** keys of the last ones that were replayed: with inputs that these accept, nothing else is looked at */
  #recent: readonly string[] = [];
  /** for sizes that differ from run to run */
  readonly #symbolic = new SymbolicCaptures((values, findings) => this.#execute(values, findings), usedBy);

  constructor(plan: Plan, device: string | undefined, metadata: Readonly<Record<string, string>> = {}) {
    this.#plan = plan;
    this.device = device;
    this.metadata = metadata;
    this.inputs = plan.inputInfo.map(portOf);
    this.outputs = plan.outputInfo.map(portOf);
  }

  /**
   * The weights that gradients make sense for, by name: the float tensors of the file.
   * @example
   * const bytes = await onnx.write({
   *   inputs: { x: { type: "float", dims: ["n"] } },
   *   outputs: { y: { type: "float", dims: ["n"] } },
   *   weights: { slope: new Tensor([0.25]) },
   *   nodes: [{ op: "PRelu", inputs: ["x", "slope"], outputs: ["y"] }],
   * });
   * Object.keys((await onnx.load(bytes)).namedParameters()) // => ["slope"]
   */
  namedParameters(): Record<string, Tensor> {
    const floats = [...this.#plan.constants].filter(
      ([, v]) => v.type.stored === v.type.dtype && v.type.dtype.isFloat,
    );
    return Object.fromEntries(floats.map(([name, value]) => [name, value.tensor]));
  }
  /**
   * The same as a list, for an optimizer. Give them a gradient: `p.requiresGrad = true`.
   * @example
   * const bytes = await onnx.write({
   *   inputs: { x: { type: "float", dims: ["n"] } },
   *   outputs: { y: { type: "float", dims: ["n"] } },
   *   weights: { k: new Tensor([3.5]) },
   *   nodes: [{ op: "Mul", inputs: ["x", "k"], outputs: ["y"] }],
   * });
   * (await onnx.load(bytes)).parameters().length // => 1
   */
  parameters(): Tensor[] {
    return Object.values(this.namedParameters());
  }

  /**
   * Computes the outputs by name. Inputs go by name; what is missing or does not fit is named with what was
   * expected. Where a model gives something else than tensors, TypeScript is told so:
   * `run<{ words: OnnxTexts }>(…)`.
   * @example
   * const bytes = await onnx.write({
   *   inputs: { x: { type: "float", dims: ["n"] } },
   *   outputs: { y: { type: "float", dims: ["n"] } },
   *   nodes: [{ op: "Abs", inputs: ["x"], outputs: ["y"] }],
   * });
   * const model = await onnx.load(bytes);
   * const { y } = await model.run({ x: [-2, 1] });
   * await y.tolist() // => [2, 1]
   */
  async run<Outputs extends Readonly<Record<string, OnnxOutput>> = Record<string, Tensor>>(
    inputs: Readonly<Record<string, OnnxInput>> = {},
  ): Promise<Outputs> {
    return (await this.#run(inputs)) as Outputs;
  }

  async #run(inputs: Readonly<Record<string, OnnxInput>>): Promise<Record<string, OnnxOutput>> {
    // an export reads the graph: nothing may run
    if (isSaving()) return this.#execute(this.#take(inputs), newFindings());
    const known = this.#replayOf(inputs);
    if (known !== undefined) return known;
    // the values of now, whoever runs before
    const values = this.#take(inputs);
    return inLine(() => this.#runValues(values));
  }

  /** Without a replay that takes the inputs as they are. */
  async #runValues(values: ReadonlyMap<string, Any>): Promise<Record<string, OnnxOutput>> {
    const shapes = this.inputs.map(({ name }) => signature(values.get(name))).join(";");
    const deciding = this.#deciding.get(shapes);
    const key = deciding === undefined ? undefined : keyOf(shapes, deciding, values);
    const entry = key === undefined ? undefined : this.#entries.get(key);
    const isPlain = [...values.values()].every((v) => v instanceof TensorValue && !v.isText);
    const canReplay = isPlain && !this.#isTraining(values) && entry !== "dynamic";
    if (entry !== undefined && canReplay)
      return this.#replay(
        key as string,
        () => entry.run(values as TensorValues),
        () => values,
      );
    if (canReplay) {
      const outputs = await this.#symbolic.run(values as TensorValues);
      if (outputs !== undefined) return outputs;
    }
    // this only builds the graph, unless a value decides how it goes on
    const findings = newFindings();
    const outputs = await this.#execute(values, findings);
    const tensors = Object.values(outputs).flatMap(tensorsIn);
    if (canReplay) {
      const isFixed = !findings.isDynamic && tensors.length === this.outputs.length;
      const key = this.#decide(shapes, values, findings);
      const made = isFixed ? this.#entry(shapes, values as TensorValues, findings, tensors) : "dynamic";
      if (key !== undefined) this.#entries.set(key, made);
      if (made !== "dynamic") return made.run(values as TensorValues);
    }
    await Tensor.realize(...tensors);
    return outputs;
  }

  /** Replays what was replayed before with inputs like these, if any was. */
  #replayOf(inputs: Readonly<Record<string, OnnxInput>>): Promise<Record<string, OnnxOutput>> | undefined {
    const key = this.#recent.find((k) => {
      const entry = this.#entries.get(k);
      return entry instanceof ModelReplay && entry.accepts(inputs);
    });
    if (key === undefined || this.#hasTrainedWeights()) return undefined;
    const entry = this.#entries.get(key) as ModelReplay;
    return this.#replay(
      key,
      () => entry.replay(inputs),
      () => this.#take(inputs),
    );
  }

  /** What cannot be captured (a model that computes nothing, or only looks at shapes) runs as it is. */
  async #replay(
    key: string,
    replay: () => Promise<Record<string, OnnxOutput>>,
    values: () => ReadonlyMap<string, Any>,
  ): Promise<Record<string, OnnxOutput>> {
    try {
      const outputs = await replay();
      if (this.#recent[0] !== key)
        this.#recent = [key, ...this.#recent.filter((k) => k !== key)].slice(0, MAX_RECENT);
      return outputs;
    } catch (e) {
      if (!(e instanceof JitError)) throw e;
      this.#entries.set(key, "dynamic");
      const outputs = await this.#execute(values(), newFindings());
      await Tensor.realize(...Object.values(outputs).flatMap(tensorsIn));
      return outputs;
    }
  }

  async #execute(
    values: ReadonlyMap<string, Any>,
    findings: RunFindings,
  ): Promise<Record<string, OnnxOutput>> {
    const given = this.#plan.inputs.map((name) => values.get(name));
    const results = await new GraphRun(this.device, findings).execute(this.#plan, given);
    return Object.fromEntries(this.outputs.map(({ name }, i) => [name, computed(results[i], name)]));
  }

  #entry(
    shapes: string,
    values: TensorValues,
    findings: RunFindings,
    outputs: readonly Tensor[],
  ): ModelReplay {
    const used = usedBy(outputs, values);
    const hosts = new Map([...values].flatMap(([name, v]) => (v.isKnown ? [[name, v.host] as const] : [])));
    const like = new Map([...values].map(([name, v]) => [name, v.withoutElements()] as const));
    const decided = new Map(
      [...(this.#deciding.get(shapes) ?? [])].flatMap((name) => {
        const host = hosts.get(name);
        return host === undefined ? [] : [[name, host.data] as const];
      }),
    );
    return new ModelReplay(this.inputs, like, used, decided, (inputs) => {
      const again = [...like].map(([name, other]) => {
        const tensor = inputs.get(name);
        const value = tensor === undefined ? other : TensorValue.of(tensor, other.type, other.sources);
        const host = hosts.get(name);
        return [name, host === undefined ? value : value.withHost(() => host)] as const;
      });
      return this.#execute(new Map(again), findings);
    });
  }

  /** What was found out by a run is used by the next one with the same inputs: the key of these. */
  #decide(shapes: string, values: ReadonlyMap<string, Any>, findings: RunFindings): string | undefined {
    if (this.#entries.size >= MAX_ENTRIES) {
      this.#entries.clear();
      this.#deciding.clear();
    }
    const before = this.#deciding.get(shapes);
    // one run may look at an input that another did not come to
    const all = new Set([...(before ?? []), ...findings.specialised]);
    if (before !== undefined && all.size > before.size)
      for (const key of this.#entries.keys()) if (key.startsWith(`${shapes}|`)) this.#entries.delete(key);
    this.#deciding.set(shapes, all);
    return keyOf(shapes, all, values);
  }

  /** A replay has no graph that gradients could go through. */
  #isTraining(values: ReadonlyMap<string, Any>): boolean {
    const isTrained = (v: Any): boolean => v instanceof TensorValue && !v.isText && v.tensor.requiresGrad;
    return [...values.values()].some(isTrained) || this.#hasTrainedWeights();
  }
  #hasTrainedWeights(): boolean {
    return [...this.#plan.constants.values()].some((v) => v.isTrained);
  }

  #take(inputs: Readonly<Record<string, OnnxInput>>): Map<string, Any> {
    if (typeof inputs !== "object" || inputs === null)
      throw new OnnxError(`run: got ${inputs === null ? "null" : typeof inputs}, expected inputs by name`);
    const expected = this.inputs.map((p) => p.name);
    const unknown = Object.keys(inputs).find((name) => !expected.includes(name));
    const list = this.inputs.map(showPort).join(", ") || "none";
    if (unknown !== undefined)
      throw new OnnxError(`run: there is no input ${quoted(unknown)}; the model takes ${list}`);
    const values = new Map<string, Any>();
    const sizes = new Map<string, number>();
    this.#plan.inputInfo.forEach((info, i) => {
      const port = this.inputs[i] as OnnxPort;
      const given = Object.hasOwn(inputs, info.name) ? inputs[info.name] : undefined;
      if (given === undefined) {
        throw new OnnxError(`run: input ${quoted(info.name)} is missing; the model takes ${list}`);
      }
      values.set(info.name, valueOfInput(given, info.type, port, this.device, sizes));
    });
    return values;
  }
}

// ---- ports ----

function portOf({ name, type }: ValueInfoProto): OnnxPort {
  return { name, type: typeName(type), dims: dimsOf(type) };
}
function typeName(type: TypeProto | undefined): string {
  if (type?.tensor_type !== undefined)
    return typeOfCode(type.tensor_type.elem_type, "an input or output").name;
  if (type?.sequence_type !== undefined) return `sequence(${typeName(type.sequence_type.elem_type)})`;
  if (type?.optional_type !== undefined) return `optional(${typeName(type.optional_type.elem_type)})`;
  if (type?.sparse_tensor_type !== undefined) return "sparse tensor";
  return type?.map_type === undefined ? "unknown" : "map";
}
function dimsOf(type: TypeProto | undefined): OnnxPort["dims"] {
  return type?.tensor_type?.shape?.dim.map(({ dim_value, dim_param }) => {
    if (dim_value !== undefined) return Number(dim_value);
    return dim_param === undefined || dim_param === "" ? null : dim_param;
  });
}
const showPort = ({ name, type, dims }: OnnxPort): string =>
  `${quoted(name)}: ${type}${dims === undefined ? "" : `[${dims.map((d) => d ?? "?").join(", ")}]`}`;

// ---- inputs ----

function valueOfInput(
  given: OnnxInput,
  type: TypeProto | undefined,
  port: OnnxPort,
  device: string | undefined,
  sizes: Map<string, number>,
): Any {
  const refuse = (got: string): never => {
    throw new OnnxError(`run: input ${quoted(port.name)} is ${got}, expected ${showPort(port)}`);
  };
  if (type?.optional_type !== undefined) {
    if (given === null) return new OptionalValue();
    return new OptionalValue(valueOfInput(given, type.optional_type.elem_type, port, device, sizes));
  }
  if (given === null) return refuse("null");
  const sources = new Set([port.name]);
  if (type?.sequence_type !== undefined) {
    if (!Array.isArray(given)) return refuse("not a list");
    const { elem_type } = type.sequence_type;
    const inner = { ...port, dims: undefined };
    return new SequenceValue(
      (given as OnnxInput[]).map((x) => valueOfInput(x, elem_type, inner, device, new Map())),
    );
  }
  const element =
    type?.tensor_type === undefined ? undefined : typeOfCode(type.tensor_type.elem_type, port.name);
  if (isTexts(given))
    return element?.name === "string" ? TensorValue.ofTexts(given, sources) : refuse("strings");
  if (element?.name === "string") return refuse("not { shape, data } with strings");
  const value = tensorInput(given as Tensor | TensorData | OnnxShaped, element, port, device, refuse);
  checkDims(value, port, sizes, refuse);
  return value.withSources(sources);
}
const isTexts = (x: unknown): x is OnnxTexts =>
  typeof x === "object" &&
  x !== null &&
  Array.isArray((x as OnnxTexts).data) &&
  Array.isArray((x as OnnxTexts).shape);

function tensorInput(
  given: Tensor | TensorData | OnnxShaped,
  element: ElementType | undefined,
  port: OnnxPort,
  device: string | undefined,
  refuse: (got: string) => never,
): TensorValue {
  if (given instanceof Tensor) {
    if (element !== undefined && given.dtype !== element.dtype)
      refuse(`${given.dtype.name}[${given.shape.join(", ")}]; x.cast("${element.dtype.name}") makes one`);
    const value = TensorValue.of(device === undefined ? given : given.to(device), element);
    const host = given.dtype.isFloat || given.size > MAX_DECIDING ? undefined : knownValues(given);
    if (host === undefined) return value;
    return value.withHost((): HostArray => ({ type: value.type, shape: value.shape, data: host }));
  }
  const options = {
    ...(element === undefined ? {} : { dtype: element.dtype }),
    ...(device === undefined ? {} : { device }),
  };
  const data = isShaped(given) ? given.data : given;
  const value = TensorValue.of(
    named(refuse, () => {
      const made = new Tensor(data, options);
      if (isShaped(given)) return made.reshape([...given.dims]);
      return ArrayBuffer.isView(given) ? shaped(made, port) : made;
    }),
    element,
  );
  const flat = flatOf(data);
  return flat === undefined
    ? value
    : value.withHost((): HostArray => ({ type: value.type, shape: value.shape, data: flat(value.type) }));
}
/** Data with dims: the form of tensors in onnxruntime. */
const isShaped = (x: unknown): x is OnnxShaped =>
  ArrayBuffer.isView((x as { data?: unknown } | undefined)?.data) &&
  Array.isArray((x as { dims?: unknown }).dims);
/** What no tensor can be made of is said of the input. */
function named<T>(refuse: (got: string) => never, make: () => T): T {
  try {
    return make();
  } catch (e) {
    return refuse(`refused: ${(e as Error).message}`);
  }
}
/** A flat array gets the shape of the port, if that leaves one size open at most. */
function shaped(flat: Tensor, { dims }: OnnxPort): Tensor {
  const open = dims?.filter((d) => typeof d !== "number").length ?? 2;
  if (dims === undefined || dims.length === 1 || open > 1) return flat;
  const rest = prod(dims.map((d) => (typeof d === "number" ? d : 1)));
  const fits = open === 1 ? flat.size % rest === 0 : flat.size === rest;
  return fits ? flat.reshape(dims.map((d) => (typeof d === "number" ? d : -1))) : flat;
}
/** Inputs that may decide what the graph is: small ones, of which the host has the elements anyway. */
const MAX_DECIDING = 64;
function flatOf(given: TensorData): ((type: ElementType) => HostArray["data"]) | undefined {
  const list = ArrayBuffer.isView(given)
    ? Array.from(given as unknown as ArrayLike<number | bigint>)
    : [given].flat(8 as 1);
  if (list.length > MAX_DECIDING || list.some((x) => typeof x === "object")) return undefined;
  const numbers = list as (number | bigint | boolean)[];
  return (type) => numbers.map((x) => (type.dtype.isBig ? BigInt(x) : Number(x)));
}

function checkDims(
  value: TensorValue,
  port: OnnxPort,
  sizes: Map<string, number>,
  refuse: (got: string) => never,
): void {
  const { dims } = port;
  if (dims === undefined) return;
  if (dims.length !== value.shape.length) refuse(describe(value));
  dims.forEach((d, i) => {
    const got = value.shape[i] as number;
    if (typeof d === "number" && d !== got) refuse(describe(value));
    if (typeof d !== "string") return;
    const before = sizes.get(d);
    if (before !== undefined && before !== got)
      refuse(`${describe(value)}, but ${d} is ${before} in another input`);
    sizes.set(d, got);
  });
}

// ---- signatures ----

const signature = (value: Any | undefined): string => {
  if (value instanceof SequenceValue) return `(${value.items.map(signature).join(",")})`;
  if (value instanceof OptionalValue) return `?${value.value === undefined ? "" : signature(value.value)}`;
  return describe(value);
};
function keyOf(
  shapes: string,
  deciding: ReadonlySet<string>,
  values: ReadonlyMap<string, Any>,
): string | undefined {
  const parts = [...deciding].map((name) => {
    const value = values.get(name);
    return value instanceof TensorValue && value.isKnown
      ? `${name}=${Array.from(value.host.data).join(",")}`
      : undefined;
  });
  return parts.includes(undefined) ? undefined : `${shapes}|${parts.join("|")}`;
}
const tensorsIn = (output: OnnxOutput): Tensor[] => {
  if (output instanceof Tensor) return [output];
  return Array.isArray(output) ? (output as readonly OnnxOutput[]).flatMap(tensorsIn) : [];
};

/** The inputs that the graph of the outputs reads. */
function usedBy(outputs: readonly Tensor[], values: TensorValues): string[] {
  const reached = new Set(
    toposort(
      outputs.flatMap((t) => t.lazydata.parts.map((p) => p.base)),
      (node) => (node.srcs ?? []).map((s) => s.base),
    ),
  );
  const isUsed = ({ tensor }: TensorValue): boolean => tensor.lazydata.parts.some((p) => reached.has(p.base));
  return [...values].filter(([, v]) => isUsed(v)).map(([name]) => name);
}

function computed(value: Any | undefined, name: string): OnnxOutput {
  if (value === undefined) throw new OnnxError(`output ${quoted(name)} was not computed`);
  return outputOf(value);
}
function outputOf(value: Any): OnnxOutput {
  if (value instanceof SequenceValue) return value.items.map(outputOf);
  if (value instanceof OptionalValue) return value.value === undefined ? null : outputOf(value.value);
  return value.isText ? { shape: value.shape, data: value.texts } : value.tensor;
}
