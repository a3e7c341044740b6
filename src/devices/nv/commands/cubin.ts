// A compiled kernel as NVIDIA's compilers write it: an ELF file. Picks one kernel's facts (registers, shared
// and local memory, barriers, where its parameters go) from the .nv.info attributes and lays out an image of
// code and constants. `relocate` fits the image to its address; program.ts puts it there.

import { InternalError } from "../../../errors.ts";

/** A parameter of a kernel: where it lies in constant bank 0. */
interface CubinParameter {
  readonly offset: number;
  readonly size: number;
}
export interface Cubin {
  readonly name: string;
  /** what has to lie on the GPU: code, constants, tables */
  readonly image: Uint8Array;
  /** the first instruction, in the image */
  readonly entry: number;
  readonly codeBytes: number;
  readonly registers: number;
  readonly barriers: number;
  /** static shared memory of a block, as the section says */
  readonly shared: number;
  /** bytes of local memory a thread: spilt registers, arrays, calls */
  readonly local: number;
  /** threads of a block at most, where the code says so */
  readonly maxThreads: number | undefined;
  /** bank 0 before the arguments are in it */
  readonly constant0: Uint8Array;
  readonly parameters: readonly CubinParameter[];
  /** the other constant banks, in the image */
  readonly banks: ReadonlyMap<number, { readonly offset: number; readonly size: number }>;
  /** Puts addresses into the image, which will lie at `base`. Once. */
  relocate(base: number): void;
}

/** Attributes of .nv.info that we read, by number. */
const ATTRIBUTE = {
  MAX_THREADS: 0x05,
  PARAM_CBANK: 0x0a,
  REQNTID: 0x10,
  MIN_STACK_SIZE: 0x12,
  KPARAM_INFO: 0x17,
  REGCOUNT: 0x2f,
  NUM_BARRIERS: 0x4c,
} as const;
/** How the value of an attribute is written. */
const [NO_VALUE, BYTE, HALF, SIZED] = [1, 2, 3, 4];
const [PROGBITS, RELA, NOBITS, REL] = [1, 4, 8, 9];
const [ALLOC, WEAK, UNDEFINED] = [2, 2, 0];
/** What a relocation writes: an address in 64 or 32 bits, or half of one into an instruction. */
const RELOCATION = { ABS32: 1, ABS64: 2, INSTRUCTION_LOW: 0x38, INSTRUCTION_HIGH: 0x39 } as const;
const SECTION_ALIGN = 256;
/** The fetch of instructions runs ahead of the last one. */
const BEHIND = 256;
const MACHINE_CUDA = 190;

interface Section {
  readonly name: string;
  readonly type: number;
  readonly flags: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
  readonly info: number;
  readonly align: number;
}
interface Symbol {
  readonly name: string;
  readonly weak: boolean;
  readonly section: number;
  readonly value: number;
}

/** The kernel of this name in a cubin for this compute capability (90). */
export function loadCubin(bytes: Uint8Array, name: string, arch: number): Cubin {
  const elf = new Elf(bytes, arch);
  const text = elf.find(`.text.${name}`);
  if (text === undefined) throw new InternalError(`the cubin has no kernel ${name}; it has ${elf.kernels()}`);
  const kernel = elf.symbols.findIndex((s) => s.name === name && s.section === text);
  const facts = readFacts(elf, name, kernel);
  const { image, places } = layOut(elf);
  const constant0 = elf.find(`.nv.constant0.${name}`);
  const banks = new Map<number, { offset: number; size: number }>();
  for (const [i, offset] of places) {
    const bank = elf.section(i).name.match(/^\.nv\.constant(\d+)(?:\.(.*))?$/);
    if (bank !== null && (bank[2] === undefined || bank[2] === name))
      banks.set(Number(bank[1]), { offset, size: elf.section(i).size });
  }
  const shared = elf.find(`.nv.shared.${name}`);
  const end = facts.parameters.reduce((n, p) => Math.max(n, p.offset + p.size), 0);
  return {
    name,
    image,
    entry: places.get(text) as number,
    codeBytes: elf.section(text).size,
    ...facts,
    shared: shared === undefined ? 0 : elf.section(shared).size,
    constant0: constant0 === undefined ? new Uint8Array(end) : elf.contents(constant0).slice(),
    banks,
    relocate: (base) => relocate(elf, image, places, base),
  };
}

