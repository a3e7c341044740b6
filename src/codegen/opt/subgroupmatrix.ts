// The products of matrices that WebGPU's subgroups compute (subgroup matrices), as data. The hardware does
// not tell which thread holds which element, so the fragments are a choice: neighbouring threads have
// neighbouring vectors of a row, which they store at once.

import type { DType } from "../../dtype.ts";
import type { Fragment, TensorCore } from "../../uop/matrix.ts";

/** Elements of a vector that a thread stores. */
const VECTOR = 4;

/** What a device offers: c (m × n) += a (m × k) · b (k × n), of these types. */
export interface MatrixSides {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly from: DType;
  readonly to: DType;
}

/** undefined: the threads of a subgroup cannot share these matrices evenly. */
export function subgroupMatrix(sides: MatrixSides, subgroup: number): TensorCore | undefined {
  const { m, n, k, from, to } = sides;
  const [a, b, c] = [fragment(m, k, subgroup), fragment(k, n, subgroup), fragment(m, n, subgroup)];
  if (a === undefined || b === undefined || c === undefined) return undefined;
  const isWhole = [a, b].every(({ elements }) => (elements * from.itemsize) % 4 === 0);
  if (!isWhole) return undefined;
  return {
    ...sides,
    name: `m${m}n${n}k${k} ${from.name}`,
    ignored: 0,
    to,
    a,
    b,
    c,
    isOpaque: true,
    fitsLoadMatrix: false,
  };
}

function fragment(height: number, width: number, subgroup: number): Fragment | undefined {
  const elements = (height * width) / subgroup;
  const vector = Math.min(VECTOR, elements);
  const perRow = width / vector;
  const rows = subgroup / perRow;
  if (![elements, elements / vector, perRow, rows].every((x) => Number.isInteger(x))) return undefined;
  return {
    elements,
    row: [
      ["lane", perRow, rows, 1],
      ["element", vector, elements / vector, rows],
    ],
    column: [
      ["lane", 1, perRow, vector],
      ["element", 1, vector, 1],
    ],
  };
}
