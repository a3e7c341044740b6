// The elementwise functions: values against Math over a grid and all edge values, on every device; IEEE rules
// of the functions of two; integers; gradients against finite differences in float64;
// the number of kernels; bad input.

import { createSchedule, type DTypeName, dtypes, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { deviceTest, isExactOn } from "../../device/harness.ts";
import { CASES, type Case, digamma, lgamma, sigmoid } from "./functioncases.ts";

const EDGES = [
  0,
  -0,
  NaN,
  Infinity,
  -Infinity,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  1e-30,
  -1e-30,
  1e-8,
  3e38,
  -3e38,
  88.5,
  -88.5,
];
const GRID = [
  ...EDGES,
  ...Array.from({ length: 240 }, (_, i) => (i - 120) * 0.0831),
  ...Array.from({ length: 60 }, (_, i) => 2 ** (i / 2 - 10) * (i % 2 ? 1.234 : -1.234)),
].map(Math.fround);

function expectNear(
  name: string,
  x: readonly number[],
  got: number,
  want: number,
  relative: number,
  absolute: number,
) {
  const same =
    Object.is(got, want) || got === want || Math.abs(got - want) <= absolute + relative * Math.abs(want);
  // below the smallest normal number digits run out
  const tiny = Math.abs(want) < 1e-37 && Math.abs(got - want) < 1e-37;
  if (!same && !tiny) expect.fail(`${name}(${x.join(", ")}) is ${got}, expected ${want}`);
}

describe("values", () => {
  // in portions: a compiler that takes its time is called once a function
  const names = Object.keys(CASES);
  for (let from = 0; from < names.length; from += 8) {
    const some = names.slice(from, from + 8);
    deviceTest(`of float32, over a grid and all edges: ${some.join(", ")}`, async (device) => {
      const x = new Tensor(Float32Array.from(GRID), { device });
      for (const name of some) {
        const { of, math, ulps = 4, abs = 0, within = Infinity } = CASES[name] as Case;
        const got = (await of(x).data()) as Float32Array;
        GRID.forEach((v, i) => {
          if (Math.abs(v) > within && Number.isFinite(v)) return;
          // a factor of the result may be subnormal, and count as 0
          const least = isExactOn(device) ? abs : Math.max(abs, 1e-36);
          expectNear(name, [v], got[i] as number, Math.fround(math(v)), ulps * 1e-7, least);
        });
      }
    });
  }
  test("of float64, to its own precision", async () => {
    const some = GRID.filter((v) => !(Math.abs(v) > 300));
    const x = new Tensor(Float64Array.from(some));
    for (const name of Object.keys(CASES)) {
      const { of, math, within = Infinity } = CASES[name] as Case;
      const got = (await of(x).data()) as Float64Array;
      some.forEach((v, i) => {
        if (Math.abs(v) > within) return;
        expectNear(name, [v], got[i] as number, math(v), 3e-13, 1e-14);
      });
    }
  });
  test("of half-width floats, as float32 gives them", async () => {
    const x = new Tensor([0.1, 1.5, -7.25], { dtype: "float16" });
    for (const f of [
      (t: Tensor) => t.exp(),
      (t: Tensor) => t.tanh(),
      (t: Tensor) => t.gelu(),
      (t: Tensor) => t.softmax(),
    ]) {
      expect(f(x).dtype).toBe(dtypes.float16);
      expect(await f(x).tolist()).toEqual(await f(x.cast("float32")).cast("float16").tolist());
    }
  });
  test("cos and tan keep their digits around their zeros and poles", async () => {
    const xs = [1, 3, 5, 7, 101, 999].map((k) => Math.fround((k * Math.PI) / 2));
    const [c, t] = [await new Tensor(xs).cos().data(), await new Tensor(xs).tan().data()];
    xs.forEach((x, i) => {
      expectNear("cos", [x], Number(c[i]), Math.cos(x), 1e-6, 1e-12);
      expectNear("tan", [x], Number(t[i]), Math.tan(x), 3e-6, 0);
    });
  });
  test("lgamma, digamma and erfinv", async () => {
    const xs = [0.1, 0.5, 0.9, 1.5, 3.7, 8, 30, 1e4, -0.5, -2.3, -7.9].map(Math.fround);
    const [l, d] = [await new Tensor(xs).lgamma().data(), await new Tensor(xs).digamma().data()];
    xs.forEach((x, i) => {
      expectNear("lgamma", [x], Number(l[i]), lgamma(x), 1e-5, 3e-6);
      expectNear("digamma", [x], Number(d[i]), digamma(x), 1e-5, 1e-5);
    });
    expect(await new Tensor([0, -3, Infinity]).lgamma().tolist()).toEqual([Infinity, Infinity, Infinity]);
    expect(await new Tensor([-3, 0]).digamma().tolist()).toEqual([NaN, -Infinity]);
    const ys = [-0.999, -0.5, -1e-3, 0, 1e-6, 0.3, 0.9, 0.99999].map(Math.fround);
    const back = await new Tensor(ys).erfinv().erf().data();
    ys.forEach((y, i) => void expectNear("erf of erfinv", [y], Number(back[i]), y, 1e-6, 0));
    expect(await new Tensor([1, -1, 2]).erfinv().tolist()).toEqual([Infinity, -Infinity, NaN]);
  });
});

const PAIRS = [0, -0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 2.5, 7, -7, Infinity, -Infinity, NaN, 1e30, -1e-30].map(
  Math.fround,
);
const A = PAIRS.flatMap((a) => PAIRS.map(() => a));
const B = PAIRS.flatMap(() => PAIRS);
const python = (a: number, b: number): number => {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
};

describe("functions of two", () => {
  const all = async (
    device: string,
    name: string,
    of: (a: Tensor, b: Tensor) => Tensor,
    math: (a: number, b: number) => number,
    signs = true,
  ) => {
    const [a, b] = [
      new Tensor(Float32Array.from(A), { device }),
      new Tensor(Float32Array.from(B), { device }),
    ];
    const got = (await of(a, b).data()) as Float32Array;
    A.forEach((x, i) => {
      const y = B[i] as number;
      const want = Math.fround(math(x, y));
      expectNear(name, [x, y], got[i] as number, want, 5e-6, 1e-37);
      if (signs && want === 0 && !Object.is(got[i], want) && isExactOn(device))
        expect.fail(`${name}(${x}, ${y}): the sign of zero`);
    });
  };
  test("a bool to the power of a whole number is an integer, as torch promotes it", async () => {
    const p = new Tensor([true, false]).pow(2);
    expect([p.dtype.name, await p.tolist()]).toEqual(["int32", [1, 0]]);
  });
  deviceTest("pow obeys IEEE 754 for zeros, infinities, NaN and negative bases", async (device) => {
    // ECMAScript has NaN for ±1 to the power of ±Infinity and of 1 to NaN; IEEE 754, C and torch have 1
    const pow = (a: number, b: number) => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : a ** b);
    await all(device, "pow", (a, b) => a.pow(b), pow);
  });
  deviceTest("atan2 and hypot", async (device) => {
    await all(device, "atan2", (a, b) => a.atan2(b), Math.atan2);
    await all(device, "hypot", (a, b) => a.hypot(b), Math.hypot);
  });
  deviceTest("remainders and quotients", async (device) => {
    await all(
      device,
      "fmod",
      (a, b) => a.fmod(b),
      (a, b) => a % b,
      false,
    );
    await all(device, "remainder", (a, b) => a.remainder(b), python, false);
    await all(
      device,
      "copysign",
      (a, b) => a.copysign(b),
      (a, b) => (Object.is(b, -0) || b < 0 ? -Math.abs(a) : Math.abs(a)),
    );
  });
  test("fmax and fmin prefer numbers, maximum and minimum NaN", async () => {
    const [a, b] = [new Tensor([1, NaN, 2, NaN]), new Tensor([3, 3, NaN, NaN])];
    expect(await a.fmax(b).tolist()).toEqual([3, 3, 2, NaN]);
    expect(await a.fmin(b).tolist()).toEqual([1, 3, 2, NaN]);
    expect(await a.maximum(b).tolist()).toEqual([3, NaN, NaN, NaN]);
    expect(await a.minimum(b).tolist()).toEqual([1, NaN, NaN, NaN]);
  });
  test("floorDivide counts how often the divisor fits", async () => {
    const a = new Tensor([1, 7.5, -7.5, 7.5, 1, -1, 0]);
    const b = new Tensor([0.1, 2, 2, -2, 0, 0, 0]);
    expect(await a.floorDivide(b).tolist()).toEqual([9, 3, -4, -4, Infinity, -Infinity, NaN]);
    expect(await new Tensor([7, -7, 7, -7, 6]).floorDivide(new Tensor([2, 2, -2, -2, 0])).tolist()).toEqual([
      3, -4, -4, 3, 0,
    ]);
    expect(await new Tensor([7, -7]).div(2, { roundingMode: "trunc" }).tolist()).toEqual([3, -3]);
    expect(await new Tensor([7.5, -7.5]).div(2, { roundingMode: "trunc" }).tolist()).toEqual([3, -3]);
    expect(new Tensor([7]).div(2).dtype).toBe(dtypes.float32);
  });
  test("logaddexp and xlogy at their edges", async () => {
    const [a, b] = [
      new Tensor([Infinity, -Infinity, -Infinity, 0, 1000]),
      new Tensor([Infinity, -Infinity, 3, 0, 999]),
    ];
    const sums = (await a.logaddexp(b).tolist()) as number[];
    expect(sums.slice(0, 3)).toEqual([Infinity, -Infinity, 3]);
    expect(sums[3]).toBeCloseTo(Math.LN2, 6);
    expect(sums[4]).toBeCloseTo(1000.3133, 3);
    expect(((await a.logaddexp2(b).tolist()) as number[]).slice(0, 4)).toEqual([Infinity, -Infinity, 3, 1]);
    expect(await new Tensor([0, 0, 0, 2]).xlogy(new Tensor([0, NaN, Infinity, 1])).tolist()).toEqual([
      0,
      NaN,
      0,
      0,
    ]);
  });
  test("isclose and allclose", async () => {
    const [a, b] = [new Tensor([1, NaN, Infinity, 1]), new Tensor([1 + 1e-6, NaN, Infinity, 2])];
    expect(await a.isclose(b).tolist()).toEqual([true, false, true, false]);
    expect(await a.isclose(b, { equalNan: true, atol: 1 }).tolist()).toEqual([true, true, true, true]);
    expect(await new Tensor([1.5]).isclose(new Tensor([Infinity]), { rtol: 1 }).tolist()).toEqual([false]);
    expect(await a.allclose(b).item()).toBe(false);
    expect(await Tensor.zeros(0).allclose(Tensor.zeros(0)).item()).toBe(true);
  });
});

