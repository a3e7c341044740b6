// A C structure in memory that the kernel can read, by the table in ioctls.ts: fields are written and read by name. What the
// fields mean is for the callers; a name that the table lacks fails the type check.

import { InternalError } from "../../errors.ts";
import { STRUCTS } from "./ioctls.ts";
import type { Native } from "./kernel.ts";

export type StructName = keyof typeof STRUCTS;
export type FieldOf<S extends StructName> = keyof (typeof STRUCTS)[S]["fields"] & string;
/** Numbers for fields of up to 8 bytes, bytes for arrays; what is not named is 0. */
export type Values<S extends StructName> = { readonly [F in FieldOf<S>]?: number | bigint | Uint8Array };

export const sizeOf = (name: StructName): number => STRUCTS[name].bytes;

export const hasField = (name: StructName, field: string): boolean =>
  Object.hasOwn(STRUCTS[name].fields, field);

type FieldLayout = readonly [offset: number, bytes: number];
const layoutOf = (name: StructName, field: string): FieldLayout => {
  const layout = (STRUCTS[name].fields as Readonly<Record<string, FieldLayout>>)[field];
  if (layout === undefined) throw new InternalError(`${name} has no field ${field} in the table`);
  return layout;
};

export class Struct<S extends StructName> {
  readonly name: S;
  readonly address: bigint;
  readonly bytes: Uint8Array;
  readonly #view: DataView;

  /** On memory that is large enough; what lies there stays, so that an answer can be read. */
  constructor(name: S, { address, bytes }: Native, offset = 0) {
    this.name = name;
    this.address = address + BigInt(offset);
    this.bytes = bytes.subarray(offset, offset + sizeOf(name));
    this.#view = new DataView(bytes.buffer, bytes.byteOffset + offset, sizeOf(name));
  }

  /** All zeros but for these. */
  fill(values: Values<S>): this {
    this.bytes.fill(0);
    for (const field in values) this.set(field as FieldOf<S>, values[field as FieldOf<S>] ?? 0);
    return this;
  }
  set(field: FieldOf<S>, value: number | bigint | Uint8Array): void {
    const [at, size] = layoutOf(this.name, field);
    if (typeof value === "object") this.bytes.set(value, at);
    else if (size === 8) this.#view.setBigUint64(at, BigInt(value), true);
    else if (size === 4) this.#view.setUint32(at, Number(value), true);
    else if (size === 2) this.#view.setUint16(at, Number(value), true);
    else if (size === 1) this.#view.setUint8(at, Number(value));
    else throw new InternalError(`${this.name}.${field} has ${size} bytes: no number`);
  }
  get(field: FieldOf<S>): number {
    const [at, size] = layoutOf(this.name, field);
    if (size === 8) return Number(this.#view.getBigUint64(at, true));
    if (size === 4) return this.#view.getUint32(at, true);
    if (size === 2) return this.#view.getUint16(at, true);
    if (size === 1) return this.#view.getUint8(at);
    throw new InternalError(`${this.name}.${field} has ${size} bytes: no number`);
  }
  /** The bytes of an array; a copy, since the memory is used again. */
  raw(field: FieldOf<S>): Uint8Array {
    const [at, size] = layoutOf(this.name, field);
    return this.bytes.slice(at, at + size);
  }
  /** Zero-ended text. */
  text(field: FieldOf<S>): string {
    const bytes = this.raw(field);
    const end = bytes.indexOf(0);
    return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
  }
}

/** Bytes of a structure that stands inside another, such as an element of an array. */
export function encode<S extends StructName>(name: S, values: Values<S>): Uint8Array {
  return new Struct(name, { address: 0n, bytes: new Uint8Array(sizeOf(name)) }).fill(values).bytes;
}
/** The i-th element of an array of structures. */
export function element<S extends StructName>(name: S, array: Uint8Array, i: number): Struct<S> {
  return new Struct(name, { address: 0n, bytes: array }, i * sizeOf(name));
}
