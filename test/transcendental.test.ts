// How far exp2, log2, sin and erf are from the truth, in units in the last place, measured on kernels of
// the WASM renderer. float32 is compared with functions of doubles; float64 with fixed point of 320 bits on
// BigInt.

import { describe, expect, test } from "vitest";
import { bitcastValue, castValue, type DType, dtypes, PtrDType, type Value } from "../src/dtype.ts";
import { erf, erfOfNumber, exp2, log2, sin } from "../src/functions.ts";
import { type Algebra, type AluOp, opRecord, resultDType } from "../src/ops.ts";
import { WASMRenderer } from "../src/render/wasm/renderer.ts";
import { UOpArena } from "../src/uop/arena.ts";
import { UOpGraph } from "../src/uop/list.ts";
import type { UOp } from "../src/uop/node.ts";

const { float32, float64, int32 } = dtypes;
const FUNCTIONS = { exp2, log2, sin, erf } as const;
type Name = keyof typeof FUNCTIONS;

const CHUNK = 1 << 16;
type Run = (xs: Float32Array | Float64Array) => Float32Array | Float64Array;

/** A kernel that maps CHUNK elements. */
function compile(name: Name, d: DType): Run {
  const arena = new UOpArena();
  const g = new UOpGraph(arena);
  const push = (u: UOp): void => {
    if (g.has(u)) return;
    u.srcs.forEach(push);
    g.push(u);
  };
  const out = g.add("DEFINE_GLOBAL", PtrDType(d), [], [0, "data0", true]);
  const src = g.add("DEFINE_GLOBAL", PtrDType(d), [], [1, "data1", false]);
  const i = g.add("LOOP", int32, [arena.constant(int32, 0), arena.constant(int32, CHUNK)]);
  const x = g.add("LOAD", d, [src, i]);
  const y = FUNCTIONS[name](arena, x);
  push(y);
  g.add("STORE", undefined, [out, i, y]);
  g.add("ENDLOOP", undefined, [i]);

  const bytes = WASMRenderer.render("k", g).code;
  const memory = new WebAssembly.Memory({ initial: 17, maximum: 65536 });
  const kernel = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } }).exports.k as (
    out: number,
    src: number,
  ) => void;
  const Type = d === float32 ? Float32Array : Float64Array;
  const at = CHUNK * 8;
  const [input, output] = [new Type(memory.buffer, at, CHUNK), new Type(memory.buffer, 0, CHUNK)];
  return (xs) => {
    const result = new Type(xs.length);
    for (let k = 0; k < xs.length; k += CHUNK) {
      const part = xs.subarray(k, k + CHUNK);
      input.set(part);
      kernel(0, at);
      result.set(output.subarray(0, part.length), k);
    }
    return result;
  };
}

// ---- float32 ----

const MATH: Record<Name, (x: number) => number> = {
  exp2: (x) => 2 ** x,
  log2: Math.log2,
  sin: Math.sin,
  // compared with the truth below
  erf: erfOfNumber,
};
const word = new Uint32Array(1);
const single = new Float32Array(word.buffer);
const float = (bits: number): number => {
  word[0] = bits;
  return single[0] as number;
};
const bitsOf = (x: number): number => {
  single[0] = x;
  return word[0] as number;
};
const UNIT = Float64Array.from({ length: 256 }, (_, e) => 2 ** (Math.max(e, 1) - 150));

/** The largest distance in ulps of float32; what should be NaN or infinite must be exactly that. */
function worst32(name: Name, run: Run, xs: Float32Array): { ulp: number; at: number } {
  const ys = run(xs);
  const truth = MATH[name];
  let [ulp, at] = [0, 0];
  for (let i = 0; i < xs.length; i++) {
    const x = xs[i] as number;
    const want = truth(x);
    const got = ys[i] as number;
    if (Object.is(Math.fround(want), got)) continue; // covers NaN, infinities and the sign of zero
    const error = Math.abs(got - want) / (UNIT[(bitsOf(want) >>> 23) & 255] as number);
    if (!(error <= ulp)) [ulp, at] = [Number.isNaN(error) ? Infinity : error, x];
    if (ulp === Infinity) break;
  }
  return { ulp, at };
}

