// Random graphs with a seed: fused kernels give the same values as one op at a time, with FUSE=1 and with
// FUSE=0, and fusion neither adds kernels nor multiplies the work.

import { Tensor, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";
import { Random } from "../shape/random.ts";
import { kernels, ready, totalOps, worst } from "./count.ts";

/** One op on one or two tensors of a pool; undefined where it does not fit their shapes. */
type Op = (r: Random, t: Tensor, pool: readonly Tensor[]) => ((t: Tensor, u: Tensor) => Tensor) | undefined;

const axisOf = (r: Random, t: Tensor): number => r.int(0, t.ndim - 1);
const binary =
  (f: (a: Tensor, b: Tensor) => Tensor): Op =>
  () =>
  (a, b) =>
    f(a, b);
const unary =
  (f: (a: Tensor) => Tensor): Op =>
  () =>
  (a) =>
    f(a);
const alongAxis =
  (f: (a: Tensor, axis: number) => Tensor): Op =>
  (r, t) => {
    const axis = axisOf(r, t);
    return t.ndim === 0 ? undefined : (a) => f(a, axis);
  };

const OPS: readonly Op[] = [
  binary((a, b) => a.add(b)),
  binary((a, b) => a.mul(b)),
  binary((a, b) => a.sub(b)),
  binary((a, b) => a.maximum(b)),
  unary((a) => a.neg()),
  unary((a) => a.sigmoid()),
  unary((a) => a.mul(0.5).add(1)),
  unary((a) => a.relu()),
  unary((a) => a.square().mul(0.25)),
  unary((a) => a.mul(0.1).sin()),
  unary((a) => a.contiguous()),
  alongAxis((a, d) => a.sum(d, true).mul(0.3)),
  alongAxis((a, d) => a.max(d, true)),
  alongAxis((a, d) => a.mean(d)),
  alongAxis((a, d) => a.sub(a.mean(d, true))),
  alongAxis((a, d) => a.softmax(d)),
  alongAxis((a, d) => a.sub(a.max(d, true)).exp()),
  alongAxis((a, d) => a.flip(d)),
  alongAxis((a, d) => a.shrink(a.shape.map((n, i) => (i === d && n > 1 ? ([1, n] as const) : null)))),
  alongAxis((a, d) => a.pad(a.shape.map((_, i) => (i === d ? ([1, 1] as const) : null)))),
  alongAxis((a, d) => (a.size > 60 ? a : a.unsqueeze(d).expand(a.shape.toSpliced(d, 0, 2)))),
  (r, t) => {
    const order = r.shuffled(t.shape.map((_, i) => i));
    return (a) => a.permute(order);
  },
  unary((a) => a.flatten()),
  (_, t, pool) => {
    const right = pool.find((u) => u.ndim === 2 && u.shape[0] === t.shape.at(-1));
    return t.ndim === 0 || right === undefined ? undefined : (a, b) => a.dot(b).mul(0.3);
  },
];

const broadcasts = (a: Tensor, b: Tensor): boolean => {
  const n = Math.min(a.ndim, b.ndim);
  for (let i = 1; i <= n; i++) {
    const [x, y] = [a.shape.at(-i), b.shape.at(-i)];
    if (x !== y && x !== 1 && y !== 1) return false;
  }
  return true;
};

/** Builds the same random graph, lazily or realising each op. The choices depend only on shapes and seed. */
function build(seed: number, lazy: boolean): Tensor[] {
  const r = new Random(seed);
  const pool = [ready([3, 4]), ready([3, 1], {}, 4), ready([4, 4], {}, 2), ready([2, 3, 4], {}, 8)];
  for (let made = 0; made < 10; ) {
    const t = r.pick(pool);
    const fits = pool.filter((u) => broadcasts(t, u) && Math.max(t.size, u.size) < 200);
    const op = r.pick(OPS);
    const f = op(r, t, pool);
    if (f === undefined) continue;
    const isDot = op === OPS.at(-1);
    const other = isDot
      ? (pool.find((u) => u.ndim === 2 && u.shape[0] === t.shape.at(-1)) as Tensor)
      : r.pick(fits.length > 0 ? fits : [t]);
    const result = f(t, other);
    if (result.size > 400) continue;
    pool.push(lazy ? result : result.contiguous().realizeSync());
    made++;
  }
  return pool.slice(4);
}

describe("random graphs", () => {
  const PROGRAMS = 150;
  test(`${PROGRAMS} of them: FUSE=1, FUSE=0 and one op at a time give the same result`, () => {
    let [fused, unfused] = [0, 0];
    for (let seed = 1; seed <= PROGRAMS; seed++) {
      const expected = build(seed, false).map((t) => t.dataSync());
      const last = build(seed, true).at(-1) as Tensor;
      const many = build(seed, true);
      const plain = withEnv({ FUSE: 0 }, () => build(seed, true).map((t) => t.dataSync()));
      const counts = [kernels(last), withEnv({ FUSE: 0 }, () => kernels(last))] as const;
      fused += counts[0];
      unfused += counts[1];
      expect(counts[0], `seed ${seed}: kernels with FUSE=1`).toBeLessThanOrEqual(counts[1]);
      const work = [totalOps(last), withEnv({ FUSE: 0 }, () => totalOps(last))] as const;
      expect(work[0], `seed ${seed}: operations with FUSE=1`).toBeLessThanOrEqual(4 * work[1]);
      expect(worst(last.dataSync(), expected.at(-1) as Float32Array), `seed ${seed}: alone`).toBeLessThan(
        1e-3,
      );
      Tensor.realizeSync(...many);
      many.forEach((t, i) => {
        const want = expected[i] as Float32Array;
        expect(worst(t.dataSync(), want), `seed ${seed}: tensor ${i}, realised together`).toBeLessThan(1e-3);
        expect(worst(plain[i] as Float32Array, want), `seed ${seed}: tensor ${i}, FUSE=0`).toBeLessThan(1e-3);
      });
    }
    expect(fused).toBeLessThan(unfused);
  });
});
