// The QMD: the record of one launch that the GPU's scheduler reads. Which bits mean what comes from
// classes.ts; here is what we put there. Version 4 is Hopper's and runs on an H200; version 3 (Ampere, Ada)
// is written from the same headers and untested on hardware.

import { InternalError } from "../../../errors.ts";
import { high, low } from "../../../runtime/hcq/words.ts";
import { QMD3, QMD4 } from "./classes.ts";

/** In three dimensions. */
export type Size = readonly [number, number, number];
type Fields = Readonly<Record<string, readonly [high: number, low: number, step: number]>>;

/** What does not change between launches of a program. */
export interface QmdProgram {
  /** where its code begins */
  readonly va: number;
  readonly codeBytes: number;
  readonly registers: number;
  readonly barriers: number;
  /** bytes of shared memory a block, with what the hardware reserves */
  readonly shared: number;
  /** bytes of local memory a thread */
  readonly local: number;
  /** compute capability without the point */
  readonly arch: number;
}

/** Pointers to QMDs have no lower bits. */
export const QMD_ALIGN = 256;

const SCHEDULE = 1;
/** Before the first block starts, which takes 100 ns off each kernel of a chain. */
const PREFETCH_BEFORE = 1;
const [TYPE_GRID_CTA, LAST_GROUP] = [2, 0x3f];
/** After the last block: what it wrote is seen by all of the GPU. The release adds what the host needs. */
const L1_MEMBAR = 3;

/**
 * What an SM has: the sizes in KiB to which its memory can be divided between shared
 * and cache, and blocks at most.
 */
const SM: Readonly<Record<number, { readonly shared: readonly number[]; readonly blocks: number }>> = {
  80: { shared: [0, 8, 16, 32, 64, 100, 132, 164], blocks: 32 },
  86: { shared: [0, 8, 16, 32, 64, 100], blocks: 16 },
  89: { shared: [0, 8, 16, 32, 64, 100], blocks: 24 },
  90: { shared: [0, 8, 16, 32, 64, 100, 132, 164, 196, 228], blocks: 32 },
};
const smOf = (arch: number) => SM[arch] ?? (SM[90] as (typeof SM)[number]);
/** Bytes of shared memory that a block can have: of the largest share, a KiB is the system's. */
export const maxShared = (arch: number): number => ((smOf(arch).shared.at(-1) as number) - 1) * 1024;

/** How many there are of a field that is an array. */
const copiesOf = (name: string): number =>
  name.startsWith("CONSTANT") ? 8 : name.startsWith("RELEASE") ? 3 : name.startsWith("DEPENDENT") ? 2 : 1;

/**
 * A QMD as the host knows it. Every change is also written to where it lies on the GPU, once that is known.
 */
export abstract class Qmd<F extends Fields = Fields> {
  readonly words: Uint32Array;
  /** a window on the GPU's memory, in which nothing is ever read */
  home: Int32Array | undefined;
  readonly #fields: F;

  constructor(fields: F, words: Uint32Array) {
    this.#fields = fields;
    this.words = words;
  }

  /** How many semaphores it can set when it is done. */
  readonly releases = 3;
  abstract copy(): Qmd;
  /** Blocks of the grid, threads of a block; how an SM's memory is best divided for it. */
  abstract size(grid: Size, block: Size, carveout: number): void;
  abstract constant(bank: number, va: number, size: number): void;
  /** When it is done: 64 bits of value at `va`, and the time 8 bytes later. */
  abstract release(slot: number, va: number, value: number): void;
  /** When it is done the QMD at `va` starts. */
  abstract chain(va: number): void;

  get(name: keyof F & string, i = 0): number {
    const [top, bottom, step] = this.#fields[name] as Fields[string];
    const first = bottom + i * step;
    return (((this.words[first >>> 5] as number) >>> (first & 31)) & ones(top - bottom + 1)) >>> 0;
  }
  /** The fields that are set, for people. */
  toString(): string {
    const lines = Object.entries(this.#fields).flatMap(([name, [, , step]]) => {
      const count = step === 0 ? 1 : copiesOf(name);
      return Array.from({ length: count }, (_, i) => i).flatMap((i) => {
        const value = this.get(name, i);
        return value === 0 ? [] : [`${name}${count === 1 ? "" : `(${i})`}=0x${value.toString(16)}`];
      });
    });
    return lines.join(" ");
  }
  protected put(name: keyof F & string, value: number, i = 0): void {
    const [top, bottom, step] = this.#fields[name] as Fields[string];
    const first = bottom + i * step;
    const [word, shift, mask] = [first >>> 5, first & 31, ones(top - bottom + 1)];
    if (value < 0 || value > mask || !Number.isInteger(value))
      throw new InternalError(`QMD: ${value} does not fit ${name}, which ends at ${mask}`);
    const kept = (this.words[word] as number) & ~(mask << shift);
    this.words[word] = kept | (value << shift);
    if (this.home !== undefined) this.home[word] = this.words[word] as number;
  }
  protected putAll(values: { readonly [K in keyof F & string]?: number }): void {
    for (const [name, value] of Object.entries(values)) this.put(name, value as number);
  }
}

