// Random numbers: the generator against its published answers, the same stream everywhere and after every
// seed, the shapes of the distributions, and what a draw costs.

import { ArgumentError, DTypeError, dtypes, ShapeError, Tensor, toKernel } from "gradloom";
import { ClangRenderer } from "gradloom/render";
import { beforeEach, describe, expect, test } from "vitest";
import { range } from "../../../src/helpers.ts";
import { redraw, threefry } from "../../../src/tensor/random/threefry.ts";
import { DEVICES, deviceTest, read, tensor } from "../../device/harness.ts";
import { itemsOf, kernels, opsOf } from "../../schedule/count.ts";

beforeEach(() => Tensor.manualSeed(1234));

const numbers = async (t: Tensor): Promise<number[]> => (await read(t)).map(Number);
const mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;
const variance = (xs: readonly number[]): number => {
  const m = mean(xs);
  return mean(xs.map((x) => (x - m) ** 2));
};
/**
 * The largest distance between the share of values below x and what it should be (Kolmogorov and Smirnov's).
 */
function distance(xs: readonly number[], below: (x: number) => number): number {
  const sorted = [...xs].sort((a, b) => a - b);
  return Math.max(...sorted.map((x, i) => Math.abs((i + 0.5) / xs.length - below(x))));
}
function correlation(xs: readonly number[], ys: readonly number[]): number {
  const [mx, my] = [mean(xs), mean(ys)];
  return mean(xs.map((x, i) => (x - mx) * ((ys[i] as number) - my))) / Math.sqrt(variance(xs) * variance(ys));
}
/** The share of a normal distribution below x: Abramowitz and Stegun 7.1.26. */
function normalBelow(x: number): number {
  const t = 1 / (1 + (0.3275911 * Math.abs(x)) / Math.SQRT2);
  const poly =
    t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const tail = (poly * Math.exp((-x * x) / 2)) / 2;
  return x < 0 ? tail : 1 - tail;
}

describe("the generator", () => {
  // from the known-answer file of Random123, threefry2x32 with 20 rounds
  const ANSWERS = [
    { counter: [0, 0], key: [0, 0], want: [0x6b200159, 0x99ba4efe] },
    { counter: [0xffffffff, 0xffffffff], key: [0xffffffff, 0xffffffff], want: [0x1cb996fc, 0xbb002be7] },
    { counter: [0x243f6a88, 0x85a308d3], key: [0x13198a2e, 0x03707344], want: [0xc4923a9c, 0x483df7a0] },
  ] as const;
  deviceTest("gives the published answers", async (device) => {
    const column = (f: (a: (typeof ANSWERS)[number]) => number) =>
      tensor(device, dtypes.uint32, ANSWERS.map(f));
    const [x, y] = threefry(
      [column((a) => a.key[0]), column((a) => a.key[1])],
      [column((a) => a.counter[0]), column((a) => a.counter[1])],
    );
    expect(await read(x)).toEqual(ANSWERS.map((a) => a.want[0]));
    expect(await read(y)).toEqual(ANSWERS.map((a) => a.want[1]));
  });
  test("counts in 64 bits: the stream goes on after 2^32 values", async () => {
    Tensor.manualSeed(7);
    // drawn, lazily, and never asked for
    for (const i of range(4)) Tensor.zeros(2 ** 30 - (i === 0 ? 1 : 0)).randLike();
    const word = (...xs: number[]) => tensor("JS", dtypes.uint32, xs);
    const [bits] = threefry([word(7, 7, 7), word(0, 0, 0)], [word(2 ** 32 - 1, 0, 1), word(0, 1, 1)]);
    const want = (await numbers(bits)).map((x) => (x >>> 9) / 2 ** 23);
    expect(await numbers(Tensor.rand(3))).toEqual(want);
  });
});

