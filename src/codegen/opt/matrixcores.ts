// The products of matrices that AMD's wavefronts compute in one instruction (MFMA on CDNA, WMMA on RDNA), as
// data, like those of NVIDIA in mma.ts: their sides, types, and how the threads hold operands and results, as
// AMD's instruction set manuals have it. All of them are 16 × 16 × 16 with sums in float32.

import { type DType, dtypes } from "../../dtype.ts";
import type { Digits, Fragment, TensorCore } from "../../uop/matrix.ts";

const SIDE = 16;
/** Which of sixteen rows, or columns, a thread is in; the threads after these have another part of it. */
const OF_SIXTEEN: Digits = [["lane", 1, SIDE, 1]];

/** Each thread holds a part of a row of `a`, or of a column of `b`: `elements` that follow each other. */
const parts = (elements: number): Digits =>
  elements === SIDE
    ? [["element", 1, SIDE, 1]]
    : [
        ["element", 1, elements, 1],
        ["lane", SIDE, SIDE / elements, elements],
      ];
const rows = (elements: number): Fragment => ({ elements, row: OF_SIXTEEN, column: parts(elements) });
const columns = (elements: number): Fragment => ({ elements, row: parts(elements), column: OF_SIXTEEN });

/** Each thread holds a part of a column of the result. */
const results = (elements: number, row: Digits): Fragment => ({ elements, row, column: OF_SIXTEEN });

const core = (name: string, from: DType, operand: number, c: Fragment): TensorCore => ({
  name: `${name} ${from === dtypes.bfloat16 ? "bf16" : "f16"}`,
  m: SIDE,
  n: SIDE,
  k: SIDE,
  from,
  ignored: 0,
  to: dtypes.float32,
  a: rows(operand),
  b: columns(operand),
  c,
  isOpaque: false,
  fitsLoadMatrix: false,
});
const ofBoth = (name: string, operand: number, c: Fragment): readonly TensorCore[] =>
  [dtypes.bfloat16, dtypes.float16].map((from) => core(name, from, operand, c));

/** CDNA 2 and 3: 64 threads, of which each quarter has four rows of the result. */
export const MFMA = ofBoth("mfma", 4, results(4, parts(4)));
/** RDNA 3: 32 threads; both halves hold all of the operands, and every second row of the result. */
export const WMMA11 = ofBoth(
  "wmma",
  SIDE,
  results(8, [
    ["lane", SIDE, 2, 1],
    ["element", 1, 8, 2],
  ]),
);
/** RDNA 4: 32 threads; each half holds half of the operands, and eight rows of the result. */
export const WMMA12 = ofBoth("wmma12", 8, results(8, parts(8)));
