// Shared by the tests of nn: comparing nested arrays within a tolerance, and a small random generator.

import type { Tensor } from "gradloom";
import { expect } from "vitest";

type Nested = number | readonly Nested[];

const flat = (x: unknown): number[] => (Array.isArray(x) ? x.flatMap(flat) : [Number(x)]);

/** Every element within `tolerance` of what is expected, relative to its magnitude if that is above 1. */
export async function expectClose(t: Tensor, expected: Nested, tolerance = 1e-5): Promise<void> {
  const [got, want] = [flat(await t.tolist()), flat(expected)];
  expect(got.length).toBe(want.length);
  got.forEach((g, i) => {
    const w = want[i] as number;
    expect(Math.abs(g - w), `element ${i}: got ${g}, expected ${w}`).toBeLessThanOrEqual(
      tolerance * Math.max(1, Math.abs(w)),
    );
  });
}

/** Numbers in (-1, 1), the same in every run. */
export function numbers(seed: number): (n: number) => number[] {
  let s = seed >>> 0;
  const next = (): number => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
    return (s >>> 8) / 2 ** 23 - 1;
  };
  return (n) => Array.from({ length: n }, next);
}

/** Rows of `width` numbers. */
export const rows = (xs: readonly number[], width: number): number[][] =>
  Array.from({ length: xs.length / width }, (_, i) => xs.slice(i * width, (i + 1) * width));

export const matmul = (a: readonly (readonly number[])[], b: readonly (readonly number[])[]): number[][] =>
  a.map((row) =>
    (b[0] as readonly number[]).map((_, j) => row.reduce((s, x, k) => s + x * (b[k] as number[])[j]!, 0)),
  );
export const transpose = (a: readonly (readonly number[])[]): number[][] =>
  (a[0] as readonly number[]).map((_, j) => a.map((row) => row[j] as number));
