// Derives the polynomials of src/transcendental.ts: Remez exchange in fixed point of 240 bits, on BigInt.
// `node scripts/minimax.mjs` prints each table with its degree and its error, before and after rounding.
// Nothing runs this at build time; it is kept so that the tables can be checked and changed.

const BITS = 240n;
const ONE = 1n << BITS;
const mul = (a, b) => (a * b) >> BITS;
const div = (a, b) => (a << BITS) / b;
const abs = (a) => (a < 0n ? -a : a);

/** A double as fixed point, exactly (for magnitudes that matter here). */
function fixed(x) {
  let shift = 0;
  while (!Number.isInteger(x)) {
    x *= 2;
    shift++;
  }
  return (BigInt(x) << BITS) >> BigInt(shift);
}
/** The nearest double, by rounding the top 53 bits half to even. */
function toDouble(a) {
  const m = abs(a);
  const drop = m.toString(2).length - 53;
  if (drop <= 0) return Number(a) * 2 ** -Number(BITS);
  const down = m >> BigInt(drop);
  const rest = m - (down << BigInt(drop));
  const half = 1n << BigInt(drop - 1);
  const up = rest > half || (rest === half && down % 2n === 1n) ? 1n : 0n;
  return (a < 0n ? -1 : 1) * Number(down + up) * 2 ** (drop - Number(BITS));
}

function series(first, next) {
  let [term, sum] = [first, 0n];
  for (let k = 1; term !== 0n; k++) {
    sum += term;
    term = next(term, BigInt(k));
  }
  return sum;
}
/** sum of y^(2k+1)/(2k+1) */
const atanh = (y) => {
  const z = mul(y, y);
  let [power, sum] = [y, 0n];
  for (let k = 1n; power !== 0n; k += 2n) {
    sum += power / k;
    power = mul(power, z);
  }
  return sum;
};
const LN2 = 2n * atanh(ONE / 3n);
const exp = (y) => series(ONE, (t, k) => mul(t, y) / k);
const sin = (y) => series(y, (t, k) => -mul(mul(t, y), y) / (2n * k * (2n * k + 1n)));
const cos = (y) => series(ONE, (t, k) => -mul(mul(t, y), y) / (2n * k * (2n * k - 1n)));
const arctanInverse = (n) => series(ONE / n, (t, k) => (-t * (2n * k - 1n)) / (n * n * (2n * k + 1n)));
export const PI = 4n * (4n * arctanInverse(5n) - arctanInverse(239n));
const sqrt = (a) => {
  let x = ONE;
  for (let i = 0; i < 300; i++) x = (x + div(a, x)) / 2n;
  return x;
};

/** Gauss with pivots. */
function solve(rows) {
  const n = rows.length;
  for (let c = 0; c < n; c++) {
    let best = c;
    for (let r = c; r < n; r++) if (abs(rows[r][c]) > abs(rows[best][c])) best = r;
    [rows[c], rows[best]] = [rows[best], rows[c]];
    for (let r = 0; r < n; r++) {
      if (r === c) continue;
      const factor = div(rows[r][c], rows[c][c]);
      for (let k = c; k <= n; k++) rows[r][k] -= mul(factor, rows[c][k]);
    }
  }
  return rows.map((row, i) => div(row[n], row[i]));
}
const evaluate = (coefs, x) => coefs.reduceRight((sum, c) => mul(sum, x) + c, 0n);

/** The polynomial of `count` coefficients with the smallest largest |weight(x) (g(x) - p(x))| on [a, b]. */
function remez({ g, weight, a, b, count }) {
  const grid = [];
  for (let i = 0; i <= 1500; i++) {
    const t = fixed(-Math.cos((Math.PI * (i + 0.37)) / 1500.74) / 2 + 0.5);
    const x = a + mul(t, b - a);
    grid.push({ x, g: g(x), w: weight(x) });
  }
  let nodes = Array.from({ length: count + 1 }, (_, i) => grid[Math.round((i * 1500) / count)]);
  let coefs = [];
  for (let round = 0; round < 12; round++) {
    const rows = nodes.map(({ x, g: y, w }, i) => {
      const row = [];
      for (let k = 0, p = ONE; k < count; k++, p = mul(p, x)) row.push(p);
      return [...row, div(i % 2 ? -ONE : ONE, w), y];
    });
    coefs = solve(rows).slice(0, count);
    const error = grid.map((n) => mul(n.w, n.g - evaluate(coefs, n.x)));
    const peaks = []; // the largest of each run of one sign
    error.forEach((e, i) => {
      const last = peaks.at(-1);
      if (last !== undefined && e < 0n === error[last] < 0n) {
        if (abs(e) > abs(error[last])) peaks[peaks.length - 1] = i;
      } else peaks.push(i);
    });
    while (peaks.length > count + 1) {
      if (abs(error[peaks[0]]) < abs(error[peaks.at(-1)])) peaks.shift();
      else peaks.pop();
    }
    if (peaks.length < count + 1) break;
    nodes = peaks.map((i) => grid[i]);
  }
  return { coefs, grid };
}

