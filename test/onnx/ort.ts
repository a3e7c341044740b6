// onnxruntime-node, where it is installed: `npm install --prefix bench --ignore-scripts`, or the folder of
// node_modules that ORT_NODE names. In: a model and inputs. Out: what it computes.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Tensor } from "gradloom";
import { float16ToNumber } from "../../src/dtype.ts";

interface OrtTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: ArrayLike<number | bigint | boolean>;
}
interface OrtSession {
  readonly inputNames: readonly string[];
  run(feeds: Record<string, OrtTensor>): Promise<Record<string, OrtTensor>>;
}
interface Ort {
  readonly Tensor: new (type: string, data: unknown, dims: readonly number[]) => OrtTensor;
  readonly InferenceSession: { create(model: Uint8Array, options: object): Promise<OrtSession> };
}

/** The folder of packages that peers are taken from. */
export const peers: string =
  process.env.ORT_NODE ?? join(dirname(fileURLToPath(import.meta.url)), "../../bench/node_modules");

function load(): Ort | undefined {
  try {
    return createRequire(join(peers, "../package.json"))("onnxruntime-node") as Ort;
  } catch {
    return undefined;
  }
}
export const ort = load();
export const reason =
  "onnxruntime-node not found: npm install --prefix bench --ignore-scripts, or ORT_NODE=…/node_modules";

const NAMES: Readonly<Record<string, string>> = { float32: "float32", float64: "float64", bool: "bool" };
async function fed(t: Tensor): Promise<OrtTensor> {
  const { Tensor: Made } = ort as Ort;
  const { name } = t.dtype;
  const data = name === "float16" ? await t.bitcast("uint16").data() : await t.data();
  const given = name === "bool" ? Uint8Array.from(data as Uint8Array) : data.slice();
  return new Made(NAMES[name] ?? name, given, t.shape);
}

/** What a result is: its shape, and its elements as numbers. */
export interface Numbers {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}
export type Run = (inputs: Readonly<Record<string, Tensor>>) => Promise<Record<string, Numbers>>;

/** The model in onnxruntime. */
export async function inOrt(model: Uint8Array): Promise<Run> {
  const session = await (ort as Ort).InferenceSession.create(model, {
    logSeverityLevel: 4,
    intraOpNumThreads: 1,
  });
  return async (inputs) => {
    const feeds: Record<string, OrtTensor> = {};
    for (const name of session.inputNames) feeds[name] = await fed(inputs[name] as Tensor);
    const outputs = await session.run(feeds);
    return Object.fromEntries(
      Object.entries(outputs).map(([name, { type, dims, data }]) => {
        const value = type === "float16" ? (x: unknown) => float16ToNumber(Number(x)) : Number;
        return [name, { shape: [...dims], data: Array.from(data, value) }];
      }),
    );
  };
}