/** Every `step`-th bit pattern, of both signs, whatever it means. */
function spread(step: number): Float32Array {
  const xs = new Float32Array(Math.floor(2 ** 32 / step));
  for (let i = 0; i < xs.length; i++) xs[i] = float((i * step + 7) >>> 0);
  return xs;
}
/** The floats around each centre. */
function around(centres: readonly number[], radius: number): Float32Array {
  const xs: number[] = [];
  for (const c of centres) for (let k = -radius; k <= radius; k++) xs.push(float((bitsOf(c) + k) >>> 0));
  return Float32Array.from(xs);
}
const range = <T = number>(n: number, f: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => f(i));
function between(lo: number, hi: number, n: number): Float32Array {
  return Float32Array.from({ length: n }, (_, i) => lo + ((hi - lo) * (i + 0.5)) / n);
}
const HALF = Math.PI / 2;
/** up to 2^20, every 7th multiple of pi/2 */
const multiples = range(95000, (k) => (k * 7 + 1) * HALF);

const HARD32: Record<Name, Float32Array[]> = {
  exp2: [
    between(-150, 128, 1_000_000),
    between(-1, 1, 500_000),
    around(
      range(560, (k) => (k - 300) / 2),
      200,
    ),
    around([128, -126, -149, -150, 0, 1e-30], 5000),
  ],
  log2: [
    around([1], 1_000_000),
    around(
      range(250, (k) => 2 ** (k - 124) * Math.SQRT2),
      500,
    ),
    between(0.5, 2, 500_000),
  ],
  sin: [
    between(-10, 10, 1_000_000),
    between(0, 2 ** 20, 1_000_000),
    around(multiples, 4),
    around(
      range(100, (k) => 2 ** k * Math.PI),
      100,
    ),
    around([2.7104134402515062e38, 3.4028234663852886e38], 2000),
  ],
  erf: [
    between(-4.2, 4.2, 1_000_000),
    between(-1, 1, 500_000),
    around([1, -1, 3.8325068950653076, 4, 1e-30], 20_000),
  ],
};

describe("float32", () => {
  const everywhere = spread(2039);
  // sin is promised to 4 ulp up to 2^20 only; it holds for every float32
  const LIMIT: Record<Name, number> = { exp2: 1.3, log2: 1.5, sin: 0.6, erf: 1.4 };
  test.each(Object.keys(FUNCTIONS) as Name[])("%s", (name) => {
    const run = compile(name, float32);
    const results = [everywhere, ...HARD32[name]].map((xs) => worst32(name, run, xs));
    const { ulp, at } = results.reduce((a, b) => (b.ulp > a.ulp ? b : a));
    const count = HARD32[name].reduce((n, xs) => n + xs.length, everywhere.length);
    console.log(`${name} of float32: ${ulp.toFixed(3)} ulp at ${at}, of ${count} values`);
    expect(ulp).toBeLessThan(LIMIT[name]);
  });
});

// ---- float64 ----

const P = 320;
const ONE = 1n << BigInt(P);
const mul = (a: bigint, b: bigint): bigint => (a * b) >> BigInt(P);
/** m * 2^e */
type Exact = { m: bigint; e: number };

const longs = new BigUint64Array(1);
const doubles = new Float64Array(longs.buffer);
function exact(x: number): Exact {
  doubles[0] = x;
  const bits = longs[0] as bigint;
  const e = Number((bits >> 52n) & 2047n);
  const m = (bits & 0xfffffffffffffn) + (e === 0 ? 0n : 1n << 52n);
  return { m: bits >> 63n ? -m : m, e: Math.max(e, 1) - 1075 };
}
const shift = (m: bigint, by: number): bigint => (by >= 0 ? m << BigInt(by) : m >> BigInt(-by));
const fixed = (x: number): bigint => {
  const { m, e } = exact(x);
  return shift(m, e + P);
};
function sum(first: bigint, next: (term: bigint, k: bigint) => bigint): bigint {
  let total = 0n;
  for (let term = first, k = 1n; term !== 0n && term !== -1n; k++) {
    total += term;
    term = next(term, k);
  }
  return total;
}
/** 2 atanh(y) */
function logRatio(y: bigint): bigint {
  const z = mul(y, y);
  let total = 0n;
  for (let power = y, k = 1n; power !== 0n && power !== -1n; k += 2n, power = mul(power, z))
    total += power / k;
  return 2n * total;
}
const LN2 = logRatio(ONE / 3n);
const arctan = (n: bigint) => {
  let total = 0n;
  for (let power = ONE / n, k = 1n; power !== 0n; k += 2n, power /= n * n)
    total += k % 4n === 1n ? power / k : -power / k;
  return total;
};
const PI = 16n * arctan(5n) - 4n * arctan(239n);

