// The discrete Fourier transform of rows: [rows, n, 2] to the same, unscaled. Lengths up to 64 are a product
// with a matrix. A length a b becomes transforms of length a, a multiplication by twiddle factors and
// transforms of length b (Cooley and Tukey). A prime above 64 becomes a convolution of a length that is a
// power of two (Bluestein). Tables are computed in doubles on the host and kept.

import { type DType, dtypes } from "../dtype.ts";
import { getOrMake, range } from "../helpers.ts";
import { narrow } from "../tensor/movement/join.ts";
import { padConstant } from "../tensor/movement/views.ts";
import { Tensor } from "../tensor/tensor.ts";

/** -1: the forward transform, 1: the inverse. */
type Sign = 1 | -1;

/** Lengths up to this are one product with a matrix; so are the factors of larger ones. */
const DIRECT = 64;

/** The largest divisor that is at most DIRECT; for none, the smallest divisor. A prime gives itself. */
export function splitOf(n: number): number {
  for (let d = DIRECT; d > 1; d--) if (n % d === 0) return d;
  for (let d = DIRECT + 1; d * d <= n; d++) if (n % d === 0) return d;
  return n;
}

export function dft(x: Tensor, sign: Sign): Tensor {
  const [rows, n] = x.shape as readonly [number, number, 2];
  if (n === 1 || rows === 0) return x;
  if (n <= DIRECT)
    return x
      .reshape(rows, 2 * n)
      .matmul(matrix(x, n, sign))
      .reshape(rows, n, 2);
  const a = splitOf(n);
  if (a === n) return bluestein(x, sign);
  const b = n / a;
  // element j1 b + j2 is at [j1, j2]; result k1 + a k2 is at [k2, k1]
  const columns = x
    .reshape(rows, a, b, 2)
    .permute(0, 2, 1, 3)
    .reshape(rows * b, a, 2);
  const inner = dft(columns.contiguous(), sign).reshape(rows, b, a, 2);
  const turned = times(inner, twiddles(x, a, b, sign))
    .permute(0, 2, 1, 3)
    .reshape(rows * a, b, 2);
  const outer = dft(turned.contiguous(), sign).reshape(rows, a, b, 2);
  return outer.permute(0, 2, 1, 3).reshape(rows, n, 2);
}

function bluestein(x: Tensor, sign: Sign): Tensor {
  const n = x.shape[1] as number;
  const m = 2 ** Math.ceil(Math.log2(2 * n - 1));
  const { chirp, spectrum } = chirps(x, n, m, sign);
  const padded = padConstant(times(x, chirp), [null, [0, m - n], null]);
  const product = times(dft(padded.contiguous(), -1), spectrum);
  return times(narrow(dft(product.contiguous(), 1), 1, 0, n), chirp);
}

// ---- products with tables ----

/** A table of complex numbers, in the form that a product takes. */
interface ComplexTable {
  /** the real parts, each twice; the imaginary parts, each as -im, im */
  readonly re: Tensor;
  readonly im: Tensor;
}
const times = (x: Tensor, { re, im }: ComplexTable): Tensor => x.mul(re).add(x.flip(-1).mul(im));

type Complex = readonly [re: Float64Array, im: Float64Array];

