// `save`: a function of tensors as an ONNX model. The function is called on placeholders, the lazy graph of
// its results is read back (lower.ts), and written. Where a dim is open, it is called at several sizes, and
// what differs must be a formula of the size (merge.ts). That asks nothing of the function: it may look at
// shapes as plain numbers, which a symbolic size would not survive.

import { writeBytes } from "#host/files";
import { arraysEqual, range } from "../../helpers.ts";
import { type LazyBuffer, nodesMade } from "../../lazy/lazybuffer.ts";
import { boundValue, vars } from "../../shape/symbolic.ts";
import { make } from "../../tensor/core.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { OnnxError, quoted } from "../errors.ts";
import { write } from "../write.ts";
import { emitted, type OpenDim } from "./emit.ts";
import { type Merged, type MergedNode, merge, SizeMismatch } from "./merge.ts";
import { type TraceSizes, tracesFor } from "./sizes.ts";
import {
  type FunctionTrace,
  type NamedTensors,
  namedTensors,
  type OnnxExample,
  type OnnxResult,
  requireOneDevice,
  type TracedInput,
  traced,
} from "./trace.ts";

export type { OnnxExample, OnnxResult } from "./trace.ts";

export interface OnnxSaveOptions {
  /** where the file goes; without it the bytes are returned */
  readonly path?: string;
  /**
   * dims that stay open, by input and dim: `{ x: { 0: "batch" } }`. Dims with the same name have the
   * same size. A dim of an example with a bound Variable is open by itself
   */
  readonly dynamic?: Readonly<Record<string, Readonly<Record<number, string>>>>;
  /** names of weights, as `nn.getStateDict` gives them; others are w0, w1, … */
  readonly names?: Readonly<Record<string, Tensor>>;
}

/** More open dims than this would be traced too often: 2 to the power of them. */
const MAX_OPEN = 4;

/**
 * The bytes of a model that computes what the function does; with `path` they are written to a file.
 * `example` says the shapes and types of the inputs: a tensor ("input"), a list ("input0", …), or
 * tensors by name. The function gets the same, and returns a tensor ("output"), a list, or tensors by
 * name. It is called as in `Tensor.noGrad`, and may be async.
 * @example
 * const w = new Tensor([[1, 2], [3, 4]], { dtype: "float32" });
 * const bytes = await onnx.save(({ x }) => ({ y: x.matmul(w).relu() }), { x: Tensor.ones(1, 2) }, {
 *   dynamic: { x: { 0: "batch" } },
 * });
 * const { y } = await (await onnx.load(bytes)).run({ x: [[1, -1], [0, 1], [1, 0]] });
 * await y.tolist() // => [[0, 0], [3, 4], [1, 2]]
 */
export function save<E extends OnnxExample>(
  fn: (example: E) => OnnxResult | Promise<OnnxResult>,
  example: E,
  options: OnnxSaveOptions & { readonly path: string },
): Promise<void>;
export function save<E extends OnnxExample>(
  fn: (example: E) => OnnxResult | Promise<OnnxResult>,
  example: E,
  options?: OnnxSaveOptions,
): Promise<Uint8Array>;
export async function save<E extends OnnxExample>(
  fn: (example: E) => OnnxResult | Promise<OnnxResult>,
  example: E,
  options: OnnxSaveOptions = {},
): Promise<unknown> {
  requireOptions(options);
  const inputs = namedTensors("the example", "input", example);
  for (const [name, t] of inputs) requireOneDevice(`input ${quoted(name)}`, t);
  const open = openDims(inputs, options.dynamic ?? {});
  const call = (xs: readonly Tensor[]): unknown => fn(likeExample(example, inputs, xs));
  const { merged, trace } = await mergedTraces(call, inputs, open);
  await requireTwins(merged);
  const bytes = await written(merged, trace, open, options.names ?? {});
  if (options.path === undefined) return bytes;
  await writeBytes(
    options.path,
    (async function* () {
      yield bytes;
    })(),
  );
  return undefined;
}

