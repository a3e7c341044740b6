// One call of the function that is exported, on placeholders. Its results are read back as a graph. In: the
// function, the sizes of the inputs. Out: nodes for the inputs and the results.

import type { DType } from "../../dtype.ts";
import { isPlain, toposort } from "../../helpers.ts";
import { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { make, TensorHandle } from "../../tensor/core.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { OnnxError } from "../errors.ts";
import { writtenAs } from "./elementwise.ts";
import { type ExportNode, GraphBuilder } from "./graph.ts";
import { GraphReader, sourcesOf } from "./lower.ts";
import { whileSaving } from "./saving.ts";
import { simplified } from "./simplify.ts";

/** What a function is exported with: a tensor, a list of them, or tensors by name. */
export type OnnxExample = Tensor | readonly Tensor[] | Readonly<Record<string, Tensor>>;
/** What it returns, in the same forms. */
export type OnnxResult = Tensor | readonly Tensor[] | Readonly<Record<string, Tensor>>;

export type NamedTensors = readonly (readonly [name: string, tensor: Tensor])[];

/** Tensors by name: a single one has the name itself, those of a list have numbers. */
export function namedTensors(what: string, single: string, given: unknown): NamedTensors {
  const tensors: [string, unknown][] = isTensor(given)
    ? [[single, given]]
    : Array.isArray(given)
      ? given.map((x, i) => [`${single}${i}`, x])
      : isPlain(given)
        ? Object.entries(given)
        : [];
  const bad = tensors.find(([, t]) => !isTensor(t));
  if (tensors.length === 0 || bad !== undefined) {
    const got = bad === undefined ? describe(given) : `${describe(bad[1])} under ${JSON.stringify(bad[0])}`;
    throw new OnnxError(
      `save: ${what} is ${got}; expected a Tensor, a list of them, or an object of them by name`,
    );
  }
  return tensors as [string, Tensor][];
}
const isTensor = (x: unknown): x is Tensor => x instanceof TensorHandle;
const describe = (x: unknown): string =>
  x === null
    ? "null"
    : Array.isArray(x)
      ? "an empty list"
      : typeof x === "object"
        ? "an object without tensors"
        : typeof x;

export interface TracedInput {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly device: string;
}
export interface FunctionTrace {
  readonly inputs: readonly ExportNode[];
  readonly outputs: readonly (readonly [name: string, node: ExportNode])[];
}

const UNKNOWN =
  "save: the function asks for a value that depends on its inputs (data(), item(), realize(), a captured function); it is " +
  "traced without values: keep such a value a tensor, or pass what decides as a plain number from outside";

/** An input whose value nobody can ask for. */
function standIn({ shape, dtype, device }: TracedInput): LazyBuffer {
  return LazyBuffer.loadop("CUSTOM", shape, dtype, device, () => {
    throw new OnnxError(UNKNOWN);
  });
}

export async function traced(
  call: (inputs: readonly Tensor[]) => unknown,
  given: readonly TracedInput[],
  since: number,
): Promise<FunctionTrace> {
  const b = new GraphBuilder();
  const places = given.map(standIn);
  const nodes = given.map(({ name, shape, dtype }) =>
    b.node("Input", { shape, dtype: writtenAs(dtype), attributes: { name } }),
  );
  const result = await whileSaving(async () => Tensor.noGrad(() => call(places.map((p) => make(p)))));
  const outputs = namedTensors("what the function returned", "output", result);
  const l = new GraphReader(b, since, new Map(places.map((p, i) => [p, nodes[i] as ExportNode])));
  for (const [name, t] of outputs) requireOneDevice(`output ${JSON.stringify(name)}`, t);
  await computeWeights(
    outputs.map(([, t]) => t.lazydata),
    since,
  );
  l.prepare(outputs.map(([, t]) => t.lazydata));
  const full = outputs.map(([, t]) => l.full(t.lazydata));
  const simple = simplified(b, full);
  return { inputs: nodes, outputs: outputs.map(([name], i) => [name, simple[i] as ExportNode]) };
}

/** What was lazy before the function was called is a weight: it gets its value, as when it is used. */
async function computeWeights(results: readonly LazyBuffer[], since: number): Promise<void> {
  const isPlain = (x: LazyBuffer): boolean => {
    const src = x.op === "COPY" ? x.srcs?.[0]?.base : x;
    return (
      src === undefined ||
      src.realized !== undefined ||
      src.op === "CONST" ||
      src.op === "ARANGE" ||
      src.op === "EMPTY"
    );
  };
  const pending: LazyBuffer[] = [];
  toposort(
    results.map((r) => r.base),
    (x) => {
      const isOld = x.id < since && x.op !== "CUSTOM";
      if (isOld && !isPlain(x)) pending.push(x);
      return isOld ? [] : sourcesOf(x).map((s) => s.base);
    },
  );
  await Tensor.realize(...new Set(pending.map((x) => make(x))));
}

export function requireOneDevice(what: string, t: Tensor): void {
  if (t.devices.length === 1) return;
  throw new OnnxError(
    `save: ${what} is on ${t.device}; a file knows no devices: move it to one, t.to("${t.devices[0]}")`,
  );
}
