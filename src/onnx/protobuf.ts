// The wire format of protocol buffers, as far as ONNX uses it. A message is described once, by a table of its
// fields, and read and written by it. Reading trusts nothing: each length is checked against the bytes that
// are there, nesting and the number of messages are limited, and bytes are views of the file, not copies.

import { OnnxError } from "./errors.ts";

/** Graphs within nodes within graphs: deeper ones are made to overflow a stack. */
const MAX_DEPTH = 128;
/** Messages of a file. An empty one takes two bytes of the file and many more here. */
const MAX_MESSAGES = 8_000_000;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;
type Wire = typeof VARINT | typeof FIXED64 | typeof BYTES | typeof FIXED32;

const utf8 = new TextDecoder("utf-8");
const toUtf8 = new TextEncoder();

export class WireReader {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly #state: { messages: number };
  readonly #depth: number;
  at = 0;

  constructor(bytes: Uint8Array, outer?: WireReader) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#state = outer === undefined ? { messages: 0 } : outer.#state;
    this.#depth = outer === undefined ? 0 : outer.#depth + 1;
    if (this.#depth > MAX_DEPTH) throw damaged(`messages are nested more than ${MAX_DEPTH} deep`);
    if (++this.#state.messages > MAX_MESSAGES) throw damaged(`it has more than ${MAX_MESSAGES} messages`);
  }

  get isAtEnd(): boolean {
    return this.at >= this.bytes.byteLength;
  }

  /** The low 64 bits of a varint. */
  varint(): bigint {
    let low = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte();
      low |= (byte & 127) << shift;
      if (byte < 128) return BigInt(low);
    }
    let value = BigInt(low);
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = this.#byte();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    throw damaged(`a number at byte ${this.at} takes more than 10 bytes`);
  }

  tag(): { readonly field: number; readonly wire: Wire } {
    const tag = this.varint();
    const wire = Number(tag & 7n);
    const field = tag >> 3n;
    const isKnown = wire === VARINT || wire === FIXED64 || wire === BYTES || wire === FIXED32;
    if (!isKnown || field === 0n || field > 0x1fffffffn) {
      throw damaged(`field ${field} with wire type ${wire} at byte ${this.at} is not one of this format`);
    }
    return { field: Number(field), wire };
  }

  /** The bytes of a value of this wire type, as a view. */
  take(wire: Wire): Uint8Array {
    if (wire === VARINT) {
      const start = this.at;
      this.varint();
      return this.bytes.subarray(start, this.at);
    }
    const n = wire === BYTES ? Number(this.varint()) : wire === FIXED32 ? 4 : 8;
    const left = this.bytes.byteLength - this.at;
    if (n > left) throw damaged(`a value at byte ${this.at} claims ${n} bytes, ${left} are left`);
    this.at += n;
    return this.bytes.subarray(this.at - n, this.at);
  }

  #byte(): number {
    if (this.isAtEnd) throw damaged(`it ends within a number, after ${this.at} bytes`);
    return this.bytes[this.at++] as number;
  }
}

const damaged = (why: string): OnnxError => new OnnxError(`the file is not a valid model: ${why}`);

/** How a value of a field is read and written. */
export interface WireKind<T> {
  readonly wire: Wire;
  read(bytes: Uint8Array, reader: WireReader): T;
  write(value: T): Uint8Array;
}

