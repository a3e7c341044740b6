// The names of gradloom/onnx.

export { OnnxError } from "./errors.ts";
export { load, type OnnxLoadOptions } from "./load.ts";
export {
  type OnnxExample,
  type OnnxResult,
  type OnnxSaveOptions,
  save,
} from "./save/save.ts";
export { type OnnxInput, OnnxModel, type OnnxOutput, type OnnxPort, type OnnxTexts } from "./session.ts";
export {
  type OnnxAttribute,
  type OnnxGraph,
  type OnnxNode,
  type OnnxValueType,
  type OnnxWriteOptions,
  write,
} from "./write.ts";