/** Sections, symbols and strings of a 64-bit little-endian ELF file. */
class Elf {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly sections: readonly Section[];
  readonly symbols: readonly Symbol[];

  constructor(bytes: Uint8Array, arch: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const v = this.#view;
    if (bytes.byteLength < 64 || v.getUint32(0) !== 0x7f454c46 || v.getUint16(18, true) !== MACHINE_CUDA)
      throw new InternalError("these bytes are not a cubin, an ELF file for NVIDIA's machines");
    const flags = v.getUint32(48, true);
    // where the flags say which architecture it is has moved by a byte between versions of the format
    if ((flags & 0xff) !== arch && ((flags >>> 8) & 0xff) !== arch)
      throw new InternalError(`the cubin is for another GPU than sm_${arch}: flags 0x${flags.toString(16)}`);
    const [at, size, count] = [this.#long(40), v.getUint16(58, true), v.getUint16(60, true)];
    const raw = Array.from({ length: count }, (_, i) => this.#header(at + i * size));
    const names = raw[v.getUint16(62, true)];
    this.sections = raw.map((s) => ({ ...s, name: this.#text((names?.offset ?? 0) + s.nameAt) }));
    this.symbols = this.#symbols();
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
  #symbols(): Symbol[] {
    const i = this.find(".symtab");
    if (i === undefined) return [];
    const { offset, size, link } = this.section(i);
    const strings = this.section(link).offset;
    return Array.from({ length: size / 24 }, (_, k) => {
      const [v, at] = [this.#view, offset + k * 24];
      return {
        name: this.#text(strings + v.getUint32(at, true)),
        weak: v.getUint8(at + 4) >>> 4 === WEAK,
        section: v.getUint16(at + 6, true),
        value: this.#long(at + 8),
      };
    });
  }

  find(name: string): number | undefined {
    const i = this.sections.findIndex((s) => s.name === name);
    return i < 0 ? undefined : i;
  }
  section(i: number): Section {
    const found = this.sections[i];
    if (found === undefined) throw new InternalError(`the cubin has no section ${i}`);
    return found;
  }
  contents(i: number): Uint8Array {
    const { type, offset, size } = this.section(i);
    return type === NOBITS ? new Uint8Array(size) : this.#bytes.subarray(offset, offset + size);
  }
  view(i: number): DataView {
    const c = this.contents(i);
    return new DataView(c.buffer, c.byteOffset, c.byteLength);
  }
  kernels(): string {
    return this.sections.flatMap((s) => s.name.match(/^\.text\.(.*)/)?.[1] ?? []).join(", ");
  }
}

type CubinFacts = Pick<Cubin, "registers" | "barriers" | "local" | "maxThreads" | "parameters">;

function readFacts(elf: Elf, name: string, kernel: number): CubinFacts {
  let [registers, barriers, local, start] = [0, 0, 0, 0];
  let maxThreads: number | undefined;
  const found: { ordinal: number; offset: number; size: number }[] = [];
  const words = (v: DataView) => (i: number) => v.getUint32(i * 4, true);
  for (const { attribute, value } of attributes(elf, ".nv.info")) {
    const word = words(value);
    if (value.byteLength < 8 || word(0) !== kernel) continue;
    if (attribute === ATTRIBUTE.REGCOUNT) registers = word(1);
    if (attribute === ATTRIBUTE.MIN_STACK_SIZE) local = word(1);
  }
  for (const { attribute, value } of attributes(elf, `.nv.info.${name}`)) {
    const word = words(value);
    if (attribute === ATTRIBUTE.PARAM_CBANK) start = value.getUint16(4, true);
    else if (attribute === ATTRIBUTE.NUM_BARRIERS) barriers = value.getUint8(0);
    else if (attribute === ATTRIBUTE.MAX_THREADS || attribute === ATTRIBUTE.REQNTID)
      maxThreads = word(0) * word(1) * word(2);
    else if (attribute === ATTRIBUTE.KPARAM_INFO)
      found.push({
        ordinal: value.getUint16(4, true),
        offset: value.getUint16(6, true),
        size: word(2) >>> 18,
      });
  }
  if (registers === 0) throw new InternalError(`the cubin does not say how many registers ${name} takes`);
  const parameters = found
    .sort((a, b) => a.ordinal - b.ordinal)
    .map(({ offset, size }) => ({ offset: start + offset, size }));
  return { registers, barriers, local, maxThreads, parameters };
}

function* attributes(elf: Elf, section: string): Generator<{ attribute: number; value: DataView }> {
  const i = elf.find(section);
  if (i === undefined) return;
  const view = elf.view(i);
  for (let at = 0; at + 4 <= view.byteLength; ) {
    const [format, attribute] = [view.getUint8(at), view.getUint8(at + 1)];
    const sized = format === SIZED;
    const size = sized
      ? view.getUint16(at + 2, true)
      : ([NO_VALUE, BYTE, HALF] as unknown[]).includes(format)
        ? 2
        : -1;
    if (size < 0)
      throw new InternalError(`${section}: attribute 0x${attribute.toString(16)} of format ${format}`);
    const from = view.byteOffset + at + (sized ? 4 : 2);
    yield { attribute, value: new DataView(view.buffer, from, size) };
    at += sized ? 4 + size : 4;
  }
}

/** Everything that the code may address, one section after the other. Bank 0 is made anew for each launch. */
function layOut(elf: Elf): { image: Uint8Array; places: ReadonlyMap<number, number> } {
  const places = new Map<number, number>();
  let end = 0;
  elf.sections.forEach(({ name, type, flags, size, align }, i) => {
    if ((flags & ALLOC) === 0 || (type !== PROGBITS && type !== NOBITS)) return;
    if (name.startsWith(".nv.constant0.") || name.startsWith(".nv.shared.")) return;
    const step = Math.max(SECTION_ALIGN, align);
    const at = Math.ceil(end / step) * step;
    places.set(i, at);
    end = at + size;
  });
  const image = new Uint8Array(end + BEHIND);
  for (const [i, at] of places) image.set(elf.contents(i), at);
  return { image, places };
}

function relocate(elf: Elf, image: Uint8Array, places: ReadonlyMap<number, number>, base: number): void {
  const view = new DataView(image.buffer);
  elf.sections.forEach((section, i) => {
    if (section.type !== RELA && section.type !== REL) return;
    const target = places.get(section.info);
    if (target === undefined) return;
    const entries = elf.view(i);
    const step = section.type === RELA ? 24 : 16;
    for (let at = 0; at < entries.byteLength; at += step) {
      const offset = target + Number(entries.getBigUint64(at, true));
      const type = entries.getUint32(at + 8, true);
      const symbol = elf.symbols[entries.getUint32(at + 12, true)];
      const addend = section.type === RELA ? Number(entries.getBigInt64(at + 16, true)) : 0;
      write(view, offset, type, addressOf(symbol, places, base) + addend);
    }
  });
}
function addressOf(symbol: Symbol | undefined, places: ReadonlyMap<number, number>, base: number): number {
  const place = symbol === undefined ? undefined : places.get(symbol.section);
  if (symbol !== undefined && place !== undefined) return base + place + symbol.value;
  if (symbol?.weak && symbol.section === UNDEFINED) return 0;
  throw new InternalError(`the cubin needs ${symbol?.name ?? "a symbol"}, which it does not hold`);
}
function write(view: DataView, at: number, type: number, address: number): void {
  if (type === RELOCATION.ABS64) view.setBigUint64(at, BigInt(address), true);
  else if (type === RELOCATION.ABS32) view.setUint32(at, address >>> 0, true);
  else if (type === RELOCATION.INSTRUCTION_LOW) view.setUint32(at + 4, address >>> 0, true);
  else if (type === RELOCATION.INSTRUCTION_HIGH) view.setUint32(at + 4, Math.floor(address / 2 ** 32), true);
  else
    throw new InternalError(`the cubin has a relocation of type 0x${type.toString(16)}, which is not known`);
}
