// MessagePack as code objects carry it: maps, arrays, text, whole numbers and truth values. In go the bytes
// of a note, out comes plain data.

import { InternalError } from "../../../errors.ts";

export type Packed =
  | number
  | string
  | boolean
  | null
  | readonly Packed[]
  | { readonly [key: string]: Packed };

class MessageReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  #unsigned(size: number): number {
    const at = this.#at;
    this.#at += size;
    if (size === 1) return this.#view.getUint8(at);
    if (size === 2) return this.#view.getUint16(at);
    if (size === 4) return this.#view.getUint32(at);
    return Number(this.#view.getBigUint64(at));
  }
  #signed(size: number): number {
    const x = this.#unsigned(size);
    return x >= 2 ** (8 * size - 1) ? x - 2 ** (8 * size) : x;
  }
  #text(length: number): string {
    const from = this.#at;
    this.#at += length;
    return new TextDecoder().decode(this.#bytes.subarray(from, this.#at));
  }
  #array(length: number): Packed[] {
    return Array.from({ length }, () => this.value());
  }
  #map(length: number): Record<string, Packed> {
    return Object.fromEntries(Array.from({ length }, () => [String(this.value()), this.value()]));
  }

  value(): Packed {
    const tag = this.#unsigned(1);
    if (tag < 0x80) return tag;
    if (tag < 0x90) return this.#map(tag & 0xf);
    if (tag < 0xa0) return this.#array(tag & 0xf);
    if (tag < 0xc0) return this.#text(tag & 0x1f);
    if (tag >= 0xe0) return tag - 0x100;
    const read = LONGER[tag];
    if (read === undefined)
      throw new InternalError(`the note of a code object has the tag 0x${tag.toString(16)}`);
    return read({
      unsigned: (n) => this.#unsigned(n),
      signed: (n) => this.#signed(n),
      text: (n) => this.#text(n),
      array: (n) => this.#array(n),
      map: (n) => this.#map(n),
    });
  }
}

interface Reads {
  unsigned(size: number): number;
  signed(size: number): number;
  text(length: number): string;
  array(length: number): Packed[];
  map(length: number): Record<string, Packed>;
}
/** Tags whose value, or its length, follows. */
const LONGER: Readonly<Record<number, (r: Reads) => Packed>> = {
  192: () => null,
  194: () => false,
  195: () => true,
  204: (r) => r.unsigned(1),
  205: (r) => r.unsigned(2),
  206: (r) => r.unsigned(4),
  207: (r) => r.unsigned(8),
  208: (r) => r.signed(1),
  209: (r) => r.signed(2),
  210: (r) => r.signed(4),
  211: (r) => r.signed(8),
  217: (r) => r.text(r.unsigned(1)),
  218: (r) => r.text(r.unsigned(2)),
  219: (r) => r.text(r.unsigned(4)),
  220: (r) => r.array(r.unsigned(2)),
  221: (r) => r.array(r.unsigned(4)),
  222: (r) => r.map(r.unsigned(2)),
  223: (r) => r.map(r.unsigned(4)),
};

export const unpackMessage = (bytes: Uint8Array): Packed => new MessageReader(bytes).value();