const TRUTH: Record<Name, (x: number) => Exact> = {
  exp2: (x) => {
    const n = Math.floor(x);
    const y = mul(fixed(x - n), LN2);
    return { m: sum(ONE, (t, k) => mul(t, y) / k), e: n - P };
  },
  log2: (x) => {
    let { m, e } = exact(x);
    const length = m.toString(2).length;
    const whole = shift(m, P - length + 1); // in [1, 2)
    e += length - 1;
    const y = ((whole - ONE) << BigInt(P)) / (whole + ONE);
    return { m: BigInt(e) * ONE + (logRatio(y) << BigInt(P)) / LN2, e: -P };
  },
  sin: (x) => {
    const half = PI / 2n;
    const whole = fixed(x);
    const n = (2n * whole + half) / (2n * half) - (2n * whole + half < 0n ? 1n : 0n);
    const r = whole - n * half;
    const z = mul(r, r);
    const odd = n % 2n !== 0n;
    const series = odd
      ? sum(ONE, (t, k) => -mul(t, z) / (2n * k * (2n * k - 1n)))
      : sum(r, (t, k) => -mul(t, z) / (2n * k * (2n * k + 1n)));
    return { m: BigInt.asUintN(2, n) >= 2n ? -series : series, e: -P };
  },
  erf: (x) => {
    const y = fixed(x);
    const z = mul(y, y);
    let [term, total] = [y, 0n];
    for (let k = 1n; term !== 0n && term !== -1n; k++) {
      total += term / (2n * k - 1n);
      term = -mul(term, z) / k;
    }
    return { m: (2n * total * ONE) / squareRoot(PI), e: -P };
  },
};
function squareRoot(a: bigint): bigint {
  let x = ONE;
  for (let i = 0; i < 20; i++) x = (x + (a * ONE) / x) / 2n;
  return x;
}

function ulps64(got: number, want: Exact): number {
  const digits = (want.m < 0n ? -want.m : want.m).toString(2).length;
  const unit = Math.max(want.e + digits - 53, -1074);
  const { m, e } = exact(got);
  const low = Math.min(e, want.e);
  const difference = (m << BigInt(e - low)) - (want.m << BigInt(want.e - low));
  return Math.abs(Number(shift(difference, low - unit + 20)) / 2 ** 20);
}

let seed = 0x9e3779b97f4a7c15n;
function random(): number {
  seed = BigInt.asUintN(64, seed * 6364136223846793005n + 1442695040888963407n);
  return Number(seed >> 11n) / 2 ** 53;
}
const near = (x: number, k: number): number => {
  doubles[0] = x;
  longs[0] = (longs[0] as bigint) + BigInt(k);
  return doubles[0] as number;
};