function report(name, spec, round) {
  const { coefs, grid } = remez(spec);
  const rounded = coefs.map((c) => round(toDouble(c)));
  const worst = (cs) =>
    grid.reduce((m, n) => Math.max(m, Math.abs(toDouble(mul(n.w, n.g - evaluate(cs, n.x))))), 0);
  const log = (e) => `2^${Math.log2(e).toFixed(1)}`;
  console.log(
    `${name}: degree ${spec.count - 1}, error ${log(worst(coefs))},`,
    `rounded ${log(worst(rounded.map(fixed)))}`,
  );
  console.log(`  [${rounded.join(", ")}]`);
}

const HALF = ONE / 2n;
const two = (x) => exp(mul(x, LN2));
const exp2 = (count) => ({
  // 2^x = 1 + x p(x)
  g: (x) => div(two(x) - ONE, x),
  weight: (x) => div(abs(x), two(x)),
  a: -HALF,
  b: HALF,
  count,
});
const root = sqrt(2n * ONE);
const edge = div(root - ONE, root + ONE);
const log2 = (count) => ({
  // log2((1+s)/(1-s)) = 2 s / ln 2 + s z p(z), z = s^2
  g: (z) => {
    const s = sqrt(z);
    return div(div(2n * div(atanh(s), s) - 2n * ONE, z), LN2);
  },
  weight: (z) => mul(z, LN2) / 2n,
  a: ONE / 1000000n,
  b: mul(edge, edge),
  count,
});
/** sin(t) = t + t z p(z), z = t^2 */
const sine = (count) => ({
  g: (z) => {
    const t = sqrt(z);
    return div(div(sin(t), t) - ONE, z);
  },
  weight: (z) => z,
  a: ONE / 1000000n,
  b: mul(PI / 4n, PI / 4n) + ONE / 1000n,
  count,
});
/** cos(t) = 1 - z/2 + z^2 p(z) */
const cosine = (count) => ({
  g: (z) => div(div(cos(sqrt(z)) - ONE + z / 2n, z), z),
  weight: (z) => mul(z, z),
  a: ONE / 1000n,
  b: mul(PI / 4n, PI / 4n) + ONE / 1000n,
  count,
});
/** sin(2 pi r) = r p(z), z = r^2, in turns */
const sineOfTurns = (count) => ({
  g: (z) => {
    const r = sqrt(z);
    return div(sin(2n * mul(PI, r)), r);
  },
  weight: () => ONE / 6n,
  a: ONE / 1000000n,
  b: ONE / 64n + ONE / 10000n,
  count,
});
/** cos(2 pi r) = 1 + z p(z) */
const cosineOfTurns = (count) => ({
  g: (z) => div(cos(2n * mul(PI, sqrt(z))) - ONE, z),
  weight: (z) => z,
  a: ONE / 1000000n,
  b: ONE / 64n + ONE / 10000n,
  count,
});

/** 3 atanh(s)/s = 3 + z + z^2 p(z), z = s^2: the logarithm of pow */
const powLog = (count) => ({
  g: (z) => {
    const s = sqrt(z);
    return div(div(3n * div(atanh(s), s) - 3n * ONE - z, z), z);
  },
  weight: (z) => mul(z, z) / 3n,
  a: ONE / 10000n,
  b: mul(edge, edge) + ONE / 10000n,
  count,
});
/** e^w = 1 + w + w^2 p(w) for |w| <= ln 2 / 2: the exponential of pow */
const powExp = (count) => ({
  g: (w) => div(div(exp(w) - ONE - w, w), w),
  weight: (w) => mul(w, w),
  a: -LN2 / 2n - ONE / 1000n,
  b: LN2 / 2n + ONE / 1000n,
  count,
});
/** The bits of 2/pi in words of 64, after 32 zeros. */
function inverseHalfPi(words) {
  const bits = BigInt(64 * words - 32);
  const wide = bits + 64n;
  const one = 1n << wide;
  const arctan = (n) => {
    let [term, sum] = [one / n, 0n];
    for (let k = 1n; term !== 0n; k += 2n) {
      sum += k % 4n === 1n ? term / k : -(term / k);
      term /= n * n;
    }
    return sum;
  };
  const pi = 4n * (4n * arctan(5n) - arctan(239n));
  const value = (((2n * one) << wide) / pi) >> 64n;
  const word = (i) => (value >> BigInt(64 * (words - 1 - i))) & ((1n << 64n) - 1n);
  console.log(`2/pi: ${Array.from({ length: words }, (_, i) => `0x${word(i).toString(16)}n`).join(", ")}`);
}

