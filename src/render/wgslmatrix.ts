// How WGSL spells the matrices of a subgroup: the experimental feature chromium_experimental_subgroup_matrix,
// which Dawn has in Node; pages do not load this. A matrix is a value of its own type. Nobody may look at its
// elements: a result goes through workgroup memory, where every subgroup has room for one matrix, and each
// thread reads its share there.

import type { OptRecord } from "../codegen/opt/record.ts";
import { type MatrixSides, subgroupMatrix } from "../codegen/opt/subgroupmatrix.ts";
import { TC } from "../codegen/opt/tensorcore.ts";
import { type DType, dtypes } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { range, sum } from "../helpers.ts";
import { type Digits, type FragmentLoad, roomOfResults, type TensorCore } from "../uop/matrix.ts";
import type { UOp } from "../uop/node.ts";
import { typeName } from "./wgslops.ts";

const ENABLE = [
  "enable chromium_experimental_subgroup_matrix;",
  // the compiler does not see that the number of a subgroup is the same for all of its threads
  "diagnostic(off, chromium.subgroup_matrix_uniformity);",
];

/** The matrices of a kernel: accumulators and products, and what they are multiplied on. */
function matricesOf(uops: readonly UOp[]): ReadonlyMap<UOp, TensorCore> {
  const found = new Map<UOp, TensorCore>();
  for (const u of uops) {
    if (u.op === "WMMA") {
      found.set(u, u.core);
      if (u.c !== undefined) found.set(u.c, u.core);
    }
  }
  for (const u of uops) {
    const core = u.op === "PHI" ? found.get(u.value) : undefined;
    if (core === undefined || u.op !== "PHI") continue;
    found.set(u, core);
    found.set(u.accumulator, core);
  }
  return found;
}

const resultType = ({ m, n, to }: TensorCore): string =>
  `subgroup_matrix_result<${typeName(to)}, ${n}, ${m}>`;
const operandType = ({ core: { m, n, k, from }, side }: FragmentLoad): string =>
  side === "a"
    ? `subgroup_matrix_left<${typeName(from)}, ${k}, ${m}>`
    : `subgroup_matrix_right<${typeName(from)}, ${n}, ${k}>`;

function loadText(memory: string, index: string, load: FragmentLoad): string {
  const order = load.isTransposed ? "col_major" : "row_major";
  return `subgroupMatrixLoad<${operandType(load)}, ${order}>(&${memory}, u32(${index}), ${load.pitch}u)`;
}
const multiplyText = (a: string, b: string, c: string): string =>
  `subgroupMatrixMultiplyAccumulate(${a}, ${b}, ${c})`;

/** The workgroup memory through which results go, and its size for so many threads. */
const ROOM = "matrices";
const roomOf = (core: TensorCore, threads: number): string =>
  `var<workgroup> ${ROOM}: array<${typeName(core.to)}, ${roomOfResults(core, threads) / core.to.itemsize}>;`;

/** Statements before a thread can read its elements of a matrix, and the text of each element. */
function elementTexts(matrix: string, core: TensorCore): { before: string[]; elements: string[] } {
  const { m, n, c } = core;
  if (!core.isOpaque) throw new InternalError(`WGSL has no ${core.name}`);
  const threads = (m * n) / c.elements;
  const own = `(lidx / ${threads}u) * ${m * n}u`;
  const digits = [...scaled(c.row, n), ...scaled(c.column, 1)];
  const lane = digits.flatMap(([from, by, size, times]) =>
    from === "lane" ? [`lidx % ${by * size}u / ${by}u * ${times}u`] : [],
  );
  const offset = (element: number): number =>
    sum(
      digits.map(([from, by, size, times]) =>
        from === "element" ? (Math.floor(element / by) % size) * times : 0,
      ),
    );
  return {
    before: [
      "workgroupBarrier();",
      `subgroupMatrixStore<row_major>(&${ROOM}, ${own}, ${matrix}, ${n}u);`,
      "workgroupBarrier();",
    ],
    elements: range(c.elements).map((e) => `${ROOM}[${[own, ...lane].join(" + ")} + ${offset(e)}u]`),
  };
}
const scaled = (digits: Digits, by: number): Digits =>
  digits.map(([from, of, size, times]) => [from, of, size, times * by] as const);

const SPELLING = {
  enable: ENABLE,
  matricesOf,
  resultType,
  room: roomOf,
  load: loadText,
  multiply: multiplyText,
  elements: elementTexts,
} as const;
export type MatrixSpelling = typeof SPELLING;

/** What a GPU says that its subgroups multiply, as WebGPU has it. */
interface Configuration {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}
/** The types whose sums are what a program asks for: others lose digits. */
const FACTORS: Readonly<Record<string, DType>> = { f16: dtypes.float16, f32: dtypes.float32 };
const sidesOf = (all: readonly Configuration[]): MatrixSides[] =>
  all.flatMap(({ componentType, resultComponentType, M: m, N: n, K: k }) => {
    const from = FACTORS[componentType];
    return from === undefined || resultComponentType !== "f32" ? [] : [{ m, n, k, from, to: dtypes.float32 }];
  });

/** What a WebGPU target needs for subgroup matrices: their OptOp, what each is, and how it is spelt. */
export const SUBGROUP_MATRICES = {
  ops: [TC] as readonly OptRecord[],
  sidesOf,
  coreOf: subgroupMatrix,
  spelling: SPELLING as MatrixSpelling,
} as const;
export type SubgroupMatrices = typeof SUBGROUP_MATRICES;
