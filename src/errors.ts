// Every error a user can meet is one of these classes, so that a program can tell them apart and go on.
// A message names the op, what came, what was expected and what to do. `internal:` marks a bug of ours.

export class GradloomError extends Error {
  // a literal, here and below: a minifier renames classes; on the prototype, where a stack trace finds it
  static {
    GradloomError.prototype.name = "GradloomError";
  }
}

/** Shapes, axes or element counts that do not fit the op. */
export class ShapeError extends GradloomError {
  static {
    ShapeError.prototype.name = "ShapeError";
  }
}

/** A dtype that the op or the device does not support. */
export class DTypeError extends GradloomError {
  static {
    DTypeError.prototype.name = "DTypeError";
  }
}

/** A device that does not exist, is not open, or cannot do what was asked. */
export class DeviceError extends GradloomError {
  static {
    DeviceError.prototype.name = "DeviceError";
  }
}

/** The device has no room for the buffer; nothing was allocated. */
export class OutOfMemoryError extends DeviceError {
  static {
    OutOfMemoryError.prototype.name = "OutOfMemoryError";
  }
}

/** A compiler rejected a kernel: the message contains its output and the source. */
export class CompileError extends GradloomError {
  static {
    CompileError.prototype.name = "CompileError";
  }
}

/** A file that is missing, too short or unreadable. */
export class FileError extends GradloomError {
  static {
    FileError.prototype.name = "FileError";
  }
}

/** A symbolic variable that is unbound, bound twice or out of its range. */
export class SymbolicError extends GradloomError {
  static {
    SymbolicError.prototype.name = "SymbolicError";
  }
}

/** A tensor whose inputs were overwritten by an assign before it was realised. */
export class StaleError extends GradloomError {
  static {
    StaleError.prototype.name = "StaleError";
  }
}

/** Something that a TinyJit cannot capture, or that differs from the capture. */
export class JitError extends GradloomError {
  static {
    JitError.prototype.name = "JitError";
  }
}

/** An option or argument outside what the op accepts. */
export class ArgumentError extends GradloomError {
  static {
    ArgumentError.prototype.name = "ArgumentError";
  }
}

/** A violated contract between two of our own stages: a bug in gradloom. */
export class InternalError extends GradloomError {
  static {
    InternalError.prototype.name = "InternalError";
  }
  constructor(message: string, options?: ErrorOptions) {
    super(`internal: ${message}`, options);
  }
}