describe("the stream", () => {
  test("starts anew with a seed, goes on without, differs with another", async () => {
    const draw = async () => [await numbers(Tensor.rand(5)), await numbers(Tensor.rand(5))] as const;
    const [a, b] = await draw();
    Tensor.manualSeed(1234);
    expect(await draw()).toEqual([a, b]);
    expect(a).not.toEqual(b);
    Tensor.manualSeed(1235);
    expect((await draw())[0]).not.toEqual(a);
    Tensor.manualSeed(2n ** 40n);
    expect((await draw())[0]).not.toEqual(a);
  });
  test("is one stream, however it is cut: the counter advances by the values drawn", async () => {
    const all = await numbers(Tensor.rand(2, 5));
    Tensor.manualSeed(1234);
    expect([...(await numbers(Tensor.rand(3))), ...(await numbers(Tensor.rand(7)))]).toEqual(all);
  });
  test("belongs to the draw, not to when it is computed", async () => {
    const [a, b] = [Tensor.rand(4), Tensor.rand(4)];
    const second = await numbers(b);
    const first = await numbers(a);
    Tensor.manualSeed(1234);
    expect([await numbers(Tensor.rand(4)), await numbers(Tensor.rand(4))]).toEqual([first, second]);
    expect(await numbers(a)).toEqual(first);
  });
  deviceTest("is the same on every device", async (device) => {
    const drawn = (d: string) => {
      Tensor.manualSeed(99);
      const o = { device: d };
      return [
        Tensor.rand([7], o),
        Tensor.randint(-5, 1000, [7], o),
        Tensor.randperm(9, o),
        Tensor.randn([7], o),
      ];
    };
    const [here, there] = [drawn(device), drawn("JS")];
    for (const i of [0, 1, 2]) {
      expect(await numbers(here[i] as Tensor)).toEqual(await numbers(there[i] as Tensor));
    }
    const want = await numbers(there[3] as Tensor);
    // sine and logarithm differ in the last digit
    for (const [i, x] of (await numbers(here[3] as Tensor)).entries())
      expect(x).toBeCloseTo(want[i] as number, 5);
    expect(DEVICES).toContain(device);
  });
  test("a captured draw can be given the next values", async () => {
    const t = Tensor.rand(3);
    const copy = itemsOf(t).find((si) => si.ast[0]?.op === "COPY");
    const source = copy?.inputs[0];
    expect(source !== undefined && redraw(source)).toBe(true);
    const again = await numbers(t);
    Tensor.manualSeed(1234);
    Tensor.rand(3);
    expect(await numbers(Tensor.rand(3))).toEqual(again);
    const other = itemsOf(new Tensor([1, 2])).find((si) => si.ast[0]?.op === "COPY")?.inputs[0];
    expect(other !== undefined && redraw(other)).toBe(false);
  });
});