const HARD64: Record<Name, number[]> = {
  exp2: [
    ...range(6000, () => random() * 2100 - 1075),
    ...range(4000, () => random() * 2 - 1),
    ...range(2000, (k) => near((k - 1000) / 2, Math.floor(random() * 9) - 4)),
    ...range(200, (k) => 2 ** -(k / 2)),
  ].filter((x) => x > -1075 && x < 1024),
  log2: [
    ...range(6000, () => 2 ** (random() * 2097 - 1074)),
    ...range(4000, () => 0.5 + random() * 1.5),
    ...range(2000, (k) => near(1, k - 1000)),
    ...range(2000, () => 1 + (random() - 0.5) * 2 ** (-50 * random())),
    ...range(1000, () => near(Math.SQRT2 * 2 ** Math.floor(random() * 9 - 4), Math.floor(random() * 9) - 4)),
  ].filter((x) => x > 0 && x !== 1),
  sin: [
    ...range(4000, () => random() * 20 - 10),
    ...range(4000, () => (random() * 2 - 1) * 2 ** 20),
    ...range(4000, () => near(Math.floor(random() * 667000) * HALF, Math.floor(random() * 5) - 2)),
    ...range(2000, (k) => near(k * HALF, 0)),
    ...range(400, (k) => 1.1 * 2 ** -(k / 4)),
    ...range(2000, () => (random() * 2 - 1) * 2 ** 26),
  ].filter((x) => x !== 0),
  erf: [
    ...range(4000, () => random() * 14 - 7),
    ...range(3000, () => random() * 2 - 1),
    ...range(600, (k) => near(k < 300 ? 1 : -1, (k % 300) - 150)),
    ...range(200, (k) => 1.1 * 2 ** -(k / 4)),
  ].filter((x) => x !== 0),
};

describe("float64", () => {
  const LIMIT: Record<Name, number> = { exp2: 1.5, log2: 1.5, sin: 2, erf: 1.2 };
  test.each(Object.keys(FUNCTIONS) as Name[])("%s", (name) => {
    const xs = Float64Array.from(HARD64[name]);
    const ys = compile(name, float64)(xs);
    let [ulp, at] = [0, 0];
    xs.forEach((x, i) => {
      const error = ulps64(ys[i] as number, TRUTH[name](x));
      if (error > ulp) [ulp, at] = [error, x];
    });
    console.log(`${name} of float64: ${ulp.toFixed(3)} ulp at ${at}, of ${xs.length} values`);
    expect(ulp).toBeLessThan(LIMIT[name]);
  });

  test("erf of a number of JavaScript", () => {
    const errors = HARD64.erf.map((x) => ulps64(erfOfNumber(x), TRUTH.erf(x)));
    console.log(`erf of a number: ${Math.max(...errors).toFixed(3)} ulp`);
    expect(Math.max(...errors)).toBeLessThan(1.2);
  });
});

// ---- special values, in WASM and in the algebra of single values ----

interface Typed {
  readonly d: DType;
  readonly v: Value;
}
/** Decompositions on plain values, by the meaning of each op: what the JS device computes. */
const VALUES: Algebra<Typed> = {
  alu: (op: AluOp, ...xs) => {
    const last = (xs.at(-1) as Typed).d;
    return { d: resultDType(op, last), v: opRecord(op).evaluate(last, ...xs.map((x) => x.v)) };
  },
  constant: (d, v) => ({ d, v: castValue(d, v, d) }),
  cast: (x, d) => ({ d, v: castValue(d, x.v, x.d) }),
  bitcast: (x, d) => ({ d, v: bitcastValue(d, x.v, x.d) }),
  dtypeOf: (x) => x.d,
};

/**
 * Where a MULACC rounds once: the product of two float32 is exact in double, and
 * so is the sum, all but rarely.
 */
const FUSED: Algebra<Typed> = {
  ...VALUES,
  fuses: (d) => d === float32,
  alu: (op, ...xs) => {
    if (op !== "MULACC") return VALUES.alu(op, ...xs);
    const [a, b, c] = xs.map((x) => Number(x.v)) as [number, number, number];
    return { d: float32, v: Math.fround(a * b + c) };
  },
};

test.each(["exp2", "log2", "erf"] as const)("%s of float32 with fused products is no worse", (name) => {
  const run: Run = (xs) => Float32Array.from(xs, (v) => Number(FUNCTIONS[name](FUSED, { d: float32, v }).v));
  const [low, high] = { exp2: [-150, 128], log2: [0.5, 2], erf: [-4.5, 4.5] }[name] as [number, number];
  const xs = between(low, high, 60_000);
  const special = Float32Array.from([NaN, Infinity, -Infinity, 0, -0, 128, -150, 2 ** -149, 1]);
  for (const some of [xs, special]) expect(worst32(name, run, some).ulp).toBeLessThan(1.3);
});

