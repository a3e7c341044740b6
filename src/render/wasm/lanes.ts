// Vectors of the WASM renderer, as far as every kernel must know of them: a type whose vectors fit 128 bits,
// what a value of a type is to WebAssembly, and what expand.ts may make vectors of. simd.ts emits them, which
// a page loads with what makes large kernels fast: other kernels have no vectors.

import { hasVector } from "#render/simd";
import { COMMON_PORTS, type Simd } from "../../codegen/target.ts";
import { type DType, Pointer, scalarOf } from "../../dtype.ts";
import { hasRepr, reprOf } from "./alu.ts";
import { V128, type ValType } from "./assembler.ts";

export const WIDTH = 4;
export const fitsLane = (d: DType): boolean => hasRepr(d) && d.itemsize <= 4;

/** The type is one value of 128 bits. */
export const isV128 = (d: DType): boolean => d.count === WIDTH && fitsLane(scalarOf(d));

/** What a value of the type is to WebAssembly. */
export const typeOf = (d: DType): ValType => (isV128(d) ? V128 : reprOf(scalarOf(d)).type);

/** What expand.ts may make vectors of: the node is still on scalars. */
export const simd = (engine: { readonly relaxed: boolean }): Simd => ({
  widths: [WIDTH],
  // they share 16 registers with their operands; engines leave more than eight in memory
  accumulators: 8,
  registers: 16,
  ...COMMON_PORTS,
  nesting: 2,
  fuses: (d) => d.isFloat && isV128(d) && engine.relaxed,
  memory: (buffer) => buffer.dtype instanceof Pointer && fitsLane(buffer.dtype.base),
  has: (u) => hasVector(u),
});
