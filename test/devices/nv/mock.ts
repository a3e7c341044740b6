// A GPU in JavaScript, behind the same interface as the real one (src/devices/nv/gpu.ts): it fetches ring
// entries, decodes methods, QMDs and semaphores, moves bytes, and executes kernels by their uops on the JS
// device. It believes nothing: what it does not know, what is not mapped, not aligned, out of range or would
// race is a fault that says so. Kernels are found by the first bytes of their code, which `compiler()` makes.

import { GRID } from "../../../src/codegen/linear/workgrouplinear.ts";
import { GRID_OPS } from "../../../src/codegen/opt/cpuops.ts";
import type { Source } from "../../../src/codegen/target.ts";
import { JSRenderer, open as openJS } from "../../../src/devices/js.ts";
import { parse, type Sent, unpack } from "../../../src/devices/nv/commands/methods.ts";
import { readQmd } from "../../../src/devices/nv/commands/qmd.ts";
import type { NVChannel, NVGpu } from "../../../src/devices/nv/gpu.ts";
import { OutOfMemoryError } from "../../../src/errors.ts";
import { CUDARenderer } from "../../../src/render/languages.ts";
import type { Program } from "../../../src/runtime/device.ts";
import type { KernelCompiler } from "../../../src/runtime/hcq/hardware.ts";
import type { MemoryBlock, MemoryKind } from "../../../src/runtime/hcq/pool.ts";
import { UOpGraph } from "../../../src/uop/list.ts";
import { buildCubin, PARAMETERS_AT, parameterOffsets, type TestCubin } from "./commands/elf.ts";
import { EXPECTED, oddBits, type Qmd4Field } from "./mockqmd.ts";

const PAGE = 4096;
const ARCH = 90;
const CODE_MAGIC = 0x4b434f4d; // "MOCK"
/** What device memory holds before it is written. */
const GARBAGE = 0xa5;

interface Mapping extends MemoryBlock {
  readonly data: Uint8Array;
}
/** Something that the hardware would not do. */
class Fault extends Error {}
const must = (condition: boolean, what: () => string): void => {
  if (!condition) throw new Fault(what());
};
const hex = (x: number): string => `0x${x.toString(16)}`;

/** A kernel that the mock can execute. */
interface MockKernel {
  readonly name: string;
  readonly program: Program<Uint8Array>;
  readonly buffers: number;
  readonly vals: number;
}

class MockChannel implements NVChannel {
  readonly kind: "compute" | "copy";
  readonly entries = 1024;
  readonly #gpu: MockGpu;
  readonly queue: { va: number; dwords: number }[] = [];
  /** what is left of the entry that is executed */
  stream: Iterator<Sent> | undefined;
  /** a method that has to wait */
  held: Sent | undefined;
  failure: string | undefined;
  /** data of the methods that only set something */
  readonly state = new Map<string, number>();
  /** QMDs that were sent and have not run */
  readonly sent: number[] = [];

  constructor(gpu: MockGpu, kind: "compute" | "copy") {
    this.#gpu = gpu;
    this.kind = kind;
  }
  pending(): number {
    return this.queue.length;
  }
  /** Waiting is the only time at which a host that polls lets the mock go on. */
  fault(): string | undefined {
    this.#gpu.pump();
    return this.failure;
  }
  get(name: string): number {
    const found = this.state.get(name);
    if (found === undefined) throw new Fault(`${name} is used and was never set`);
    return found;
  }
  address(upper: string, lower: string): number {
    return this.get(upper) * 2 ** 32 + this.get(lower);
  }
}

export interface MockOptions {
  /** submit: what can be executed is, at once; poll: when somebody waits, so that the host runs ahead */
  readonly when?: "submit" | "poll";
  readonly totalBytes?: number;
  /** the addresses that memory gets, in order, where another GPU's words are to be compared */
  readonly addresses?: readonly number[];
  readonly sharedWindow?: number;
  readonly localWindow?: number;
}

export class MockGpu implements NVGpu {
  readonly name = "Mock";
  readonly tick = 1;
  readonly arch = ARCH;
  readonly classes = { channel: 0xc86f, compute: 0xcbc0, copy: 0xc8b5 };
  readonly smCount = 4;
  readonly gpcs = 2;
  readonly tpcsPerGpc = 1;
  readonly smsPerTpc = 2;
  readonly maxWarpsPerSM = 64;
  readonly totalBytes: number;
  readonly sharedWindow: number;
  readonly localWindow: number;
  compute = new MockChannel(this, "compute");
  copy = new MockChannel(this, "copy");
  /** every submission so far: its words, as they were when it was handed over */
  readonly log: { readonly kind: "compute" | "copy"; readonly words: number[] }[] = [];
  readonly #when: "submit" | "poll";
  readonly #mappings: Mapping[] = [];
  readonly #kernels: MockKernel[] = [];
  #next = 0x200000000;
  #used = 0;
  #pumping = false;
  kernelsRun = 0;
  /** no channel can be had any more */
  broken = false;
  /** what the next kernels that are compiled say of themselves */
  facts: Partial<TestCubin> = {};