describe("distributions", () => {
  const N = 20_000;
  // the distance is below 1.95 / sqrt(n) in 999 of 1000 cases
  const LIMIT = 1.95 / Math.sqrt(N);

  test("rand is even in [0, 1)", async () => {
    const xs = await numbers(Tensor.rand(N));
    expect(Math.min(...xs)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...xs)).toBeLessThan(1);
    expect(mean(xs)).toBeCloseTo(0.5, 1);
    expect(variance(xs)).toBeCloseTo(1 / 12, 2);
    expect(distance(xs, (x) => x)).toBeLessThan(LIMIT);
  });
  test("half-width floats never reach 1, doubles have more digits", async () => {
    for (const dtype of ["float16", "bfloat16"] as const) {
      const xs = await numbers(Tensor.rand([4000], { dtype }));
      expect(Math.max(...xs)).toBeLessThan(1);
      expect(mean(xs)).toBeCloseTo(0.5, 1);
    }
    const xs = await numbers(Tensor.rand([1000], { dtype: "float64" }));
    expect(xs.some((x) => Math.fround(x) !== x)).toBe(true);
    expect(mean(xs)).toBeCloseTo(0.5, 1);
  });
  test("randn is normal", async () => {
    const xs = await numbers(Tensor.randn(N));
    expect(Math.abs(mean(xs))).toBeLessThan(4 / Math.sqrt(N));
    expect(Math.abs(variance(xs) - 1)).toBeLessThan(4 * Math.sqrt(2 / N));
    expect(distance(xs, normalBelow)).toBeLessThan(LIMIT);
    expect(xs.every(Number.isFinite)).toBe(true);
  });
  test("neighbours and consecutive calls are not correlated", async () => {
    const limit = 4 / Math.sqrt(N);
    for (const make of [() => Tensor.rand(N), () => Tensor.randn(N)]) {
      const [a, b] = [await numbers(make()), await numbers(make())];
      expect(Math.abs(correlation(a, b))).toBeLessThan(limit);
      expect(Math.abs(correlation(a.slice(1), a.slice(0, -1)))).toBeLessThan(limit);
    }
    // seeds that differ in one bit
    Tensor.manualSeed(0);
    const a = await numbers(Tensor.rand(N));
    Tensor.manualSeed(1);
    expect(Math.abs(correlation(a, await numbers(Tensor.rand(N))))).toBeLessThan(limit);
  });
  test("uniform, normal and randint keep to their arguments", async () => {
    const xs = await numbers(Tensor.uniform([N], -3, 5));
    expect(distance(xs, (x) => (x + 3) / 8)).toBeLessThan(LIMIT);
    const ys = await numbers(Tensor.normal(10, 2, [N]));
    expect(distance(ys, (y) => normalBelow((y - 10) / 2))).toBeLessThan(LIMIT);
    const zs = await numbers(Tensor.randint(-2, 3, [N]));
    for (const v of [-2, -1, 0, 1, 2]) {
      expect(Math.abs(zs.filter((z) => z === v).length / N - 0.2)).toBeLessThan(4 * Math.sqrt(0.16 / N));
    }
    const wide = await read(Tensor.randint(0, 2 ** 40, [100], { dtype: "int64" }));
    expect(wide.some((x) => x > 2n ** 36n)).toBe(true);
    expect(wide.every((x) => x >= 0n && x < 2n ** 40n)).toBe(true);
    const spread = await numbers(Tensor.normal(new Tensor([0, 100]), new Tensor([0, 1])));
    expect(spread[0]).toBe(0);
    expect(Math.abs((spread[1] as number) - 100)).toBeLessThan(6);
  });
  test("first weights stay in their bounds", async () => {
    const limits = async (t: Tensor) => Math.max(...(await numbers(t)).map(Math.abs));
    const bounded: readonly [Tensor, number][] = [
      [Tensor.kaimingUniform([64, 24]), Math.sqrt(6 / 24)],
      [Tensor.kaimingUniform([64, 24], { mode: "fanOut", a: 1 }), Math.sqrt(3 / 64)],
      [Tensor.kaimingUniform([16, 8, 3, 3]), Math.sqrt(6 / 72)],
      [Tensor.glorotUniform([64, 24]), Math.sqrt(6 / 88)],
      [Tensor.scaledUniform([64, 24]), (64 * 24) ** -0.5],
    ];
    for (const [t, bound] of bounded) {
      const most = await limits(t);
      expect(most).toBeLessThanOrEqual(Math.fround(bound * 1.000001));
      expect(most).toBeGreaterThan(bound * 0.98);
    }
    const normal = await numbers(Tensor.kaimingNormal([100, 50]));
    expect(Math.sqrt(variance(normal))).toBeCloseTo(Math.sqrt(2 / 50), 1);
    expect(Tensor.kaimingUniform([2, 3], { requiresGrad: true }).requiresGrad).toBe(true);
  });
  test("randperm is a permutation and all are equally likely", async () => {
    expect([...(await numbers(Tensor.randperm(50)))].sort((a, b) => a - b)).toEqual([...Array(50).keys()]);
    expect(await numbers(Tensor.randperm(1))).toEqual([0]);
    expect(await numbers(Tensor.randperm(0))).toEqual([]);
    const counts = new Map<string, number>();
    for (let i = 0; i < 300; i++) {
      const key = (await numbers(Tensor.randperm(3))).join("");
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    expect(counts.size).toBe(6);
    for (const n of counts.values()) expect(Math.abs(n - 50)).toBeLessThan(30);
  });
});

