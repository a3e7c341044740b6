// What codegen must know of the place a kernel will run: its limits and what it lacks. A renderer is such
// a target plus `render`. Plain required fields: a new target cannot forget to say something.

import type { DType } from "../dtype.ts";
import { DTypeError } from "../errors.ts";
import type { AluOp } from "../ops.ts";
import type { UOpGraph } from "../uop/list.ts";
import type { TensorCore } from "../uop/matrix.ts";
import type { UOp } from "../uop/node.ts";

/**
 * native: arithmetic in the type itself. storage: loads, stores and casts only, arithmetic goes through
 * float32. bits: only 16-bit integers move, the conversion is spelt out in integer ops. none: refused.
 */
export type Support = "native" | "storage" | "bits" | "none";

/** What a target can do on vectors. */
export interface Simd {
  /** lanes of a vector, the widest first */
  readonly widths: readonly number[];
  /** vectors of results that stay in registers while their operands come and go */
  readonly accumulators: number;
  /** vectors that registers hold in all */
  readonly registers: number;
  /** cycles that a turn of several loops inside each other takes more than one of a single loop */
  readonly nesting: number;
  /** elements of this buffer are loaded and stored as vectors */
  memory(buffer: UOp): boolean;
  /** a node on scalars has a twin on vectors: an ALU, a cast, or an accumulator of this type */
  has(u: UOp): boolean;
  /** a product is added to an accumulator of this type, of a vector, in one step: MULACC */
  fuses(dtype: DType): boolean;
}

/** What a target with workgroups is good at; heuristicgpu.ts chooses by it. */
export interface Gpu {
  /** items that exchange values without memory (SHFL); 1: none do */
  readonly warp: number;
  /** the widest load or store of one item, in bytes */
  readonly vectorBytes: number;
  /** workgroups that run side by side: with fewer a part of the machine is idle */
  readonly units: number;
  /** products of matrices that a warp computes in one step; TC names them by their number */
  readonly tensorCores: readonly TensorCore[];
  /** memory is copied to shared memory while items compute (ASYNC), which SHARED needs */
  readonly copiesAhead: boolean;
  /** a product is added to an accumulator of this type in one step: MULACC */
  fuses(dtype: DType): boolean;
}

/** The limits of a place where kernels run, and what it lacks. */
export interface Target {
  /** the device this renders for, as in DEV */
  readonly name: string;
  /** kernels run as a grid of work items (gidx, lidx) instead of loops */
  readonly hasLocal: boolean;
  /** where there is no grid: parts of one loop may run on several threads */
  readonly hasThreads: boolean;
  readonly globalMax: readonly number[];
  readonly localMax: readonly number[];
  /** bytes that a workgroup, or a thread where there are none, has for arrays of its own */
  readonly sharedMax: number;
  /** how many buffers a kernel may have: the schedule cuts one that would have more */
  readonly maxBuffers: number;
  support(dtype: DType): Support;
  /** the op can be spelt for this type; otherwise it is decomposed */
  has(op: AluOp, dtype: DType): boolean;
  /** a cast from float to integer behaves as castValue says by itself; otherwise clamps are added */
  readonly saturatingCast: boolean;
  /** an integer division by zero is harmless; otherwise it is guarded */
  readonly safeDivision: boolean;
  /** undefined: one value at a time */
  readonly simd: Simd | undefined;
  /** undefined: nothing is known about its workgroups, if it has any */
  readonly gpu: Gpu | undefined;
}

/** Whether products of this type are added to a sum in one step. */
export const fusesProducts = (target: Target, dtype: DType): boolean =>
  (target.simd ?? target.gpu)?.fuses(dtype) === true;

/** Text, machine code, or (for the interpreter) the list itself, as the device's compiler wants it. */
export type Code = string | Uint8Array | UOpGraph;

/** A rendered kernel, and what its compiler and its launches have to know of it. */
export interface Source<C extends Code = Code> {
  readonly code: C;
  /** how many buffers it takes, and after them how many variables */
  readonly buffers: number;
  readonly vals: number;
  /** after these it takes the first iteration that a thread has to do, and the one to stop before */
  readonly isPart: boolean;
  /** bytes of shared memory that every launch gives it, besides what the code declares itself */
  readonly dynamicShared: number;
}

/** Code with its facts; what is not said is 0 or false. */
export const sourceOf = <C extends Code>(code: C, facts: Partial<Omit<Source, "code">> = {}): Source<C> => ({
  code,
  buffers: 0,
  vals: 0,
  isPart: false,
  dynamicShared: 0,
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
