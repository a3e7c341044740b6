// What codegen must know about the machine a kernel runs on: its limits and what it lacks. A renderer is such
// a target plus `render`. Plain required fields: a new target cannot forget to say something.

import { type DType, Pointer } from "../dtype.ts";
import { DTypeError } from "../errors.ts";
import type { AluOp } from "../ops.ts";
import type { UOpArena } from "../uop/arena.ts";
import type { UOpGraph } from "../uop/list.ts";
import type { TensorCore } from "../uop/matrix.ts";
import type { Sink, UOp, UType } from "../uop/node.ts";
import type { Linearize } from "./linear/linearize.ts";
import type { Heuristic } from "./opt/heuristics/index.ts";
import type { OptRecord } from "./opt/record.ts";

/**
 * native: arithmetic in the type itself. storage: loads, stores and casts only, arithmetic goes through
 * float32. bits: only 16-bit integers move, the conversion is spelt out in integer ops. none: refused.
 */
export type Support = "native" | "storage" | "bits" | "none";

/** A core of the host: what the heuristics must know about its caches and threads. */
export interface Core {
  /** bytes of the first and of the second cache of a core */
  readonly l1Bytes: number;
  readonly l2Bytes: number;
  /** strides of at least this many bytes defeat the prefetcher */
  readonly longStride: number;
  /** cycles that an iteration waits for an operand that was not prefetched, on average */
  readonly missCycles: number;
  /** operations that one thread does while another wakes up */
  readonly wakeOperations: number;
}
/**
 * On a CPU a kernel with fewer iterations than this gets no OptOps: it would gain nothing, and such kernels
 * are the ones that people read.
 */
export const PLAIN_ITERATIONS = 64;
/** Figures of a common desktop core. */
export const COMMON_CORE: Core = {
  l1Bytes: 1 << 15,
  l2Bytes: 1 << 19,
  longStride: 1024,
  missCycles: 2,
  wakeOperations: 1 << 16,
};

/** What a target can do on vectors. */
export interface Simd {
  /** lanes of a vector, the widest first */
  readonly widths: readonly number[];
  /** vectors of results that stay in registers while their operands come and go */
  readonly accumulators: number;
  /** vectors that registers hold in all */
  readonly registers: number;
  /** operations on vectors, and loads, that start in one cycle */
  readonly aluPerCycle: number;
  readonly loadsPerCycle: number;
  /** cycles from one addition to an accumulator to the next */
  readonly latency: number;
  /** the cost of putting one value in all lanes, and of each lane of a strided vector, in loads */
  readonly broadcastLoads: number;
  readonly laneLoads: number;
  /** cycles that an iteration takes longer where several loops are nested than in a single loop */
  readonly nesting: number;
  /** elements of this buffer are loaded and stored as vectors */
  memory(buffer: UOp): boolean;
  /** the target can compute this node on vectors: an ALU, a cast, or an accumulator of this type */
  has(u: UOp): boolean;
  /** the target has a fused multiply-add (MULACC) for vectors of this type */
  fuses(dtype: DType): boolean;
}
/** The ports and latencies of a core of the last ten years, whichever vectors it has. */
export const COMMON_PORTS = {
  aluPerCycle: 2,
  loadsPerCycle: 2,
  latency: 4,
  broadcastLoads: 1.3,
  laneLoads: 1.5,
} as const satisfies Partial<Simd>;

/**
 * Cycles of one scheduler that a step of a warp takes. Other warps run meanwhile: only what they cannot hide
 * is counted.
 */
export interface GpuCycles {
  /** a multiply-add, with the issue slots that are lost with it */
  readonly multiplyAdd: number;
  /** the counter, the addresses and the branch of an iteration */
  readonly loop: number;
  /** a copy of one vector a thread to shared memory */
  readonly copy: number;
  readonly barrier: number;
  /** a store of one element a thread */
  readonly store: number;
  /** one step of a reduction across threads: a shuffle, or a round trip through shared memory */
  readonly combine: number;
}

/** A target with workgroups: the figures of the machine by which the heuristics choose. */
export interface Gpu {
  /** the instruction set, e.g. sm_90: what a search found holds for the same one only */
  readonly arch: string;
  /** threads that run in lockstep (a warp) and exchange values without memory (SHFL); 1: none do */
  readonly warp: number;
  /** the widest load or store of one thread, in bytes */
  readonly vectorBytes: number;
  /** a cache line: what a warp reads from memory at once */
  readonly transactionBytes: number;
  /** compute units (multiprocessors): with fewer workgroups than these a part of the machine is idle */
  readonly computeUnits: number;
  /** parts of a compute unit that issue instructions, each for warps and with registers of its own */
  readonly schedulers: number;
  /** registers of 32 bits */
  readonly registersPerUnit: number;
  readonly registersPerThread: number;
  readonly threadsPerUnit: number;
  readonly workgroupsPerUnit: number;
  /**
   * bytes of shared memory of a compute unit, and those of each workgroup that the system keeps for itself
   */
  readonly sharedPerUnit: number;
  readonly sharedReserved: number;
  /** multiply-adds in float32 that a compute unit does in a cycle */
  readonly multiplyAddsPerCycle: number;
  /** bytes that a compute unit gets in a cycle from the cache that all share, and from shared memory */
  readonly fetchRate: number;
  readonly sharedRate: number;
  /** cycles until a value from shared memory is there */
  readonly sharedLatency: number;
  /** instructions of a loop that stay in the instruction cache */
  readonly loopInstructions: number;
  readonly cycles: GpuCycles;
  /** products of matrices that a warp computes in one step; TC names them by their number */
  readonly tensorCores: readonly TensorCore[];
  /** bytes that an element takes in shared memory at least, unless threads store such a word whole */
  readonly sharedWord: number;
  /** the hardware copies to shared memory while threads compute (ASYNC); otherwise copies go by registers */
  readonly hasAsyncCopy: boolean;
  /** the target has a fused multiply-add (MULACC) for this type */
  fuses(dtype: DType): boolean;
}