function requireOptions(options: OnnxSaveOptions): void {
  const known = ["path", "dynamic", "names"];
  const odd = Object.keys(options).find((key) => !known.includes(key));
  if (odd !== undefined)
    throw new OnnxError(`save: there is no option ${quoted(odd)}; expected ${known.join(", ")}`);
}
/** The placeholders in the form of the example. */
function likeExample<E extends OnnxExample>(example: E, inputs: NamedTensors, xs: readonly Tensor[]): E {
  if (Array.isArray(example)) return xs as unknown as E;
  if (inputs.length === 1 && (example as unknown) === inputs[0]?.[1]) return xs[0] as unknown as E;
  return Object.fromEntries(inputs.map(([name], i) => [name, xs[i]])) as unknown as E;
}

// ---- open dims ----

interface OpenSize extends OpenDim {
  /** all places that have this name */
  readonly places: readonly (readonly [input: number, axis: number])[];
  readonly size: number;
  readonly min: number;
  readonly max: number;
}

function openDims(inputs: NamedTensors, dynamic: NonNullable<OnnxSaveOptions["dynamic"]>): OpenSize[] {
  const places = new Map<string, [number, number][]>();
  const bounds = new Map<string, readonly [number, number]>();
  const add = (name: string, input: number, axis: number): void =>
    void places.set(name, [...(places.get(name) ?? []), [input, axis]]);
  const unknown = Object.keys(dynamic).find((key) => !inputs.some(([name]) => name === key));
  if (unknown !== undefined) {
    throw new OnnxError(
      `save: dynamic names input ${quoted(unknown)}, which the example has not; expected ${inputs.map(([n]) => n).join(", ")}`,
    );
  }
  inputs.forEach(([input, t], i) => {
    const own = dynamic[input] ?? {};
    for (const [key, name] of Object.entries(own)) {
      const axis = Number(key);
      if (Number.isInteger(axis) && axis >= 0 && axis < t.ndim && typeof name === "string" && name !== "") {
        add(name, i, axis);
        continue;
      }
      throw new OnnxError(
        `save: dynamic.${input} has ${key}: ${JSON.stringify(name)}; expected a dim from 0 to ${t.ndim - 1} and a name`,
      );
    }
    t.lazydata.shape.forEach((size, axis) => {
      if (typeof size === "number" || own[axis] !== undefined) return;
      const [variable] = vars(size);
      if (variable === undefined || boundValue(size) === undefined) return;
      add(variable.name, i, axis);
      bounds.set(variable.name, [variable.min, variable.max]);
    });
  });
  if (places.size > MAX_OPEN)
    throw new OnnxError(
      `save: ${places.size} dims are open, expected at most ${MAX_OPEN}; give equal sizes one name`,
    );
  return [...places].map(([name, at]): OpenSize => {
    const sizes = at.map(([i, axis]) => (inputs[i] as NamedTensors[number])[1].shape[axis] as number);
    const [size] = sizes as [number];
    if (sizes.some((s) => s !== size))
      throw new OnnxError(
        `save: the dims called ${quoted(name)} have sizes ${sizes.join(", ")}; expected one size for a name`,
      );
    const [input, axis] = at[0] as [number, number];
    const [min, max] = bounds.get(name) ?? [1, Infinity];
    return { name, input: (inputs[input] as NamedTensors[number])[0], axis, places: at, size, min, max };
  });
}

/**
 * Three sizes of a dim, the second way where the function takes none of the first: multiples of the
 * example.
 */
function sizesOf({ size, min, max }: OpenSize, i: number, way: number): number[] {
  const spread = [7, 10, 13].map((n, k) => n + 4 * i + ((i * k) % 3));
  const tried =
    way === 0
      ? spread
      : way === 1
        ? [size, 2 * size, 3 * size]
        : [size, size + 1, size + 2].map((n) => n + 1);
  if (tried.every((n) => n >= min && n <= max)) return tried;
  const low = Math.max(min, 2);
  return max - low < 2 ? [min, max, min] : [low, low + Math.floor((max - low) / 2), max];
}
const WAYS = 3;

