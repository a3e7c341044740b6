// gradloom/onnx: models in the ONNX format as ordinary lazy tensors. `load` reads one, `run` computes it.

import "#onnx/areas";
import * as onnx from "./names.ts";

export * from "./names.ts";
export { onnx };
