// Writes small code objects: ELF files with what AMD's compilers write and the loader reads (a descriptor,
// code, a symbol, a note), so that loader, device and mock are tested where there is no compiler.

export interface TestHsaco {
  readonly name: string;
  readonly arch: string;
  readonly code: Uint8Array;
  /** sizes of the arguments in bytes */
  readonly args: readonly number[];
  readonly shared?: number;
  readonly scratch?: number;
  readonly maxThreads?: number;
  /** more bits of the kernel's properties */
  readonly properties?: number;
}
/** The low byte of the flags. */
const MACH: Readonly<Record<string, number>> = { gfx90a: 0x3f, gfx942: 0x4c, gfx1100: 0x41, gfx1201: 0x4e };
/** What real ones of a kernel with scratch have, by instruction set. */
export const PROPERTIES: Readonly<Record<string, number>> = {
  gfx90a: 0x29,
  gfx942: 0x8,
  gfx1100: 0x408,
  gfx1201: 0x408,
};
export const RSRC = [0xaf00c2, 0x91, 0x5] as const;

type Message = number | string | readonly Message[] | { readonly [key: string]: Message };
function packed(x: Message): number[] {
  const text = (s: string) => {
    const bytes = [...new TextEncoder().encode(s)];
    return bytes.length < 32 ? [0xa0 | bytes.length, ...bytes] : [0xd9, bytes.length, ...bytes];
  };
  if (typeof x === "string") return text(x);
  if (typeof x === "number")
    return x < 128 ? [x] : [0xce, ...[24, 16, 8, 0].map((shift) => (x >>> shift) & 255)];
  if (Array.isArray(x)) return [0xdc, x.length >> 8, x.length & 255, ...x.flatMap((y: Message) => packed(y))];
  const entries = Object.entries(x);
  return [0x80 | entries.length, ...entries.flatMap(([k, v]) => [...text(k), ...packed(v)])];
}

/** Offsets of arguments of these sizes, each aligned to its size. */
export function argumentOffsets(sizes: readonly number[]): number[] {
  let at = 0;
  return sizes.map((size) => {
    at = Math.ceil(at / size) * size;
    at += size;
    return at - size;
  });
}
export const kernargBytes = (sizes: readonly number[]): number =>
  (argumentOffsets(sizes).at(-1) ?? 0) + (sizes.at(-1) ?? 0);

const u32 = (...xs: number[]): number[] =>
  xs.flatMap((x) => [x & 255, (x >>> 8) & 255, (x >>> 16) & 255, x >>> 24]);
const u64 = (...xs: number[]): number[] => xs.flatMap((x) => u32(x >>> 0, Math.floor(x / 2 ** 32)));
const u16 = (...xs: number[]): number[] => xs.flatMap((x) => [x & 255, (x >>> 8) & 255]);

function noteOf({ name, args, maxThreads = 1024 }: TestHsaco): number[] {
  const offsets = argumentOffsets(args);
  const message = packed({
    "amdhsa.kernels": [
      {
        ".name": name,
        ".max_flat_workgroup_size": maxThreads,
        ".args": [
          ...args.map((size, i) => ({
            ".offset": offsets[i] as number,
            ".size": size,
            ".value_kind": size === 8 ? "global_buffer" : "by_value",
          })),
          { ".offset": 1000, ".size": 4, ".value_kind": "hidden_block_count_x" },
        ],
      },
    ],
  });
  while (message.length % 4 !== 0) message.push(0xc0);
  return [...u32(7, message.length, 32), ...new TextEncoder().encode("AMDGPU\0"), 0, ...message];
}

/** Sections at their places in the file, which is loaded as it is. */
export function buildHsaco(h: TestHsaco): Uint8Array {
  const { name, arch, code, args, shared = 0, scratch = 0 } = h;
  const file: number[] = new Array(64 + 56).fill(0);
  const put = (bytes: Iterable<number>, align: number): number => {
    while (file.length % align !== 0) file.push(0);
    const at = file.length;
    for (const b of bytes) file.push(b);
    return at;
  };
  const strings = new TextEncoder().encode(`\0${name}.kd\0`);
  const names = ["", ".note", ".dynsym", ".dynstr", ".rodata", ".text", ".shstrtab"];
  const note = noteOf(h);
  const noteAt = put(note, 4);
  const dynstr = put(strings, 1);
  const descriptor = put(new Array(64).fill(0), 64);
  const entry = put(code, 256);
  const symbols = [...new Array(24).fill(0), ...u32(1), 0x11, 0, ...u16(4), ...u64(descriptor, 64)];
  const dynsym = put(symbols, 8);
  const table = new TextEncoder().encode(`${names.join("\0")}\0`);
  const shstrtab = put(table, 1);
  const nameAt = (n: string) => (n === "" ? 0 : names.slice(0, names.indexOf(n)).join("\0").length + 1);
  const section = (n: string, type: number, at: number, size: number, link = 0) => [
    ...u32(nameAt(n), type),
    ...u64(2, at, at, size),
    ...u32(link, 0),
    ...u64(8, type === 11 ? 24 : 0),
  ];
  const headers = put(
    [
      ...new Array(64).fill(0),
      ...section(".note", 7, noteAt, note.length),
      ...section(".dynsym", 11, dynsym, 48, 3),
      ...section(".dynstr", 3, dynstr, strings.length),
      ...section(".rodata", 1, descriptor, 64),
      ...section(".text", 1, entry, code.length),
      ...section(".shstrtab", 3, shstrtab, table.length),
    ],
    8,
  );
  const bytes = new Uint8Array(file);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 64, 3]);
  bytes.set(
    [...u16(3, 224), ...u32(1), ...u64(0, 64, headers), ...u32(MACH[arch] ?? 0), ...u16(64, 56, 1, 64, 7, 6)],
    16,
  );
  bytes.set([...u32(1, 5), ...u64(0, 0, 0, headers, headers, 4096)], 64);
  const properties = (PROPERTIES[arch] ?? 0) | (h.properties ?? 0);
  bytes.set([...u32(shared, scratch, kernargBytes(args), 0), ...u64(entry - descriptor)], descriptor);
  bytes.set([...u32(RSRC[2], RSRC[0], RSRC[1]), ...u16(properties)], descriptor + 44);
  return bytes;
}
