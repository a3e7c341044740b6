// A GPU in JavaScript behind the mock of the kernel driver (mock.ts): fetches words from rings, decodes
// packets, moves bytes, and executes kernels by their uops on the JS device. It believes nothing: what it
// does not know, what is not aligned, out of range, left unset or would race ends the test with an error
// that says so. An address without memory is what it is for the hardware: a fault that the driver tells of.

import type { PacketGeneration } from "../../../src/devices/amd/commands/generations.ts";
import { type Packet, parsePm4, REGISTERS, SH_REGISTERS } from "../../../src/devices/amd/commands/pm4.ts";
import { parseSdma, type SdmaPacket } from "../../../src/devices/amd/commands/sdma.ts";
import type { Program } from "../../../src/runtime/device.ts";
import { argumentOffsets, PROPERTIES, RSRC, type TestHsaco } from "./commands/elf.ts";

export const CODE_MAGIC = 0x4b434f4d; // "MOCK"
/** An address without memory that something touched. */
export class Stray extends Error {
  readonly va: number;
  constructor(va: number, what: string) {
    super(`${what}: 0x${va.toString(16)} is not mapped`);
    this.va = va;
  }
}
const must = (condition: boolean, what: () => string): void => {
  if (!condition) throw new Error(`mock: ${what()}`);
};
const hex = (x: number): string => `0x${x.toString(16)}`;
const words = (lo: number | undefined, hi: number | undefined): number => (hi ?? 0) * 2 ** 32 + (lo ?? 0);

/** A kernel that the mock can execute. */
export interface MockKernel {
  readonly hsaco: TestHsaco;
  readonly program: Program<Uint8Array>;
  readonly buffers: number;
  readonly vals: number;
}
/** The memory that the driver mapped. */
export interface MockMemory {
  /** the bytes from an address to the end of what is mapped there; throws Stray */
  bytes(va: number, nbytes: number, what: string): Uint8Array;
  clock(): bigint;
}
/** A queue of the driver. */
export interface MockQueue {
  readonly kind: "compute" | "copy";
  readonly ring: Uint32Array;
  readonly read: BigUint64Array;
  readonly write: BigUint64Array;
  readonly doorbell: BigUint64Array;
}

/** What a launch has to set anew each time, and what must be in it. */
const EVERY = [REGISTERS.START_X, REGISTERS.PGM_LO, REGISTERS.PGM_RSRC1, REGISTERS.USER_DATA_0] as const;
const ZERO = [REGISTERS.RESTART_X, REGISTERS.RESOURCE_LIMITS] as const;

/** One ring as the GPU reads it. */
class Fetcher {
  readonly queue: MockQueue;
  /** words that were fetched from the ring */
  get = 0;
  /** what is left of a stream that the ring called */
  called: Iterator<Packet> | undefined;
  held: Packet | SdmaPacket | undefined;
  /** words of the ring that the held packet takes */
  taken = 0;

  constructor(queue: MockQueue) {
    this.queue = queue;
  }
  get unit(): number {
    return this.queue.kind === "compute" ? 1 : 4;
  }
  /** Where the host says the ring ends. */
  get put(): number {
    const told = Number(this.queue.doorbell[0]);
    const written = Number(this.queue.write[0]);
    // the pointer is written first, and the doorbell rung when it is there
    must(told <= written, () => `the doorbell says ${told}, the pointer ${written}`);
    return told / this.unit;
  }
  word(i: number): number {
    const { ring } = this.queue;
    return ring[(this.get + i) % ring.length] as number;
  }
  done(): void {
    this.held = undefined;
    this.get += this.taken;
    this.taken = 0;
    const { ring, kind, read } = this.queue;
    read[0] = BigInt(kind === "compute" ? this.get % ring.length : this.get * 4);
  }
}

export class MockGpu {
  readonly #memory: MockMemory;
  readonly #generation: PacketGeneration;
  readonly #arch: string;
  readonly kernels: MockKernel[] = [];
  readonly #fetchers: Fetcher[] = [];
  readonly #registers = new Map<number, number>();
  #pumping = false;
  /** something went wrong that only a bug explains */
  #broken: unknown;
  fault: Stray | undefined;
  kernelsRun = 0;
  /** every packet so far, with its ring */
  readonly log: { readonly kind: "compute" | "copy"; readonly words: readonly number[] }[] = [];
  /** a kernel may run; what is near the compute units, or anywhere, may be older than memory */
  #running = false;
  #stale: "no" | "near" | "all" = "all";

  constructor(memory: MockMemory, generation: PacketGeneration, arch: string) {
    this.#memory = memory;
    this.#generation = generation;
    this.#arch = arch;
  }

