// The products of matrices that NVIDIA's warps compute in one instruction (mma.sync), as data: their sides,
// types, and how the threads of a warp hold the operands and the result. Renderers spell them by name; the JS
// device computes what this says.

import { dtypes } from "../../dtype.ts";
import { env } from "../../env.ts";
import type { Fragment, TensorCore } from "../../uop/matrix.ts";

/**
 * 16 rows in words of four bytes: a row is four threads, then the eight rows below, then the next columns.
 */
const rows = (perWord: number): Fragment => ({
  elements: 4 * perWord,
  row: [
    ["lane", 4, 8, 1],
    ["element", perWord, 2, 8],
  ],
  column: [
    ["element", 1, perWord, 1],
    ["lane", 1, 4, perWord],
    ["element", 2 * perWord, 2, 4 * perWord],
  ],
});
/** 8 columns in such words: a column is four threads, then the next rows. */
const columns = (perWord: number): Fragment => ({
  elements: 2 * perWord,
  row: [
    ["element", 1, perWord, 1],
    ["lane", 1, 4, perWord],
    ["element", perWord, 2, 4 * perWord],
  ],
  column: [["lane", 4, 8, 1]],
});
/** 16 rows and 8 columns of results: two neighbours, then the same eight rows below. */
const results: Fragment = {
  elements: 4,
  row: [
    ["lane", 4, 8, 1],
    ["element", 2, 2, 8],
  ],
  column: [
    ["lane", 1, 4, 2],
    ["element", 1, 2, 1],
  ],
};

const core = (name: string, perWord: number, from: TensorCore["from"]): TensorCore => ({
  name,
  m: 16,
  n: 8,
  k: 8 * perWord,
  from,
  ignored: 0,
  to: dtypes.float32,
  a: rows(perWord),
  b: columns(perWord),
  c: results,
  isOpaque: false,
  fitsLoadMatrix: true,
});

/** TC names them by their index in this list. tf32 is float32 of which 13 bits are ignored. */
export const MMA: readonly TensorCore[] = [
  core("m16n8k16 bf16", 2, dtypes.bfloat16),
  core("m16n8k16 f16", 2, dtypes.float16),
  { ...core("m16n8k8 tf32", 1, dtypes.float32), ignored: 13 },
  core("m16n8k32 e4m3", 4, dtypes.float8e4m3),
  core("m16n8k32 e5m2", 4, dtypes.float8e5m2),
];

/** Whether it computes as exactly as was asked for: float32 is rounded to tf32 only where that is allowed. */
export const isExactEnough = ({ ignored }: TensorCore): boolean => ignored === 0 || env.ALLOW_TF32 > 0;
