// AMD: a GPU without ROCm's runtime. What only AMD's GPUs have: packets in rings, code that the copy engine
// brings to the GPU, scratch memory that grows with what kernels need. The rest is every such device's
// (runtime/hcq/hardware.ts). Untried on hardware: a mock of the kernel driver executes it in the tests.

import type { Source } from "../../codegen/target.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import {
  HardwareDevice,
  type KernelCompiler,
  type Launched,
  type MemorySignal,
} from "../../runtime/hcq/hardware.ts";
import { HWComputeQueue } from "../../runtime/hcq/queue.ts";
import { loadHsaco } from "./commands/hsaco.ts";
import { AMDProgram, type Scratch } from "./commands/program.ts";
import { AMDBackend, AMDCopyQueue, STAMP_WORD } from "./commands/queue.ts";
import type { AMDGpu } from "./gpu.ts";

/**
 * Scratch of a thread grows in powers of two from here, so that what was outgrown is less than what is used.
 */
const LEAST_SCRATCH = 256;

const collected = new FinalizationRegistry<() => void>((release) => release());

export class AMDDevice extends HardwareDevice<AMDGpu> {
  override readonly compilesAside = true;
  readonly #backends: { readonly compute: AMDBackend; readonly copy: AMDBackend };
  readonly #scratch: Scratch[] = [];

  constructor(name: string, gpu: AMDGpu, compiler: KernelCompiler) {
    super(name, gpu, compiler, { stampWord: STAMP_WORD, constants: "host", tail: 0 });
    this.#backends = { compute: new AMDBackend(this, "compute"), copy: new AMDBackend(this, "copy") };
  }

  compile(name: string, source: Source): MaybePromise<AMDProgram> {
    return chain(this.compiler.compile(name, source), ({ code, entry }) => {
      this.throwFailure();
      return new AMDProgram(this, name, loadHsaco(code, entry, this.gpu.arch));
    });
  }
  computeQueue(): HWComputeQueue {
    return new HWComputeQueue(this.#backends.compute);
  }
  copyQueue(): AMDCopyQueue {
    return new AMDCopyQueue(this.#backends.copy, this.gpu.generation);
  }

  /** New rings know everything: a launch sets all registers. */
  protected setUp(): void {}
  protected sendMark(kind: "compute" | "copy", signal: MemorySignal, value: number): () => void {
    this.enqueue(kind, this.#backends[kind].encode("signal", { signal, value }), []);
    return () => {};
  }
  enqueue(kind: "compute" | "copy", words: readonly number[], launches: readonly Launched[]): void {
    this.hand(kind, launches, () => this.gpu.submit(kind, words));
  }

  /**
   * Brings code to memory of the GPU, for as long as its owner lives; kernels that come later wait for it.
   */
  upload(owner: object, code: Uint8Array): number {
    const block = this.allocator.alloc(code.byteLength, false);
    this.allocator.copyin(block, code);
    const { signal, value } = this.fence();
    this.enqueue("compute", this.#backends.compute.encode("wait", { signal, value }), []);
    collected.register(owner, () => this.retire(() => this.allocator.free(block)));
    return block.vaAddr;
  }

  /**
   * Scratch memory for every wavefront there can be, with so much for each thread. Queues that are bound
   * remember where it lies, so what was outgrown stays.
   */
  scratchFor(perThread: number): Scratch {
    const enough = this.#scratch.find((s) => s.perThread >= perThread);
    if (enough !== undefined) return enough;
    const { generation, wave, computeUnits, shaderEngines, scratchSlots } = this.gpu;
    const { scratchUnit, scratchPerEngine } = generation;
    const bytes = 2 ** Math.ceil(Math.log2(Math.max(LEAST_SCRATCH, perThread)));
    const perWave = Math.ceil((bytes * wave) / scratchUnit);
    const waves = computeUnits * scratchSlots;
    const counted = scratchPerEngine ? Math.floor(waves / shaderEngines) : waves;
    const nbytes = perWave * scratchUnit * waves;
    const { va } = this.allocator.allocDevice(nbytes);
    const made = { va, nbytes, perThread: bytes, size: Math.min(counted, WAVES) | (perWave << WAVE_SIZE_AT) };
    this.#scratch.push(made);
    return made;
  }
}
/** COMPUTE_TMPRING_SIZE: 12 bits for wavefronts, and above them the size of one. */
const [WAVES, WAVE_SIZE_AT] = [0xfff, 12];
