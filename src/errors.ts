// Every error a user can meet is one of these classes, so that a program can tell them apart and go on.
// A message says the op, what came, what was expected and what to do. `internal:` marks a bug of ours.

export class GradloomError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Shapes, axes or element counts that do not fit the op. */
export class ShapeError extends GradloomError {}

/** A dtype that the op or the device does not take. */
export class DTypeError extends GradloomError {}

/** A device that is not there, not open, or cannot do what was asked. */
export class DeviceError extends GradloomError {}

/** The device has no room for the buffer; nothing was allocated. */
export class OutOfMemoryError extends DeviceError {}

/** A compiler refused a kernel: the message carries its words and the source. */
export class CompileError extends GradloomError {}

/** A file that is missing, too short or unreadable. */
export class FileError extends GradloomError {}

/** A symbolic variable that is unbound, bound twice or out of its range. */
export class SymbolicError extends GradloomError {}

/** A tensor whose inputs were overwritten by an assign before it was realised. */
export class StaleError extends GradloomError {}

/** What a TinyJit cannot capture, or was captured otherwise. */
export class JitError extends GradloomError {}

/** An option or argument outside what the op accepts. */
export class ArgumentError extends GradloomError {}

/** A broken promise between two of our own stages. */
export class InternalError extends GradloomError {
  constructor(message: string, options?: ErrorOptions) {
    super(`internal: ${message}`, options);
  }
}