/**
 * What codegen does only for kernels that run as a grid of threads: GRID of linear/workgrouplinear.ts. It
 * comes with the target and is not imported by codegen, so that a page that runs on WASM does not load it.
 */
export interface Grid {
  readonly linearize: Linearize;
  readonly coalesce: (sink: Sink, arena: UOpArena, gpu: Gpu) => Sink;
}

/** In pixels. */
export interface ImageLimits {
  readonly width: number;
  readonly height: number;
}

/** The limits of a machine, and what it lacks. */
export interface Target {
  /** the device this renders for, as in DEV */
  readonly name: string;
  /** how kernels run as a grid of threads in workgroups (gidx, lidx); undefined: they run as loops */
  readonly grid: Grid | undefined;
  /** where there is no grid: parts of one loop may run on several threads */
  readonly hasThreads: boolean;
  readonly globalMax: readonly number[];
  readonly localMax: readonly number[];
  /** bytes that a workgroup, or a thread where there are none, has for arrays of its own */
  readonly sharedMax: number;
  /** how many buffers a kernel may have: the schedule cuts one that would have more */
  readonly maxBuffers: number;
  support(dtype: DType): Support;
  /** the renderer can spell the op for this type; otherwise it is decomposed */
  has(op: AluOp, dtype: DType): boolean;
  /** a cast from float to integer behaves as castValue says by itself; otherwise clamps are added */
  readonly saturatingCast: boolean;
  /**
   * float32 is what IEEE 754 says. Otherwise (WebGPU) values below 2^-126 may count as 0, and the sign of a 0
   * may be lost; NaN and infinities are right in any case
   */
  readonly ieee: boolean;
  /** an integer division by zero is harmless; otherwise it is guarded */
  readonly safeDivision: boolean;
  /** the OptOps that its kernels can have */
  readonly optOps: readonly OptRecord[];
  /**
   * gives the lists of OptOps for a kernel: each target names its own, so that a program only loads those it
   * needs
   */
  readonly heuristic: Heuristic;
  /** the core that runs the loops; where there are workgroups it does not matter */
  readonly core: Core;
  /** undefined: one value at a time */
  readonly simd: Simd | undefined;
  /** undefined: nothing is known about its workgroups, if it has any */
  readonly gpu: Gpu | undefined;
  /** the largest 2-D image of float32 pixels (src/images.ts). Absent: images are buffers there */
  readonly images?: ImageLimits;
}

/** How the target supports a narrow float, or a pointer to one; other types are its own. */
export function narrowSupport(target: Target, d: UType): Support {
  const base = d instanceof Pointer ? d.base : d;
  return base?.isFloat && base.count === 1 && base.itemsize < 4 ? target.support(base) : "native";
}

/** Whether products of this type are added to a sum by a fused multiply-add. */
export const fusesProducts = (target: Target, dtype: DType): boolean =>
  (target.simd ?? target.gpu)?.fuses(dtype) === true;

/** Text, machine code, or (for the interpreter) the list itself, as the device's compiler wants it. */
export type Code = string | Uint8Array | UOpGraph;

/**
 * Which buffers of a launch share memory. WebGPU binds a piece of memory only once, and not for reading and
 * for writing at the same time. So the first of several equal buffers stands for all of them, and a buffer
 * that shares memory with a written one is bound for writing, too.
 */
export interface Sharing {
  /** for each buffer: the first one with the same memory */
  readonly sameAs: readonly number[];
  /** for each buffer: whether it is bound for writing */
  readonly written: readonly boolean[];
}
/** What a launch must know about buffers that are bound by number. */
export interface Binding {
  readonly uops: UOpGraph;
  /** for each buffer: whether the kernel writes it, and the type of its elements */
  readonly written: readonly boolean[];
  readonly types: readonly string[];
  /** variables are given to the launch itself; false: through a buffer */
  readonly immediate: boolean;
  /** the code for a launch whose buffers share memory */
  shared(sharing: Sharing): string;
}

/** A rendered kernel, and what its compiler and its launches must know about it. */
export interface Source<C extends Code = Code> {
  readonly code: C;
  /** how many buffers it takes, and after them how many variables */
  readonly buffers: number;
  readonly vals: number;
  /** after these it takes the first iteration that a thread has to do, and the one to stop before */
  readonly isPart: boolean;
  /** bytes of shared memory that every launch gives it, besides what the code declares itself */
  readonly dynamicShared: number;
  /** where buffers are bound by number; undefined elsewhere */
  readonly binding: Binding | undefined;
}

/** Code with its facts; what is not said is 0 or false. */
export const sourceOf = <C extends Code>(code: C, facts: Partial<Omit<Source, "code">> = {}): Source<C> => ({
  code,
  buffers: 0,
  vals: 0,
  isPart: false,
  dynamicShared: 0,
  binding: undefined,
  ...facts,
});
export const isText = (source: Source): source is Source<string> => typeof source.code === "string";

/** A target that can spell kernels. */
export interface Renderer<C extends Code = Code> extends Target {
  render(name: string, uops: UOpGraph): Source<C>;
}

/** Refuses a type that the target does not have, before anything is built. */
export function requireSupport(target: Target, dtype: DType, what: string): void {
  if (target.support(dtype) !== "none") return;
  throw new DTypeError(
    `${what}: ${target.name} has no ${dtype.name}; cast to a type it has (float32, int32), or use another device`,
  );
}
