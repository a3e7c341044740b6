// Small kernels of a captured step that follow each other: one workgroup does them one after the other, in
// one dispatch, since a dispatch costs more than they do. In go kernels with their memory, out come runs of
// them that fit together: their threads in one workgroup, their buffers in one bind group, without two ranges
// of memory that overlap.

import type { Binding, Sharing } from "../../codegen/target.ts";
import { getOrMake, prod } from "../../helpers.ts";
import { sequenceToWGSL } from "../../render/wgslsequence.ts";
import type { Sint } from "../../shape/symbolic.ts";
import type { UOpName } from "../../uop/node.ts";
import type { GpuBlock } from "./memory.ts";
import type { PipelineOf } from "./pipelines.ts";
import type { GpuProgram } from "./program.ts";

/** A kernel as it is launched, which may be small. */
export interface SmallKernel {
  readonly program: GpuProgram;
  /** symbolic where it depends on variables: then it is not small */
  readonly grid: readonly Sint[];
  readonly local: readonly number[];
  readonly work: number;
  readonly memory: readonly GpuBlock[];
}
/** What the list of a kernel says of its workgroups. */
interface KernelShape {
  /** threads wait for each other, or exchange values */
  readonly isCooperative: boolean;
  /** it multiplies matrices of subgroups */
  readonly hasMatrices: boolean;
  /** bytes of workgroup memory */
  readonly sharedBytes: number;
}
const TOGETHER: ReadonlySet<UOpName> = new Set(["BARRIER", "SHFL", "DEFINE_LOCAL"]);
const MATRICES: ReadonlySet<UOpName> = new Set(["WMMA", "LDFRAGMENT"]);
const shapes = new WeakMap<Binding, KernelShape>();
const shapeOf = (binding: Binding): KernelShape => getOrMake(shapes, binding, () => shapeIn(binding));
function shapeIn({ uops: { uops } }: Binding): KernelShape {
  return {
    isCooperative: uops.some((u) => TOGETHER.has(u.op)),
    hasMatrices: uops.some((u) => MATRICES.has(u.op)),
    // an element takes a word at least
    sharedBytes: uops.reduce(
      (n, u) => n + (u.op === "DEFINE_LOCAL" ? u.elements * Math.max(4, u.dtype.base.itemsize) : 0),
      0,
    ),
  };
}

/** What one dispatch can have. */
export interface SequenceLimits {
  readonly threads: number;
  readonly buffers: number;
  readonly sharedBytes: number;
}

/** Operations and bytes that one workgroup does in about the time that a dispatch costs. */
const SMALL_WORK = 2 ** 18;
/** UOps of a sequence: drivers compile long kernels slowly. */
const MAX_UOPS = 2048;
/** Kernels of a sequence: a page draws between two dispatches. */
const MAX_KERNELS = 64;

/** Whether a kernel may be part of a sequence, whatever its memory is. */
function isSmall({ program, grid, local, work }: SmallKernel, limits: SequenceLimits): boolean {
  const groups = prod(grid.map((n) => (typeof n === "number" ? n : Infinity)));
  if (program.vals !== "none" || work > SMALL_WORK || groups * prod(local) > limits.threads) return false;
  const { hasMatrices, sharedBytes, isCooperative } = shapeOf(program.binding);
  return !hasMatrices && sharedBytes <= limits.sharedBytes && (!isCooperative || groups === 1);
}

/** A binding of the sequence: the memory that some of its kernels' buffers are. */
interface BoundMemory {
  readonly block: GpuBlock;
  readonly type: string;
}

/** A run of kernels that fit together, as far as it goes. */
export class Sequence {
  readonly kernels: SmallKernel[] = [];
  readonly #limits: SequenceLimits;
  readonly #bound: BoundMemory[] = [];
  readonly #bindings: number[][] = [];
  readonly #writtenIds = new Set<number>();
  #threads = 0;
  #sharedBytes = 0;
  #uops = 0;

