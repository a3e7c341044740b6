// A compiled kernel as NVIDIA's compilers write it: an ELF file. Picks one kernel's facts (registers, shared
// and local memory, barriers, where its parameters go) from the .nv.info attributes and lays out an image of
// code and constants. `relocate` fits the image to its address; program.ts puts it there.

import { InternalError } from "../../../errors.ts";
import { ELF, Elf, type ElfSymbol } from "../../linux/elf.ts";

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
/** What a relocation writes: an address in 64 or 32 bits, or half of one into an instruction. */
const RELOCATION = { ABS32: 1, ABS64: 2, INSTRUCTION_LOW: 0x38, INSTRUCTION_HIGH: 0x39 } as const;
const SECTION_ALIGN = 256;
/** The fetch of instructions runs ahead of the last one. */
const BEHIND = 256;
const MACHINE_CUDA = 190;

/** The kernel of this name in a cubin for this compute capability (90). */
export function loadCubin(bytes: Uint8Array, name: string, arch: number): Cubin {
  const elf = openCubin(bytes, arch);
  const text = elf.find(`.text.${name}`);
  if (text === undefined)
    throw new InternalError(`the cubin has no kernel ${name}; it has ${kernelsOf(elf)}`);
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

function openCubin(bytes: Uint8Array, arch: number): Elf {
  const elf = new Elf(bytes, MACHINE_CUDA, "a cubin, an ELF file for NVIDIA's machines", ".symtab");
  const { flags } = elf;
  // where the flags say which architecture it is has moved by a byte between versions of the format
  if ((flags & 0xff) !== arch && ((flags >>> 8) & 0xff) !== arch)
    throw new InternalError(`the cubin is for another GPU than sm_${arch}: flags 0x${flags.toString(16)}`);
  return elf;
}
const kernelsOf = ({ sections }: Elf): string =>
  sections.flatMap((s) => s.name.match(/^\.text\.(.*)/)?.[1] ?? []).join(", ");

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
    if ((flags & ELF.ALLOC) === 0 || (type !== ELF.PROGBITS && type !== ELF.NOBITS)) return;
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
    if (section.type !== ELF.RELA && section.type !== ELF.REL) return;
    const target = places.get(section.info);
    if (target === undefined) return;
    for (const { at, type, symbol, addend } of elf.relocations(i))
      write(view, target + at, type, addressOf(elf.symbols[symbol], places, base) + addend);
  });
}
function addressOf(symbol: ElfSymbol | undefined, places: ReadonlyMap<number, number>, base: number): number {
  const place = symbol === undefined ? undefined : places.get(symbol.section);
  if (symbol !== undefined && place !== undefined) return base + place + symbol.value;
  if (symbol?.weak && symbol.section === ELF.UNDEFINED) return 0;
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