describe("samples", () => {
  test("bernoulli takes the elements for probabilities", async () => {
    const xs = await numbers(Tensor.full([8000], 0.3).bernoulli());
    expect(Math.abs(mean(xs) - 0.3)).toBeLessThan(4 * Math.sqrt(0.21 / 8000));
    expect(new Set(xs)).toEqual(new Set([0, 1]));
    expect(Math.abs(mean(await numbers(Tensor.zeros(8000).bernoulli(0.7))) - 0.7)).toBeLessThan(0.03);
  });
  test("multinomial draws by weight, with and without replacement", async () => {
    const weights = new Tensor([1, 0, 3, 0]);
    const xs = await numbers(weights.multinomial(4000, true));
    expect(new Set(xs)).toEqual(new Set([0, 2]));
    expect(Math.abs(mean(xs.map((x) => Number(x === 2))) - 0.75)).toBeLessThan(0.03);
    const rows = Tensor.ones(5, 6).multinomial(6);
    expect(rows.shape).toEqual([5, 6]);
    for (const row of (await rows.tolist()) as number[][])
      expect([...row].sort()).toEqual([0, 1, 2, 3, 4, 5]);
    // the first of two draws without replacement still follows the weights
    const many = new Tensor([1, 3]).expand(3000, 2).contiguous().multinomial(1);
    expect(Math.abs(mean(await numbers(many)) - 0.75)).toBeLessThan(0.04);
    expect([...(await numbers(weights.multinomial(2)))].sort()).toEqual([0, 2]);
  });
  test("dropout drops in training only, and keeps the mean", async () => {
    const x = Tensor.ones([10_000], { requiresGrad: true });
    expect(
      await Tensor.noGrad(() => x.dropout(0.25))
        .sum()
        .item(),
    ).toBe(10_000);
    const dropped = x.dropout(0.25);
    const values = await numbers(dropped);
    expect(new Set(values)).toEqual(new Set([0, Math.fround(1 / 0.75)]));
    expect(Math.abs(mean(values) - 1)).toBeLessThan(0.03);
    dropped.sum().backward();
    expect(await numbers(x.grad as Tensor)).toEqual(values);
    expect(await numbers(x.dropout(1, true).sum())).toEqual([0]);
    expect(await numbers(x.dropout(0, true).sum())).toEqual([10_000]);
  });
  test("train is a scope, sync and async, also when something is thrown", async () => {
    const outside = () => Tensor.noGrad(() => Tensor.training);
    expect(outside()).toBe(false);
    expect(Tensor.train(() => Tensor.train(() => Tensor.training, false))).toBe(false);
    await Tensor.noGrad(async () => {
      const during = Tensor.train(async () => {
        await Promise.resolve();
        return Tensor.training;
      });
      expect(Tensor.training).toBe(false);
      expect(await during).toBe(true);
      expect(Tensor.training).toBe(false);
    });
    expect(() =>
      Tensor.train(() => {
        throw new Error("no");
      }),
    ).toThrow("no");
    expect(outside()).toBe(false);
  });
  test("training is where gradients are recorded, unless it is set", () => {
    expect(Tensor.training).toBe(true);
    expect(Tensor.noGrad(() => Tensor.training)).toBe(false);
    expect(Tensor.noGrad(() => Tensor.enableGrad(() => Tensor.training))).toBe(true);
    try {
      Tensor.training = false;
      expect(Tensor.training).toBe(false);
      expect(Tensor.train(() => Tensor.training)).toBe(true);
    } finally {
      Tensor.training = undefined;
    }
    expect(Tensor.training).toBe(true);
  });
});

describe("cost", () => {
  test("a draw is one kernel and the copy of sixteen bytes, fused with what follows", async () => {
    expect(opsOf(Tensor.rand(4, 5))).toEqual(["COPY", "STORE"]);
    expect(opsOf(Tensor.randn(4, 5))).toEqual(["COPY", "STORE"]);
    expect(opsOf(Tensor.uniform([8], -1, 1).mul(3))).toEqual(["COPY", "STORE"]);
    const x = await Tensor.ones(8).contiguous().realize();
    expect(kernels(Tensor.train(() => x.dropout(0.5)).add(1))).toBe(1);
  });
  test("two draws of a shape are the same kernel", () => {
    const text = (t: Tensor) =>
      ClangRenderer.render("draw", toKernel(itemsOf(t).at(-1)?.ast ?? [], [], ClangRenderer).uops);
    expect(text(Tensor.rand(6))).toEqual(text(Tensor.rand(6)));
  });
  test("nothing of nothing", async () => {
    for (const t of [Tensor.rand(0, 3), Tensor.randn(0, 3), Tensor.randint(5, [0, 3])]) {
      expect(t.shape).toEqual([0, 3]);
      expect(await t.tolist()).toEqual([]);
    }
  });
});

describe("bad arguments", () => {
  test("say what came and what was expected", () => {
    expect(() => Tensor.manualSeed(1.5)).toThrow("manualSeed: 1.5 is not an integer");
    expect(() => Tensor.rand([2], { dtype: "int32" })).toThrow(DTypeError);
    expect(() => Tensor.rand([2], { dtype: "int32" })).toThrow(
      "rand: gives fractions, which int32 cannot hold",
    );
    expect(() => Tensor.randint(5, 5, [2])).toThrow("randint: from 5 to below 5 there is no integer");
    expect(() => Tensor.randint(0, 2 ** 40, [2])).toThrow("use int64");
    expect(() => Tensor.normal(0, 1)).toThrow("normal: mean and std are numbers, so the shape is missing");
    expect(() => Tensor.kaimingUniform([3])).toThrow(ShapeError);
    expect(() => Tensor.ones(3).dropout(1.5)).toThrow(ArgumentError);
    expect(() => Tensor.ones(3).multinomial(4)).toThrow(
      "multinomial: cannot draw 4 of 3 places without replacement",
    );
    expect(() => Tensor.ones(1, 1, 1).multinomial(1)).toThrow("multinomial: shape [1, 1, 1]");
  });
});
