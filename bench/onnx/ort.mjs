// The models in onnxruntime-node, with THREADS threads. They sleep between runs, so that the other engines
// have the machine to themselves.

import { InferenceSession, Tensor } from "onnxruntime-node";
import { sessions } from "./sessions.mjs";

const options = {
  intraOpNumThreads: Number(process.env.THREADS ?? 1),
  interOpNumThreads: 1,
  graphOptimizationLevel: "all",
  extra: { session: { intra_op: { allow_spinning: "0" } } },
};
export const engine = sessions((path) => InferenceSession.create(path, options), Tensor);
