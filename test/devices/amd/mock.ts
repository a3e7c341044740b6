// A kernel with AMD's driver in it, for tests: topology, ioctls, memory, queues, events, and behind them a
// GPU in JavaScript (mockgpu.ts) that does what the rings say. It keeps what it gave, answers as the real
// one does and refuses what that would refuse. `calls` says what was asked in which order; `left()` what was
// never given back.

import { GRID } from "../../../src/codegen/linear/workgrouplinear.ts";
import { GRID_OPS } from "../../../src/codegen/opt/cpuops.ts";
import type { Source } from "../../../src/codegen/target.ts";
import { GENERATIONS, type PacketGeneration } from "../../../src/devices/amd/commands/generations.ts";
import { CALLS, type CallName, EVENT, MEMORY, STRUCTS } from "../../../src/devices/amd/driver/ioctls.ts";
import { KfdStruct } from "../../../src/devices/amd/driver/kfd.ts";
import { JSRenderer, open as openJS } from "../../../src/devices/js.ts";
import { ioctlRequest, type LinuxSystem, type NativeMemory } from "../../../src/devices/linux/syscalls.ts";
import { AMDRenderer } from "../../../src/render/amd.ts";
import type { Program } from "../../../src/runtime/device.ts";
import type { KernelCompiler } from "../../../src/runtime/hcq/hardware.ts";
import { UOpGraph } from "../../../src/uop/list.ts";
import { buildHsaco, type TestHsaco } from "./commands/elf.ts";
import { CODE_MAGIC, MockGpu, type MockQueue, Stray } from "./mockgpu.ts";

const [EPERM, ENOENT, EBADF, ENOMEM, EINVAL] = [-1, -2, -9, -12, -22];
const PAGE = 4096;
/** What memory of the GPU holds before it is written. */
const GARBAGE = 0xa5;
const GPU_ID = 0x9d27;
const RENDER = "/dev/dri/renderD128";
const NODES = "/sys/devices/virtual/kfd/kfd/topology/nodes";
const VERSIONS: Readonly<Record<string, number>> = {
  gfx90a: 90010,
  gfx942: 90402,
  gfx1100: 110000,
  gfx1201: 120001,
};
const DOORBELLS = 3n << 62n;

interface Area {
  readonly start: number;
  readonly size: number;
}
interface Mapping extends Area {
  readonly handle: bigint;
  readonly data: Uint8Array;
  readonly isHost: boolean;
  hostSees: boolean;
  gpuSees: boolean;
}
interface Queue extends MockQueue {
  readonly id: number;
}
/** What a driver refuses is a number below 0; what the test did wrong ends it. */
class Refused extends Error {
  readonly code: number;
  constructor(code: number, why: string) {
    super(why);
    this.code = code;
  }
}
const must = (condition: boolean, why: string, code = EINVAL): void => {
  if (!condition) throw new Refused(code, why);
};

export interface MockOptions {
  /** submit: what can be executed is, at once; poll: when somebody waits, so that the host runs ahead */
  readonly when?: "submit" | "poll";
  readonly totalBytes?: number;
  readonly arch?: string;
}

export class MockKfd implements LinuxSystem {
  readonly gpu: MockGpu;
  readonly arch: string;
  readonly generation: PacketGeneration;
  readonly calls: string[] = [];
  /** why a call is refused now: the number of an error */
  refuse: (call: string) => number | undefined = () => undefined;
  /** what the last refusal was about */
  why = "";
  /** what the next kernels that are compiled say of themselves */
  facts: Partial<TestHsaco> = {};
  readonly #when: "submit" | "poll";
  readonly #total: number;
  #used = 0;
  #next = 0x7000_0000_0000;
  #handles = 0n;
  readonly #files = new Map<number, string>();
  readonly #native = new Map<number, Uint8Array>();
  readonly #reserved = new Map<number, number>();
  readonly #mappings = new Map<bigint, Mapping>();
  readonly #events = new Map<number, number>();
  readonly #queues: Queue[] = [];
  readonly #doorbells = new Uint8Array(2 * PAGE);
  #doorbellsAt: number | undefined;
  #doorbellMaps = 0;
  #hasSpace = false;

