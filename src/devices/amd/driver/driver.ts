// Brings one GPU up through the kernel driver (KFD) and takes it down again: its node, its render file, the
// address space of this process, events for what goes wrong, a compute and a copy queue, doorbells. Out
// comes an `AMDGpu`. No library of ROCm takes part. Work itself makes no system call: it is words in a ring
// and a store to a doorbell.

import { DeviceError } from "../../../errors.ts";
import type { MemoryBlock, MemoryKind } from "../../../runtime/hcq/pool.ts";
import type { LinuxSystem } from "../../linux/syscalls.ts";
import { orThrow, takeDown } from "../../linux/undo.ts";
import { GENERATIONS, type PacketGeneration } from "../commands/generations.ts";
import type { AMDGpu } from "../gpu.ts";
import { type AddressRange, KfdMemory } from "../memory/mapped.ts";
import { FaultEvents } from "./events.ts";
import { QUEUE, STRUCTS } from "./ioctls.ts";
import { Kfd, KfdStruct, openDevice } from "./kfd.ts";
import { KfdRing, READ_AT, WRITE_AT } from "./ring.ts";
import { findGpus, type GpuNode, queueArea } from "./topology.ts";

const PAGE = 4096;
const RING_BYTES = 1 << 18;
/** A queue of all there is, in the middle of the priorities. */
const [PERCENTAGE, PRIORITY] = [100, 7];
/** For what the end of a kernel reports. */
const EOP_BYTES = 4096;
const EVENT_PAGE_BYTES = 0x8000;
/** Doorbells of a process lie in two pages. */
const DOORBELL_BYTES = 2 * PAGE;
/** The clock of timestamps has 100 MHz. */
const TICK = 10;
const MOST_GPUS = 64;

/** The index-th GPU that this process may open. */
export function openGpu(system: LinuxSystem, index: number): AMDGpu {
  const kfd = new Kfd(system);
  const undo: (() => void)[] = [() => kfd.close()];
  try {
    const nodes = findGpus(system);
    const node = nodes[index];
    if (node === undefined)
      throw new DeviceError(`AMD:${index}: there is no such GPU, this process can open ${nodes.length}`);
    const generation = GENERATIONS[node.arch];
    if (generation === undefined) {
      throw new DeviceError(
        `AMD: the GPU is ${node.arch}, and known here are ${Object.keys(GENERATIONS).join(", ")}; ` +
          "use OPENCL or WEBGPU for it",
      );
    }
    return new KfdGpu(kfd, node, generation, undo);
  } catch (e) {
    takeDown(undo);
    throw e;
  }
}

/** Where memory of this process may lie for the GPU. */
function addressesOf(kfd: Kfd, gpuId: number): AddressRange {
  const { bytes } = STRUCTS.aperture;
  const list = kfd.system.alloc(MOST_GPUS * bytes);
  try {
    const asked = { list: list.address, count: MOST_GPUS };
    const count = kfd.call("GET_PROCESS_APERTURES_NEW", asked).get("count");
    for (let i = 0; i < count; i++) {
      const found = new KfdStruct("aperture", list, i * bytes);
      if (found.get("gpu") === gpuId) return { base: found.get("base"), limit: found.get("limit") };
    }
  } finally {
    kfd.system.free(list);
  }
  throw new DeviceError(
    `AMD: the driver gives this process no addresses of GPU ${gpuId}; set DEV to another device`,
  );
}

class KfdGpu implements AMDGpu {
  readonly name: string;
  readonly arch: string;
  readonly generation: PacketGeneration;
  readonly computeUnits: number;
  readonly wave: number;
  readonly shaderEngines: number;
  readonly scratchSlots: number;
  readonly totalBytes: number;
  readonly tick = TICK;
  readonly #kfd: Kfd;
  readonly #node: GpuNode;
  readonly #memory: KfdMemory;
  readonly #events: FaultEvents;
  #rings: { readonly compute: KfdRing; readonly copy: KfdRing };
  readonly #undoRings: (() => void)[] = [];
  readonly #undo: (() => void)[];
  #fault: string | undefined;

