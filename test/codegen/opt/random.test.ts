// Random programs with sizes that vectors, tiles and workgroups do not divide: products of matrices,
// convolutions, windows, reduces and views of each other. All values are small whole numbers, so that no
// order of a sum matters: what the heuristics make of them, on WASM and as CUDA's kernels that JS executes,
// is to the bit what plain loops give, one reduce a kernel.

import { Device, Tensor, withEnv } from "gradloom";
import { CUDARenderer } from "gradloom/render";
import { describe, expect, test } from "vitest";
import { tensor } from "../../device/harness.ts";
import { registerOracle } from "../../devices/oracle.ts";
import { Random } from "../../shape/random.ts";

const SIZES = [1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33, 64, 67];
const MAX_ELEMENTS = 6000;
/** Whole numbers up to this are exact in float32, and so are their sums. */
const MAX_BOUND = 2 ** 22;

/** A tensor, and what no element of it exceeds. */
interface Node {
  readonly t: Tensor;
  readonly bound: number;
}
type Step = (r: Random, x: Node, all: readonly Node[]) => Node | undefined;

const count = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
const axesOf = (r: Random, { t }: Node): number[] => {
  const axes = t.shape.map((_, i) => i).filter(() => r.chance(45));
  return axes.length === 0 ? [r.int(0, t.ndim - 1)] : axes;
};
const joined = (a: Tensor, b: Tensor): number => {
  const n = Math.max(a.ndim, b.ndim);
  const sizes = Array.from(
    { length: n },
    (_, i) => [a.shape.at(i - n) ?? 1, b.shape.at(i - n) ?? 1] as const,
  );
  return sizes.every(([x, y]) => x === y || x === 1 || y === 1)
    ? count(sizes.map(([x, y]) => Math.max(x, y)))
    : Infinity;
};
const asImages = (t: Tensor): Tensor => {
  const { shape } = t;
  return t.reshape([...Array.from({ length: 4 - shape.length }, () => 1), ...shape]);
};

const STEPS: readonly Step[] = [
  (r, { t, bound }) => ({ t: t.permute(r.shuffled(t.shape.map((_, i) => i))), bound }),
  (r, x) => ({ t: x.t.flip(axesOf(r, x)), bound: x.bound }),
  (r, { t, bound }) => ({ t: t.pad(t.shape.map(() => [r.int(0, 2), r.int(0, 2)])), bound }),
  (r, { t, bound }) => {
    const cut = (n: number): [number, number] => {
      const from = r.int(0, n - 1);
      return [from, r.int(from + 1, n)];
    };
    return { t: t.shrink(t.shape.map((n) => (r.chance(50) ? cut(n) : null))), bound };
  },
  (r, { t, bound }) => ({ t: t.stride(t.shape.map(() => r.pick([1, 1, 2, -1, 3]))), bound }),
  (_, { t, bound }) => ({ t: t.relu().mul(2).add(1), bound: 2 * bound + 1 }),
  (r, x, all) => {
    const y = r.pick(all.filter((o) => joined(x.t, o.t) <= MAX_ELEMENTS));
    const [a, b] = [x.t, y.t];
    return r.chance(50)
      ? { t: a.mul(b).sub(a), bound: x.bound * (y.bound + 1) }
      : { t: a.lt(b).where(a, b), bound: Math.max(x.bound, y.bound) };
  },
  (r, x) => {
    const axes = axesOf(r, x);
    const n = count(axes.map((a) => x.t.shape[a] as number));
    return { t: x.t.sum(axes, r.chance(50)), bound: x.bound * n };
  },
  (r, x) => ({ t: x.t.max(axesOf(r, x), r.chance(50)), bound: x.bound }),
  // as in softmax and variance: a reduce, seen at the shape of what it reduced, and reduced again
  (r, x) => {
    const axes = axesOf(r, x);
    const n = count(axes.map((a) => x.t.shape[a] as number));
    const far = x.t.max(axes, true).sub(x.t);
    const t = r.chance(50) ? far.add(far.sum(axes, true)) : far.square().sum(axes);
    return { t, bound: 4 * x.bound * Math.max(x.bound, 1) * (n + 1) };
  },
  (r, x) => ({ t: x.t.argmax(r.int(0, x.t.ndim - 1)).cast("float32"), bound: MAX_ELEMENTS }),
  (r, x, all) => {
    const k = x.t.shape.at(-1) as number;
    const right = all.flatMap((y) => (y.t.ndim !== 2 ? [] : [y, { ...y, t: y.t.T }]));
    const fits = right.filter((y) => y.t.shape[0] === k && x.t.size * (y.t.shape[1] as number) < 100_000);
    if (fits.length === 0) return undefined;
    const y = r.pick(fits);
    return { t: x.t.matmul(y.t), bound: x.bound * y.bound * k };
  },
  (r, x) => {
    if (x.t.ndim > 4 || x.t.size > 1500) return undefined;
    const t = asImages(x.t);
    const [, channels, h, w] = t.shape as [number, number, number, number];
    const shape = [r.int(1, 9), channels, Math.min(h, r.int(1, 3)), Math.min(w, r.int(1, 3))];
    const weight = Tensor.arange(count(shape))
      .to(t.device)
      .remainder(5)
      .sub(2)
      .cast("float32")
      .reshape(shape);
    const options = { stride: r.int(1, 2), padding: r.int(0, 1) };
    return { t: t.conv2d(weight.contiguous(), null, options), bound: 2 * x.bound * count(shape.slice(1)) };
  },
  (r, x) => {
    if (x.t.ndim > 4 || x.t.size > 3000) return undefined;
    const t = asImages(x.t);
    const window = t.shape.slice(2).map((n) => Math.min(n, r.int(1, 3)));
    return { t: t.maxPool2d(window, { stride: r.int(1, 2) }), bound: x.bound };
  },
  (_, { t, bound }) => ({ t: t.contiguous(), bound }),
];

