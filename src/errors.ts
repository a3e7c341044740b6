// Every error a user can meet is one of these classes, so that a program can tell them apart and go on.
// A message names the op, what came, what was expected and what to do. `internal:` marks a bug of ours.

export class GradloomError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Shapes, axes or element counts that do not fit the op. */
export class ShapeError extends GradloomError {}

/** A dtype that the op or the device does not support. */
export class DTypeError extends GradloomError {}

/** A device that does not exist, is not open, or cannot do what was asked. */
export class DeviceError extends GradloomError {}

/** The device has no room for the buffer; nothing was allocated. */
export class OutOfMemoryError extends DeviceError {}

/** A compiler rejected a kernel: the message contains its output and the source. */
export class CompileError extends GradloomError {}

/** A file that is missing, too short or unreadable. */
export class FileError extends GradloomError {}

/** A symbolic variable that is unbound, bound twice or out of its range. */
export class SymbolicError extends GradloomError {}

/** A tensor whose inputs were overwritten by an assign before it was realised. */
export class StaleError extends GradloomError {}

/** Something that a TinyJit cannot capture, or that differs from the capture. */
export class JitError extends GradloomError {}

/** An option or argument outside what the op accepts. */
export class ArgumentError extends GradloomError {}

/** A violated contract between two of our own stages: a bug in gradloom. */
export class InternalError extends GradloomError {
  constructor(message: string, options?: ErrorOptions) {
    super(`internal: ${message}`, options);
  }
}
