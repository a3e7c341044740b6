// A model at a glance: its layers, the shapes that pass through them, how many parameters each has. In: a
// model and the shape of an input. Out: a table. Nothing is computed: shapes are known while the graph is
// built.

import type { DTypeLike } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { inspect } from "../helpers.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { checkOptions } from "./options.ts";
import { getStateDict } from "./state.ts";
import { layersOf, table, type WatchedLayer, watching } from "./watch.ts";

export interface SummaryOptions {
  /** the type of the inputs; default: float32 */
  readonly dtype?: DTypeLike;
  /** default: that of the first parameter */
  readonly device?: string;
}
export interface SummaryRow {
  /** the path of the layer in the model, as in the names of the state */
  readonly name: string;
  readonly type: string;
  /** the shapes of what `forward` was given and gave, in its last call */
  readonly input: readonly (readonly number[])[];
  readonly output: readonly (readonly number[])[];
  /** elements of its own trained tensors, without those of layers inside it */
  readonly parameters: number;
  readonly calls: number;
}

/**
 * What nn.summary gives: rows and totals; it prints as a table.
 * @example
 * nn.summary(new nn.Linear(3, 2), [1, 3]) instanceof nn.Summary // => true
 */
export class Summary {
  /** a row for each layer, in the order of their first calls; those that were not called come last */
  readonly rows: readonly SummaryRow[];
  /** elements of all trained tensors, each counted once */
  readonly parameters: number;
  /** elements of other tensors of the state, such as running statistics */
  readonly buffers: number;
  /** bytes of all tensors of the state */
  readonly bytes: number;

  constructor(rows: readonly SummaryRow[], state: readonly Tensor[]) {
    const total = (ts: readonly Tensor[]): number => ts.reduce((n, t) => n + t.size, 0);
    this.rows = rows;
    this.parameters = total(state.filter((t) => t.requiresGrad));
    this.buffers = total(state.filter((t) => !t.requiresGrad));
    this.bytes = state.reduce((n, t) => n + t.size * t.dtype.itemsize, 0);
  }
  /** The table as a text. */
  toString(): string {
    const shapes = (list: readonly (readonly number[])[]): string => list.map((s) => showShape(s)).join(", ");
    const lines = this.rows.map((r) => [
      r.name === "" ? "(model)" : r.name,
      r.type,
      r.calls === 0 ? "not called" : shapes(r.input),
      shapes(r.output),
      r.parameters === 0 ? "" : r.parameters.toLocaleString("en"),
    ]);
    const count = (n: number): string => n.toLocaleString("en");
    return [
      table(["layer", "type", "input", "output", "parameters"], lines),
      "",
      `${count(this.parameters)} parameters, ${count(this.buffers)} other elements, ${(this.bytes / 1e6).toFixed(2)} MB`,
    ].join("\n");
  }
  [inspect](): string {
    return this.toString();
  }
}

type Input = readonly number[] | Tensor;
const isShape = (x: unknown): x is readonly number[] =>
  Array.isArray(x) && x.every((n) => Number.isInteger(n) && n >= 0);
const tensorsIn = (x: unknown): Tensor[] => {
  if (x instanceof Tensor) return [x];
  return typeof x === "object" && x !== null ? Object.values(x).flatMap(tensorsIn) : [];
};

/**
 * The layers of a model with the shapes of their inputs and outputs and their numbers of parameters, for an
 * input of a shape, or several (shapes or Tensors). `console.log` shows a table. Nothing is computed.
 * @example
 * const model = new nn.Sequential(new nn.Linear(3, 4), new nn.ReLU(), new nn.Linear(4, 2));
 * const { rows, parameters } = nn.summary(model, [8, 3]);
 * [rows.map((r) => r.name), rows.at(-1).output, parameters] // => [["", "0", "1", "2"], [[8, 2]], 26]
 */
export function summary(
  model: unknown,
  input: Input | readonly Input[],
  options: SummaryOptions = {},
): Summary {
  const { dtype = "float32", device } = checkOptions("summary", options, ["dtype", "device"]);
  const { forward } = (model ?? {}) as { forward?: (...args: Tensor[]) => unknown };
  if (typeof forward !== "function") {
    throw new ArgumentError("summary: the model has no forward method; give an object with forward(x)");
  }
  const given = (isShape(input) || input instanceof Tensor ? [input] : input) as readonly Input[];
  if (!Array.isArray(given) || !given.every((i) => i instanceof Tensor || isShape(i))) {
    throw new ArgumentError("summary: expected a shape such as [1, 3, 32, 32], a Tensor, or a list of them");
  }
  const state = [...new Set(Object.values(getStateDict(model)))];
  const place = device ?? state[0]?.device;
  const inputs = given.map((i) =>
    i instanceof Tensor
      ? i.detach()
      : Tensor.zeros(i, { dtype, ...(place !== undefined && { device: place }) }),
  );
  const layers = layersOf(model);
  const calls = new Map<WatchedLayer, { input: number[][]; output: number[][]; count: number }>();
  const shapesOf = (x: unknown): number[][] => tensorsIn(x).map((t) => [...t.shape]);
  const around = (layer: WatchedLayer, args: readonly unknown[], call: () => unknown): unknown => {
    const before = calls.get(layer);
    const now = { input: shapesOf(args), output: [] as number[][], count: (before?.count ?? 0) + 1 };
    if (before === undefined) calls.set(layer, now); // its place is that of its first call
    const result = call();
    calls.set(layer, { ...now, output: shapesOf(result) });
    return result;
  };
  const run = (): unknown => (model as { forward(...args: Tensor[]): unknown }).forward(...inputs);
  watching(layers, around, () => Tensor.train(() => Tensor.noGrad(run), false));
  const order = [...calls.keys(), ...layers.filter((l) => !calls.has(l))];
  const rows = order.map((l) => {
    const { input: i = [], output = [], count = 0 } = calls.get(l) ?? {};
    return {
      name: l.path,
      type: l.type,
      input: i,
      output,
      parameters: ownParameters(l, layers),
      calls: count,
    };
  });
  return new Summary(rows, state);
}

/** Elements of the trained tensors of a layer that no layer inside it has. */
function ownParameters({ layer }: WatchedLayer, layers: readonly WatchedLayer[]): number {
  const all = new Set(Object.values(getStateDict(layer)).filter((t) => t.requiresGrad));
  const inner = new Set(
    layersOf(layer)
      .slice(1)
      .map((l) => l.layer),
  );
  for (const l of layers.filter((other) => inner.has(other.layer))) {
    for (const t of Object.values(getStateDict(l.layer))) all.delete(t);
  }
  return [...all].reduce((n, t) => n + t.size, 0);
}