/** So many bits that are set, as a number without a sign. */
const ones = (bits: number): number => 0xffffffff >>> (32 - bits);

/** What both versions have, under the same names. */
function fieldsOf(p: QmdProgram) {
  requireShared(p);
  return {
    QMD_GROUP_ID: LAST_GROUP,
    SASS_VERSION: sassVersion(p.arch),
    API_VISIBLE_CALL_LIMIT: 1,
    SAMPLER_INDEX: 1,
    INVALIDATE_SHADER_DATA_CACHE: 1,
    CWD_MEMBAR_TYPE: L1_MEMBAR,
    BARRIER_COUNT: p.barriers,
    SHARED_MEMORY_SIZE: p.shared,
    MIN_SM_CONFIG_SHARED_MEM_SIZE: carveout(p.arch, p.shared),
    MAX_SM_CONFIG_SHARED_MEM_SIZE: carveout(p.arch, Infinity),
    SHADER_LOCAL_MEMORY_HIGH_SIZE: p.local,
    PROGRAM_ADDRESS_LOWER: low(p.va),
    PROGRAM_ADDRESS_UPPER: high(p.va),
    PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED: low(p.va / 256),
    PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED: high(p.va / 256),
    PROGRAM_PREFETCH_SIZE: prefetch(p.codeBytes),
  };
}

class Qmd4 extends Qmd<typeof QMD4> {
  constructor(words: Uint32Array = new Uint32Array(96)) {
    super(QMD4, words);
  }
  copy(): Qmd4 {
    return new Qmd4(this.words.slice());
  }
  static of(p: QmdProgram): Qmd4 {
    const qmd = new Qmd4();
    qmd.putAll({
      QMD_MAJOR_VERSION: 4,
      QMD_TYPE: TYPE_GRID_CTA,
      CWD_MEMBAR_TASK_CHASING_ENABLE: 1,
      REGISTER_COUNT: p.registers,
      ...fieldsOf(p),
    });
    return qmd;
  }
  size([gx, gy, gz]: Size, [bx, by, bz]: Size, target: number): void {
    this.put("TARGET_SM_CONFIG_SHARED_MEM_SIZE", target);
    this.put("GRID_WIDTH", gx);
    this.put("GRID_HEIGHT", gy);
    this.put("GRID_DEPTH", gz);
    this.put("CTA_THREAD_DIMENSION0", bx);
    this.put("CTA_THREAD_DIMENSION1", by);
    this.put("CTA_THREAD_DIMENSION2", bz);
  }
  constant(bank: number, va: number, size: number): void {
    this.put("CONSTANT_BUFFER_VALID", 1, bank);
    this.put("CONSTANT_BUFFER_INVALIDATE", 1, bank);
    this.put("CONSTANT_BUFFER_PREFETCH", PREFETCH_BEFORE, bank);
    this.put("CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6", low(va / 64), bank);
    this.put("CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6", high(va / 64), bank);
    this.put("CONSTANT_BUFFER_SIZE_SHIFTED4", Math.ceil(size / 16), bank);
  }
  release(slot: number, va: number, value: number): void {
    const s = slot as 0 | 1 | 2;
    this.put("RELEASE_ENABLE", 1, slot);
    this.put("RELEASE_PAYLOAD64B", 1, slot);
    this.put("RELEASE_MEMBAR_TYPE", 1, slot);
    this.put(`RELEASE_SEMAPHORE${s}_ADDR_LOWER`, low(va));
    this.put(`RELEASE_SEMAPHORE${s}_ADDR_UPPER`, high(va));
    this.put(`RELEASE_SEMAPHORE${s}_PAYLOAD_LOWER`, low(value));
    this.put(`RELEASE_SEMAPHORE${s}_PAYLOAD_UPPER`, high(value));
  }
  chain(va: number): void {
    this.put("DEPENDENT_QMD_ENABLE", 1);
    this.put("DEPENDENT_QMD_ACTION", SCHEDULE);
    this.put("DEPENDENT_QMD_PREFETCH", 1);
    this.put("DEPENDENT_QMD0_POINTER", low(va / 256));
  }
}