/** Tables by key, the least recently used one first. */
const kept = new Map<string, unknown>();
const MOST = 128;
function remember<T>(like: Tensor, key: string, make: () => T): T {
  const name = `${key}|${like.dtype.name}|${like.device}`;
  const table = getOrMake(kept, name, make) as T;
  kept.delete(name);
  kept.set(name, table);
  for (const old of kept.keys()) {
    if (kept.size <= MOST) break;
    kept.delete(old);
  }
  return table;
}
function tensorOf(like: Tensor, numbers: Float64Array, shape: readonly number[]): Tensor {
  const wide: DType = like.dtype === dtypes.float64 ? like.dtype : dtypes.float32;
  const data = wide === dtypes.float64 ? numbers : Float32Array.from(numbers);
  // several devices: each has the whole table
  const [device] = like.devices as readonly [string];
  const t = new Tensor(data, { device }).cast(like.dtype).reshape(shape);
  return like.devices.length > 1 ? t.shard(like.devices) : t;
}
function tableOf(like: Tensor, [re, im]: Complex, shape: readonly number[]): ComplexTable {
  const [twice, signed] = [new Float64Array(2 * re.length), new Float64Array(2 * re.length)];
  re.forEach((x, i) => void twice.fill(x, 2 * i, 2 * i + 2));
  im.forEach((y, i) => void signed.set([-y, y], 2 * i));
  return { re: tensorOf(like, twice, [...shape, 2]), im: tensorOf(like, signed, [...shape, 2]) };
}
/** exp(sign 2πi k / n) for whole numbers k, exact in the quarters of the circle. */
function root(k: number, n: number, sign: Sign): [number, number] {
  const r = ((k % n) + n) % n;
  if ((4 * r) % n === 0) {
    const quarter = (4 * r) / n;
    return [[1, 0, -1, 0][quarter] as number, sign * ([0, 1, 0, -1][quarter] as number)];
  }
  const angle = (2 * Math.PI * r) / n;
  return [Math.cos(angle), sign * Math.sin(angle)];
}

// ---- the tables ----

/** The transform of length n as a matrix over pairs: [2n, 2n]. */
function matrix(like: Tensor, n: number, sign: Sign): Tensor {
  return remember(like, `m${n}|${sign}`, () => {
    const all = new Float64Array(4 * n * n);
    for (const j of range(n)) {
      for (const k of range(n)) {
        const [c, s] = root(j * k, n, sign);
        const at = 4 * n * j + 2 * k;
        all.set([c, s], at);
        all.set([-s, c], at + 2 * n);
      }
    }
    return tensorOf(like, all, [2 * n, 2 * n]);
  });
}
/** Between the two halves of a split: root^(j2 k1) at [j2, k1]. */
function twiddles(like: Tensor, a: number, b: number, sign: Sign): ComplexTable {
  return remember(like, `t${a}|${b}|${sign}`, () => {
    const [re, im] = [new Float64Array(a * b), new Float64Array(a * b)];
    for (const j of range(b)) {
      for (const k of range(a)) [re[j * a + k], im[j * a + k]] = root(j * k, a * b, sign);
    }
    return tableOf(like, [re, im], [b, a]);
  });
}
/** root^(k²/2), and the transform of its conjugate around 0, by 1/m for the inverse that follows. */
function chirps(
  like: Tensor,
  n: number,
  m: number,
  sign: Sign,
): { chirp: ComplexTable; spectrum: ComplexTable } {
  return remember(like, `c${n}|${sign}`, () => {
    const [re, im] = [new Float64Array(n), new Float64Array(n)];
    // k² is taken modulo 2n in whole numbers: the angle of a large square would have no digits left
    for (const k of range(n))
      [re[k], im[k]] = root(Number((BigInt(k) * BigInt(k)) % BigInt(2 * n)), 2 * n, sign);
    const [cre, cim] = [new Float64Array(m), new Float64Array(m)];
    for (const k of range(n)) {
      for (const at of new Set([k, (m - k) % m])) {
        cre[at] = (re[k] as number) / m;
        cim[at] = -(im[k] as number) / m;
      }
    }
    powerOfTwo([cre, cim]);
    return { chirp: tableOf(like, [re, im], [n]), spectrum: tableOf(like, [cre, cim], [m]) };
  });
}
/** The forward transform on the host, in place, for lengths that are powers of two. */
function powerOfTwo([re, im]: Complex): void {
  const n = re.length;
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; (j & bit) !== 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    [re[i], re[j]] = [re[j] as number, re[i] as number];
    [im[i], im[j]] = [im[j] as number, im[i] as number];
  }
  for (let size = 2; size <= n; size *= 2) {
    const half = size / 2;
    for (let k = 0; k < half; k++) {
      const [c, s] = root(k, size, -1);
      for (let i = k; i < n; i += size) {
        const [x, y] = [re[i + half] as number, im[i + half] as number];
        const [tr, ti] = [x * c - y * s, x * s + y * c];
        re[i + half] = (re[i] as number) - tr;
        im[i + half] = (im[i] as number) - ti;
        re[i] = (re[i] as number) + tr;
        im[i] = (im[i] as number) + ti;
      }
    }
  }
}
