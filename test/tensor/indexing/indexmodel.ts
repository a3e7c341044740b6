// What indexing means, written the slow way on plain arrays: the oracle of
// indexing.test.ts. Also finite differences.

import { Tensor } from "gradloom";

export interface Plain {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}
export type PlainIndex = number | null | "..." | readonly (number | null)[] | Plain;

const isPlain = (i: PlainIndex): i is Plain => typeof i === "object" && i !== null && "data" in i;
const size = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** The coordinates of every element, in order. */
export function coordinates(shape: readonly number[]): number[][] {
  return Array.from({ length: size(shape) }, (_, flat) => {
    const at: number[] = [];
    let left = flat;
    for (let d = shape.length - 1; d >= 0; d--) {
      at.unshift(left % (shape[d] as number));
      left = Math.floor(left / (shape[d] as number));
    }
    return at;
  });
}
export const flatAt = (shape: readonly number[], at: readonly number[]): number =>
  at.reduce((flat, i, d) => flat * (shape[d] as number) + i, 0);

/** The places that a slice names in a dim of `n`, found by walking. */
function places([from, to, by]: readonly (number | null)[], n: number): number[] {
  const step = by ?? 1;
  const fix = (i: number, low: number, high: number) => Math.min(high, Math.max(low, i < 0 ? i + n : i));
  const found: number[] = [];
  if (step > 0) {
    const end = to == null ? n : fix(to, 0, n);
    for (let i = from == null ? 0 : fix(from, 0, n); i < end; i += step) found.push(i);
  } else {
    const end = to == null ? -1 : fix(to, -1, n - 1);
    for (let i = from == null ? n - 1 : fix(from, -1, n - 1); i > end; i += step) found.push(i);
  }
  return found;
}

function broadcast(shapes: readonly (readonly number[])[]): number[] {
  const ndim = Math.max(...shapes.map((s) => s.length));
  return Array.from({ length: ndim }, (_, d) => {
    const sizes = shapes.map((s) => s[d - ndim + s.length] ?? 1);
    return sizes.find((s) => s !== 1) ?? 1;
  });
}

/** The shape of x[index] and, for each of its elements, the flat place in x. */
export function addresses(
  shape: readonly number[],
  index: readonly PlainIndex[],
): { shape: number[]; flat: number[] } {
  const dims = index.filter((i) => i !== null && i !== "...").length;
  const gap = Array.from({ length: shape.length - dims }, (): readonly null[] => []);
  const full = (index.includes("...") ? index : [...index, "..." as const]).flatMap((i) =>
    i === "..." ? gap : [i],
  );
  // first everything but tensors: a list of places for each dim that stays
  type Dim = { readonly from: number; readonly list: readonly number[]; readonly by?: Plain };
  const kept: Dim[] = [];
  const fixed = new Map<number, number>();
  let d = 0;
  for (const i of full) {
    if (i === null) kept.push({ from: -1, list: [0] });
    else if (typeof i === "number") fixed.set(d++, i < 0 ? i + (shape[d - 1] as number) : i);
    else if (isPlain(i)) kept.push({ from: d++, list: [], by: i });
    else kept.push({ from: d, list: places(i as readonly (number | null)[], shape[d++] as number) });
  }
  const tensors = kept.filter((k) => k.by !== undefined);
  const common = tensors.length === 0 ? [] : broadcast(tensors.map((k) => (k.by as Plain).shape));
  const spots = kept.flatMap((k, i) => (k.by === undefined ? [] : [i]));
  const together = spots.every((s, j) => s === (spots[0] as number) + j);
  const insertAt = spots.length === 0 ? -1 : together ? (spots[0] as number) : 0;
  const plain = kept.filter((k) => k.by === undefined);
  const before = insertAt < 0 ? plain : plain.slice(0, insertAt);
  const after = insertAt < 0 ? [] : plain.slice(insertAt);
  const out = [...before.map((k) => k.list.length), ...common, ...after.map((k) => k.list.length)];
  const flat = coordinates(out).map((at) => {
    const place = shape.map((_, j) => fixed.get(j) ?? 0);
    const put = (k: Dim, i: number) => {
      if (k.from >= 0) place[k.from] = k.list[i] as number;
    };
    before.forEach((k, j) => void put(k, at[j] as number));
    after.forEach((k, j) => void put(k, at[before.length + common.length + j] as number));
    const spot = at.slice(before.length, before.length + common.length);
    for (const k of tensors) {
      const { shape: s, data } = k.by as Plain;
      const own = spot.slice(common.length - s.length).map((x, j) => (s[j] === 1 ? 0 : x));
      const i = data[flatAt(s, own)] as number;
      place[k.from] = i < 0 ? i + (shape[k.from] as number) : i;
    }
    return flatAt(shape, place);
  });
  return { shape: out, flat };
}

/** The largest difference between backward's gradient of sum(f(x) * w) and the one by finite differences. */
export async function gradientGap(
  shape: readonly number[],
  f: (x: Tensor) => Tensor,
  seed = 1,
): Promise<number> {
  const n = size(shape);
  // distinct values, far apart compared with the step
  const at = Float32Array.from({ length: n }, (_, i) => (((i * 7 + seed * 3) % n) - n / 2) / 4 + 0.1);
  const loss = (x: Tensor): Tensor => {
    const y = f(x).reshape(-1);
    const w = Float32Array.from({ length: y.size }, (_, i) => (((i * 7) % 11) - 5) / 5);
    return y.mul(new Tensor(w)).sum();
  };
  const leaf = new Tensor(at).reshape(shape).detach();
  leaf.requiresGrad = true;
  loss(leaf).backward();
  const grad = leaf.grad === undefined ? new Float32Array(n) : await leaf.grad.data();
  let gap = 0;
  const step = 0.05;
  for (let i = 0; i < n; i++) {
    const ends: number[] = [];
    for (const by of [-step, step]) {
      const moved = at.slice();
      moved[i] = (moved[i] as number) + by;
      ends.push(Number(await loss(new Tensor(moved).reshape(shape)).item()));
    }
    const slope = ((ends[1] as number) - (ends[0] as number)) / (2 * step);
    gap = Math.max(gap, Math.abs(slope - Number(grad[i])));
  }
  return gap;
}