  constructor(limits: SequenceLimits) {
    this.#limits = limits;
  }

  /** Takes the kernel, unless it does not fit. */
  add(kernel: SmallKernel): boolean {
    const { program, grid, local, memory } = kernel;
    const { binding } = program;
    const threads = Math.max(this.#threads, prod(grid as readonly number[]) * prod(local));
    const sharedBytes = this.#sharedBytes + shapeOf(binding).sharedBytes;
    const uops = this.#uops + binding.uops.uops.length;
    if (sharedBytes > this.#limits.sharedBytes || uops > MAX_UOPS || this.kernels.length >= MAX_KERNELS)
      return false;
    const bound = [...this.#bound];
    const bindings = memory.map((block, i) => {
      const type = binding.types[i] as string;
      const known = bound.findIndex(({ block: b }) => b.id === block.id && b.offset === block.offset);
      if (known < 0) return bound.push({ block, type }) - 1;
      const before = bound[known] as BoundMemory;
      if (before.type !== type) return -1;
      if (before.block.nbytes < block.nbytes) bound[known] = { block, type };
      return known;
    });
    const writtenIds = [...this.#writtenIds, ...memory.filter((_, i) => binding.written[i]).map((b) => b.id)];
    if (bindings.includes(-1) || bound.length > this.#limits.buffers || overlap(bound, new Set(writtenIds)))
      return false;
    for (const id of writtenIds) this.#writtenIds.add(id);
    this.#bound.splice(0, Infinity, ...bound);
    this.#bindings.push(bindings);
    this.kernels.push(kernel);
    this.#threads = threads;
    this.#sharedBytes = sharedBytes;
    this.#uops = uops;
    return true;
  }

  /** The memory of the bindings, in their order. */
  get memory(): readonly GpuBlock[] {
    return this.#bound.map(({ block }) => block);
  }
  /** What the text depends on besides the kernels. */
  get key(): string {
    return `${this.#bindings.join(";")}:${this.#written.map(Number).join("")}`;
  }
  get #written(): readonly boolean[] {
    return this.#bound.map(({ block }) => this.#writtenIds.has(block.id));
  }
  /** The pipeline to make. */
  pipelineOf(): PipelineOf {
    const [first] = this.kernels;
    const name = `${first?.program.name}_and_${this.kernels.length - 1}_more`;
    const parts = this.kernels.map(({ program, grid, local }, i) => ({
      uops: program.binding.uops,
      bindings: this.#bindings[i] as readonly number[],
      grid: grid as readonly number[],
      local,
      isCooperative: shapeOf(program.binding).isCooperative,
    }));
    const sharing: Sharing = { sameAs: this.#bound.map((_, i) => i), written: this.#written };
    return {
      name,
      code: sequenceToWGSL(name, parts, this.#written, this.#threads),
      sharing,
      vals: undefined,
    };
  }
}

/** WebGPU binds bytes that are written only once. */
function overlap(bound: readonly BoundMemory[], writtenIds: ReadonlySet<number>): boolean {
  return bound.some(({ block: a }, i) =>
    bound
      .slice(0, i)
      .some(
        ({ block: b }) =>
          a.id === b.id &&
          writtenIds.has(a.id) &&
          a.offset < b.offset + Math.max(b.nbytes, 16) &&
          b.offset < a.offset + Math.max(a.nbytes, 16),
      ),
  );
}

/** Divides kernels, in their order, into runs that fit together. */
export function divided<T>(
  kernels: readonly T[],
  limits: SequenceLimits,
  smallKernel: (k: T) => SmallKernel,
): T[][] {
  const runs: T[][] = [];
  let open: Sequence | undefined;
  for (const k of kernels) {
    const small = smallKernel(k);
    const mayJoin = isSmall(small, limits);
    if (mayJoin && open?.add(small) === true) {
      runs.at(-1)?.push(k);
      continue;
    }
    runs.push([k]);
    open = mayJoin ? new Sequence(limits) : undefined;
    open?.add(small);
  }
  return runs;
}
