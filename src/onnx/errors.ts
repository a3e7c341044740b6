// The one error of this folder: a model that cannot be read, run or written. It names the file and the node.
// In: what is wrong. Out: an OnnxError.

import { FileError } from "../errors.ts";
import { printable } from "../printable.ts";

/** A model that is damaged, asks for what there is not, or was given what it does not take. */
export class OnnxError extends FileError {
  static {
    // a literal: minifiers rename classes
    Object.defineProperty(OnnxError, "name", { value: "OnnxError" });
    OnnxError.prototype.name = "OnnxError";
  }
  /** the op of the node, where one is to blame: "Conv", or "com.microsoft.FusedMatMul" */
  declare readonly op?: string;
  /** nothing is wrong with the model: this part of the standard is not there */
  declare readonly isUnsupported?: true;

  constructor(message: string, options: ErrorOptions & { op?: string; isUnsupported?: boolean } = {}) {
    super(`onnx: ${message}`, options);
    if (options.op !== undefined) this.op = options.op;
    if (options.isUnsupported === true) this.isUnsupported = true;
  }
}

/** A name of the file in a message. */
export const quoted = (name: string): string => `"${printable(name)}"`;
