// What the tests of convolution and networks share: seeded numbers, gradients against finite differences in
// float64, and a look at the kernels that a tensor takes.

import { createSchedule, Tensor, toKernel } from "gradloom";
import { ClangRenderer } from "gradloom/render";

export const size = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** A stream of integers below n, the same in every run. */
export function random(seed: number): (n: number) => number {
  let s = seed;
  return (n) => {
    s = (s * 1103515245 + 12345) % 2147483648;
    return Math.floor((s / 2147483648) * n);
  };
}

/** Distinct numbers between -1 and 1: no ties, so that maxima have gradients. */
export function values(n: number, seed = 1): number[] {
  const pick = random(seed);
  const list = Array.from({ length: n }, (_, i) => (2 * i + 1) / n - 1);
  for (let i = n - 1; i > 0; i--) {
    const j = pick(i + 1);
    [list[i], list[j]] = [list[j] as number, list[i] as number];
  }
  return list;
}
export const tensor = (
  shape: readonly number[],
  seed = 1,
  dtype: "float32" | "float64" = "float32",
): Tensor => new Tensor(values(size(shape), seed), { dtype }).reshape(shape).realizeSync();

export const numbers = (t: Tensor): number[] => Array.from(t.dataSync() as Float64Array, Number);

/** The largest difference, relative where numbers are large; Infinity where shapes or NaNs differ. */
export function gap(a: readonly number[], b: readonly number[]): number {
  if (a.length !== b.length) return Infinity;
  return a.reduce((worst, x, i) => {
    const y = b[i] as number;
    if (Object.is(x, y) || x === y) return worst;
    const off = Math.abs(x - y) / Math.max(1, Math.abs(y));
    return Number.isNaN(off) ? Infinity : Math.max(worst, off);
  }, 0);
}

/** A scalar that weighs every element differently. */
const weighed = (y: Tensor): Tensor => {
  const w = Array.from({ length: y.size }, (_, i) => ((i * 7) % 11) / 5 - 1);
  return y
    .reshape([y.size])
    .mul(new Tensor(w, { dtype: "float64" }))
    .sum();
};

/** The gradients of `f` at float64 inputs of these shapes against central differences: the largest gap. */
export function gradientGap(
  f: (...xs: Tensor[]) => Tensor,
  shapes: readonly (readonly number[])[],
  at: (x: number) => number = (x) => x,
): number {
  const data = shapes.map((s, i) => values(size(s), 11 + i).map(at));
  const make = (list: readonly (readonly number[])[], requiresGrad: boolean): Tensor[] =>
    list.map((d, i) => {
      const t = new Tensor(d, { dtype: "float64" }).reshape(shapes[i] as number[]);
      return new Tensor(t.lazydata, { requiresGrad });
    });
  const leaves = make(data, true);
  weighed(f(...leaves)).backward();
  const step = 1e-5;
  const valueAt = (k: number, j: number, by: number): number => {
    const moved = data.map((d, i) => (i === k ? d.with(j, (d[j] as number) + by) : d));
    return Number(weighed(f(...make(moved, false))).itemSync());
  };
  return Math.max(
    ...leaves.map((leaf, k) => {
      if (leaf.grad === undefined) return Infinity;
      // a few places are enough: they cover corners, middles and every residue of a stride
      const places = Array.from({ length: Math.min(leaf.size, 12) }, (_, i) => (i * 5) % leaf.size);
      const got = numbers(leaf.grad);
      const want = places.map((j) => (valueAt(k, j, step) - valueAt(k, j, -step)) / (2 * step));
      return gap(
        places.map((j) => got[j] as number),
        want,
      );
    }),
  );
}

/** The kernels that these tensors take, compiled for C. */
export const kernelsOf = (...ts: readonly Tensor[]) =>
  createSchedule(ts.map((t) => t.lazydata))
    .filter((si) => si.ast[0]?.op === "STORE")
    .map((si) => toKernel(si.ast, [], ClangRenderer));

/** Divisions and remainders inside the two innermost loops of a kernel. */
export function innerDivisions(kernel: ReturnType<typeof kernelsOf>[number]): number {
  const uops = [...kernel.uops];
  let depth = 0;
  let deepest = 0;
  const found: number[] = [];
  for (const u of uops) {
    if (u.op === "LOOP") deepest = Math.max(deepest, ++depth);
    else if (u.op === "ENDLOOP") depth--;
    else if (u.op === "ALU" && (u.arg === "IDIV" || u.arg === "MOD")) found.push(depth);
  }
  return found.filter((d) => d > deepest - 2).length;
}
