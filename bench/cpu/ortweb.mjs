// The workloads in onnxruntime-web, on its wasm backend with THREADS threads.

import { env, InferenceSession, Tensor } from "onnxruntime-web";
import { models } from "./models.mjs";

env.wasm.numThreads = Number(process.env.THREADS ?? 1);
const options = { executionProviders: ["wasm"], graphOptimizationLevel: "all" };
export const engine = models((bytes) => InferenceSession.create(bytes, options), Tensor);
