// The products of matrices that SIMD groups of Apple's GPUs compute (simdgroup_matrix), as data like that of
// mma.ts: their types, and how the 32 threads hold 8 × 8 elements, two neighbours of a row each. Apple does
// not write down which; the order is the same from M1 on, and programs in wide use depend on it.

import { dtypes } from "../../dtype.ts";
import type { Fragment, TensorCore } from "../../uop/matrix.ts";

const SIDE = 8;
/** Four squares of 4 × 4: neighbouring threads are side by side, then below each other. */
const elements: Fragment = {
  elements: 2,
  row: [
    ["lane", 2, 4, 1],
    ["lane", 16, 2, 4],
  ],
  column: [
    ["element", 1, 2, 1],
    ["lane", 1, 2, 2],
    ["lane", 8, 2, 4],
  ],
};
const core = (from: TensorCore["from"]): TensorCore => ({
  name: `m8n8k8 ${from.name}`,
  ...{ m: SIDE, n: SIDE, k: SIDE, from, ignored: 0, to: dtypes.float32 },
  ...{ a: elements, b: elements, c: elements, isOpaque: false, fitsLoadMatrix: false },
});

/** TC names them by their index in this list. */
export const SIMDGROUP_MATRICES: readonly TensorCore[] = [core(dtypes.float16), core(dtypes.float32)];