  constructor({ when = "submit", totalBytes = 2 ** 31, arch = "gfx1100" }: MockOptions = {}) {
    this.#when = when;
    this.#total = totalBytes;
    this.arch = arch;
    this.generation = GENERATIONS[arch] as PacketGeneration;
    const memory = {
      bytes: (va: number, nbytes: number, what: string) => this.#reach(va, nbytes, what),
      clock: () => this.clock(),
    };
    this.gpu = new MockGpu(memory, this.generation, arch);
  }
  /** 100 MHz. */
  clock(): bigint {
    return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e5));
  }
  #reach(va: number, nbytes: number, what: string): Uint8Array {
    for (const m of this.#mappings.values()) {
      if (va < m.start || va >= m.start + m.size) continue;
      if (!m.gpuSees) break;
      if (va + nbytes > m.start + m.size) throw new Stray(m.start + m.size, what);
      return m.data.subarray(va - m.start);
    }
    throw new Stray(va, what);
  }
  /** Names of what was made and not given back. */
  left(): string[] {
    return [
      ...this.#files.values(),
      ...[...this.#native.keys()].map(() => "memory"),
      ...[...this.#reserved.keys()].map(() => "addresses"),
      ...[...this.#mappings.keys()].map(() => "a mapping"),
      ...[...this.#events.keys()].map(() => "an event"),
      ...this.#queues.map((q) => `a ${q.kind} queue`),
      ...(this.#doorbellsAt === undefined ? [] : ["doorbells"]),
    ];
  }

  // ---- files and memory of the process

  open(path: string): number {
    this.calls.push(`open ${path}`);
    const refused = this.refuse(`open ${path}`);
    if (refused !== undefined) return refused;
    if (path !== "/dev/kfd" && path !== RENDER) return ENOENT;
    const fd = 10 + this.calls.length;
    this.#files.set(fd, path);
    return fd;
  }
  close(fd: number): void {
    if (!this.#files.delete(fd)) throw new Error(`mock: ${fd} is not open`);
  }
  #take(nbytes: number): number {
    const at = this.#next;
    this.#next += Math.ceil(nbytes / PAGE + 1) * PAGE;
    return at;
  }
  alloc(nbytes: number): NativeMemory {
    const [at, bytes] = [this.#take(nbytes), new Uint8Array(nbytes)];
    this.#native.set(at, bytes);
    return { address: BigInt(at), bytes };
  }
  free({ address }: NativeMemory): void {
    if (!this.#native.delete(Number(address))) throw new Error(`mock: no memory at ${address}`);
  }
  reserve(nbytes: number): bigint {
    const at = this.#take(nbytes);
    this.#reserved.set(at, nbytes);
    return BigInt(at);
  }
  mmap(): bigint | undefined {
    throw new Error("mock: nothing here maps without an address");
  }
  mapAt(address: bigint, nbytes: number, fd: number, offset: bigint): bigint | undefined {
    const path = this.#files.get(fd);
    if (path === "/dev/kfd") {
      if (address !== 0n || offset !== DOORBELLS || nbytes !== 2 * PAGE)
        throw new Error("mock: not the doorbells");
      this.#doorbellsAt ??= this.#take(nbytes);
      this.#doorbellMaps++;
      return BigInt(this.#doorbellsAt);
    }
    const found = [...this.#mappings.values()].find((m) => this.#offsetOf(m) === offset);
    if (path !== RENDER || found === undefined || found.start !== Number(address) || nbytes > found.size)
      throw new Error(`mock: mapping of ${nbytes} bytes at ${address} from ${path} ${offset}`);
    if (this.refuse("mmap") !== undefined) return undefined;
    found.hostSees = true;
    return address;
  }
  #offsetOf({ handle }: Mapping): bigint {
    return (handle & 0xffffffffn) << 20n;
  }
  munmap(address: bigint, nbytes: number): void {
    const at = Number(address);
    if (at === this.#doorbellsAt) {
      if (--this.#doorbellMaps === 0) this.#doorbellsAt = undefined;
      return;
    }
    if (this.#reserved.get(at) !== nbytes) throw new Error(`mock: no ${nbytes} bytes at ${at} were reserved`);
    const inside = [...this.#mappings.values()].find((m) => m.start >= at && m.start < at + nbytes);
    if (inside !== undefined) throw new Error("mock: addresses are given back whose memory is not");
    this.#reserved.delete(at);
  }
  view(address: bigint, nbytes: number): Uint8Array {
    const at = Number(address);
    if (at === this.#doorbellsAt) return this.#doorbells.subarray(0, nbytes);
    const m = [...this.#mappings.values()].find((x) => at >= x.start && at + nbytes <= x.start + x.size);
    if (m === undefined || !m.hostSees) throw new Error(`mock: the host does not see ${at}`);
    return m.data.subarray(at - m.start, at - m.start + nbytes);
  }
  barrier(): void {
    if (this.#when === "submit") this.gpu.pump();
  }

  // ---- the driver's folder

  read(path: string): string | undefined {
    if (path === `${NODES}/0/gpu_id`) return "0\n";
    if (path === `${NODES}/1/gpu_id`) return `${GPU_ID}\n`;
    if (path === `${NODES}/1/name`) return "mock\n";
    if (path === `${NODES}/0/properties`) return "cpu_cores_count 8\nsimd_count 0\n";
    if (path === `${NODES}/1/mem_banks/0/properties`) return `heap_type 2\nsize_in_bytes ${this.#total}\n`;
    if (path !== `${NODES}/1/properties`) return undefined;
    const isGfx9 = this.arch.startsWith("gfx9");
    return Object.entries({
      simd_count: isGfx9 ? 32 : 16,
      simd_per_cu: isGfx9 ? 4 : 2,
      array_count: 2,
      simd_arrays_per_engine: 1,
      max_slots_scratch_cu: 32,
      gfx_target_version: VERSIONS[this.arch] ?? 0,
      drm_render_minor: 128,
      wave_front_size: isGfx9 ? 64 : 32,
      num_xcc: 1,
    })
      .map(([name, value]) => `${name} ${value}\n`)
      .join("");
  }
  list(path: string): readonly string[] {
    return path === NODES ? ["1", "0"] : path === `${NODES}/1/mem_banks` ? ["0"] : [];
  }

  // ---- ioctls

  ioctl(fd: number, request: number, address: bigint): number {
    if (this.#files.get(fd) !== "/dev/kfd") return EBADF;
    const found = (Object.keys(CALLS) as CallName[]).find((name) => {
      const [number, direction, struct] = CALLS[name];
      return ioctlRequest(direction, "K", number, STRUCTS[struct].bytes) === request;
    });
    const bytes = this.#native.get(Number(address));
    if (found === undefined || bytes === undefined) return EINVAL;
    if (found !== "WAIT_EVENTS" && found !== "GET_CLOCK_COUNTERS") this.calls.push(found);
    const refused = this.refuse(found);
    if (refused !== undefined) return refused;
    try {
      (this.#answers[found] as (args: unknown) => void)(new KfdStruct(CALLS[found][2], { address, bytes }));
      return 0;
    } catch (e) {
      if (!(e instanceof Refused)) throw e;
      this.why = e.message;
      return e.code;
    }
  }
  #memoryAt(va: number): Mapping {
    const found = [...this.#mappings.values()].find((m) => m.start === va);
    if (found === undefined) throw new Refused(EINVAL, `no memory begins at ${va}`);
    must(found.gpuSees, "memory that is not mapped to the GPU");
    return found;
  }
  #mapping(handle: bigint): Mapping {
    const found = this.#mappings.get(handle);
    if (found === undefined) throw new Refused(EINVAL, `no memory has the handle ${handle}`);
    return found;
  }

  readonly #answers: { readonly [C in CallName]: (args: KfdStruct<(typeof CALLS)[C][2]>) => void } = {
    GET_VERSION: (a) => {
      a.set("major", 1);
      a.set("minor", 17);
    },
    ACQUIRE_VM: (a) => {
      must(this.#files.get(a.get("file")) === RENDER && a.get("gpu") === GPU_ID, "another file or GPU");
      this.#hasSpace = true;
    },
    GET_PROCESS_APERTURES_NEW: (a) => {
      const bytes = this.#native.get(a.get("list")) as Uint8Array;
      new KfdStruct("aperture", { address: 0n, bytes }).fill({
        base: 0x1000,
        limit: 2 ** 47 - 1,
        gpu: GPU_ID,
      });
      a.set("count", 1);
    },
    GET_CLOCK_COUNTERS: (a) => a.set("gpuClock", this.clock()),
    AVAILABLE_MEMORY: (a) => a.set("bytes", this.#total - this.#used),
    ALLOC_MEMORY_OF_GPU: (a) => this.#allocate(a),
    FREE_MEMORY_OF_GPU: (a) => {
      const m = this.#mapping(a.big("handle"));
      must(!m.gpuSees, "memory that the GPU still sees");
      must(!this.#queues.some((q) => q.ring.buffer === m.data.buffer), "the ring of a queue");
      if (!m.isHost) this.#used -= m.size;
      this.#mappings.delete(m.handle);
    },
    MAP_MEMORY_TO_GPU: (a) => this.#toGpus(a, true),
    UNMAP_MEMORY_FROM_GPU: (a) => this.#toGpus(a, false),
    CREATE_EVENT: (a) => {
      if (a.big("page") !== 0n) return void this.#mapping(a.big("page"));
      must(a.get("type") === EVENT.MEMORY || a.get("type") === EVENT.HARDWARE, "another event");
      const id = 100 + this.#events.size;
      this.#events.set(id, a.get("type"));
      a.set("id", id);
    },
    DESTROY_EVENT: (a) => must(this.#events.delete(a.get("id")), "no such event"),
    RESET_EVENT: (a) => must(this.#events.has(a.get("id")), "no such event"),
    WAIT_EVENTS: (a) => this.#look(a),
    CREATE_QUEUE: (a) => this.#makeQueue(a),
    DESTROY_QUEUE: (a) => {
      const at = this.#queues.findIndex((q) => q.id === a.get("id"));
      must(at >= 0, "no such queue");
      for (const q of this.#queues.splice(at, 1)) this.gpu.remove(q);
    },
  };

  #allocate(a: KfdStruct<"memory">): void {
    must(this.#hasSpace && a.get("gpu") === GPU_ID, "no address space on this GPU");
    const [start, size, flags] = [a.get("va"), a.get("size"), a.get("flags")];
    const common = MEMORY.WRITABLE + MEMORY.EXECUTABLE + MEMORY.NO_SUBSTITUTE;
    const host = common + MEMORY.GTT + MEMORY.COHERENT + MEMORY.UNCACHED + MEMORY.PUBLIC;
    must(flags === common + MEMORY.VRAM || flags === host, `flags 0x${flags.toString(16)}`);
    must(start % PAGE === 0 && size % PAGE === 0 && size > 0, "memory of a part of a page");
    must(size < 2 ** 21 || start % 2 ** 21 === 0, "much memory that no huge page begins at");
    const home = [...this.#reserved].find(([at, n]) => start >= at && start + size <= at + n);
    must(home !== undefined, "addresses that were not reserved");
    const isHost = flags === host;
    must(isHost || this.#used + size <= this.#total, "no room", ENOMEM);
    if (!isHost) this.#used += size;
    const handle = (BigInt(GPU_ID) << 32n) + ++this.#handles;
    const data = new Uint8Array(size).fill(GARBAGE);
    const made = { handle, start, size, data, isHost, hostSees: false, gpuSees: false };
    this.#mappings.set(handle, made);
    a.set("handle", handle);
    a.set("offset", this.#offsetOf(made));
  }
  #toGpus(a: KfdStruct<"mapping">, sees: boolean): void {
    const bytes = this.#native.get(a.get("gpus")) as Uint8Array;
    must(a.get("count") === 1 && new DataView(bytes.buffer).getUint32(0, true) === GPU_ID, "another GPU");
    const m = this.#mapping(a.big("handle"));
    must(m.gpuSees !== sees, `memory that is ${sees ? "" : "not "}mapped already`);
    m.gpuSees = sees;
    a.set("done", 1);
  }
  #makeQueue(a: KfdStruct<"queue">): void {
    must(
      a.get("gpu") === GPU_ID && a.get("percentage") === 100 && a.get("priority") <= 15,
      "another GPU or share",
    );
    const ring = this.#memoryAt(a.get("ring"));
    must(
      ring.isHost && ring.size === a.get("ringBytes") && Number.isInteger(Math.log2(ring.size)),
      "the ring",
    );
    const [read, write] = [a.get("readPointer"), a.get("writePointer")];
    const page = this.#memoryAt(read - (read % PAGE));
    must(
      write - (write % PAGE) === page.start && read % 8 === 0 && write % 8 === 0 && read !== write,
      "pointers",
    );
    must(a.get("type") <= 1, "the kind of queue");
    const kind = a.get("type") === 0 ? "compute" : "copy";
    if (kind === "compute") this.#checkAreas(a);
    const id = this.#queues.length + 1;
    const slot = id * 8;
    const at = (offset: number) => new BigUint64Array(page.data.buffer, offset - page.start, 1);
    const doorbell = new BigUint64Array(this.#doorbells.buffer, slot, 1);
    doorbell[0] = 0n;
    const words = new Uint32Array(ring.data.buffer, 0, ring.size / 4);
    const queue: Queue = { id, kind, ring: words, read: at(read), write: at(write), doorbell };
    must(queue.read[0] === 0n && queue.write[0] === 0n, "pointers that do not begin at 0");
    this.#queues.push(queue);
    this.gpu.add(queue);
    a.set("queue", id);
    a.set("doorbell", DOORBELLS + BigInt(slot));
  }
  /** As the driver computes them: 8 compute units, 2 shader engines. */
  #checkAreas(a: KfdStruct<"queue">): void {
    must(a.get("eopBytes") === PAGE && this.#memoryAt(a.get("eop")).size === PAGE, "the EOP buffer");
    const isGfx9 = this.arch.startsWith("gfx9");
    const waves = isGfx9 ? Math.min(8 * 40, 2 * 512) : 8 * 32;
    const up = (n: number) => Math.ceil(n / PAGE) * PAGE;
    const stack = up(40 + waves * (isGfx9 ? 8 : 12) + 8);
    const saved = stack + up(8 * ((isGfx9 ? 0x80000 : 0x60000) + 0x4000 + 0x10000 + 0x1000));
    must(a.get("stackBytes") === stack && a.get("saveBytes") === saved, "the sizes of what is saved");
    must(this.#memoryAt(a.get("saveArea")).size === up(saved + waves * 32), "the area for what is saved");
  }
  #look(a: KfdStruct<"wait">): void {
    this.gpu.pump();
    const bytes = this.#native.get(a.get("events")) as Uint8Array;
    const { fault } = this.gpu;
    a.set("result", fault === undefined ? 1 : 0);
    for (let i = 0; i < a.get("count"); i++) {
      const data = new KfdStruct("eventData", { address: 0n, bytes }, i * STRUCTS.eventData.bytes);
      const type = this.#events.get(data.get("id"));
      must(type !== undefined, "an event that was not made");
      if (fault === undefined || type !== EVENT.MEMORY) continue;
      data.fill({ id: data.get("id"), notPresent: 1, va: fault.va, memoryGpu: GPU_ID });
    }
  }

  /** Renders nothing, and compiles lists of uops to code objects whose code names the list. */
  compiler(): KernelCompiler {
    const js = openJS("JS");
    const { globalMax, localMax } = AMDRenderer;
    return {
      renderer: { ...JSRenderer, name: "AMD", optOps: GRID_OPS, grid: GRID, globalMax, localMax },
      compile: (name, source: Source) => {
        if (!(source.code instanceof UOpGraph)) throw new Error("mock: compiles lists of uops");
        const program = js.compile(name, source) as Program<Uint8Array>;
        const { buffers, vals } = source;
        const id = this.gpu.kernels.length;
        const code = new Uint8Array(new Uint32Array([CODE_MAGIC, id]).buffer);
        const args = [...Array<number>(buffers).fill(8), ...Array<number>(vals).fill(4)];
        const hsaco: TestHsaco = { name, arch: this.arch, code, args, ...this.facts };
        this.gpu.kernels.push({ hsaco, program, buffers, vals });
        return { code: buildHsaco(hsaco), entry: name };
      },
    };
  }
}
export const REFUSALS = { EPERM, ENOENT, ENOMEM, EINVAL } as const;
