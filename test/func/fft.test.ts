// Fourier transforms of many lengths against the sum that defines them; inverses, norms, dims, padding,
// gradients; the work grows as n log n.

import { fft, GlobalCounters, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { splitOf } from "../../src/func/dft.ts";
import { numbers } from "../nn/close.ts";

type Pair = [number, number];
/** The definition, in doubles. */
function slow(x: readonly Pair[], sign = -1): Pair[] {
  const n = x.length;
  return x.map((_, k) => {
    let [re, im] = [0, 0];
    x.forEach(([a, b], j) => {
      const t = (sign * 2 * Math.PI * ((j * k) % n)) / n;
      re += a * Math.cos(t) - b * Math.sin(t);
      im += a * Math.sin(t) + b * Math.cos(t);
    });
    return [re, im];
  });
}
const signal = (n: number, seed = n): Pair[] => {
  const next = numbers(seed);
  return Array.from({ length: n }, () => next(2) as Pair);
};
const tensor = (x: readonly Pair[], dtype: "float32" | "float64" = "float32") =>
  new Tensor(x as Pair[], { dtype });
/** The largest error, relative to the largest value. */
async function errorOf(t: Tensor, want: readonly (readonly number[] | number)[]): Promise<number> {
  const [got, wanted] = [
    ((await t.tolist()) as (number | number[])[]).flat(3) as number[],
    want.flat(3) as number[],
  ];
  expect(got.length).toBe(wanted.length);
  const most = Math.max(...wanted.map(Math.abs), 1e-30);
  return Math.max(...got.map((g, i) => Math.abs(g - (wanted[i] as number)))) / most;
}

// direct, split once and several times, primes by Bluestein, products of large primes
const LENGTHS = [1, 2, 3, 4, 5, 8, 61, 64, 67, 96, 100, 101, 128, 243, 257, 360, 1000, 1024];
test.each(LENGTHS)("length %i, both ways", async (n) => {
  const x = signal(n);
  const y = fft.fft(tensor(x));
  expect(await errorOf(y, slow(x))).toBeLessThan(2e-6);
  expect(await errorOf(fft.ifft(y), x)).toBeLessThan(2e-6);
});
test("products of large primes, long primes, in double precision", async () => {
  const x = signal(67 * 71);
  expect(await errorOf(fft.fft(tensor(x, "float64")), slow(x))).toBeLessThan(1e-12);
  const p = signal(1009);
  expect(await errorOf(fft.fft(tensor(p, "float64")), slow(p))).toBeLessThan(1e-12);
});
test("the longest factor of a split is small: the work is n times the sum of the factors", async () => {
  expect([2 ** 20, 1000, 97, 67 * 71, 2 * 97].map(splitOf)).toEqual([64, 50, 97, 67, 2]);
  const work = async (n: number) => {
    const x = await Tensor.rand(n, 2).realize();
    await fft.fft(x).realize();
    const before = GlobalCounters.globalOps;
    await fft.fft(x).realize();
    return (GlobalCounters.globalOps - before) / n;
  };
  // by the definition the second would take 16 times as much for each element
  expect((await work(2 ** 16)) / (await work(2 ** 12))).toBeLessThan(2);
  expect((await work(4099)) / (await work(2 ** 12))).toBeLessThan(12);
});

describe("real numbers", () => {
  test.each([1, 2, 3, 7, 8, 101])("length %i", async (n) => {
    const x = numbers(n)(n);
    const y = fft.rfft(new Tensor(x, { dtype: "float32" }));
    const all = slow(x.map((a) => [a, 0]));
    expect(await errorOf(y, all.slice(0, Math.floor(n / 2) + 1))).toBeLessThan(2e-6);
    expect(await errorOf(fft.irfft(y, { n }), x)).toBeLessThan(2e-6);
  });
  test("integers are real numbers, too", async () => {
    expect(await fft.rfft(new Tensor([1, 2, 1, 0])).tolist()).toEqual([
      [4, 0],
      [0, -2],
      [0, 0],
    ]);
  });
});

describe("dims, lengths, norms", () => {
  const x = Tensor.rand(3, 4, 6, 2);
  const near = async (a: Tensor, b: Tensor) => expect(await a.sub(b).abs().max().item()).toBeLessThan(2e-5);
  test("another dim is the last one of the moved Tensor", async () => {
    await near(fft.fft(x, { dim: 0 }), fft.fft(x.movedim(0, 2)).movedim(2, 0));
    await near(fft.fft(x, { dim: -2 }), fft.fft(x, { dim: 1 }));
  });
  test("n cuts and pads with zeros", async () => {
    await near(fft.fft(x, { n: 4 }), fft.fft(x.narrow(2, 0, 4)));
    await near(
      fft.fft(x, { n: 9, dim: 1 }),
      fft.fft(
        x.pad([
          [0, 0],
          [0, 5],
          [0, 0],
          [0, 0],
        ]),
        { dim: 1 },
      ),
    );
    expect(fft.irfft(x, { n: 9 }).shape).toEqual([3, 4, 9]);
  });
  test("norms", async () => {
    await near(fft.fft(x, { norm: "ortho" }), fft.fft(x).div(Math.sqrt(6)));
    await near(fft.fft(x, { norm: "forward" }), fft.fft(x).div(6));
    for (const norm of ["ortho", "forward"] as const) await near(fft.ifft(fft.fft(x, { norm }), { norm }), x);
  });
  test("fft2 and fftn are fft in each dim; the inverses undo them", async () => {
    await near(fft.fft2(x), fft.fft(fft.fft(x, { dim: 1 }), { dim: 2 }));
    await near(fft.ifft2(fft.fft2(x)), x);
    await near(fft.fftn(x), fft.fft(fft.fft2(x), { dim: 0 }));
    await near(fft.ifftn(fft.fftn(x, { dim: [0, 2] }), { dim: [0, 2] }), x);
    const r = Tensor.rand(3, 4, 5);
    await near(fft.rfft2(r), fft.fft2(fft.complex(r)).narrow(2, 0, 3));
    await near(fft.irfft2(fft.rfft2(r), { s: [4, 5] }), r);
    await near(fft.rfftn(r), fft.fftn(fft.complex(r)).narrow(2, 0, 3));
    await near(fft.irfftn(fft.rfftn(r), { s: [3, 4, 5] }), r);
  });
  test("a convolution is a product of transforms", async () => {
    const [a, b] = [numbers(1)(5), numbers(2)(4)];
    const [p, q] = [a, b].map((v) => fft.rfft(new Tensor(v, { dtype: "float32" }), { n: 8 })) as [
      Tensor,
      Tensor,
    ];
    const want = Array.from({ length: 8 }, (_, i) => a.reduce((s, v, j) => s + v * (b[i - j] ?? 0), 0));
    expect(await errorOf(fft.irfft(fft.mul(p, q)), want)).toBeLessThan(2e-6);
  });
});

describe("gradients", () => {
  test.each([6, 67, 130])("of length %i: the transpose, which is the transform itself", async (n) => {
    const [x, g] = [tensor(signal(n)), signal(n, 5)];
    x.requiresGrad = true;
    fft.fft(x).backward(tensor(g));
    // of y = F x for pairs, the gradient is the conjugate transform: the unscaled inverse
    expect(await errorOf(x.grad as Tensor, slow(g, 1))).toBeLessThan(2e-6);
  });
  test("of rfft and irfft, and of the magnitude at zero", async () => {
    const x = new Tensor([0.5, 1, -1, 2, 0.25], { requiresGrad: true });
    fft
      .irfft(fft.rfft(x), { n: 5 })
      .mul(new Tensor([1, 2, 3, 4, 5]))
      .sum()
      .backward();
    expect(await errorOf(x.grad as Tensor, [1, 2, 3, 4, 5])).toBeLessThan(1e-5);
    const z = new Tensor(
      [
        [0, 0],
        [3, 4.5],
      ],
      { requiresGrad: true },
    );
    fft.abs(z).sum().backward();
    const [first] = (await (z.grad as Tensor).tolist()) as number[][];
    expect(first).toEqual([0, 0]);
  });
});

test("frequencies and shifts", async () => {
  expect(await errorOf(fft.fftfreq(5, 0.5), [0, 0.4, 0.8, -0.8, -0.4])).toBeLessThan(1e-6);
  expect(await fft.rfftfreq(4).tolist()).toEqual([0, 0.25, 0.5]);
  for (const n of [4, 5]) {
    const moved = fft.fftshift(fft.fftfreq(n), 0);
    const list = (await moved.tolist()) as number[];
    expect(list).toEqual(list.toSorted((a, b) => a - b));
    expect(await fft.ifftshift(moved, 0).tolist()).toEqual(await fft.fftfreq(n).tolist());
  }
  const z = new Tensor([
    [0, 2.5],
    [-1, 0],
  ]);
  expect(await errorOf(fft.angle(z), [Math.PI / 2, Math.PI])).toBeLessThan(1e-6);
  expect(await fft.conj(z).tolist()).toEqual([
    [0, -2.5],
    [-1, -0],
  ]);
  expect([await fft.real(z).tolist(), await fft.imag(z).tolist()]).toEqual([
    [0, -1],
    [2.5, 0],
  ]);
});

test.each<[string, () => unknown, RegExp]>([
  [
    "real numbers",
    () => fft.fft(Tensor.ones(4)),
    /fft: \[4\] .* is not complex; .* use rfft, or fft\.complex/,
  ],
  ["a list", () => fft.fft([1] as never), /fft: \[1\] int32 is not complex/],
  [
    "an unknown option",
    () => fft.rfft(Tensor.ones(4), { axis: 0 } as never),
    /rfft: unknown option axis; write rfft\(.*\{ n, dim, norm \}\)/,
  ],
  [
    "a number of options",
    () => fft.fft(Tensor.ones(4, 2), 8 as never),
    /fft: options is 8, expected options \{ n, dim, norm \}/,
  ],
  ["the dim of the parts", () => fft.fft(Tensor.rand(4, 2), { dim: 1 }), /dim is 1, and there are 1 dims/],
  ["no length", () => fft.fft(Tensor.rand(4, 2), { n: 0 }), /the length is 0, expected an integer above 0/],
  ["a norm", () => fft.fft(Tensor.rand(4, 2), { norm: "max" } as never), /norm is max, expected "backward"/],
  ["a dim twice", () => fft.fftn(Tensor.rand(4, 4, 2), { dim: [0, -2] }), /name one dim twice/],
])("refused: %s", (_, make, message) => expect(make).toThrow(message));
