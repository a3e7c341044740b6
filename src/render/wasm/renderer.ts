// The WASM renderer: the limits of the target, which the schedule asks for too, and `render`. The emitter of
// modules is in wasm.ts; a page loads that with its first kernel that must be compiled (`#render/wasm`).

import { CPU_OPS, cpuLists } from "#codegen/tuning";
import { emit, hasAlu, simd } from "#render/wasm";
import { COMMON_CORE, type Renderer, type Simd } from "../../codegen/target.ts";
import { scalarOf } from "../../dtype.ts";

export type ModuleBytes = Uint8Array<ArrayBuffer>;
export type WasmRenderer = Renderer<ModuleBytes>;

export interface WasmOptions {
  /** the memory is a SharedArrayBuffer: workers run kernels on it */
  readonly shared: boolean;
  /** the engine has relaxed SIMD: a product is added in one instruction; asked for the first float vector */
  readonly relaxed: boolean;
  /** the memory has 64-bit addresses */
  readonly wide?: boolean;
}

/** What a thread has for the arrays of a kernel. */
export const SCRATCH_BYTES = 1 << 18;

export function wasmRenderer(options: WasmOptions): WasmRenderer {
  let vectors: Simd | undefined;
  return {
    name: "WASM",
    grid: undefined,
    hasThreads: true,
    globalMax: [],
    localMax: [],
    sharedMax: SCRATCH_BYTES,
    // a function takes 1000 arguments
    maxBuffers: 500,
    saturatingCast: true,
    ieee: true,
    safeDivision: true,
    optOps: CPU_OPS,
    heuristic: cpuLists,
    core: COMMON_CORE,
    get simd() {
      vectors ??= simd(options);
      return vectors;
    },
    gpu: undefined,
    support: (d) => (scalarOf(d).isFloat && scalarOf(d).itemsize < 4 ? "bits" : "native"),
    has: (op, d) => hasAlu(op, scalarOf(d)),
    render: (name, uops) => emit(name, uops, options),
  };
}

/** On a memory of one thread. */
export const WASMRenderer: WasmRenderer = wasmRenderer({ shared: false, relaxed: false });