describe("integers and bools", () => {
  deviceTest("powers wrap, and negative exponents leave 0 or ±1", async (device) => {
    const base = new Tensor([3, -2, 7, 1, -1, -1, 2, 0], { device });
    const exponent = new Tensor([4, 3, 0, -5, -3, -4, -1, 0], { device });
    expect(await base.pow(exponent).tolist()).toEqual([81, -8, 1, 1, -1, 1, 0, 1]);
    expect(await new Tensor([3], { device }).pow(21).tolist()).toEqual([
      Number(BigInt.asIntN(32, 3n ** 21n)),
    ]);
    expect(await new Tensor([3n], { device }).pow(new Tensor([39n], { device })).tolist()).toEqual([
      3n ** 39n,
    ]);
    expect(
      await new Tensor([true, false, false], { device })
        .pow(new Tensor([true, true, false], { device }))
        .tolist(),
    ).toEqual([true, false, true]);
    expect(await new Tensor([3, 4], { device }).pow(0.5).pow(2).round().tolist()).toEqual([3, 4]);
  });
  test("shifts beyond the width", async () => {
    const x = new Tensor([1, -8, -8]);
    const by = new Tensor([40, 1, 33]);
    expect(await x.bitwiseLeftShift(by).tolist()).toEqual([0, -16, 0]);
    expect(await x.bitwiseRightShift(by).tolist()).toEqual([0, -4, -1]);
    expect(await x.bitwiseRightShift(-1).tolist()).toEqual([0, -1, -1]);
  });
  test("functions of integers are float32, what needs no function keeps the type", async () => {
    const x = new Tensor([1, 4]);
    for (const f of [
      "exp",
      "sin",
      "cos",
      "tanh",
      "erf",
      "sigmoid",
      "atan",
      "lgamma",
      "gelu",
      "elu",
    ] as const) {
      expect(x[f]().dtype, f).toBe(dtypes.float32);
    }
    for (const f of ["abs", "sign", "floor", "round", "relu", "relu6", "square"] as const) {
      expect(x[f]().dtype, f).toBe(dtypes.int32);
    }
    expect(x.clamp(2, 3).dtype).toBe(dtypes.int32);
    expect(await x.clamp(1.5).tolist()).toEqual([1.5, 4]);
    expect(await new Tensor([true, true]).add(new Tensor([true, false]), { alpha: false }).tolist()).toEqual([
      true,
      true,
    ]);
  });
  test("round with decimals", async () => {
    expect(await new Tensor([1.2345, -1.2345], { dtype: "float64" }).round(3).tolist()).toEqual([
      1.234, -1.234,
    ]);
    expect(await new Tensor([1234.5, 1500]).round(-3).tolist()).toEqual([1000, 2000]);
  });
  test("nanToNum and clamp on NaN", async () => {
    const x = new Tensor([NaN, Infinity, -Infinity, 1.5]);
    const most = 3.4028234663852886e38;
    expect(await x.nanToNum().tolist()).toEqual([0, most, -most, 1.5]);
    expect(await x.clamp(-1, 1).tolist()).toEqual([NaN, 1, -1, 1]);
    expect(await x.clamp(2, 1).tolist()).toEqual([NaN, 1, 1, 1]);
  });
});