function build(seed: number, device: string): Tensor[] {
  const r = new Random(seed);
  const sizes = Array.from({ length: 3 }, () => r.pick(SIZES));
  const all: Node[] = [];
  for (let i = r.int(2, 3); i > 0; i--) {
    const shape = Array.from({ length: r.int(1, 4) }, () => r.pick(r.chance(70) ? sizes : SIZES));
    while (count(shape) > 3000) shape.pop();
    const values = Array.from({ length: count(shape) }, () => r.int(-4, 4));
    all.push({ t: tensor(device, Tensor.zeros(1).dtype, values, shape), bound: 4 });
  }
  const inputs = all.length;
  while (all.length < inputs + 8) {
    const x = r.pick(r.chance(60) ? all.slice(-2) : all);
    if (x.t.ndim === 0) {
      all.push({ t: x.t.reshape(1), bound: x.bound });
      continue;
    }
    const made = r.pick(STEPS)(r, x, all);
    if (made === undefined || made.t.size > MAX_ELEMENTS) continue;
    all.push(made.bound > MAX_BOUND ? { t: x.t.remainder(5), bound: 5 } : made);
  }
  return all.slice(-r.int(1, 3)).map((n) => n.t);
}

const values = (outs: readonly Tensor[]): number[][] => {
  Tensor.realizeSync(...outs);
  // which zero a maximum gives is not specified
  return outs.map((t) => Array.from(t.dataSync() as Float32Array, (x) => x + 0));
};

describe("random programs", async () => {
  const devices = ["WASM", registerOracle("GPU", CUDARenderer)];
  for (const d of [...devices, "JS"]) await Device.open(d);
  const PROGRAMS = 50;
  test.for(devices)(`${PROGRAMS} of them on %s are what plain loops give`, { timeout: 90_000 }, (device) => {
    for (let seed = 1; seed <= PROGRAMS; seed++) {
      const want = withEnv({ NOOPT: 1, FUSE: 0 }, () => values(build(seed, "JS")));
      const got = values(build(seed, device));
      expect(got, `seed ${seed} on ${device}`).toEqual(want);
    }
  });
});
