// Writes small cubins: ELF files with the sections that NVIDIA's compilers write, so that the loader and the
// mock GPU are tested where there is no compiler.

export interface TestCubin {
  readonly name: string;
  readonly arch?: number;
  readonly code: Uint8Array;
  /** its size with padding, if it is to be larger */
  readonly codeBytes?: number;
  /** sizes of the parameters in bytes */
  readonly parameters: readonly number[];
  readonly registers?: number;
  readonly barriers?: number;
  readonly shared?: number;
  readonly local?: number;
  readonly maxThreads?: number;
  /** contents of constant bank 3 */
  readonly constants?: Uint8Array;
  /** places in the code, or in bank 3, that get the address of the kernel plus an addend */
  readonly relocations?: readonly { in: "code" | "constants"; at: number; type: number; addend: number }[];
}

/** Where parameters begin on sm_90. */
export const PARAMETERS_AT = 0x210;

interface Part {
  readonly name: string;
  readonly type: number;
  readonly flags: number;
  readonly bytes: Uint8Array;
  readonly size?: number;
  readonly link?: number;
  readonly info?: number;
  readonly align?: number;
}
const [PROGBITS, SYMTAB, STRTAB, RELA, NOBITS, NVINFO] = [1, 2, 3, 4, 8, 0x70000000];
const [ALLOC, WRITE, EXEC] = [2, 1, 4];

class Writer {
  readonly #bytes: number[] = [];
  u8(...xs: number[]): this {
    this.#bytes.push(...xs);
    return this;
  }
  u16(...xs: number[]): this {
    for (const x of xs) this.u8(x & 255, (x >>> 8) & 255);
    return this;
  }
  u32(...xs: number[]): this {
    for (const x of xs) this.u16(x & 0xffff, x >>> 16);
    return this;
  }
  u64(...xs: number[]): this {
    for (const x of xs) this.u32(x >>> 0, Math.floor(x / 2 ** 32));
    return this;
  }
  get bytes(): Uint8Array {
    return new Uint8Array(this.#bytes);
  }
}

/** Offsets of parameters of these sizes, each aligned to its size. */
export function parameterOffsets(sizes: readonly number[]): number[] {
  let at = 0;
  return sizes.map((size) => {
    at = Math.ceil(at / size) * size;
    at += size;
    return at - size;
  });
}

/** A table of strings and where each begins. */
function strings(all: readonly string[]): { bytes: Uint8Array; at: (s: string) => number } {
  const text = `\0${all.join("\0")}\0`;
  return { bytes: new TextEncoder().encode(text), at: (s) => text.indexOf(`\0${s}\0`) + 1 };
}

export function buildCubin(c: TestCubin): Uint8Array {
  const { name, parameters, registers = 16, barriers = 0, shared = 0, local = 0 } = c;
  const offsets = parameterOffsets(parameters);
  const end = parameters.reduce((n, size, i) => Math.max(n, (offsets[i] as number) + size), 0);
  const KERNEL = 1; // its symbol
  const code = new Uint8Array(Math.max(c.codeBytes ?? 0, c.code.byteLength));
  code.set(c.code);
  const info = new Writer().u8(4, 0x2f).u16(8).u32(KERNEL, registers).u8(4, 0x12).u16(8).u32(KERNEL, local);
  const own = new Writer();
  parameters.forEach((size, i) => {
    own
      .u8(4, 0x17)
      .u16(12)
      .u32(0)
      .u16(i, offsets[i] as number)
      .u32((size << 18) | 0xf000);
  });
  own.u8(3, 0x1b).u16(0xff); // a half
  if (barriers > 0) own.u8(2, 0x4c, barriers, 0);
  if (c.maxThreads !== undefined) own.u8(4, 0x05).u16(12).u32(c.maxThreads, 1, 1);
  own.u8(4, 0x0a).u16(8).u32(0).u16(PARAMETERS_AT, end);
  const names = strings([name]);
  const parts: Part[] = [
    { name: "", type: 0, flags: 0, bytes: new Uint8Array(0) },
    { name: `.text.${name}`, type: PROGBITS, flags: ALLOC | EXEC, bytes: code, align: 128 },
    { name: ".strtab", type: STRTAB, flags: 0, bytes: names.bytes },
    {
      name: ".symtab",
      type: SYMTAB,
      flags: 0,
      link: 2,
      bytes: new Writer().u64(0, 0, 0).u32(names.at(name)).u8(0x12, 0).u16(1).u64(0, code.byteLength).bytes,
    },
    { name: ".nv.info", type: NVINFO, flags: 0, bytes: info.bytes },
    { name: `.nv.info.${name}`, type: NVINFO, flags: 0, bytes: own.bytes },
    {
      name: `.nv.constant0.${name}`,
      type: PROGBITS,
      flags: ALLOC,
      bytes: new Uint8Array(PARAMETERS_AT + end),
    },
  ];
  if (shared > 0)
    parts.push({
      name: `.nv.shared.${name}`,
      type: NOBITS,
      flags: ALLOC | WRITE,
      bytes: new Uint8Array(0),
      size: shared,
    });
  if (c.constants !== undefined)
    parts.push({ name: ".nv.constant3", type: PROGBITS, flags: ALLOC, bytes: c.constants, align: 4 });
  for (const where of ["code", "constants"] as const) {
    const entries = (c.relocations ?? []).filter((r) => r.in === where);
    if (entries.length === 0) continue;
    const w = new Writer();
    for (const r of entries) w.u64(r.at).u32(r.type, KERNEL).u64(r.addend);
    const target = where === "code" ? `.text.${name}` : ".nv.constant3";
    const info = parts.findIndex((p) => p.name === target);
    parts.push({ name: `.rela${target}`, type: RELA, flags: 0, bytes: w.bytes, link: 3, info });
  }
  return assemble(parts, c.arch ?? 90);
}

function assemble(parts: readonly Part[], arch: number): Uint8Array {
  const table = strings([...new Set([...parts.map((p) => p.name), ".shstrtab"])].filter((n) => n !== ""));
  const all = [...parts, { name: ".shstrtab", type: STRTAB, flags: 0, bytes: table.bytes } as Part];
  let at = 64;
  const places = all.map(({ bytes, align = 8 }) => {
    at = Math.ceil(at / align) * align;
    at += bytes.byteLength;
    return at - bytes.byteLength;
  });
  const headers = Math.ceil(at / 8) * 8;
  const file = new Uint8Array(headers + all.length * 64);
  const head = new Writer()
    .u8(0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0x41, 8, 0, 0, 0, 0, 0, 0, 0)
    .u16(2, 190)
    .u32(1)
    .u64(0, 0, headers)
    .u32((arch << 8) | 4)
    .u16(64, 0, 0, 64, all.length, all.length - 1);
  file.set(head.bytes);
  all.forEach((p, i) => {
    file.set(p.bytes, places[i]);
    const header = new Writer()
      .u32(p.name === "" ? 0 : table.at(p.name), p.type)
      .u64(p.flags, 0, places[i] as number, p.size ?? p.bytes.byteLength)
      .u32(p.link ?? 0, p.info ?? 0)
      .u64(p.align ?? 1, p.type === SYMTAB || p.type === RELA ? 24 : 0);
    file.set(header.bytes, headers + i * 64);
  });
  return file;
}