// ---- gradients ----

/** The gradients of sum(f(x) · w) by autograd and by central differences, in float64. */
async function checkGradient(
  name: string,
  f: (...xs: Tensor[]) => Tensor,
  ...inputs: readonly (readonly number[])[]
) {
  const leaves = inputs.map((x) => new Tensor(Float64Array.from(x), { requiresGrad: true }));
  const loss = (xs: readonly Tensor[]): Tensor => {
    const out = f(...xs);
    const w = Float64Array.from({ length: out.size }, (_, i) => (((i * 7) % 11) - 5) / 5 + 0.05);
    return out.flatten().mul(new Tensor(w)).sum();
  };
  loss(leaves).backward();
  const step = 1e-5;
  for (const [k, x] of inputs.entries()) {
    const { grad } = leaves[k] as Tensor;
    const got = (await (grad as Tensor).data()) as Float64Array;
    const moved = (i: number, by: number) =>
      Tensor.noGrad(() =>
        loss(
          inputs.map((y, j) => new Tensor(Float64Array.from(y, (v, n) => (j === k && n === i ? v + by : v)))),
        ),
      );
    for (const i of x.keys()) {
      const [up, down] = await Promise.all([moved(i, step).item(), moved(i, -step).item()]);
      const want = (Number(up) - Number(down)) / (2 * step);
      const off = Math.abs((got[i] as number) - want);
      if (!(off <= 1e-6 + 1e-5 * Math.abs(want)))
        expect.fail(`${name}: gradient ${k} at ${x[i]} is ${got[i]}, differences say ${want}`);
    }
  }
}