function varintBytes(value: bigint): Uint8Array {
  const out: number[] = [];
  let rest = BigInt.asUintN(64, value);
  do {
    out.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Uint8Array.from(out);
}
const viewOf = (b: Uint8Array): DataView => new DataView(b.buffer, b.byteOffset, b.byteLength);

/** A signed integer of 64 bits. */
export const int64: WireKind<bigint> = {
  wire: VARINT,
  read: (bytes, reader) => BigInt.asIntN(64, new WireReader(bytes, reader).varint()),
  write: varintBytes,
};
/** An integer that a program counts or looks up with: an enumeration, a version. */
export const integer: WireKind<number> = {
  wire: VARINT,
  read: (bytes, reader) => Number(int64.read(bytes, reader)),
  write: (x) => varintBytes(BigInt(x)),
};
export const float: WireKind<number> = {
  wire: FIXED32,
  read: (bytes) => viewOf(bytes).getFloat32(0, true),
  write: (x) => new Uint8Array(new Float32Array([x]).buffer),
};
export const text: WireKind<string> = {
  wire: BYTES,
  read: (bytes) => utf8.decode(bytes),
  write: (x) => toUtf8.encode(x),
};
export const bytes: WireKind<Uint8Array> = { wire: BYTES, read: (x) => x, write: (x) => x };

/**
 * Numbers one after the other. They stay in the file: a packed list is one part, and one that was written
 * number by number is as many.
 */
export interface PackedNumbers {
  readonly parts: readonly Uint8Array[];
}

/** A field of a message: its number, and what it does with values that come. */
interface FieldCodec<T> {
  readonly id: number;
  readonly initial: () => T;
  accept(before: T, value: Uint8Array, wire: Wire, reader: WireReader): T;
  /** the values to write, in the wire type beside them */
  emit(value: T): readonly (readonly [Wire, Uint8Array])[];
}
type FieldCodecs<T> = { readonly [K in keyof T]: FieldCodec<T[K]> };

/** `kind` read where the wire type is its own; numbers of lists may come packed. */
function requireWire(id: number, kind: WireKind<unknown>, wire: Wire): void {
  if (wire !== kind.wire) throw damaged(`field ${id} has wire type ${wire}, expected ${kind.wire}`);
}

/** A field that is there once; the last one counts. */
export function one<T>(id: number, kind: WireKind<T>): FieldCodec<T | undefined>;
export function one<T>(id: number, kind: WireKind<T>, initial: T): FieldCodec<T>;
export function one<T>(id: number, kind: WireKind<T>, initial?: T): FieldCodec<T | undefined> {
  return {
    id,
    initial: () => initial,
    accept(_, value, wire, reader) {
      requireWire(id, kind, wire);
      return kind.read(value, reader);
    },
    emit: (value) => (value === undefined || value === initial ? [] : [[kind.wire, kind.write(value)]]),
  };
}

/** A field that may be repeated. */
export function many<T>(id: number, kind: WireKind<T>): FieldCodec<readonly T[]> {
  return {
    id,
    initial: () => [],
    accept(before, value, wire, reader) {
      const list = before as T[];
      if (wire === BYTES && kind.wire !== BYTES) {
        const packed = new WireReader(value, reader);
        while (!packed.isAtEnd) list.push(kind.read(packed.take(kind.wire), packed));
      } else {
        requireWire(id, kind, wire);
        list.push(kind.read(value, reader));
      }
      return list;
    },
    emit: (list) => list.map((value) => [kind.wire, kind.write(value)] as const),
  };
}

/** Numbers that stay in the bytes of the file. */
export function packed(
  id: number,
  kind: WireKind<number> | WireKind<bigint> | "double",
): FieldCodec<PackedNumbers> {
  const own = kind === "double" ? FIXED64 : kind.wire;
  return {
    id,
    initial: () => ({ parts: [] }),
    accept(before, value, wire) {
      if (wire !== BYTES && wire !== own) throw damaged(`field ${id} has wire type ${wire}, expected ${own}`);
      (before.parts as Uint8Array[]).push(value);
      return before;
    },
    emit: ({ parts }) => parts.map((part) => [BYTES, part] as const),
  };
}

/** A message with these fields. Other fields of the file are passed over, as the format wants it. */
export function message<T>(fields: FieldCodecs<T>): WireKind<T> {
  const names = Object.keys(fields) as (keyof T & string)[];
  const byId = new Map(names.map((name) => [fields[name].id, name]));
  return {
    wire: BYTES,
    read(given, outer) {
      const reader = new WireReader(given, outer);
      const made = {} as { -readonly [K in keyof T]: T[K] };
      for (const name of names) made[name] = fields[name].initial();
      while (!reader.isAtEnd) {
        const { field, wire } = reader.tag();
        const value = reader.take(wire);
        const name = byId.get(field);
        if (name !== undefined) made[name] = fields[name].accept(made[name], value, wire, reader);
      }
      return made;
    },
    write(value) {
      const parts = names.flatMap((name) => {
        const { id, emit } = fields[name];
        return emit(value[name]).flatMap(([wire, body]) => [
          varintBytes(BigInt(id * 8 + wire)),
          ...(wire === BYTES ? [varintBytes(BigInt(body.byteLength))] : []),
          body,
        ]);
      });
      return joined(parts);
    },
  };
}

/** A kind that is defined further down: graphs hold nodes, whose attributes hold graphs. */
export const later = <T>(kind: () => WireKind<T>): WireKind<T> => ({
  wire: BYTES,
  read: (given, reader) => kind().read(given, reader),
  write: (value) => kind().write(value),
});

export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((n, part) => n + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.byteLength;
  }
  return out;
}

/** `given` may be a Buffer, whose slices are views: what is read are plain arrays. */
export const decode = <T>(kind: WireKind<T>, given: Uint8Array): T => {
  const file = new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  return kind.read(file, new WireReader(file));
};