  constructor(kfd: Kfd, node: GpuNode, generation: PacketGeneration, undo: (() => void)[]) {
    this.name = node.name;
    this.arch = node.arch;
    this.generation = generation;
    this.computeUnits = node.computeUnits;
    this.wave = node.wave;
    this.shaderEngines = node.shaderEngines;
    this.scratchSlots = node.scratchSlots;
    this.totalBytes = node.memoryBytes;
    this.#kfd = kfd;
    this.#node = node;
    this.#undo = undo;
    const { system } = kfd;
    const path = `/dev/dri/renderD${node.renderMinor}`;
    const render = openDevice(system, path, "a container without it");
    undo.push(() => system.close(render));
    kfd.call("ACQUIRE_VM", { file: render, gpu: node.gpuId }, "an address space on the GPU");
    this.#memory = new KfdMemory(kfd, node.gpuId, render, addressesOf(kfd, node.gpuId));
    undo.push(() => this.#memory.close());
    // where signals of events would lie; the driver wants the page before any event
    const page = this.#memory.handleOf(this.#memory.alloc(EVENT_PAGE_BYTES, "host"));
    kfd.call("CREATE_EVENT", { page }, "a page for events");
    this.#events = new FaultEvents(kfd, node.gpuId, undo);
    undo.push(() => orThrow(takeDown(this.#undoRings)));
    this.#rings = this.#makeRings();
  }

  #makeRings(): { readonly compute: KfdRing; readonly copy: KfdRing } {
    return { compute: this.#makeRing("compute"), copy: this.#makeRing("copy") };
  }
  #makeRing(kind: "compute" | "copy"): KfdRing {
    const kfd = this.#kfd;
    const undo = this.#undoRings;
    const block = (nbytes: number, where: MemoryKind): MemoryBlock => {
      const memory = this.#memory.alloc(nbytes, where);
      undo.push(() => this.#memory.free(memory));
      return memory;
    };
    const [ring, pointers] = [block(RING_BYTES, "host"), block(PAGE, "host")];
    const area = kind === "compute" ? queueArea(this.#node) : undefined;
    const forKernels =
      area === undefined
        ? {}
        : {
            eop: block(EOP_BYTES, "device").va,
            eopBytes: EOP_BYTES,
            saveArea: block(area.bytes, "device").va,
            saveBytes: area.saved,
            stackBytes: area.stack,
          };
    const made = kfd.call(
      "CREATE_QUEUE",
      {
        ring: ring.va,
        ringBytes: RING_BYTES,
        readPointer: pointers.va + READ_AT,
        writePointer: pointers.va + WRITE_AT,
        gpu: this.#node.gpuId,
        type: kind === "compute" ? QUEUE.COMPUTE : QUEUE.COPY,
        percentage: PERCENTAGE,
        priority: PRIORITY,
        ...forKernels,
      },
      `a ${kind} queue`,
    );
    const [id, doorbell] = [made.get("queue"), made.big("doorbell")];
    undo.push(() => void kfd.call("DESTROY_QUEUE", { id }));
    const fault = () => this.#look();
    return new KfdRing({
      kind,
      ring,
      pointers,
      doorbell: this.#doorbell(doorbell, kind),
      system: kfd.system,
      fault,
    });
  }
  /** The driver gives an offset in its own file: pages, and the place of this queue in them. */
  #doorbell(offset: bigint, kind: string): BigUint64Array {
    const { system, file } = this.#kfd;
    const within = offset % BigInt(DOORBELL_BYTES);
    const at = system.mapAt(0n, DOORBELL_BYTES, file, offset - within);
    if (at === undefined) throw new DeviceError(`AMD: the doorbell of the ${kind} queue cannot be mapped`);
    this.#undoRings.push(() => system.munmap(at, DOORBELL_BYTES));
    const page = system.view(at, DOORBELL_BYTES);
    return new BigUint64Array(page.buffer, page.byteOffset + Number(within), 1);
  }

  get compute(): KfdRing {
    return this.#rings.compute;
  }
  get copy(): KfdRing {
    return this.#rings.copy;
  }
  #look(): string | undefined {
    this.#fault ??= this.#events.look((va) => this.#memory.whereabouts(va));
    return this.#fault;
  }
  submit(kind: "compute" | "copy", words: ArrayLike<number>): void {
    if (this.#fault !== undefined) throw new DeviceError(this.#fault);
    this.#rings[kind].submit(words);
  }
  restart(): void {
    orThrow(takeDown(this.#undoRings));
    this.#events.reset();
    this.#fault = undefined;
    this.#rings = this.#makeRings();
  }

  alloc(nbytes: number, kind: MemoryKind): MemoryBlock {
    return this.#memory.alloc(nbytes, kind);
  }
  free(memory: MemoryBlock): void {
    this.#memory.free(memory);
  }
  time(): bigint {
    return this.#kfd.call("GET_CLOCK_COUNTERS", { gpu: this.#node.gpuId }).big("gpuClock");
  }
  freeBytes(): number {
    return this.#kfd.call("AVAILABLE_MEMORY", { gpu: this.#node.gpuId }).get("bytes");
  }
  close(): void {
    orThrow(takeDown(this.#undo));
  }
}