const POINTS = [-2.3, -0.7, -0.2, 0.3, 0.8, 1.7, 4.2];
const INSIDE = [-0.8, -0.3, 0.2, 0.6];
const POSITIVE = [0.2, 0.9, 1.4, 5.5];
const GRADIENTS: Record<string, readonly [(t: Tensor) => Tensor, readonly number[]]> = {
  ...Object.fromEntries(
    Object.entries(CASES).map(([name, { of }]) => {
      const positive = ["sqrt", "rsqrt", "log", "log2", "log10", "log1p", "pow2_5"].includes(name);
      const inside = ["asin", "acos", "atanh"].includes(name);
      const xs = name === "acosh" ? [1.2, 3.4] : inside ? INSIDE : positive ? POSITIVE : POINTS;
      return [name, [of, xs] as const];
    }),
  ),
  geluTanh: [(t) => t.gelu("tanh"), POINTS],
  softplusBeta: [(t) => t.softplus(3, 2), POINTS],
  hardswish: [(t) => t.hardswish(), [...POINTS, -3.5, 3.5]],
  threshold: [(t) => t.threshold(0.5, 9), POINTS],
  sinc: [(t) => t.sinc(), POINTS],
  lgamma: [(t) => t.lgamma(), [-2.3, 0.4, 1.5, 9.3]],
  digamma: [(t) => t.digamma(), [-2.3, 0.4, 1.5, 9.3]],
  erfinv: [(t) => t.erfinv(), INSIDE],
  logit: [(t) => t.logit(), [0.2, 0.7]],
  glu: [(t) => t.glu(), [...POINTS, 0.1]],
  softmax: [(t) => t.softmax(), POINTS],
  logSoftmax: [(t) => t.logSoftmax(), POINTS],
  softmin: [(t) => t.softmin(), POINTS],
  frac: [(t) => t.frac(), POINTS],
  nanToNum: [(t) => t.nanToNum(), POINTS],
  deg2rad: [(t) => t.deg2rad().rad2deg(), POINTS],
  powNegative: [(t) => t.pow(-2), POINTS],
};
const BINARY: Record<string, (a: Tensor, b: Tensor) => Tensor> = {
  pow: (a, b) => a.abs().pow(b),
  powConstantBase: (a, b) => a.fill(2.5).pow(b),
  atan2: (a, b) => a.atan2(b),
  hypot: (a, b) => a.hypot(b),
  fmod: (a, b) => a.fmod(b),
  remainder: (a, b) => a.remainder(b),
  logaddexp: (a, b) => a.logaddexp(b),
  logaddexp2: (a, b) => a.logaddexp2(b),
  xlogy: (a, b) => a.xlogy(b.abs()),
  maximum: (a, b) => a.maximum(b),
  minimum: (a, b) => a.minimum(b),
  fmax: (a, b) => a.fmax(b),
  copysign: (a, b) => a.copysign(b),
  lerp: (a, b) => a.lerp(b, 0.3).add(a.lerp(b, b)),
  clamp: (a, b) => a.clamp(b.sub(0.5), b),
  clampMin: (a, b) => a.clampMin(b).add(a.clampMax(b)),
  addcmul: (a, b) => a.addcmul(b, a, { value: 2 }).addcdiv(a, b),
  prelu: (a, b) => a.prelu(b.mean()),
  rsub: (a, b) => a.rsub(b, { alpha: 3 }),
};