  readonly #addresses: number[];

  constructor(options: MockOptions = {}) {
    const { when = "submit", totalBytes = 2 ** 31, addresses = [] } = options;
    this.#when = when;
    this.totalBytes = totalBytes;
    this.#addresses = [...addresses];
    this.sharedWindow = options.sharedWindow ?? 0xfe00000000;
    this.localWindow = options.localWindow ?? 0xff00000000;
  }

  // ---- memory

  alloc(nbytes: number, kind: MemoryKind): MemoryBlock {
    const size = Math.ceil(nbytes / PAGE) * PAGE;
    if (kind !== "host" && this.#used + size > this.totalBytes)
      throw new OutOfMemoryError(`mock: no room for ${nbytes} bytes`);
    if (kind !== "host") this.#used += size;
    const data = new Uint8Array(size);
    if (kind !== "host") data.fill(GARBAGE);
    const va = this.#addresses.shift() ?? this.#next;
    const mapping = { va, size, kind, bytes: kind === "device" ? undefined : data, data };
    // a gap after each, and no address twice: what runs over the end or comes too late meets nothing
    this.#next += Math.ceil(size / 2 ** 21 + 1) * 2 ** 21;
    this.#mappings.push(mapping);
    return mapping;
  }
  free(memory: MemoryBlock): void {
    const at = this.#mappings.indexOf(memory as Mapping);
    if (at < 0) throw new Error(`mock: free of ${hex(memory.va)}, which is not mapped`);
    this.#mappings.splice(at, 1);
    if (memory.kind !== "host") this.#used -= memory.size;
  }
  /** The bytes from an address to the end of what is mapped there. */
  bytes(va: number, nbytes: number, what: string): Uint8Array {
    const m = this.#mappings.find((x) => va >= x.va && va < x.va + x.size);
    if (m === undefined) throw new Fault(`${what}: ${hex(va)} is not mapped`);
    must(
      va + nbytes <= m.va + m.size,
      () => `${what}: ${nbytes} bytes at ${hex(va)} run over the end of its memory`,
    );
    return m.data.subarray(va - m.va);
  }
  words(va: number, count: number, what: string): Uint32Array {
    must(va % 4 === 0, () => `${what}: ${hex(va)} is not aligned to words`);
    const b = this.bytes(va, count * 4, what);
    return new Uint32Array(b.buffer, b.byteOffset, count);
  }
  restart(): void {
    if (this.broken) throw new Error("mock: broken for good");
    this.compute = new MockChannel(this, "compute");
    this.copy = new MockChannel(this, "copy");
  }
  freeBytes(): number {
    return this.totalBytes - this.#used;
  }
  time(): bigint {
    return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e6));
  }
  close(): void {
    this.#mappings.length = 0;
  }

  // ---- rings

  submit(channel: NVChannel, va: number, dwords: number): void {
    const c = channel as MockChannel;
    if (c.failure !== undefined) throw new Error(c.failure);
    if (va % 4 !== 0 || va >= 2 ** 40 || dwords < 1 || dwords >= 2 ** 21)
      throw new Error(`mock: ${dwords} words at ${hex(va)} are not an entry of the ring`);
    this.log.push({ kind: c.kind, words: [...this.words(va, dwords, "ring entry")] });
    c.queue.push({ va, dwords });
    if (this.#when === "submit") this.pump();
  }

  /** Executes what can be executed: channel after channel, until all are at their end or wait. */
  pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      while (this.#advance(this.compute) || this.#advance(this.copy));
    } finally {
      this.#pumping = false;
    }
  }
  /** Whether anything happened. */
  #advance(c: MockChannel): boolean {
    if (c.failure !== undefined) return false;
    let moved = false;
    try {
      while (this.#step(c)) moved = true;
      // the stream waits or is at its end; what it has sent runs meanwhile
      if (c.sent.length > 0) {
        this.#runSent(c);
        moved = true;
      }
    } catch (e) {
      c.failure = e instanceof Fault ? e.message : `the kernel failed: ${(e as Error).message}`;
    }
    return moved;
  }
  #step(c: MockChannel): boolean {
    if (c.held === undefined) {
      if (c.stream === undefined) {
        const entry = c.queue.shift();
        if (entry === undefined) return false;
        c.stream = parse(this.words(entry.va, entry.dwords, "stream"));
      }
      const { value, done } = c.stream.next();
      if (done === true) {
        c.stream = undefined;
        return true;
      }
      c.held = value;
    }
    if (!this.#execute(c, c.held)) return false;
    c.held = undefined;
    return true;
  }

  // ---- methods

  /** False: not now. */
  #execute(c: MockChannel, sent: Sent): boolean {
    const { to, name, data } = sent;
    const fields = unpack(sent);
    must(
      to === "HOST" || to === (c.kind === "copy" ? "COPY" : "COMPUTE"),
      () => `${to}.${name} on a ${c.kind} channel`,
    );
    if (to !== "HOST" && name !== "SET_OBJECT")
      must(c.state.has("SET_OBJECT"), () => `${to}.${name} before the channel was given its class`);
    c.state.set(name, data);
    switch (name) {
      case "SET_OBJECT":
        must(data === this.classes[c.kind], () => `class ${hex(data)} on a ${c.kind} channel`);
        return true;
      case "SEM_EXECUTE":
        return this.#semaphore(c, fields);
      case "WAIT_FOR_IDLE":
        this.#runSent(c);
        return true;
      case "SEND_SIGNALING_PCAS2_B":
        must(fields.PCAS_ACTION === 9, () => `PCAS action ${fields.PCAS_ACTION}`);
        must(c.sent.length === 0, () => "a QMD is sent while another may run, with no WAIT_FOR_IDLE between");
        c.sent.push(c.get("SEND_PCAS_A") * 256);
        return true;
      case "LAUNCH_DMA":
        this.#dma(c, fields);
        return true;
      case "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C": {
        must(c.sent.length === 0, () => "local memory is moved while a kernel may run");
        const base = c.address("SET_SHADER_LOCAL_MEMORY_A", "SET_SHADER_LOCAL_MEMORY_B");
        const perTpc = this.#localPerTpc(c);
        this.bytes(base, perTpc * this.gpcs * this.tpcsPerGpc, "local memory");
        return true;
      }
      default:
        return true;
    }
  }
  #localPerTpc(c: MockChannel): number {
    const method = "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED";
    return c.state.has(`${method}_C`) ? c.address(`${method}_A`, `${method}_B`) : 0;
  }

  #semaphore(c: MockChannel, f: Record<string, number>): boolean {
    const va = c.address("SEM_ADDR_HI", "SEM_ADDR_LO");
    const value = c.address("SEM_PAYLOAD_HI", "SEM_PAYLOAD_LO");
    must(f.PAYLOAD_SIZE === 1, () => "a semaphore of 32 bits");
    must(va % 16 === 0, () => `semaphore at ${hex(va)}: not aligned to 16`);
    const words = this.words(va, 4, "semaphore");
    if (f.OPERATION === 3) return (words[1] as number) * 2 ** 32 + (words[0] as number) >= value;
    must(f.OPERATION === 1, () => `semaphore operation ${f.OPERATION}`);
    must(f.RELEASE_TIMESTAMP === 1, () => "a release without a timestamp");
    if (f.RELEASE_WFI === 1) this.#runSent(c);
    this.#release(va, value);
    return true;
  }
  #release(va: number, value: number): void {
    must(va % 16 === 0, () => `release at ${hex(va)}: not aligned to 16`);
    const words = this.words(va, 4, "release");
    const time = this.time();
    words.set([value >>> 0, Math.floor(value / 2 ** 32), Number(time & 0xffffffffn), Number(time >> 32n)]);
  }

  #dma(c: MockChannel, f: Record<string, number>): void {
    if (f.DATA_TRANSFER_TYPE !== 0) {
      must(f.DATA_TRANSFER_TYPE === 2, () => "a pipelined copy, which may overtake others");
      must(f.SRC_MEMORY_LAYOUT === 1 && f.DST_MEMORY_LAYOUT === 1, () => "a copy of tiled memory");
      const count = c.get("LINE_LENGTH_IN");
      must(count > 0, () => "a copy of no bytes");
      const to = c.address("OFFSET_OUT_UPPER", "OFFSET_OUT_LOWER");
      if (f.REMAP_ENABLE === 1) {
        const remap = unpack({ ...REMAP, data: c.get("SET_REMAP_COMPONENTS") });
        must(remap.DST_X === 4 && remap.COMPONENT_SIZE === 3, () => "a remap other than words of constant A");
        this.words(to, count, "fill").fill(c.get("SET_REMAP_CONST_A"));
      } else {
        const from = c.address("OFFSET_IN_UPPER", "OFFSET_IN_LOWER");
        const src = this.bytes(from, count, "copy from").subarray(0, count);
        this.bytes(to, count, "copy to").set(src);
      }
    }
    if (f.SEMAPHORE_TYPE === 0) return;
    must(f.SEMAPHORE_TYPE === 2 && f.SEMAPHORE_PAYLOAD_SIZE === 1, () => "a semaphore of another size");
    must(f.FLUSH_ENABLE === 1, () => "a semaphore that may overtake the bytes");
    const va = c.address("SET_SEMAPHORE_A", "SET_SEMAPHORE_B");
    this.#release(va, c.address("SET_SEMAPHORE_PAYLOAD_UPPER", "SET_SEMAPHORE_PAYLOAD"));
  }

  // ---- kernels

  #runSent(c: MockChannel): void {
    for (const va of c.sent.splice(0)) {
      let at: number | undefined = va;
      for (let n = 0; at !== undefined; n++) {
        must(n < 100_000, () => "a chain of QMDs without an end");
        at = this.#runQmd(c, at);
      }
    }
  }
  /** Runs one grid; the QMD that it starts, if any. */
  #runQmd(c: MockChannel, va: number): number | undefined {
    must(va % 256 === 0 && va < 2 ** 40, () => `QMD at ${hex(va)}: not aligned to 256`);
    const words = this.words(va, 96, "QMD").slice();
    const odd = oddBits(words);
    must(odd === undefined, () => `QMD: ${odd}`);
    const qmd = readQmd(ARCH, words);
    const get = (name: Qmd4Field, i = 0): number => qmd.get(name as never, i);
    for (const [name, want] of EXPECTED)
      must(get(name) === want, () => `QMD: ${name} is ${get(name)}, expected ${want}`);
    this.#launch(c, get);
    for (let i = 0; i < 3; i++) {
      if (get("RELEASE_ENABLE", i) === 0) continue;
      must(get("RELEASE_PAYLOAD64B", i) === 1, () => "QMD: a release of 32 bits");
      const s = i as 0 | 1 | 2;
      const pair = (what: "ADDR" | "PAYLOAD") =>
        get(`RELEASE_SEMAPHORE${s}_${what}_UPPER`) * 2 ** 32 + get(`RELEASE_SEMAPHORE${s}_${what}_LOWER`);
      this.#release(pair("ADDR"), pair("PAYLOAD"));
    }
    if (get("DEPENDENT_QMD_ENABLE") === 0) return undefined;
    must(get("DEPENDENT_QMD_ACTION") === 1, () => `QMD: dependent action ${get("DEPENDENT_QMD_ACTION")}`);
    return get("DEPENDENT_QMD0_POINTER") * 256;
  }
  #launch(c: MockChannel, get: (name: Qmd4Field, i?: number) => number): void {
    const at = get("PROGRAM_ADDRESS_UPPER") * 2 ** 32 + get("PROGRAM_ADDRESS_LOWER");
    must(at % 128 === 0, () => `QMD: code at ${hex(at)} is not aligned to 128`);
    const [magic, id = -1] = this.words(at, 2, "code");
    const kernel = this.#kernels[id];
    if (magic !== CODE_MAGIC || kernel === undefined) throw new Fault(`QMD: no kernel at ${hex(at)}`);
    const block = [get("CTA_THREAD_DIMENSION0"), get("CTA_THREAD_DIMENSION1"), get("CTA_THREAD_DIMENSION2")];
    const grid = [get("GRID_WIDTH"), get("GRID_HEIGHT"), get("GRID_DEPTH")];
    const threads = block.reduce((a, b) => a * b);
    must(threads >= 1 && threads <= 1024 && (block[2] as number) <= 64, () => `QMD: a block of ${block}`);
    must(
      grid.every((n) => n >= 1),
      () => `QMD: a grid of ${grid}`,
    );
    const registers = get("REGISTER_COUNT");
    must(registers >= 1 && registers <= 255, () => `QMD: ${registers} registers`);
    must(
      Math.ceil(registers / 8) * 8 * threads <= 65536,
      () => `QMD: ${threads} threads of ${registers} registers`,
    );
    const shared = get("SHARED_MEMORY_SIZE");
    const config = (get("TARGET_SM_CONFIG_SHARED_MEM_SIZE") - 1) * 4096;
    const least = (get("MIN_SM_CONFIG_SHARED_MEM_SIZE") - 1) * 4096;
    must(least <= config, () => `QMD: shared memory of ${config}, where ${least} is the least`);
    // an SM that has threads and registers for more blocks should have shared memory for them
    const wanted = Math.min(
      228 * 1024,
      Math.min(32, Math.floor(2048 / Math.ceil(threads / 32) / 32)) * shared,
    );
    const byRegisters =
      Math.floor(65536 / (Math.ceil(registers / 8) * 8 * Math.ceil(threads / 32) * 32)) * shared;
    must(config >= Math.min(wanted, byRegisters), () => `QMD: shared memory of ${config} keeps blocks out`);
    must(shared >= 1024 && shared % 128 === 0, () => `QMD: ${shared} bytes of shared memory`);
    must(
      shared <= config && config <= 228 * 1024,
      () => `QMD: ${shared} bytes of shared memory of ${config}`,
    );
    const local = get("SHADER_LOCAL_MEMORY_HIGH_SIZE");
    must(local % 16 === 0, () => `QMD: ${local} bytes of local memory`);
    const needed = local * 32 * this.maxWarpsPerSM * this.smsPerTpc;
    must(
      needed <= this.#localPerTpc(c),
      () => `QMD: ${local} bytes of local memory a thread were not set up`,
    );
    for (const name of ["SET_SHADER_SHARED_MEMORY_WINDOW_A", "SET_SHADER_LOCAL_MEMORY_WINDOW_A"]) c.get(name);
    this.#call(kernel, get, grid, block);
    this.kernelsRun++;
  }
  #call(
    kernel: MockKernel,
    get: (name: Qmd4Field, i?: number) => number,
    grid: readonly number[],
    block: readonly number[],
  ): void {
    must(get("CONSTANT_BUFFER_VALID") === 1, () => `QMD of ${kernel.name}: no constant bank 0`);
    const shifted =
      get("CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6") * 2 ** 32 + get("CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6");
    const size = get("CONSTANT_BUFFER_SIZE_SHIFTED4") * 16;
    const bank = this.bytes(shifted * 64, size, "constant bank 0");
    const view = new DataView(bank.buffer, bank.byteOffset, size);
    const dims = Array.from({ length: 6 }, (_, i) => view.getUint32(i * 4, true));
    must(dims.join() === [...block, ...grid].join(), () => `bank 0 of ${kernel.name} has the sizes ${dims}`);
    must(
      Number(view.getBigUint64(0x18, true)) === this.sharedWindow,
      () => "bank 0: the window of shared memory",
    );
    must(
      Number(view.getBigUint64(0x20, true)) === this.localWindow,
      () => "bank 0: the window of local memory",
    );
    const { buffers, vals } = kernel;
    const offsets = parameterOffsets([...Array(buffers).fill(8), ...Array(vals).fill(4)]);
    const need = PARAMETERS_AT + (offsets.at(-1) ?? 0) + (vals > 0 ? 4 : 8);
    must(size >= need && size <= 65536, () => `bank 0 of ${kernel.name} has ${size} bytes, of ${need}`);
    const handles = offsets.slice(0, buffers).map((o, i) => {
      const va = Number(view.getBigUint64(PARAMETERS_AT + o, true));
      return this.bytes(va, 0, `argument ${i} of ${kernel.name}`);
    });
    const values = offsets.slice(buffers).map((o) => view.getInt32(PARAMETERS_AT + o, true));
    kernel.program.run(handles, { globalSize: grid, localSize: block, vals: values }, false);
  }

  /** Renders nothing, and compiles lists of uops to cubins whose code names the list. */
  compiler(): KernelCompiler {
    const js = openJS("JS");
    const { globalMax, localMax } = CUDARenderer;
    return {
      renderer: { ...JSRenderer, name: "NV", optOps: GRID_OPS, grid: GRID, globalMax, localMax },
      compile: (name, source: Source) => {
        if (!(source.code instanceof UOpGraph)) throw new Error("mock: compiles lists of uops");
        const program = js.compile(name, source) as Program<Uint8Array>;
        const { buffers, vals } = source;
        const id = this.#kernels.push({ name, program, buffers, vals }) - 1;
        const code = new Uint8Array(new Uint32Array([CODE_MAGIC, id, 0, 0]).buffer);
        const parameters = [...Array<number>(buffers).fill(8), ...Array<number>(vals).fill(4)];
        return { code: buildCubin({ name, code, parameters, ...this.facts }), entry: name };
      },
    };
  }
}

const REMAP = [...parse([0x20010000 | (4 << 13) | (0x708 >> 2), 0])][0] as Sent;
