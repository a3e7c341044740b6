// Softmax, variance and their kin on rows that are easily lost: a large mean and a tiny spread, equal values,
// infinities, rows of nothing but -inf, NaN, numbers so large that their exp or their sum is not there.
// Against plain loops in float64, fused into one kernel and as the seeds cut (FUSE=0), on every device, with
// row lengths that vectors divide and that they do not.

import { Tensor, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";
import { kernels } from "../schedule/count.ts";
import { deviceTest, inRange } from "./harness.ts";

type Row = readonly number[];
/** The rows of one kind: column -> value, for so many columns. */
type Kind = (i: number, n: number) => number;

const TAME: Readonly<Record<string, Kind>> = {
  "a spread of hundreds": (i, n) => ((i * 7) % n) * (400 / n) - 200,
  "a large mean, a tiny spread": (i) => 1e5 + ((i * 5) % 13) * 2 ** -2,
  "a negative mean, a tiny spread": (i) => -(2 ** 14) - ((i * 5) % 11) * 2 ** -5,
  "equal values": () => 0.1,
  "one that stands out": (i) => (i === 3 ? 50 : 0),
  "next to nothing": (i) => (i % 5) * 2 ** -140,
};
const WILD: Readonly<Record<string, Kind>> = {
  "huge values of both signs": (i) => (i % 2 === 0 ? 3e38 : -3e38),
  "equal huge values": () => 3e38,
  "equal large values": () => -3e15,
  "some of -inf": (i) => (i % 3 === 0 ? -Infinity : i % 7),
  "all but one of -inf": (i) => (i === 2 ? -5 : -Infinity),
  "nothing but -inf": () => -Infinity,
  "one of +inf": (i) => (i === 1 ? Infinity : i),
  "both infinities": (i) => (i === 1 ? Infinity : i === 2 ? -Infinity : 1),
  "a NaN at the end": (i, n) => (i === n - 1 ? NaN : i / n),
  "a NaN before larger ones": (i) => (i === 0 ? NaN : i),
};

// ---- the truth, in float64 ----

const sum = (xs: Row): number => xs.reduce((a, b) => a + b, 0);
const largest = (xs: Row): number => xs.reduce((a, b) => (Number.isNaN(a) || a > b ? a : b));
const mean = (xs: Row): number => sum(xs) / xs.length;
const softmax = (xs: Row): number[] => {
  const e = xs.map((x) => Math.exp(x - largest(xs)));
  return e.map((x) => x / sum(e));
};
const logsumexp = (xs: Row): number => {
  const m = largest(xs);
  return Number.isFinite(m) ? m + Math.log(sum(xs.map((x) => Math.exp(x - m)))) : m;
};
const logSoftmax = (xs: Row): number[] => {
  const m = largest(xs);
  const total = Math.log(sum(xs.map((x) => Math.exp(x - m))));
  return xs.map((x) => x - m - total);
};
const variance = (xs: Row): number => sum(xs.map((x) => (x - mean(xs)) ** 2)) / (xs.length - 1);
const layerNorm = (xs: Row): number[] => {
  const scale = 1 / Math.sqrt((variance(xs) * (xs.length - 1)) / xs.length + 1e-5);
  return xs.map((x) => (x - mean(xs)) * scale);
};
const rmsNorm = (xs: Row): number[] => xs.map((x) => x / Math.sqrt(mean(xs.map((y) => y * y)) + 1e-5));

interface Case {
  readonly build: (t: Tensor) => Tensor;
  readonly truth: (xs: Row) => readonly number[];
  readonly kinds: Readonly<Record<string, Kind>>;
  /** relative to the largest number of the row's result, or to `least` where that is larger */
  readonly within: number;
  /** what is left of a mean that was rounded, where nothing should be */
  readonly least?: number;
  /** kernels with FUSE=1, and as the seeds cut */
  readonly kernels: readonly [number, number];
}
const TARGET = 1;
const ALL = { ...TAME, ...WILD };
const CASES: Readonly<Record<string, Case>> = {
  // x - max is rounded, and times the logarithm of 2 as well: 200 * 2^-24
  softmax: { build: (t) => t.softmax(), truth: softmax, kinds: ALL, within: 3e-5, kernels: [1, 3] },
  logSoftmax: { build: (t) => t.logSoftmax(), truth: logSoftmax, kinds: ALL, within: 1e-6, kernels: [1, 3] },
  logsumexp: {
    build: (t) => t.logsumexp(1),
    truth: (xs) => [logsumexp(xs)],
    kinds: ALL,
    within: 1e-6,
    kernels: [1, 2],
  },
  crossEntropy: {
    build: (t) =>
      t.crossEntropy(Tensor.full([t.shape[0] as number], TARGET, { device: t.device }), {
        reduction: "none",
      }),
    truth: (xs) => [-(logSoftmax(xs)[TARGET] as number)],
    kinds: TAME,
    within: 1e-5,
    kernels: [1, 3],
  },
  // the mean is a rounded sum: two passes take its error squared, the squares' mean less the
  // mean's square had nothing left
  var: {
    build: (t) => t.var(1),
    truth: (xs) => [variance(xs)],
    kinds: TAME,
    within: 2e-2,
    least: 1e-10,
    kernels: [1, 2],
  },
  std: {
    build: (t) => t.std(1),
    truth: (xs) => [Math.sqrt(variance(xs))],
    kinds: TAME,
    within: 1e-2,
    least: 1e-4,
    kernels: [1, 2],
  },
  layerNorm: {
    build: (t) => t.layerNorm(t.shape[1] as number),
    truth: layerNorm,
    kinds: TAME,
    within: 6e-2,
    least: 0.1,
    kernels: [1, 3],
  },
  rmsNorm: {
    build: (t) => t.rmsNorm(t.shape[1] as number, { eps: 1e-5 }),
    truth: rmsNorm,
    kinds: TAME,
    within: 1e-5,
    kernels: [1, 2],
  },
};

/** Where the numbers are, NaN and infinities where they are due, all else within the distance. */
function expectClose(got: Row, want: Row, within: number, what: string, least = 2 ** -126): void {
  expect(got.length, what).toBe(want.length);
  const scale = Math.max(...want.filter(Number.isFinite).map(Math.abs), least);
  const off = got.flatMap((x, i) => {
    const y = Math.fround(want[i] as number);
    const same = Object.is(x, y) || Math.abs(x - y) <= within * scale;
    return same ? [] : [`${what} [${i}]: ${x}, expected ${y}`];
  });
  expect(off.slice(0, 5), what).toEqual([]);
}

async function check(
  device: string,
  { build, truth, kinds, within, least }: Case,
  n: number,
  fuse: number,
): Promise<void> {
  const rowOf = (name: string): number[] =>
    Array.from({ length: n }, (_, i) => Math.fround((kinds[name] as Kind)(i, n)));
  const names = Object.keys(kinds).filter((name) => inRange(rowOf(name)).length === n);
  const rows = names.map(rowOf);
  const t = await new Tensor(Float32Array.from(rows.flat()), { device }).reshape(names.length, n).realize();
  const got = await withEnv({ FUSE: fuse }, async () => [...((await build(t).data()) as Float32Array)]);
  const width = got.length / names.length;
  names.forEach((name, r) => {
    const mine = got.slice(r * width, (r + 1) * width);
    expectClose(mine, truth(rows[r] as Row), within, `${name}, ${n} columns, FUSE=${fuse}`, least);
  });
}

describe.each(Object.entries(CASES))("%s", (_, c) => {
  for (const fuse of [1, 0]) {
    deviceTest(`rows of 5, 64 and 67, FUSE=${fuse}`, async (device) => {
      for (const n of [5, 64, 67]) await check(device, c, n, fuse);
    });
  }
  test(`${c.kernels[0]} kernel, ${c.kernels[1]} as the seeds cut`, () => {
    const t = new Tensor(new Float32Array(8 * 64)).reshape(8, 64).realizeSync();
    expect(kernels(c.build(t))).toBe(c.kernels[0]);
    expect(withEnv({ FUSE: 0 }, () => kernels(c.build(t)))).toBe(c.kernels[1]);
  });
});

deviceTest("a softmax on all threads: each has its own array", async (device) => {
  const [rows, n] = device === "WASM" || device === "CLANG" ? [600, 1024] : [6, 96];
  const data = Float32Array.from(
    { length: rows * n },
    (_, i) => ((i * 7919) % 4001) / 100 + Math.floor(i / n),
  );
  const t = new Tensor(data, { device }).reshape(rows, n);
  const got = (await t.softmax().data()) as Float32Array;
  for (let r = 0; r < rows; r += 37) {
    const mine = [...got.subarray(r * n, (r + 1) * n)];
    expectClose(mine, softmax([...data.subarray(r * n, (r + 1) * n)]), 1e-5, `row ${r}`);
  }
});

test("an Adam step of one parameter is one kernel, and so are a mean and a variance together", () => {
  const [p, g, m, v] = [1, 2, 3, 4].map((k) => new Tensor(new Float32Array(64).fill(k)).realizeSync()) as [
    Tensor,
    Tensor,
    Tensor,
    Tensor,
  ];
  const step = [m.assign(m.mul(0.9).add(g.mul(0.1))), v.assign(v.mul(0.999).add(g.square().mul(0.001)))];
  const moved = p.assign(p.sub(step[0]!.div(step[1]!.sqrt().add(1e-8)).mul(0.001)));
  expect(kernels(...step, moved)).toBe(1);
  const x = new Tensor(new Float32Array(8 * 64)).reshape(8, 64).realizeSync();
  expect(kernels(x.mean(1), x.var(1))).toBe(1);
});
