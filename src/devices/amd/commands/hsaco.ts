// A compiled kernel as compilers for AMD's GPUs write it: an ELF file, the code object. Its image is what
// lies in memory of the GPU; the kernel descriptor in it says what a launch needs (registers, LDS, scratch,
// what the code finds in its first scalar registers), a note where the arguments lie.

import { InternalError } from "../../../errors.ts";
import { ELF, Elf } from "../../linux/elf.ts";
import { type Packed, unpackMessage } from "./msgpack.ts";

export interface Hsaco {
  readonly name: string;
  /** what has to lie on the GPU; addresses in it are relative, so it may lie anywhere */
  readonly image: Uint8Array;
  /** the first instruction, in the image */
  readonly entry: number;
  /** bytes of LDS a workgroup, and of scratch a thread */
  readonly shared: number;
  readonly scratch: number;
  /** bytes of the arguments, and where each lies: buffers and values in their order */
  readonly kernargBytes: number;
  readonly offsets: readonly number[];
  /** threads of a workgroup at most */
  readonly maxThreads: number;
  /** wavefronts have 32 threads */
  readonly isWave32: boolean;
  /** COMPUTE_PGM_RSRC1, 2 and 3 */
  readonly rsrc: readonly [number, number, number];
  /**
   * the code finds them in its first scalar registers, in this order, and after them the arguments' address
   */
  readonly wantsScratchDescriptor: boolean;
  readonly wantsScratchAddress: boolean;
}

const MACHINE_AMDGPU = 224;
/** The low byte of the flags, by instruction set. */
const MACH: Readonly<Record<string, number>> = {
  gfx90a: 0x3f,
  gfx942: 0x4c,
  gfx1100: 0x41,
  gfx1101: 0x46,
  gfx1102: 0x47,
  gfx1200: 0x48,
  gfx1201: 0x4e,
};
/** Offsets in a kernel descriptor, which has 64 bytes. */
const AT = {
  shared: 0,
  scratch: 4,
  kernarg: 8,
  entry: 16,
  rsrc3: 44,
  rsrc1: 48,
  rsrc2: 52,
  properties: 56,
} as const;
const PRELOAD = 58;
/** What the code wants in its first scalar registers, in this order: bits of the properties. */
const SGPRS = {
  scratchDescriptor: 1 << 0,
  dispatchPacket: 1 << 1,
  queue: 1 << 2,
  kernarg: 1 << 3,
  dispatchId: 1 << 4,
  scratchAddress: 1 << 5,
  scratchBytes: 1 << 6,
} as const;
const [WAVE32, DYNAMIC_STACK] = [1 << 10, 1 << 11];
/** Things of the queues of HSA, which ours are not. */
const ABSENT = SGPRS.dispatchPacket | SGPRS.queue | SGPRS.dispatchId | SGPRS.scratchBytes;
/** A note with facts about kernels. */
const [NOTE, NOTE_OWNER, NOTE_METADATA] = [".note", "AMDGPU", 32];

/** The kernel of this name in a code object for this instruction set. */
export function loadHsaco(bytes: Uint8Array, name: string, arch: string): Hsaco {
  const elf = new Elf(bytes, MACHINE_AMDGPU, "a code object, an ELF file for AMD's GPUs", ".dynsym");
  if ((elf.flags & 0xff) !== MACH[arch])
    throw new InternalError(
      `the code object is for another GPU than ${arch}: flags 0x${elf.flags.toString(16)}`,
    );
  const image = imageOf(elf);
  const symbol = elf.symbols.find((s) => s.name === `${name}.kd`);
  if (symbol === undefined) throw new InternalError(`the code object has no kernel ${name}`);
  const view = new DataView(image.buffer);
  const word = (offset: number): number => view.getUint32(symbol.value + offset, true);
  const properties = view.getUint16(symbol.value + AT.properties, true);
  const odd = properties & (ABSENT | DYNAMIC_STACK);
  if (odd !== 0 || (properties & SGPRS.kernarg) === 0 || view.getUint16(symbol.value + PRELOAD, true) !== 0) {
    throw new InternalError(
      `kernel ${name} wants what a launch here does not give: properties 0x${properties.toString(16)}`,
    );
  }
  return {
    name,
    image,
    entry: symbol.value + Number(view.getBigInt64(symbol.value + AT.entry, true)),
    shared: word(AT.shared),
    scratch: word(AT.scratch),
    kernargBytes: word(AT.kernarg),
    ...noteOf(elf, name),
    isWave32: (properties & WAVE32) !== 0,
    rsrc: [word(AT.rsrc1), word(AT.rsrc2), word(AT.rsrc3)],
    wantsScratchDescriptor: (properties & SGPRS.scratchDescriptor) !== 0,
    wantsScratchAddress: (properties & SGPRS.scratchAddress) !== 0,
  };
}

/** Everything that is loaded, from address 0 on. */
function imageOf(elf: Elf): Uint8Array<ArrayBuffer> {
  const parts = elf.segments().filter((s) => s.type === ELF.LOAD);
  const end = parts.reduce((n, s) => Math.max(n, s.address + s.memory), 0);
  const image = new Uint8Array(Math.ceil(end / 4) * 4);
  for (const s of parts) image.set(elf.bytes(s.offset, s.bytes), s.address);
  // code addresses what is in the image relative to itself; anything else would be filled in here
  const needed = elf.sections.findIndex((s) => (s.type === ELF.RELA || s.type === ELF.REL) && s.size > 0);
  if (needed >= 0)
    throw new InternalError(
      `the code object wants addresses filled in (${elf.section(needed).name}), which kernels of ours do not`,
    );
  return image;
}

/** What the note says of a kernel. */
function noteOf(elf: Elf, name: string): Pick<Hsaco, "offsets" | "maxThreads"> {
  const kernels = metadata(elf)["amdhsa.kernels"];
  const found = Array.isArray(kernels) ? kernels.map(asMap).find((k) => k[".name"] === name) : undefined;
  const args = found?.[".args"] ?? [];
  if (found === undefined || !Array.isArray(args))
    throw new InternalError(`the code object has no facts about the kernel ${name}`);
  const given = args.map(asMap).filter((a) => !String(a[".value_kind"]).startsWith("hidden_"));
  return {
    offsets: given.map((a) => Number(a[".offset"])),
    maxThreads: Number(found[".max_flat_workgroup_size"]),
  };
}
const asMap = (x: Packed | undefined): Readonly<Record<string, Packed>> =>
  typeof x === "object" && x !== null && !Array.isArray(x) ? (x as Readonly<Record<string, Packed>>) : {};

function metadata(elf: Elf): Readonly<Record<string, Packed>> {
  const i = elf.find(NOTE);
  if (i === undefined) return {};
  const [bytes, view] = [elf.contents(i), elf.view(i)];
  const whole = (n: number): number => Math.ceil(n / 4) * 4;
  for (let at = 0; at + 12 <= bytes.byteLength; ) {
    const [nameBytes, size, type] = [0, 4, 8].map((o) => view.getUint32(at + o, true)) as [
      number,
      number,
      number,
    ];
    const owner = new TextDecoder().decode(bytes.subarray(at + 12, at + 11 + nameBytes));
    const from = at + 12 + whole(nameBytes);
    if (owner === NOTE_OWNER && type === NOTE_METADATA)
      return asMap(unpackMessage(bytes.subarray(from, from + size)));
    at = from + whole(size);
  }
  return {};
}
