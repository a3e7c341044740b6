// What the tests of real models share: the models, onnxruntime-node beside them, and how near two outputs
// are. Both come from npm packages that are there if somebody has installed them.

import { createRequire } from "node:module";
import { join } from "node:path";
import type { Tensor } from "gradloom";
import {
  findFile,
  INSTALL,
  installOf,
  type PackageFile,
  packageFolders,
} from "../../../examples/models/packages.ts";

/** As much of onnxruntime-node as the tests use. */
export interface OrtTensor {
  readonly data: Float32Array;
  readonly dims: readonly number[];
}
export type OrtData = Float32Array | BigInt64Array | Uint8Array;
export interface OrtSession {
  run(feeds: Readonly<Record<string, OrtTensor>>): Promise<Record<string, OrtTensor>>;
}
export interface Ort {
  readonly Tensor: new (type: string, data: OrtData, dims: readonly number[]) => OrtTensor;
  readonly InferenceSession: { create(path: string, options: object): Promise<OrtSession> };
}

const root = join(import.meta.dirname, "..", "..", "..");

export function findOrt(): Ort | undefined {
  for (const folder of [...packageFolders(), join(root, "bench")]) {
    try {
      return createRequire(join(folder, "package.json"))("onnxruntime-node") as Ort;
    } catch {
      // not in this folder, or not for this system
    }
  }
  return undefined;
}
export const ort = findOrt();

/** Why a test of these files cannot run, if it cannot. */
export function whyNot(...files: readonly PackageFile[]): string | undefined {
  const missing = files.find((file) => findFile(file) === undefined);
  if (missing !== undefined) return `${missing.name} is not installed: ${installOf(missing)}`;
  return ort === undefined ? `onnxruntime-node is not installed: ${INSTALL} --include=dev` : undefined;
}

/** One thread: the tests share their machine. */
export const openOrt = (path: string): Promise<OrtSession> =>
  (ort as Ort).InferenceSession.create(path, { intraOpNumThreads: 1, interOpNumThreads: 1 });

const TYPES = { Float32Array: "float32", BigInt64Array: "int64", Uint8Array: "uint8" } as const;
export const ortTensor = (data: OrtData, dims: readonly number[]): OrtTensor =>
  new (ort as Ort).Tensor(TYPES[data.constructor.name as keyof typeof TYPES], data, dims);
export const ortBool = (value: boolean): OrtTensor =>
  new (ort as Ort).Tensor("bool", Uint8Array.of(value ? 1 : 0), [1]);

/** The largest difference beside the largest value, and the cosine of the angle between the two. */
export async function compare(got: Tensor, want: OrtTensor): Promise<{ error: number; cosine: number }> {
  if (String(got.shape) !== String(want.dims)) throw new Error(`shape ${got.shape}, expected ${want.dims}`);
  const ours = (await got.data()) as Float32Array;
  let [most, largest, dot, a, b] = [0, 0, 0, 0, 0];
  want.data.forEach((w, i) => {
    const g = ours[i] as number;
    // NaN would be nobody's maximum
    most = Number.isNaN(g) ? Number.NaN : Math.max(most, Math.abs(g - w));
    largest = Math.max(largest, Math.abs(w));
    dot += g * w;
    a += g * g;
    b += w * w;
  });
  return { error: most / largest, cosine: dot / Math.sqrt(a * b) };
}

/** Numbers that look random and are the same every time. */
export function numbers(n: number, scale: number, seed = 1): Float32Array {
  let state = seed;
  return Float32Array.from({ length: n }, () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (((state >> 8) / 2 ** 23) * 2 - 1) * scale;
  });
}
