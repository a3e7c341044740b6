// The models in gradloom, on the device DEV. Inputs come from the host and all outputs are read, as the peers
// do; what a model hands on to its next run stays a tensor. A typed array is given as it is where its shape
// follows from the model.

import { Device, GlobalCounters, Tensor } from "../../src/index.ts";
import { onnx } from "../../src/onnx/index.ts";
import type { Workload } from "../cpu/workloads.ts";
import { type HostInput, isThere, type OnnxWork, pathOf, WORKS } from "./works.ts";

export const device = await Device.open();

const tensorOf = ({ data, shape, type }: HostInput): Tensor =>
  new Tensor(data, { dtype: type }).reshape(...shape);

const openIn = (dims: readonly unknown[]): number => dims.filter((d) => typeof d !== "number").length;

async function open(work: OnnxWork): Promise<Workload> {
  const model = await onnx.load(pathOf(work));
  const given = work.inputs();
  const handedOn = new Map<string, Tensor>();
  const isFlat = new Set(
    model.inputs.filter(({ dims }) => dims !== undefined && openIn(dims) <= 1).map(({ name }) => name),
  );
  const give = (name: string, x: HostInput) =>
    handedOn.get(name) ?? (isFlat.has(name) ? x.data : tensorOf(x));
  return {
    async run() {
      const inputs = Object.entries(given).map(([name, x]) => [name, give(name, x)] as const);
      const outputs = await model.run(Object.fromEntries(inputs));
      const read: unknown[] = [];
      for (const output of Object.values(outputs)) read.push(await output.data());
      for (const [input, output] of Object.entries(work.state ?? {})) {
        const next = outputs[output];
        if (next !== undefined) handedOn.set(input, next);
      }
      return read;
    },
  };
}

export const engine = Object.fromEntries(
  Object.entries(WORKS)
    .filter(([, work]) => isThere(work))
    .map(([name, work]) => [name, () => open(work)]),
);
/** The most bytes that tensors held at once so far. */
export const peakBytes = (): number => GlobalCounters.memPeak;