class Qmd3 extends Qmd<typeof QMD3> {
  constructor(words: Uint32Array = new Uint32Array(64)) {
    super(QMD3, words);
  }
  copy(): Qmd3 {
    return new Qmd3(this.words.slice());
  }
  static of(p: QmdProgram): Qmd3 {
    const qmd = new Qmd3();
    qmd.putAll({
      QMD_MAJOR_VERSION: 3,
      SM_GLOBAL_CACHING_ENABLE: 1,
      REGISTER_COUNT_V: p.registers,
      ...fieldsOf(p),
    });
    return qmd;
  }
  size([gx, gy, gz]: Size, [bx, by, bz]: Size, target: number): void {
    this.put("TARGET_SM_CONFIG_SHARED_MEM_SIZE", target);
    this.put("CTA_RASTER_WIDTH", gx);
    this.put("CTA_RASTER_HEIGHT", gy);
    this.put("CTA_RASTER_DEPTH", gz);
    this.put("CTA_THREAD_DIMENSION0", bx);
    this.put("CTA_THREAD_DIMENSION1", by);
    this.put("CTA_THREAD_DIMENSION2", bz);
  }
  constant(bank: number, va: number, size: number): void {
    this.put("CONSTANT_BUFFER_VALID", 1, bank);
    this.put("CONSTANT_BUFFER_INVALIDATE", 1, bank);
    this.put("CONSTANT_BUFFER_ADDR_LOWER", low(va), bank);
    this.put("CONSTANT_BUFFER_ADDR_UPPER", high(va), bank);
    this.put("CONSTANT_BUFFER_SIZE_SHIFTED4", Math.ceil(size / 16), bank);
  }
  release(slot: number, va: number, value: number): void {
    const s = slot as 0 | 1 | 2;
    this.put(`RELEASE${s}_ENABLE`, 1);
    this.put(`RELEASE${s}_PAYLOAD64B`, 1);
    this.put(`RELEASE${s}_MEMBAR_TYPE`, 1);
    this.put(`RELEASE${s}_ADDRESS_LOWER`, low(va));
    this.put(`RELEASE${s}_ADDRESS_UPPER`, high(va));
    this.put(`RELEASE${s}_PAYLOAD_LOWER`, low(value));
    this.put(`RELEASE${s}_PAYLOAD_UPPER`, high(value));
  }
  chain(va: number): void {
    this.put("DEPENDENT_QMD0_ENABLE", 1);
    this.put("DEPENDENT_QMD0_ACTION", SCHEDULE);
    this.put("DEPENDENT_QMD0_PREFETCH", 1);
    this.put("DEPENDENT_QMD0_POINTER", low(va / 256));
  }
}

/** The QMD of a program, in the version that its GPU takes, with no size and no arguments yet. */
export const qmdFor = (program: QmdProgram): Qmd =>
  program.arch >= 90 ? Qmd4.of(program) : Qmd3.of(program);

/** What lies in the memory of a GPU of this kind. */
export const readQmd = (arch: number, words: Uint32Array): Qmd4 | Qmd3 =>
  arch >= 90 ? new Qmd4(words) : new Qmd3(words);
export const qmdWords = (arch: number): number => (arch >= 90 ? 96 : 64);

/** 9.0 is 0x90. */
const sassVersion = (arch: number): number => (Math.floor(arch / 10) << 4) | (arch % 10);

/** In units of 256 bytes; longer code is fetched when it is reached. */
const prefetch = (codeBytes: number): number => Math.min(codeBytes >>> 8, 0x1ff);

/** Blocks that an SM holds at most, whatever they need. */
export const maxBlocks = (arch: number): number => smOf(arch).blocks;

/**
 * The smallest division of an SM's memory with so much shared, or the largest there is, as a QMD writes it.
 */
export function carveout(arch: number, nbytes: number): number {
  const { shared } = smOf(arch);
  return (shared.find((kib) => kib * 1024 >= nbytes) ?? (shared.at(-1) as number)) / 4 + 1;
}

function requireShared({ arch, shared }: QmdProgram): void {
  const most = maxShared(arch) + 1024;
  if (shared > most)
    throw new InternalError(`QMD: a block wants ${shared} bytes of shared memory, of ${most}`);
}
