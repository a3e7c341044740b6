// A handful of tensors whose kernels the golden tests look at (kernels.test.ts the texts, compile.test.ts the
// rest), with what plain arithmetic makes of the same numbers.

import { createSchedule, type Renderer, resetKernelNames, Tensor, toKernel, Variable } from "gradloom";

/**
 * Small numbers with signs and fractions, the same on every run; exact in float32, and so are sums of
 * products.
 */
export const numbers = (n: number, from: number): number[] =>
  Array.from({ length: n }, (_, i) => (((i * 7 + from * 5) % 17) - 8) / 4);

export interface Golden {
  readonly name: string;
  tensor(device: string): Tensor;
  readonly expected: readonly number[];
  /** how far a value may be off, for what exp2 goes into */
  readonly tolerance: number;
}

const at = (xs: readonly number[], i: number): number => xs[i] as number;
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const a = numbers(16, 1);
const b = numbers(16, 2);
const c = numbers(16, 3);
const make = (xs: readonly number[], device: string) => new Tensor(Float32Array.from(xs), { device });
const square = (xs: readonly number[], device: string) => make(xs, device).reshape(4, 4);

const softmax = (row: readonly number[]): number[] => {
  const e = row.map((x) => Math.exp(x - Math.max(...row)));
  return e.map((x) => x / e.reduce((s, y) => s + y, 0));
};

/** Out of the range of an int, not a number, and what truncates to 0. */
const EDGES = [0, -0.5, 1.75, -300.5, 3e9, -3e9, NaN, Infinity];

export const GOLDENS: readonly Golden[] = [
  {
    name: "relu(a*b+c)",
    tensor: (d) => square(a, d).mul(square(b, d)).add(square(c, d)).relu(),
    expected: range(16).map((i) => Math.max(0, at(a, i) * at(b, i) + at(c, i))),
    tolerance: 0,
  },
  {
    name: "matmul",
    tensor: (d) => square(a, d).matmul(square(b, d)),
    expected: range(16).map((i) =>
      range(4).reduce((s, k) => s + at(a, (i >> 2) * 4 + k) * at(b, k * 4 + (i & 3)), 0),
    ),
    tolerance: 0,
  },
  {
    name: "padded shift",
    tensor: (d) =>
      square(a, d)
        .shrink([[0, 3], null])
        .pad([[1, 0], null])
        .add(square(b, d)),
    expected: range(16).map((i) => (i < 4 ? 0 : at(a, i - 4)) + at(b, i)),
    tolerance: 0,
  },
  {
    name: "softmax of rows",
    tensor: (d) => square(a, d).softmax(),
    expected: range(4).flatMap((r) => softmax(a.slice(r * 4, r * 4 + 4))),
    tolerance: 1e-6,
  },
  {
    name: "cast chain",
    tensor: (d) => make(EDGES, d).cast("int32").cast("bool").cast("float32"),
    expected: [0, 0, 1, 1, 1, 1, 0, 1],
    tolerance: 0,
  },
  {
    name: "sum of a symbolic size",
    tensor: (d) =>
      square(a, d)
        .shrink([[0, Variable("n", 1, 4).bind(3)], null])
        .sum(0),
    expected: range(4).map((j) => at(a, j) + at(a, 4 + j) + at(a, 8 + j)),
    tolerance: 0,
  },
];

/** The one kernel of a golden tensor, named as in a fresh process. */
export function kernelText(renderer: Renderer, golden: Golden, device = "JS"): string {
  const items = createSchedule([golden.tensor(device).lazydata]).filter((si) => si.ast[0]?.op === "STORE");
  const [kernel] = items;
  if (kernel === undefined || items.length > 1) throw new Error(`${golden.name}: ${items.length} kernels`);
  resetKernelNames();
  const { name, uops } = toKernel(kernel.ast, [], renderer);
  return renderer.render(name, uops).code as string;
}
