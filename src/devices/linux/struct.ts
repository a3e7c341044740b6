// A C structure in memory that the Linux kernel can read: fields are written and read by name, by a table of
// where each lies. Every driver brings its own table; a name that the table lacks fails the type check.

import { InternalError } from "../../errors.ts";
import type { NativeMemory } from "./syscalls.ts";

/** Bytes of a structure, and of each field where it starts and how long it is. */
interface StructLayout<F extends string = string> {
  readonly bytes: number;
  readonly fields: Readonly<Record<F, readonly [offset: number, bytes: number]>>;
}
/** Numbers for fields of up to 8 bytes, bytes for arrays; what is not named is 0. */
export type FieldValues<F extends string> = { readonly [K in F]?: number | bigint | Uint8Array };

export class CStruct<F extends string> {
  readonly name: string;
  readonly address: bigint;
  readonly bytes: Uint8Array;
  readonly #fields: StructLayout["fields"];
  readonly #view: DataView;

  /** On memory that is large enough; what lies there stays, so that an answer can be read. */
  constructor(name: string, layout: StructLayout, { address, bytes }: NativeMemory, offset = 0) {
    this.name = name;
    this.#fields = layout.fields;
    this.address = address + BigInt(offset);
    this.bytes = bytes.subarray(offset, offset + layout.bytes);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset + offset, layout.bytes);
  }

  #layoutOf(field: F): readonly [offset: number, bytes: number] {
    const layout = this.#fields[field];
    if (layout === undefined) throw new InternalError(`${this.name} has no field ${field} in the table`);
    return layout;
  }

  /** All zeros but for these. */
  fill(values: FieldValues<F>): this {
    this.bytes.fill(0);
    for (const field in values) this.set(field, values[field] ?? 0);
    return this;
  }
  set(field: F, value: number | bigint | Uint8Array): void {
    const [at, size] = this.#layoutOf(field);
    if (typeof value === "object") this.bytes.set(value, at);
    else if (size === 8) this.#view.setBigUint64(at, BigInt(value), true);
    else if (size === 4) this.#view.setUint32(at, Number(value), true);
    else if (size === 2) this.#view.setUint16(at, Number(value), true);
    else if (size === 1) this.#view.setUint8(at, Number(value));
    else throw this.#notANumber(field, size);
  }
  /** A field of 8 bytes that may be more than a number holds. */
  big(field: F): bigint {
    const [at, size] = this.#layoutOf(field);
    if (size !== 8) throw this.#notANumber(field, size);
    return this.#view.getBigUint64(at, true);
  }
  get(field: F): number {
    const [at, size] = this.#layoutOf(field);
    if (size === 8) return Number(this.#view.getBigUint64(at, true));
    if (size === 4) return this.#view.getUint32(at, true);
    if (size === 2) return this.#view.getUint16(at, true);
    if (size === 1) return this.#view.getUint8(at);
    throw this.#notANumber(field, size);
  }
  #notANumber(field: F, size: number): InternalError {
    return new InternalError(`${this.name}.${field} has ${size} bytes and is not a number`);
  }
  /** The bytes of an array; a copy, since the memory is used again. */
  raw(field: F): Uint8Array {
    const [at, size] = this.#layoutOf(field);
    return this.bytes.slice(at, at + size);
  }
  /** Zero-ended text. */
  text(field: F): string {
    const bytes = this.raw(field);
    const end = bytes.indexOf(0);
    return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
  }
}
