// Every error a user can meet is one of these classes, so that a program can tell them apart and go on.
// A message names the op, what came, what was expected and what to do. `internal:` marks a bug of ours.

/** A literal name: minifiers and bundlers rename classes. A stack trace looks for it on the prototype. */
function named(type: { readonly prototype: GradloomError }, name: string): void {
  Object.defineProperty(type, "name", { value: name });
  type.prototype.name = name;
}

export class GradloomError extends Error {
  static {
    named(GradloomError, "GradloomError");
  }
}

/** Shapes, axes or element counts that do not fit the op. */
export class ShapeError extends GradloomError {
  static {
    named(ShapeError, "ShapeError");
  }
}

/** A dtype that the op or the device does not support. */
export class DTypeError extends GradloomError {
  static {
    named(DTypeError, "DTypeError");
  }
}

/** A device that does not exist, is not open, or cannot do what was asked. */
export class DeviceError extends GradloomError {
  static {
    named(DeviceError, "DeviceError");
  }
}

/** The device has no room for the buffer; nothing was allocated, unless it `isLate`. */
export class OutOfMemoryError extends DeviceError {
  /** memory that was given out before is not there after all: doing the same again does not help */
  declare readonly isLate?: true;
  static {
    named(OutOfMemoryError, "OutOfMemoryError");
  }
}

/** A compiler rejected a kernel: the message contains its output and the source. */
export class CompileError extends GradloomError {
  static {
    named(CompileError, "CompileError");
  }
}

/** A file that is missing, too short or unreadable. */
export class FileError extends GradloomError {
  static {
    named(FileError, "FileError");
  }
}

/** A symbolic variable that is unbound, bound twice or out of its range. */
export class SymbolicError extends GradloomError {
  static {
    named(SymbolicError, "SymbolicError");
  }
}

/** A tensor whose inputs were overwritten by an assign before it was realised. */
export class StaleError extends GradloomError {
  static {
    named(StaleError, "StaleError");
  }
}

/** Something that a TinyJit cannot capture, or that differs from the capture. */
export class JitError extends GradloomError {
  static {
    named(JitError, "JitError");
  }
}

/** An option or argument outside what the op accepts. */
export class ArgumentError extends GradloomError {
  static {
    named(ArgumentError, "ArgumentError");
  }
}

/** A violated contract between two of our own stages: a bug in gradloom. */
export class InternalError extends GradloomError {
  static {
    named(InternalError, "InternalError");
  }
  constructor(message: string, options?: ErrorOptions) {
    super(`internal: ${message}`, options);
  }
}

/** Throws an error that says why something is refused; its caller knows what. */
export type Refuse = (why: string) => never;