describe("exp2 of what is not above 0", () => {
  const known = (a: Algebra<Typed>): Algebra<Typed> => ({ ...a, isNotPositive: () => true });
  test.each([
    ["as it is", VALUES],
    ["with fused products", FUSED],
  ])("float32, %s", (_, a) => {
    const run: Run = (xs) => Float32Array.from(xs, (v) => Number(exp2(known(a), { d: float32, v }).v));
    const special = Float32Array.from([NaN, -Infinity, 0, -0, -126, -126.5, -149, -150, -1e-40, -3e38]);
    const steps = Float32Array.from(range(152, (k) => -k));
    for (const xs of [between(-151, 0, 60_000), around([-126, -149], 500), steps, special])
      expect(worst32("exp2", run, xs).ulp).toBeLessThan(1.3);
  });
  test("float64", () => {
    for (const x of HARD64.exp2.filter((v) => v <= 0).slice(0, 2000)) {
      const y = Number(exp2(known(VALUES), { d: float64, v: x }).v);
      expect(ulps64(y, TRUTH.exp2(x)), `exp2(${x})`).toBeLessThan(1.5);
    }
    const special = [-Infinity, -1e300, -1080, -1074, -1023, 0].map(
      (v) => exp2(known(VALUES), { d: float64, v }).v,
    );
    expect(special).toEqual([0, 0, 0, 2 ** -1074, 2 ** -1023, 1]);
  });
});

const limits = (d: DType) =>
  d === float32
    ? { min: 2 ** -149, max: 3.4028234663852886e38, low: -149, high: 127 }
    : { min: 2 ** -1074, max: Number.MAX_VALUE, low: -1074, high: 1023 };

describe.each([float32, float64].map((d) => [d.name, d] as const))("special values of %s", (_, d) => {
  const { min, max, low, high } = limits(d);
  const CASES: Record<Name, readonly (readonly [number, number])[]> = {
    exp2: [
      [Infinity, Infinity],
      [-Infinity, 0],
      [NaN, NaN],
      [0, 1],
      [-0, 1],
      [high + 1, Infinity],
      [max, Infinity],
      [-max, 0],
      [low - 2, 0],
      [min, 1],
      [-min, 1],
      ...range(high - low + 1, (k) => [low + k, 2 ** (low + k)] as const),
    ],
    log2: [
      [0, -Infinity],
      [-0, -Infinity],
      [-1, NaN],
      [-min, NaN],
      [-Infinity, NaN],
      [Infinity, Infinity],
      [NaN, NaN],
      ...range(high - low + 1, (k) => [2 ** (low + k), low + k] as const),
    ],
    sin: [
      [0, 0],
      [-0, -0],
      [Infinity, NaN],
      [-Infinity, NaN],
      [NaN, NaN],
      [min, min],
      [-min, -min],
    ],
    erf: [
      [0, 0],
      [-0, -0],
      [Infinity, 1],
      [-Infinity, -1],
      [NaN, NaN],
      [min, min],
      [-min, -min],
      [max, 1],
      [-max, -1],
      [6, 1],
      [-6, -1],
    ],
  };
  test.each(Object.keys(FUNCTIONS) as Name[])("%s", (name) => {
    const xs = CASES[name].map(([x]) => x);
    const want = CASES[name].map(([, y]) => y);
    const Type = d === float32 ? Float32Array : Float64Array;
    expect([...compile(name, d)(new Type(xs))]).toEqual(want);
    const plain = xs.map((v) => FUNCTIONS[name](VALUES, { d, v }).v);
    expect(plain).toEqual(want);
  });
});

test("plain values and WASM agree to the bit", () => {
  for (const name of Object.keys(FUNCTIONS) as Name[]) {
    const xs = spread(2 ** 32 / 3000);
    const got = compile(name, float32)(xs);
    xs.forEach((x, i) => {
      expect(FUNCTIONS[name](VALUES, { d: float32, v: x }).v, `${name}(${x})`).toBe(got[i]);
    });
  }
});