describe("gradients", () => {
  test.each(Object.keys(GRADIENTS))("%s", async (name) => {
    const [f, xs] = GRADIENTS[name] as (typeof GRADIENTS)[string];
    await checkGradient(name, f, xs);
  });
  test.each(Object.keys(BINARY))("%s, of both operands", async (name) => {
    await checkGradient(
      name,
      BINARY[name] as (typeof BINARY)[string],
      [-2.3, -0.6, 0.4, 1.7, 3.1],
      [1.3, -0.9, 2.2, 0.7, -1.6],
    );
  });
  test("of gradients", async () => {
    // the second derivative, as the first derivative of the first
    const second = (f: (t: Tensor) => Tensor) => (x: Tensor) => {
      const y = new Tensor(x.lazydata, { requiresGrad: true });
      f(y).sum().backward(undefined, { createGraph: true });
      return [y, y.grad as Tensor] as const;
    };
    const cases: Record<string, readonly [(t: Tensor) => Tensor, (x: number) => number]> = {
      exp: [(t) => t.exp(), Math.exp],
      log: [(t) => t.log(), (x) => -1 / (x * x)],
      sin: [(t) => t.sin(), (x) => -Math.sin(x)],
      tanh: [(t) => t.tanh(), (x) => -2 * Math.tanh(x) * (1 - Math.tanh(x) ** 2)],
      sigmoid: [(t) => t.sigmoid(), (x) => sigmoid(x) * (1 - sigmoid(x)) * (1 - 2 * sigmoid(x))],
      pow: [(t) => t.pow(3.5), (x) => 3.5 * 2.5 * x ** 1.5],
      erf: [(t) => t.erf(), (x) => (-4 * x * Math.exp(-x * x)) / Math.sqrt(Math.PI)],
    };
    for (const [name, [f, want]] of Object.entries(cases)) {
      const [x, first] = second(f)(new Tensor(Float64Array.from(POSITIVE)));
      x.grad = undefined;
      first.sum().backward();
      const got = (await (x.grad as unknown as Tensor).data()) as Float64Array;
      POSITIVE.forEach((p, i) => void expectNear(name, [p], got[i] as number, want(p), 1e-9, 1e-12));
    }
  });
  test("at the places where a function has a corner, as torch chooses", async () => {
    const at = async (f: (t: Tensor) => Tensor, x: number) => {
      const t = new Tensor([x], { requiresGrad: true, dtype: "float32" });
      f(t).sum().backward();
      return ((await (t.grad as Tensor).tolist()) as number[])[0];
    };
    expect(await at((t) => t.relu(), 0)).toBe(0);
    expect(await at((t) => t.abs(), 0)).toBe(0);
    expect(await at((t) => t.clamp(-1, 1), 1)).toBe(1);
    expect(await at((t) => t.hardtanh(), 1)).toBe(0);
    expect(await at((t) => t.maximum(2), 2)).toBe(0.5);
    expect(await at((t) => t.minimum(2), 2)).toBe(0.5);
    expect(await at((t) => t.pow(2), 0)).toBe(0);
    expect(await at((t) => t.pow(0), 0)).toBe(0);
    expect(await at((t) => t.sinc(), 0)).toBe(0);
    expect(await at((t) => t.elu(), 1000)).toBe(1);
    expect(await at((t) => t.softplus(), 1000)).toBe(1);
    expect(await at((t) => t.sigmoid(), -1000)).toBe(0);
    expect(await at((t) => t.floor(), 1.5)).toBe(0);
    expect(await at((t) => t.fill(3), 1.5)).toBe(0);
    expect(await at((t) => t.std(), 1.5)).toBe(NaN);
    expect(await at((t) => t.expand(3).std(), 1.5)).toBe(0);
    expect(await at((t) => t.fill(0).pow(t), 2)).toBe(0);
  });
});