/** The logarithm to base 2, by way of a number in [1, 2]. */
const logarithm2 = (y) => {
  const e = BigInt(y.toString(2).length) - BITS - 1n;
  const m = e < 0n ? y << -e : y >> e;
  return e * ONE + div(2n * atanh(div(m - ONE, m + ONE)), LN2);
};
const TWO_BY_ROOT_PI = div(2n * ONE, sqrt(PI));
/**
 * x - x^3/3 + x^5/(2! 5) - …: for the x that matter here the terms grow to 2^50, so that 190 bits are left
 */
const erf = (x) => {
  const z = mul(x, x);
  let [term, sum] = [x, 0n];
  for (let k = 1n; term !== 0n; k++) {
    sum += term / (2n * k - 1n);
    term = -mul(term, z) / k;
  }
  return mul(TWO_BY_ROOT_PI, sum);
};
/** erf(x) = x + x p(z), z = x^2, up to 1 */
const erfNear = (count) => ({
  g: (z) => {
    const x = sqrt(z);
    return div(erf(x), x) - ONE;
  },
  weight: (z) => div(sqrt(z), erf(sqrt(z))),
  a: ONE / 1000000n,
  b: ONE,
  count,
});
/** erf(x) = 1 - 2^p(x - 1), from 1 to where it is 1 */
const erfFar = (count, end) => ({
  g: (u) => logarithm2(ONE - erf(u + ONE)),
  weight: (u) => div(mul(LN2, ONE - erf(u + ONE)), erf(u + ONE)),
  a: 0n,
  b: end - ONE,
  count,
});

/** A number as a sum of doubles of `bits` bits each, the last of 53: times short integers they are exact. */
function parts(name, x, bits, count, last53) {
  const out = [];
  for (let i = 0; i < count; i++) {
    if (last53 && i === count - 1) out.push(toDouble(x));
    else {
      const keep = BigInt(x.toString(2).length - bits);
      out.push(toDouble((x >> keep) << keep));
      x -= (x >> keep) << keep;
    }
  }
  console.log(`${name}\n  [${out.join(", ")}]`);
}
/** The same on a fixed raster: part i ends at bit 2^-(first + (i + 1) bits). */
function raster(name, x, first, bits, count) {
  const out = [];
  for (let i = 0; i < count; i++) {
    const keep = BITS - BigInt(first + (i + 1) * bits);
    out.push(toDouble(i === count - 1 ? x : (x >> keep) << keep));
    x -= (x >> keep) << keep;
  }
  console.log(`${name}\n  [${out.join(", ")}]`);
}

const double = (x) => x;
report("exp2 float32", exp2(6), Math.fround);
report("exp2 float64", exp2(11), double);
report("log2 float32", log2(3), Math.fround);
report("log2 float64", log2(7), double);
report("sin of turns, float32 through float64", sineOfTurns(4), double);
report("cos of turns, float32 through float64", cosineOfTurns(4), double);
report("sin float64", sine(6), double);
report("cos float64", cosine(6), double);
report("erf float32, near", erfNear(7), Math.fround);
report("erf float64, near", erfNear(13), double);
report("erf float32, far", erfFar(7, 4n * ONE), Math.fround);
report("erf float64, far", erfFar(19, 6n * ONE), double);
console.log(`1/ln 2 - 1: ${toDouble(div(ONE, LN2) - ONE)}, 2/pi: ${toDouble(div(2n * ONE, PI))}`);
parts("pi/2 in parts", PI / 2n, 27, 5, true);
raster("1/(2 pi) in parts", div(ONE, 2n * PI), 2, 28, 6);
report("pow float32, logarithm", powLog(3), Math.fround);
report("pow float64, logarithm", powLog(8), double);
report("pow float32, exponential", powExp(5), Math.fround);
report("pow float64, exponential", powExp(11), double);
for (const bits of [12, 26]) {
  parts(`2/(3 ln 2) in parts of ${bits} bits`, div(2n * ONE, 3n * LN2), bits, 2, true);
  parts(`ln 2 in parts of ${bits} bits`, LN2, bits, 2, true);
}
inverseHalfPi(19);
