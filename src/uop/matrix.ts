// The layout of matrices in the registers of a warp and in shared memory: the arguments of WMMA and TILE, as
// data.

import type { DType } from "../dtype.ts";
import type { Range } from "./node.ts";

/** A sum of digits of a number: each is `from / by % size * times`. */
export type Digits = readonly (readonly [
  from: "lane" | "element",
  by: number,
  size: number,
  times: number,
])[];
/** How the threads of a warp hold a matrix: which row and column an element of a thread is. */
export interface Fragment {
  readonly elements: number;
  readonly row: Digits;
  readonly column: Digits;
}
/** A product of matrices that a warp computes in one instruction: c (m × n) += a (m × k) · b (k × n). */
export interface TensorCore {
  readonly name: string;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly from: DType;
  /** low bits of an operand that the hardware ignores */
  readonly ignored: number;
  readonly to: DType;
  readonly a: Fragment;
  readonly b: Fragment;
  readonly c: Fragment;
  /**
   * the hardware does not tell which thread holds which element: operands are loaded whole (LDFRAGMENT), and
   * the result goes through shared memory before its elements are used. The fragments are our choice.
   */
  readonly isOpaque: boolean;
  /** threads hold operands as LDMATRIX leaves them, which the hardware has */
  readonly fitsLoadMatrix: boolean;
}
/** The threads that hold a result together, each its own part. */
export const warpOf = ({ m, n, c }: TensorCore): number => (m * n) / c.elements;
/** The bytes of shared memory through which the results of an opaque core go, a matrix for each warp. */
export const roomOfResults = (core: TensorCore, threads: number): number =>
  Math.ceil(threads / warpOf(core)) * core.m * core.n * core.to.itemsize;
/** An operand that a warp loads whole from shared memory. */
export interface FragmentLoad {
  readonly core: TensorCore;
  readonly side: "a" | "b";
  /** elements from one row of the matrix to the next; if it is transposed, from one column to the next */
  readonly pitch: number;
  readonly isTransposed: boolean;
}

/**
 * Element x is stored at x ^ (x / every % pieces * unit): rows that are read at once are in different banks.
 */
export interface Swizzle {
  /** elements of a piece */
  readonly unit: number;
  /** pieces that change places; a power of two */
  readonly pieces: number;
  /** elements after which they change places in another way */
  readonly every: number;
}

/** A tile: which part of a buffer is in shared memory, or what is computed there, and its layout. */
export interface Tile {
  /**
   * the dims of the part, innermost first: elements apart in the buffer (stride) and in shared memory (pitch)
   */
  readonly dims: readonly { readonly size: number; readonly stride: number; readonly pitch: number }[];
  /** elements in shared memory, with padding, for one iteration */
  readonly size: number;
  /** undefined: rows are padded instead */
  readonly swizzle: Swizzle | undefined;
  /** elements that are copied at once */
  readonly vector: number;
  /** how far the part moves with each iteration of the loop */
  readonly step: number;
  /** iterations whose parts are in shared memory at the same time */
  readonly stages: number;
  /**
   * of a tile that is computed as it is copied: the position along each dim, in vectors along the innermost.
   * Strides and the step do not matter there. Empty: the tile is a box of its buffer
   */
  readonly coordinates: readonly Range[];
}
