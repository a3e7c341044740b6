// A function exported, read back, and compared with what it computes itself; in onnxruntime-node, too,
// where that is installed. In: a function and examples. Out: the ops of the file, or an error that says
// what differs.

import { Tensor } from "gradloom";
import { type OnnxExample, type OnnxResult, type OnnxSaveOptions, onnx } from "gradloom/onnx";
import { MODEL } from "../../src/onnx/model.ts";
import { decode } from "../../src/onnx/protobuf.ts";
import { inOrt, type Numbers, ort, type Run } from "./ort.ts";

type Named = Readonly<Record<string, Tensor>>;
const named = (given: OnnxExample | OnnxResult, single: string): Named => {
  if (given instanceof Tensor) return { [single]: given };
  if (!Array.isArray(given)) return given as Named;
  return Object.fromEntries((given as Tensor[]).map((t, i) => [`${single}${i}`, t]));
};
const numbers = async (t: Tensor): Promise<Numbers> => ({
  shape: t.shape,
  data: Array.from<number | bigint, number>(await t.data(), Number),
});

/** The model in our own importer. */
async function inOwn(bytes: Uint8Array): Promise<Run> {
  const model = await onnx.load(bytes);
  return async (inputs) => {
    const outputs = await model.run(
      Object.fromEntries(model.inputs.map(({ name }) => [name, inputs[name] as Tensor])),
    );
    return Object.fromEntries(
      await Promise.all(Object.entries(outputs).map(async ([k, t]) => [k, await numbers(t)])),
    );
  };
}

export function compare(where: string, got: Numbers, want: Numbers, bound: (i: number) => number): void {
  if (got.shape.join() !== want.shape.join())
    throw new Error(`${where} has shape [${got.shape}], expected [${want.shape}]`);
  for (const [i, w] of want.data.entries()) {
    const g = got.data[i] as number;
    if (g === w || (Number.isNaN(g) && Number.isNaN(w)) || Math.abs(g - w) <= bound(i)) continue;
    throw new Error(`${where}[${i}] is ${g}, expected ${w}`);
  }
}

/** The ops of a file, as often as they are there; those of loops, too. */
export function opsOf(bytes: Uint8Array): Record<string, number> {
  const counts: Record<string, number> = {};
  type Graph = NonNullable<(typeof model)["graph"]>;
  const model = decode(MODEL, bytes);
  const visit = (graph: Graph): void => {
    for (const { op_type, attribute } of graph.node) {
      counts[op_type] = (counts[op_type] ?? 0) + 1;
      for (const { g } of attribute) if (g !== undefined) visit(g);
    }
  };
  if (model.graph !== undefined) visit(model.graph);
  return counts;
}

interface Options extends OnnxSaveOptions {
  readonly tolerance?: number;
}
/** Exports with the first example, and compares with all. */
export async function roundTrip<E extends OnnxExample>(
  fn: (x: E) => OnnxResult | Promise<OnnxResult>,
  examples: readonly [E, ...E[]],
  { tolerance = 1e-5, ...options }: Options = {},
): Promise<Record<string, number>> {
  const bytes = await onnx.save(fn, examples[0], options);
  const runs: [string, Run][] = [["own", await inOwn(bytes)]];
  if (ort !== undefined && typeof bytes === "object") runs.push(["onnxruntime", await inOrt(bytes)]);
  for (const example of examples) {
    const expected = named(await Tensor.noGrad(() => fn(example)), "output");
    for (const [who, run] of runs) {
      const got = await run(named(example, "input"));
      for (const [name, t] of Object.entries(expected)) {
        const want = await numbers(t);
        compare(
          `${who}: ${name}`,
          got[name] as Numbers,
          want,
          (i) => tolerance * (1 + Math.abs(want.data[i] as number)),
        );
      }
    }
  }
  return opsOf(bytes);
}
