// The models in onnxruntime-web, on its wasm backend with THREADS threads.

import { readFile } from "node:fs/promises";
import { env, InferenceSession, Tensor } from "onnxruntime-web";
import { sessions } from "./sessions.mjs";

env.wasm.numThreads = Number(process.env.THREADS ?? 1);
const options = { executionProviders: ["wasm"], graphOptimizationLevel: "all" };
export const engine = sessions(
  async (path) => InferenceSession.create(await readFile(path), options),
  Tensor,
);
