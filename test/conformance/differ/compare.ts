// Runs a case in both, and says how the results differ. A case that onnxruntime refuses is not compared.

import { Tensor } from "gradloom";
import { load } from "gradloom/onnx";
import { TYPES } from "../../../src/onnx/elements.ts";
import { fileOf, type HostData, type OpCase } from "./cases.ts";
import type { Ort } from "./ort.ts";

export interface Verdict {
  readonly outcome: "same" | "different" | "refused" | "alone";
  readonly why?: string;
}

/** `runs`: the third is a replay of what the second captured. */
export async function compareCase(
  ort: Ort,
  one: OpCase,
  isWeight: (i: number) => boolean,
  runs = 1,
): Promise<Verdict> {
  const { bytes, feeds } = await fileOf(one, isWeight);
  const expected = await ort.run(bytes, feeds);
  try {
    const model = await load(bytes);
    const inputs = Object.fromEntries(Object.entries(feeds).map(([name, x]) => [name, tensorOf(x)] as const));
    for (let run = 0; run < runs; run++) {
      const results = await model.run(inputs);
      if (typeof expected === "string") {
        await Tensor.realize(...Object.values(results));
        return { outcome: "alone", why: expected };
      }
      for (const [i, { name }] of model.outputs.entries()) {
        const why = await difference(results[name] as Tensor, expected[i] as HostData, one.slack ?? 0);
        if (why !== undefined) return { outcome: "different", why: `output ${i}, run ${run}: ${why}` };
      }
    }
    return { outcome: "same" };
  } catch (e) {
    if (typeof expected === "string") return { outcome: "refused", why: expected };
    return { outcome: "different", why: (e as Error).message };
  }
}

function tensorOf({ type, shape, data }: HostData): Tensor {
  const { dtype } = TYPES[type as keyof typeof TYPES];
  if (data.length === 0) return Tensor.zeros([...shape], { dtype });
  return new Tensor(Array.from(data), { dtype }).reshape([...shape]);
}

/** Of the value, and of the largest one: sums are formed in another order. */
const TOLERANCE: Readonly<Record<string, readonly [number, number]>> = {
  float: [1e-4, 3e-6],
  double: [1e-5, 1e-7],
  float16: [3e-3, 3e-3],
};
async function difference(got: Tensor, expected: HostData, slack: number): Promise<string | undefined> {
  if (got.shape.join() !== expected.shape.join())
    return `shape [${got.shape.join(", ")}], expected [${expected.shape.join(", ")}]`;
  const { dtype } = TYPES[expected.type as keyof typeof TYPES];
  if (got.dtype !== dtype) return `${got.dtype.name}, expected ${expected.type}`;
  if (expected.data.length === 0) return undefined;
  const values = await got.data();
  const numbers = Array.from(expected.data, Number);
  const largest = Math.max(0, ...numbers.map(Math.abs).filter(Number.isFinite));
  const [relative, ofLargest] = TOLERANCE[expected.type] ?? [0, 0];
  for (const [i, y] of numbers.entries()) {
    const x = Number(values[i]);
    if (dtype.isBig && values[i] === expected.data[i]) continue;
    if (Object.is(x, y) || x === y) continue;
    const near = dtype.isFloat ? relative * Math.abs(y) + (ofLargest + slack) * largest : slack;
    if (Math.abs(x - y) <= near) continue;
    return `element ${i} of ${numbers.length} is ${values[i]}, expected ${expected.data[i]}`;
  }
  return undefined;
}
