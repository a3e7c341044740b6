// The structures of NVIDIA's kernel driver by name: the table in ioctls.ts on C structures in memory
// (linux/struct.ts). The callers know what the fields mean.

import { CStruct, type FieldValues } from "../../linux/struct.ts";
import type { NativeMemory } from "../../linux/syscalls.ts";
import { STRUCTS } from "./ioctls.ts";

export type StructName = keyof typeof STRUCTS;
export type FieldOf<S extends StructName> = keyof (typeof STRUCTS)[S]["fields"] & string;
export type Values<S extends StructName> = FieldValues<FieldOf<S>>;

export const sizeOf = (name: StructName): number => STRUCTS[name].bytes;

export const hasField = (name: StructName, field: string): boolean =>
  Object.hasOwn(STRUCTS[name].fields, field);

export class Struct<S extends StructName> extends CStruct<FieldOf<S>> {
  declare readonly name: S;

  constructor(name: S, memory: NativeMemory, offset = 0) {
    super(name, STRUCTS[name], memory, offset);
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
