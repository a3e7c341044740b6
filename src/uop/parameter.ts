// A parameter: a float constant of a kernel that nothing has looked at yet. Its value is private. Whoever
// calls `read` gets it, and from then on the kernel is one for this value only; what nobody read may be any
// other value. So kernels that differ in such constants are lowered once: codegen/template.ts.

import { isOrdinary } from "../ops.ts";

export class Parameter {
  readonly #value: number;
  #isFree = true;
  /** known without reading: all values of a parameter have one sign */
  readonly sign: number;
  /** the key under which the arena interns it; no other constant of the kernel may have it */
  readonly key: number;

  constructor(value: number) {
    this.#value = value;
    this.key = value;
    this.sign = Math.sign(value);
  }
  /** Whether the kernel is the same for other values. */
  get isFree(): boolean {
    return this.#isFree;
  }
  read(): number {
    this.#isFree = false;
    return this.#value;
  }
  /** A special constant is never equal to it, so that comparing them does not bind it. */
  is(value: number): boolean {
    return isOrdinary(value) && this.read() === value;
  }
}
