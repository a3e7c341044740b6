// The names of gradloom/onnx.

export { OnnxError } from "./errors.ts";
export { load, type OnnxLoadOptions } from "./load.ts";
export { Model, type OnnxInput, type OnnxOutput, type OnnxPort, type OnnxTexts } from "./session.ts";
