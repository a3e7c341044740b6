// The same model in onnxruntime-node, as a second opinion. It is a dev dependency of the benchmarks and the
// examples; where none is installed, `openOrt` says so.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { HostData } from "./cases.ts";

/** The part of onnxruntime-node's interface that is used. */
interface OrtTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: ArrayLike<number | bigint>;
}
interface OrtSession {
  run(feeds: Readonly<Record<string, OrtTensor>>): Promise<Readonly<Record<string, OrtTensor>>>;
  release?(): Promise<void>;
}
interface OrtModule {
  readonly InferenceSession: { create(bytes: Uint8Array, options: object): Promise<OrtSession> };
  readonly Tensor: new (type: string, data: ArrayLike<number | bigint>, dims: readonly number[]) => OrtTensor;
}
export interface Ort {
  /** Its outputs in order, or why it refuses the model. */
  run(bytes: Uint8Array, inputs: Readonly<Record<string, HostData>>): Promise<readonly HostData[] | string>;
}

const ROOT = join(import.meta.dirname, "../../..");
const PLACES = ["bench", "examples/models"].map((folder) => join(ROOT, folder, "node_modules"));
const NAMES: Readonly<Record<string, string>> = { float: "float32", double: "float64" };

/** onnxruntime-node, or why there is none. */
export function openOrt(): Ort | string {
  const found = PLACES.find((place) => existsSync(join(place, "onnxruntime-node")));
  if (found === undefined) return "no onnxruntime-node: npm install --prefix bench --ignore-scripts";
  let module: OrtModule;
  try {
    module = createRequire(join(found, "x.js"))("onnxruntime-node");
  } catch (e) {
    // there is no binary for every system
    return `onnxruntime-node does not load: ${(e as Error).message}`;
  }
  const { InferenceSession, Tensor } = module;
  const options = { intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 4 };
  return {
    async run(bytes, inputs) {
      try {
        const session = await InferenceSession.create(bytes, options);
        const feeds = Object.entries(inputs).map(([name, { type, shape, data }]) => {
          const typed = arrayOf(type, data);
          return [name, new Tensor(NAMES[type] ?? type, typed, shape)] as const;
        });
        const results = await session.run(Object.fromEntries(feeds));
        const outputs = Object.values(results).map(({ type, dims, data }) => ({
          type: Object.keys(NAMES).find((name) => NAMES[name] === type) ?? type,
          shape: dims,
          data: type === "float16" ? Array.from(data, (x) => numberOf(Number(x), data)) : data,
        }));
        await session.release?.();
        return outputs;
      } catch (e) {
        return (e as Error).message;
      }
    },
  };
}

const ARRAYS = {
  float: Float32Array,
  double: Float64Array,
  float16: Uint16Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
};
function arrayOf(type: string, data: HostData["data"]): ArrayLike<number | bigint> {
  const list = Array.from(data);
  if (type === "float16") return Uint16Array.from(list, (x) => bitsOfHalf(Number(x)));
  const Kind = ARRAYS[type as keyof typeof ARRAYS];
  if (Kind === BigInt64Array || Kind === BigUint64Array) return new Kind(list.map(BigInt));
  return new (Kind as typeof Float64Array)(list.map(Number));
}

/** Older versions of Node have no Float16Array: the bits come as they are. */
const numberOf = (x: number, data: object): number => (data instanceof Uint16Array ? valueOfHalf(x) : x);
function valueOfHalf(bits: number): number {
  const [sign, exponent, rest] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return rest === 0 ? sign * Infinity : Number.NaN;
  return sign * (exponent === 0 ? rest * 2 ** -24 : (1024 + rest) * 2 ** (exponent - 25));
}
/** Of a number that is a half. */
function bitsOfHalf(x: number): number {
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const a = Math.abs(x);
  if (Number.isNaN(a)) return 0x7e00;
  if (a === Infinity) return sign | 0x7c00;
  if (a < 2 ** -14) return sign | Math.round(a * 2 ** 24);
  const exponent = Math.floor(Math.log2(a));
  return sign | ((exponent + 15) << 10) | Math.round((a / 2 ** exponent - 1) * 1024);
}