describe("kernels", () => {
  const ready = (dtype: DTypeName = "float32") =>
    new Tensor(
      Float32Array.from({ length: 64 }, (_, i) => i / 10 - 3),
      { dtype },
    )
      .reshape(8, 8)
      .realizeSync();
  const kernels = (t: Tensor) =>
    createSchedule([t.lazydata]).filter((si) => si.ast[0]?.op === "STORE").length;
  test("every function is one kernel, and so is its gradient", () => {
    for (const [name, [f]] of Object.entries(GRADIENTS)) {
      const x = new Tensor(ready().lazydata, { requiresGrad: true });
      const out = f(x);
      expect(kernels(out), name).toBe(1);
      out.backward(
        ready()
          .reshape(-1)
          .shrink([[0, out.size]])
          .reshape(out.shape),
      );
      // none where it is 0 everywhere; three for glu, whose halves are stored
      // before they are padded and added
      expect(kernels(x.grad as Tensor), `gradient of ${name}`).toBeLessThanOrEqual(name === "glu" ? 3 : 1);
    }
  });
});

describe("bad input", () => {
  const x = Tensor.ones(2, 3);
  const cases: readonly (readonly [() => unknown, RegExp])[] = [
    [() => x.clamp(), /clamp: neither min nor max/],
    [() => x.pow(Tensor.ones(4)), /pow: shapes \[2, 3\] and \[4\] do not broadcast/],
    [() => new Tensor([2]).pow(-1), /pow: int32 to the power of -1 is not an integer/],
    [() => x.div(2, { roundingMode: "up" as "floor" }), /div: roundingMode is up/],
    [() => x.glu(), /glu: dim -1 of shape \[2, 3\] has size 3/],
    [() => Tensor.ones().glu(), /glu: a 0-d tensor/],
    [() => x.prelu(Tensor.ones(2)), /prelu: the weight has shape \[2\].*expected one element or 3/],
    [() => x.gelu("erf" as "tanh"), /gelu: approximate is erf/],
    [() => x.hardtanh(2, 1), /hardtanh: minVal 2 is above maxVal 1/],
    [() => x.softshrink(-1), /softshrink: lambd is -1/],
    [() => x.celu(0), /celu: alpha is 0/],
    [() => x.bitwiseNot(), /bitwiseNot: takes integers or bools, got float32/],
    [() => x.bitwiseLeftShift(1), /bitwiseLeftShift: takes integers, got float32/],
    [() => new Tensor([1]).frac(), /frac: takes floats, got int32/],
    [() => x.fill(Tensor.ones(2)), /fill: the value has shape/],
    [() => x.isclose(x, { rtol: -1 }), /isclose: rtol -1/],
    [() => x.softmax(2), /softmax: dim 2 is out of range/],
    [() => new Tensor([true]).remainder(true), /remainder: bool has no such operation/],
  ];
  test.each(cases.map(([f, message]) => [String(message), f, message] as const))("%s", (_, f, message) => {
    expect(f).toThrow(message);
  });
});
