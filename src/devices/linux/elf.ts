// A 64-bit little-endian ELF file, in which compilers for GPUs deliver machine code: its sections, segments
// and symbols. What is in them differs from maker to maker and is for their loaders.

import { InternalError } from "../../errors.ts";

export interface ElfSection {
  readonly name: string;
  readonly type: number;
  readonly flags: number;
  readonly address: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
  readonly info: number;
  readonly align: number;
}
export interface ElfSymbol {
  readonly name: string;
  readonly weak: boolean;
  readonly section: number;
  readonly value: number;
}
/** A part of the file that is loaded as it is, to `address` of the image, and `memory` bytes long there. */
export interface ElfSegment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly bytes: number;
  readonly memory: number;
}

/** Types and flags of sections, and marks of symbols, that loaders ask for. */
export const ELF = { PROGBITS: 1, RELA: 4, NOBITS: 8, REL: 9, ALLOC: 2, LOAD: 1, UNDEFINED: 0 } as const;
const WEAK = 2;
const [HEADER, SYMBOL] = [64, 24];

export class Elf {
  readonly what: string;
  /** what the maker says of the machine */
  readonly flags: number;
  readonly sections: readonly ElfSection[];
  readonly symbols: readonly ElfSymbol[];
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  /** `what` it should be, for messages; the table in which its symbols are. */
  constructor(bytes: Uint8Array, machine: number, what: string, symbolTable: ".symtab" | ".dynsym") {
    this.what = what;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const v = this.#view;
    if (bytes.byteLength < HEADER || v.getUint32(0) !== 0x7f454c46 || v.getUint16(18, true) !== machine)
      throw new InternalError(`these bytes are not ${what}`);
    this.flags = v.getUint32(48, true);
    const [at, size, count] = [this.#long(40), v.getUint16(58, true), v.getUint16(60, true)];
    const raw = Array.from({ length: count }, (_, i) => this.#header(at + i * size));
    const names = raw[v.getUint16(62, true)];
    this.sections = raw.map((s) => ({ ...s, name: this.#text((names?.offset ?? 0) + s.nameAt) }));
    this.symbols = this.#symbols(symbolTable);
  }
  /** Files of more than 2^53 bytes there are none. */
  #long(at: number): number {
    return Number(this.#view.getBigUint64(at, true));
  }
  #header(at: number) {
    const v = this.#view;
    return {
      nameAt: v.getUint32(at, true),
      type: v.getUint32(at + 4, true),
      flags: this.#long(at + 8),
      address: this.#long(at + 16),
      offset: this.#long(at + 24),
      size: this.#long(at + 32),
      link: v.getUint32(at + 40, true),
      info: v.getUint32(at + 44, true),
      align: this.#long(at + 48),
    };
  }
  #text(at: number): string {
    return new TextDecoder().decode(this.#bytes.subarray(at, this.#bytes.indexOf(0, at)));
  }
  #symbols(table: string): ElfSymbol[] {
    const i = this.find(table);
    if (i === undefined) return [];
    const { offset, size, link } = this.section(i);
    const strings = this.section(link).offset;
    return Array.from({ length: size / SYMBOL }, (_, k) => {
      const [v, at] = [this.#view, offset + k * SYMBOL];
      return {
        name: this.#text(strings + v.getUint32(at, true)),
        weak: v.getUint8(at + 4) >>> 4 === WEAK,
        section: v.getUint16(at + 6, true),
        value: this.#long(at + 8),
      };
    });
  }

  /** What the file says is loaded, in its own order. */
  segments(): ElfSegment[] {
    const v = this.#view;
    const [at, size, count] = [this.#long(32), v.getUint16(54, true), v.getUint16(56, true)];
    return Array.from({ length: count }, (_, i) => {
      const p = at + i * size;
      return {
        type: v.getUint32(p, true),
        offset: this.#long(p + 8),
        address: this.#long(p + 16),
        bytes: this.#long(p + 32),
        memory: this.#long(p + 40),
      };
    });
  }
  bytes(offset: number, size: number): Uint8Array {
    return this.#bytes.subarray(offset, offset + size);
  }

  find(name: string): number | undefined {
    const i = this.sections.findIndex((s) => s.name === name);
    return i < 0 ? undefined : i;
  }
  section(i: number): ElfSection {
    const found = this.sections[i];
    if (found === undefined) throw new InternalError(`${this.what}: there is no section ${i}`);
    return found;
  }
  contents(i: number): Uint8Array {
    const { type, offset, size } = this.section(i);
    return type === ELF.NOBITS ? new Uint8Array(size) : this.bytes(offset, size);
  }
  view(i: number): DataView {
    const c = this.contents(i);
    return new DataView(c.buffer, c.byteOffset, c.byteLength);
  }
  /** A relocation of a section: where, which kind, of which symbol, plus what. */
  *relocations(i: number): Generator<{ at: number; type: number; symbol: number; addend: number }> {
    const hasAddend = this.section(i).type === ELF.RELA;
    const entries = this.view(i);
    const step = hasAddend ? 24 : 16;
    for (let at = 0; at < entries.byteLength; at += step) {
      yield {
        at: Number(entries.getBigUint64(at, true)),
        type: entries.getUint32(at + 8, true),
        symbol: entries.getUint32(at + 12, true),
        addend: hasAddend ? Number(entries.getBigInt64(at + 16, true)) : 0,
      };
    }
  }
}
