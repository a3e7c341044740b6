// gradloom/onnx: models in the ONNX format as ordinary lazy tensors. `load` reads one, `run` computes it.

import * as areas from "#onnx/areas";
import * as onnx from "./names.ts";

export * from "./names.ts";
export { onnx };

// imported for what it loads; declarations must not name it
void areas;
