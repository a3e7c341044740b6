// NV: an NVIDIA GPU without CUDA. What only NVIDIA's GPUs have: classes that channels learn, streams and
// QMDs in memory of the GPU, local memory that grows with what kernels need. The rest is every such device's
// (runtime/hcq/hardware.ts).

import type { Source } from "../../codegen/target.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import { HardwareDevice, type KernelCompiler, type MemorySignal } from "../../runtime/hcq/hardware.ts";
import type { MemoryBlock } from "../../runtime/hcq/pool.ts";
import { high, low } from "../../runtime/hcq/words.ts";
import { COMPUTE } from "./commands/classes.ts";
import { loadCubin } from "./commands/cubin.ts";
import { method, pack } from "./commands/methods.ts";
import { NVProgram } from "./commands/program.ts";
import { type LaunchWords, NVBackend, NVComputeQueue, NVCopyQueue, type NVTarget } from "./commands/queue.ts";
import type { NVGpu } from "./gpu.ts";

/** The word of a signal with the time of its second semaphore. */
const STAMP_WORD = 6;

/** Local memory for all threads there can be. */
interface Local {
  readonly memory: MemoryBlock;
  readonly perThread: number;
  readonly perTpc: number;
}

/**
 * Local memory is handed to warps of 32 threads, to pairs of SMs, and lies at addresses as round as these.
 */
const [WARP_STEP, TPC_STEP, LOCAL_STEP] = [0x200, 0x8000, 0x20000];
/** As many SMs as the field of the method can say. */
const ALL_SMS = 0x1ff;
/**
 * Instructions are prefetched past the last one of a kernel. This much behind the last kernel of a chunk
 * keeps that inside the chunk: the page after it may not be mapped.
 */
const BEHIND_CODE = 4096;

export class NVDevice extends HardwareDevice<NVGpu> implements NVTarget {
  readonly #backends: { readonly compute: NVBackend; readonly copy: NVBackend };
  #local: Local | undefined;

  constructor(name: string, gpu: NVGpu, compiler: KernelCompiler) {
    super(name, gpu, compiler, { stampWord: STAMP_WORD, constants: "visible", tail: BEHIND_CODE });
    this.#backends = { compute: new NVBackend(this, "compute"), copy: new NVBackend(this, "copy") };
    this.setUp();
  }

  compile(name: string, source: Source): MaybePromise<NVProgram> {
    return chain(this.compiler.compile(name, source), ({ code, entry }) => {
      this.throwFailure();
      return new NVProgram(this, name, loadCubin(code, entry, this.gpu.arch), source.dynamicShared);
    });
  }
  computeQueue(): NVComputeQueue {
    return new NVComputeQueue(this.#backends.compute);
  }
  copyQueue(): NVCopyQueue {
    return new NVCopyQueue(this.#backends.copy);
  }

  /** Each channel learns its class, and the compute class where kernels see shared and local memory. */
  protected setUp(): void {
    const { classes, sharedWindow, localWindow } = this.gpu;
    const object = (id: number) => pack(COMPUTE.SET_OBJECT, { CLASS_ID: id });
    this.#submitWords("copy", method("COPY", COMPUTE.SET_OBJECT, object(classes.copy)));
    this.#submitWords("compute", [
      ...method("COMPUTE", COMPUTE.SET_OBJECT, object(classes.compute)),
      ...pair(COMPUTE.SET_SHADER_SHARED_MEMORY_WINDOW_A, sharedWindow),
      ...pair(COMPUTE.SET_SHADER_LOCAL_MEMORY_WINDOW_A, localWindow),
    ]);
    if (this.#local !== undefined) this.#submitLocal(this.#local);
  }

  /** Makes sure that every thread there can be has this much local memory. */
  growLocal(perThread: number): void {
    if (perThread <= (this.#local?.perThread ?? 0)) return;
    const { gpcs, tpcsPerGpc, smsPerTpc, maxWarpsPerSM } = this.gpu;
    const round = (x: number, step: number) => Math.ceil(x / step) * step;
    const perWarp = round(perThread * 32, WARP_STEP);
    const perTpc = round(perWarp * maxWarpsPerSM * smsPerTpc, TPC_STEP);
    const memory = this.allocator.allocDevice(round(perTpc * tpcsPerGpc * gpcs, LOCAL_STEP));
    const old = this.#local?.memory;
    this.#local = { memory, perThread, perTpc };
    this.#submitLocal(this.#local);
    if (old !== undefined) this.retire(() => this.gpu.free(old));
  }
  #submitLocal({ memory, perTpc }: Local): void {
    const sizes = pack(COMPUTE.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C, { MAX_SM_COUNT: ALL_SMS });
    // kernels that are queued use the old one until they are done
    this.#submitWords("compute", [
      ...method("COMPUTE", COMPUTE.WAIT_FOR_IDLE, 0),
      ...pair(COMPUTE.SET_SHADER_LOCAL_MEMORY_A, memory.va),
      ...method("COMPUTE", COMPUTE.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, high(perTpc), low(perTpc), sizes),
    ]);
  }

  #submitWords(kind: "compute" | "copy", words: readonly number[]): void {
    const va = this.transient.alloc(words.length * 4);
    this.transientWords(va, words.length).set(words);
    this.enqueue(kind, va, words.length, []);
  }
  protected sendMark(kind: "compute" | "copy", signal: MemorySignal, value: number): () => void {
    const words = this.#backends[kind].encode("signal", { signal, value });
    const piece = this.constants.alloc(words.length * 4);
    (piece.words as Int32Array).set(words);
    this.enqueue(kind, piece.va, words.length, []);
    return () => this.constants.free(piece);
  }
  enqueue(kind: "compute" | "copy", va: number, dwords: number, launches: readonly LaunchWords[]): void {
    this.hand(kind, launches, () => this.gpu.submit(this.gpu[kind], va, dwords));
  }
}

const pair = (to: Parameters<typeof method>[1], va: number): number[] =>
  method("COMPUTE", to, high(va), low(va));