  add(queue: MockQueue): void {
    this.#fetchers.push(new Fetcher(queue));
  }
  remove(queue: MockQueue): void {
    this.#fetchers.splice(
      this.#fetchers.findIndex((f) => f.queue === queue),
      1,
    );
    this.fault = undefined;
    this.#registers.clear();
    this.#running = false;
    this.#stale = "all";
  }

  /** Executes what can be executed: ring after ring, until all are at their end or wait. */
  pump(): void {
    if (this.#broken !== undefined) throw this.#broken;
    if (this.#pumping || this.fault !== undefined) return;
    this.#pumping = true;
    try {
      while (this.#fetchers.some((f) => this.#advance(f)));
    } catch (e) {
      if (e instanceof Stray) this.fault = e;
      else {
        this.#broken = e;
        throw e;
      }
    } finally {
      this.#pumping = false;
    }
  }
  /** Whether anything happened. */
  #advance(f: Fetcher): boolean {
    let moved = false;
    while (this.#step(f)) moved = true;
    return moved;
  }
  #step(f: Fetcher): boolean {
    if (f.held === undefined && !this.#fetch(f)) return false;
    const held = f.held;
    if (held === undefined) return true;
    const done = "words" in held ? this.#copyPacket(held) : this.#computePacket(f, held);
    if (done) f.done();
    return done;
  }
  /** False: there is nothing. */
  #fetch(f: Fetcher): boolean {
    const next = f.called?.next();
    if (next !== undefined && next.done !== true) {
      f.held = next.value;
      return true;
    }
    f.called = undefined;
    const left = f.put - f.get;
    if (left === 0) return false;
    const size = f.queue.ring.length;
    must(left > 0 && left < size, () => `${left} words in a ring of ${size}`);
    const all = Array.from({ length: Math.min(left, 64) }, (_, i) => f.word(i));
    if (f.queue.kind === "compute") {
      const count = ((((all[0] as number) >>> 16) & 0x3fff) + 2) | 0;
      const packet = [...parsePm4(all.slice(0, count))][0] as Packet;
      [f.held, f.taken] = [packet, count];
    } else {
      const packet = parseSdma(all).next().value as SdmaPacket;
      must((f.get % size) + packet.words.length <= size, () => `${packet.name} across the end of the ring`);
      [f.held, f.taken] = [packet, packet.words.length];
    }
    this.log.push({ kind: f.queue.kind, words: all.slice(0, f.taken) });
    return true;
  }

  // ---- memory

  #at(va: number, nbytes: number, what: string): DataView {
    const b = this.#memory.bytes(va, nbytes, what);
    return new DataView(b.buffer, b.byteOffset, nbytes);
  }
  #aligned(va: number, unit: number, what: string): number {
    must(va % unit === 0, () => `${what}: ${hex(va)} is not a multiple of ${unit}`);
    return va;
  }
  #reached(va: number, value: number, what: string): boolean {
    return this.#at(this.#aligned(va, 4, what), 4, what).getUint32(0, true) >= value;
  }
  #stamp(va: number, what: string): void {
    this.#at(va, 8, what).setBigUint64(0, this.#memory.clock(), true);
  }

  // ---- the compute ring

  /** False: not now. */
  #computePacket(f: Fetcher, { name, data }: Packet): boolean {
    const d = (i: number): number => data[i] as number;
    const sized = (n: number): void =>
      must(data.length === n, () => `${name} of ${data.length} words, expected ${n}`);
    switch (name) {
      case "SET_SH_REG": {
        const first = d(0) + SH_REGISTERS;
        data.slice(1).forEach((value, i) => void this.#registers.set(first + i, value));
        return true;
      }
      case "ACQUIRE_MEM":
        this.#acquire(data);
        return true;
      case "WAIT_REG_MEM":
        sized(6);
        must(
          d(0) === 0x15 && d(4) === 0xffffffff && d(5) > 0,
          () => `WAIT_REG_MEM ${data.map(hex).join(" ")}`,
        );
        if (!this.#reached(words(d(1), d(2)), d(3), name)) return false;
        this.#stale = "all";
        return true;
      case "RELEASE_MEM":
        sized(7);
        this.#release(data);
        return true;
      case "EVENT_WRITE":
        sized(1);
        must(d(0) === 0x407, () => `event ${hex(d(0))}`);
        this.#running = false;
        return true;
      case "INDIRECT_BUFFER": {
        sized(3);
        must(f.called === undefined, () => "a stream that is called calls another");
        const count = d(2) & 0xfffff;
        must(count > 0 && d(2) - count === 1 << 23, () => `INDIRECT_BUFFER of ${hex(d(2))}`);
        const at = this.#at(this.#aligned(words(d(0), d(1)), 4, name), count * 4, name);
        const stream = Array.from({ length: count }, (_, i) => at.getUint32(4 * i, true));
        this.log.push({ kind: "compute", words: stream });
        f.called = parsePm4(stream);
        return true;
      }
      case "DISPATCH_DIRECT":
        sized(4);
        this.#dispatch(data);
        return true;
      default:
        must(false, () => `${name} in a ring`);
        return true;
    }
  }
  #acquire(data: readonly number[]): void {
    const isGfx9 = this.#generation.caches === "gfx9";
    must(data.length === (isGfx9 ? 6 : 7), () => `ACQUIRE_MEM of ${data.length} words`);
    const range = data.slice(1, 5);
    must(range.join() === [0xffffffff, 0xffffffff, 0, 0].join(), () => "ACQUIRE_MEM of a part of memory");
    const bits = (isGfx9 ? data[0] : data[6]) as number;
    const near = isGfx9 ? 0x08400000 : 0x3f0;
    const all = isGfx9 ? 0x28c40000 | near : 0xc3f1;
    must(bits === near || bits === all >>> 0, () => `ACQUIRE_MEM of the caches ${hex(bits)}`);
    if (bits !== near || this.#stale === "near") this.#stale = "no";
  }
  #release(data: readonly number[]): void {
    const [event, select, lo, hi, value] = data as [number, number, number, number, number];
    const flush = event - 0x514;
    const wanted = this.#generation.caches === "gfx9" ? 0x88000 : 0x70f000;
    this.#running = false;
    const va = words(lo, hi);
    if (select === 3 * 2 ** 29) {
      must(flush === 0, () => `RELEASE_MEM of the clock with ${hex(event)}`);
      this.#stamp(this.#aligned(va, 8, "RELEASE_MEM"), "RELEASE_MEM");
      return;
    }
    must(select === 2 ** 29 && flush === wanted, () => `RELEASE_MEM ${hex(event)} ${hex(select)}`);
    this.#at(this.#aligned(va, 4, "RELEASE_MEM"), 4, "RELEASE_MEM").setUint32(0, value, true);
  }

  // ---- kernels

  #register(at: number): number {
    const found = this.#registers.get(at);
    if (found === undefined) throw new Error(`mock: a launch with register ${hex(at)} unset`);
    return found;
  }
  #three(at: number): [number, number, number] {
    return [0, 1, 2].map((i) => this.#register(at + i)) as [number, number, number];
  }
  #dispatch([x = 0, y = 0, z = 0, initiator]: readonly number[]): void {
    must(!this.#running, () => "a kernel starts while another may run");
    must(
      this.#stale === "no",
      () => `a kernel starts with caches that may be older than memory (${this.#stale})`,
    );
    for (const at of EVERY) this.#register(at);
    for (const at of ZERO)
      must(this.#register(at) === 0, () => `register ${hex(at)} is ${this.#register(at)}`);
    must(
      this.#three(REGISTERS.RESTART_X).every((n) => n === 0),
      () => "RESTART is not 0",
    );
    must(
      this.#three(REGISTERS.START_X).every((n) => n === 0),
      () => "START is not 0",
    );
    must(x > 0 && y > 0 && z > 0, () => `a grid of ${x}, ${y}, ${z}`);
    const code = words(this.#register(REGISTERS.PGM_LO), this.#register(REGISTERS.PGM_LO + 1)) * 256;
    const head = this.#at(code, 8, "code");
    const kernel = this.kernels[head.getUint32(4, true)];
    if (head.getUint32(0, true) !== CODE_MAGIC || kernel === undefined)
      throw new Error(`mock: no kernel at ${hex(code)}`);
    const { hsaco } = kernel;
    const isWave32 = ((PROPERTIES[this.#arch] ?? 0) & 0x400) !== 0;
    must(initiator === (isWave32 ? 0x8005 : 5), () => `DISPATCH_INITIATOR ${hex(initiator ?? 0)}`);
    this.#resources(hsaco);
    const block = this.#three(REGISTERS.START_X + 3);
    const threads = block[0] * block[1] * block[2];
    must(threads >= 1 && threads <= (hsaco.maxThreads ?? 1024), () => `a workgroup of ${block}`);
    this.#call(kernel, this.#scalars(hsaco), [x, y, z], block);
    this.kernelsRun++;
    this.#running = true;
    this.#stale = "near";
    this.#registers.clear();
  }
  #resources({ shared = 0, scratch = 0 }: TestHsaco): void {
    const { rsrc1, rsrc3, scratchUnit, hasScratchBase } = this.#generation;
    const got = [REGISTERS.PGM_RSRC1, REGISTERS.PGM_RSRC1 + 1, rsrc3].map((at) => this.#register(at));
    const want = [RSRC[0] | rsrc1, RSRC[1] + Math.ceil(shared / 512) * 2 ** 15, RSRC[2]];
    must(
      got.join() === want.join(),
      () => `RSRC ${got.map(hex).join(" ")}, expected ${want.map(hex).join(" ")}`,
    );
    const size = this.#register(REGISTERS.TMPRING_SIZE);
    if (scratch === 0) {
      must(size === 0, () => `scratch of ${hex(size)} for a kernel without`);
      return;
    }
    const [waves, perWave] = [size & 0xfff, Math.floor(size / 4096) * scratchUnit];
    const lanes = ((PROPERTIES[this.#arch] ?? 0) & 0x400) !== 0 ? 32 : 64;
    must(waves > 0 && perWave >= scratch * lanes, () => `scratch of ${waves} wavefronts of ${perWave} bytes`);
    const base = hasScratchBase
      ? words(this.#register(REGISTERS.SCRATCH_BASE_LO), this.#register(REGISTERS.SCRATCH_BASE_LO + 1)) * 256
      : words(this.#register(REGISTERS.USER_DATA_0 + 4), this.#register(REGISTERS.USER_DATA_0 + 5));
    this.#memory.bytes(base, waves * perWave, "scratch");
  }
  /** Checks what the code would find in its scalar registers, and gives the address of the arguments. */
  #scalars({ scratch = 0 }: TestHsaco): number {
    const data = Array.from({ length: 16 }, (_, i) => this.#registers.get(REGISTERS.USER_DATA_0 + i)).filter(
      (x) => x !== undefined,
    );
    const given = this.#generation.hasScratchBase ? 2 : 8;
    must(data.length === given, () => `${data.length} scalar registers, expected ${given}`);
    if (given === 8 && scratch > 0) {
      const [lo, hi, , format, low, high] = data as number[];
      must(
        (hi as number) >= 2 ** 31 && format === 0xea4fac,
        () => `a descriptor of ${data.map(hex).join(" ")}`,
      );
      must(words(lo, (hi as number) - 2 ** 31) === words(low, high), () => "two places of scratch");
    }
    return words(data.at(-2), data.at(-1));
  }
  #call(kernel: MockKernel, at: number, grid: readonly number[], block: readonly number[]): void {
    const { buffers, vals, hsaco, program } = kernel;
    const offsets = argumentOffsets(hsaco.args);
    const view = this.#at(this.#aligned(at, 16, "arguments"), (offsets.at(-1) ?? 0) + 8, "arguments");
    const handles = offsets.slice(0, buffers).map((o, i) => {
      const va = Number(view.getBigUint64(o, true));
      return this.#memory.bytes(va, 0, `argument ${i} of ${hsaco.name}`);
    });
    const values = offsets.slice(buffers).map((o) => view.getInt32(o, true));
    must(values.length === vals, () => `${hsaco.name} takes ${vals} values`);
    program.run(handles, { globalSize: grid, localSize: block, vals: values }, false);
  }

  // ---- the copy ring

  #copyPacket({ name, fields, words: w }: SdmaPacket): boolean {
    const d = (i: number): number => w[i] as number;
    const { longestCopy, fenceType } = this.#generation;
    const size = (n: number): number => {
      must(n < longestCopy, () => `${name} of ${n + 1} bytes, of ${longestCopy}`);
      return n + 1;
    };
    const plain = (): void => must(fields === 0, () => `${name} with ${hex(fields)}`);
    switch (name) {
      case "NOP":
        plain();
        return true;
      case "COPY_LINEAR": {
        plain();
        must(d(2) === 0, () => `${name} with the parameter ${hex(d(2))}`);
        const count = size(d(1));
        const src = this.#memory.bytes(words(d(3), d(4)), count, "copy from").subarray(0, count);
        this.#memory.bytes(words(d(5), d(6)), count, "copy to").set(src);
        return true;
      }
      case "CONSTANT_FILL": {
        plain();
        const count = size(d(4));
        this.#memory.bytes(words(d(1), d(2)), count, "fill").fill(d(3), 0, count);
        return true;
      }
      case "FENCE":
        must(fields === fenceType, () => `FENCE with ${hex(fields)}`);
        this.#at(this.#aligned(words(d(1), d(2)), 4, name), 4, name).setUint32(0, d(3), true);
        return true;
      case "POLL_REGMEM":
        must(
          fields === 0xd0000000 && d(4) === 0xffffffff && d(5) === 0x0fff0004,
          () => `${name} ${w.map(hex).join(" ")}`,
        );
        return this.#reached(words(d(1), d(2)), d(3), name);
      case "TIMESTAMP_GET_GLOBAL":
        plain();
        this.#stamp(this.#aligned(words(d(1), d(2)), 32, name), name);
        return true;
    }
  }
}