interface Traced {
  readonly merged: Merged;
  readonly trace: FunctionTrace;
}
async function mergedTraces(
  call: (xs: readonly Tensor[]) => unknown,
  inputs: NamedTensors,
  open: readonly OpenSize[],
): Promise<Traced> {
  const since = nodesMade();
  let failure: unknown;
  for (const way of range(open.length === 0 ? 1 : WAYS)) {
    const sizes = tracesFor(open.map((o, i) => sizesOf(o, i, way)));
    try {
      return await tracedAt(call, inputs, open, sizes, since);
    } catch (error) {
      failure ??= error;
      if (open.length === 0) throw error;
      // a function that can be called at these sizes is right at them, or is refused
      if (error instanceof SizeMismatch) break;
    }
  }
  if (!(failure instanceof SizeMismatch)) throw failure;
  throw new OnnxError(
    `${failure.message.replace(/^onnx: /, "")}: what the function computes depends on the size of ${open.map((o) => quoted(o.name)).join(" or ")} in a ` +
      "way that a file cannot say; export it at one size, without dynamic",
    { cause: failure },
  );
}
async function tracedAt(
  call: (xs: readonly Tensor[]) => unknown,
  inputs: NamedTensors,
  open: readonly OpenSize[],
  sizes: TraceSizes,
  since: number,
): Promise<Traced> {
  const traces: FunctionTrace[] = [];
  for (const own of sizes) {
    const given = inputs.map(([name, t], i): TracedInput => {
      const shape = t.shape.map((n, axis) => {
        const d = open.findIndex((o) => o.places.some(([input, a]) => input === i && a === axis));
        return d < 0 ? n : (own[d] as number);
      });
      return { name, shape, dtype: t.dtype, device: t.device };
    });
    traces.push(await traced(call, given, since));
  }
  const [first] = traces as [FunctionTrace];
  const names = first.outputs.map(([name]) => name);
  if (
    !traces.every((t) =>
      arraysEqual(
        t.outputs.map(([name]) => name),
        names,
      ),
    )
  )
    throw new SizeMismatch("save: the function returns other outputs at another size");
  const all = traces.map((t) => [...t.inputs, ...t.outputs.map(([, node]) => node)]);
  return { merged: merge(all, sizes), trace: first };
}

async function requireTwins({ twins }: Merged): Promise<void> {
  for (const [a, b] of twins) {
    const [x, y] = [await make(a).data(), await make(b).data()];
    if (x.every((v, i) => Object.is(v, y[i]))) continue;
    throw new OnnxError(
      `save: a constant of shape [${a.shape.join(", ")}] has other values at another size of an open dim; expected the same: ` +
        "compute it from a tensor, such as Tensor.arange",
    );
  }
}

async function written(
  merged: Merged,
  trace: FunctionTrace,
  open: readonly OpenSize[],
  names: Readonly<Record<string, Tensor>>,
): Promise<Uint8Array> {
  const byNode = new Map<LazyBuffer, string>();
  for (const [name, t] of Object.entries(names)) for (const base of heldBy(t)) byNode.set(base, name);
  const { results } = merged;
  const n = trace.inputs.length;
  const inputs = trace.inputs.map((node, i) => {
    const name = String(node.attributes.name);
    const dims = node.shape.map(
      (size, axis) => open.find((o) => o.places.some(([at, a]) => at === i && a === axis))?.name ?? size,
    );
    return [name, results[i] as MergedNode, dims] as const;
  });
  const outputs = trace.outputs.map(([name], i) => [name, results[n + i] as MergedNode] as const);
  const { graph, opset } = emitted({ inputs, outputs, open, nameOf: (weight) => byNode.get(weight) });
  return write(graph, { opset });
}
/** The nodes that may hold a tensor: where it is, and where it was copied from. */
function heldBy(t: Tensor): LazyBuffer[] {
  const found: LazyBuffer[] = [];
  for (let base: LazyBuffer | undefined = t.lazydata.base; base !== undefined; ) {
    found.push(base);
    const isMoved: boolean = base.op === "COPY" || base.op === "CONTIGUOUS";
    base = isMoved && base.realized === undefined ? base.srcs?.[0]?.base : undefined;
  }
  return found;
}
