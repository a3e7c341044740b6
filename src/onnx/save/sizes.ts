// Sizes that depend on open dims. A graph is traced at several sizes of each; a number that differs between
// the traces must be a polynomial of the sizes in which each has at most the first power. In: the sizes and
// the number of each trace. Out: the polynomial, or undefined where there is none.

import { range } from "../../helpers.ts";

/** A sum of terms: a rational factor times the open dims of a set, by their numbers. */
export interface SizeFormula {
  readonly terms: readonly SizeTerm[];
  /** of a float: 1 over the sum */
  readonly isReciprocal: boolean;
}
export interface SizeTerm {
  /** numerator and denominator */
  readonly factor: readonly [number, number];
  readonly dims: readonly number[];
}
/**
 * The sizes of the open dims in each trace: the first 2^n are all combinations of two sizes, others
 * check.
 */
export type TraceSizes = readonly (readonly number[])[];

const MAX_DENOMINATOR = 4096;

/** For n open dims, the traces: dim i of the first 2^n has its second size where bit i is set. */
export function tracesFor(choices: readonly (readonly number[])[]): TraceSizes {
  const n = choices.length;
  const corner = (bits: number): number[] => choices.map((sizes, i) => sizes[(bits >> i) & 1] as number);
  const checks = n === 0 ? [] : [choices.map((sizes) => sizes[2] as number)];
  const mixed = n < 2 ? [] : [choices.map((sizes, i) => sizes[(i % 2) * 2] as number)];
  return [...range(2 ** n).map(corner), ...checks, ...mixed];
}

function rational(x: number): readonly [number, number] | undefined {
  for (let q = 1; q <= MAX_DENOMINATOR; q++) {
    const p = Math.round(x * q);
    if (Math.abs(x * q - p) < 1e-9 * Math.max(1, Math.abs(p))) return [p, q];
  }
  return undefined;
}

/** The multilinear polynomial through the corners. */
function through(values: readonly number[], traces: TraceSizes, n: number): SizeTerm[] | undefined {
  // coefficients of products of (size - first size) / (second - first), then expanded
  let terms = new Map<number, number>([[0, 0]]);
  const corners = 2 ** n;
  for (let bits = 0; bits < corners; bits++) {
    let product = new Map<number, number>([[0, values[bits] as number]]);
    for (let i = 0; i < n; i++) {
      const [lo, hi] = [
        (traces[0] as readonly number[])[i] as number,
        (traces[1 << i] as readonly number[])[i] as number,
      ];
      const isHigh = ((bits >> i) & 1) === 1;
      const [a, c] = isHigh ? [1 / (hi - lo), -lo / (hi - lo)] : [-1 / (hi - lo), hi / (hi - lo)];
      const next = new Map<number, number>();
      for (const [set, v] of product) {
        next.set(set, (next.get(set) ?? 0) + v * c);
        next.set(set | (1 << i), (next.get(set | (1 << i)) ?? 0) + v * a);
      }
      product = next;
    }
    const sum = new Map(terms);
    for (const [set, v] of product) sum.set(set, (sum.get(set) ?? 0) + v);
    terms = sum;
  }
  const found: SizeTerm[] = [];
  for (const [set, v] of terms) {
    const factor = rational(v);
    if (factor === undefined) return undefined;
    if (factor[0] !== 0) found.push({ factor, dims: range(n).filter((i) => (set >> i) & 1) });
  }
  return found;
}
const valueAt = (terms: readonly SizeTerm[], sizes: readonly number[]): number =>
  terms.reduce(
    (sum, { factor: [p, q], dims }) => sum + dims.reduce((n, d) => n * (sizes[d] as number), p) / q,
    0,
  );
const isClose = (a: number, b: number): boolean =>
  Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));

/** The formula of a number that is `values[i]` in trace i. */
export function fitted(
  values: readonly number[],
  traces: TraceSizes,
  isFloat: boolean,
): SizeFormula | undefined {
  const n = (traces[0] as readonly number[]).length;
  const formula = (xs: readonly number[], isReciprocal: boolean): SizeFormula | undefined => {
    if (!xs.every(Number.isFinite)) return undefined;
    const terms = through(xs, traces, n);
    if (terms === undefined || !traces.every((sizes, i) => isClose(valueAt(terms, sizes), xs[i] as number)))
      return undefined;
    return { terms, isReciprocal };
  };
  return (
    formula(values, false) ??
    (isFloat
      ? formula(
          values.map((v) => 1 / v),
          true,
        )
      : undefined)
  );
}
