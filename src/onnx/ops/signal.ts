// Signals: Fourier transforms as products with a matrix of cosines and sines, windows, mel filters. Complex
// numbers are pairs in the last dim.

import { range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { TYPES, typeOfCode } from "../elements.ts";
import type { TensorValue } from "../values.ts";
import { cast, cut, hostTensor, sizeOf, sizes, typed, wideOf } from "./common.ts";
import { type Call, flag, int, type OpTable, op, type Versions, versions } from "./op.ts";

/** More would be a matrix of gigabytes. */
const MAX_LENGTH = 1 << 14;

/** cos and sin of all products of a place and a frequency. */
function waves(
  c: Call,
  like: Tensor,
  n: number,
  from: number,
  to: number,
): readonly [cos: Tensor, sin: Tensor] {
  if (n > MAX_LENGTH) c.unsupported(`a transform of ${n} elements; up to ${MAX_LENGTH} are computed`);
  const table = range(n).map((i) => (2 * Math.PI * i) / n);
  const at = (f: (x: number) => number): Tensor => {
    const values = table.map(f);
    const flat = range(from * to).map((i) => values[(Math.floor(i / to) * (i % to)) % n] as number);
    return hostTensor(c, flat, [from, to], like.dtype);
  };
  return [at(Math.cos), at(Math.sin)];
}

/** As many elements of the dim as wanted: cut off, or zeros behind. */
function toLength(x: Tensor, dim: number, n: number): Tensor {
  const size = sizeOf(x, dim);
  if (size > n)
    return cut(
      x,
      sizes(x).map((count, d) => ({ start: 0, step: 1, count: d === dim ? n : count })),
    );
  return size === n ? x : x.pad(sizes(x).map((_, d) => [0, d === dim ? n - size : 0]));
}

interface Fourier {
  readonly length: number;
  readonly inverse: boolean;
  readonly onesided: boolean;
}
/** `x` is [..., signal, 1 or 2]; the result has the frequencies in the place of the signal. */
function transform(c: Call, x: Tensor, { length: n, inverse, onesided }: Fourier): Tensor {
  if (inverse && onesided) return realInverse(c, x, n);
  const signal = toLength(x, x.ndim - 2, n);
  const bins = onesided ? Math.floor(n / 2) + 1 : n;
  const [cos, sin] = waves(c, x, n, n, bins);
  const [re, im] = parts(signal);
  const by = (t: Tensor, m: Tensor): Tensor =>
    t
      .unsqueeze(-2)
      .matmul(m)
      .reshape([...sizes(t).slice(0, -1), bins]);
  const sign = inverse ? 1 : -1;
  const real = im === undefined ? by(re, cos) : by(re, cos).sub(by(im, sin).mul(sign));
  const imaginary = im === undefined ? by(re, sin).mul(sign) : by(re, sin).mul(sign).add(by(im, cos));
  const both = Tensor.stack([real, imaginary], -1);
  return inverse ? both.div(n) : both;
}
function parts(x: Tensor): readonly [Tensor, Tensor | undefined] {
  const last = x.ndim - 1;
  return [x.select(last, 0), sizeOf(x, last) === 2 ? x.select(last, 1) : undefined];
}
/** A real signal from the first half of its frequencies: the others are their mirror image. */
function realInverse(c: Call, x: Tensor, n: number): Tensor {
  const bins = Math.floor(n / 2) + 1;
  const [re, im] = parts(toLength(x, x.ndim - 2, bins));
  const [cos, sin] = waves(c, x, n, bins, n);
  const twice = range(bins).map((k) => (k === 0 || 2 * k === n ? 1 : 2));
  const weight = hostTensor(c, twice, [bins], x.dtype);
  const by = (t: Tensor, m: Tensor): Tensor =>
    t
      .mul(weight)
      .unsqueeze(-2)
      .matmul(m)
      .reshape([...sizes(t).slice(0, -1), n]);
  const real = im === undefined ? by(re, cos) : by(re, cos).sub(by(im, sin));
  return real.div(n).unsqueeze(-1);
}

async function dft(c: Call<{ inverse: boolean; onesided: boolean }>, axis: number): Promise<Tensor> {
  const { inverse, onesided } = c.attr;
  const given = c.t(0);
  const at = c.axis(axis, given.ndim);
  if (at === given.ndim - 1) c.fail("the last dim holds the parts of complex numbers; it is not transformed");
  const size = sizeOf(given, at);
  const usual = inverse && onesided ? 2 * (size - 1) : size;
  const length = c.has(1) ? await c.scalar(1) : usual;
  const x = cast(given, wideOf(given.dtype)).movedim(at, given.ndim - 2);
  return cast(transform(c, x, { length, inverse, onesided }).movedim(given.ndim - 2, at), given.dtype);
}

async function stft(c: Call<{ onesided: boolean }>): Promise<Tensor> {
  const given = c.t(0);
  const x = cast(given.ndim === 2 ? given.unsqueeze(-1) : given, wideOf(given.dtype));
  const step = await c.scalar(1);
  const window = c.maybe(2);
  const length = c.has(3) ? await c.scalar(3) : window === undefined ? sizeOf(x, 1) : sizeOf(window, 0);
  if (step < 1 || length < 1 || length > sizeOf(x, 1))
    c.fail(`frames of ${length} every ${step} of ${x.shape[1]} elements`);
  // [batch, frames, parts, length]
  const frames = x.unfold(1, length, step);
  const weighted = window === undefined ? frames : frames.mul(toLength(cast(window, x.dtype), 0, length));
  const pairs = weighted.movedim(3, 2);
  return cast(transform(c, pairs, { length, inverse: false, onesided: c.attr.onesided }), given.dtype);
}

/** A sum of cosines, over the size or one less. */
const window = (...terms: readonly number[]): Versions =>
  op({ output_datatype: int(1), periodic: flag(true) }, async (c) => {
    const size = await c.scalar(0);
    const type = typeOfCode(c.attr.output_datatype, c.where);
    const n = c.attr.periodic ? size : size - 1;
    const values = range(size).map((i) =>
      terms.reduce((sum, a, k) => sum + a * Math.cos((2 * Math.PI * k * i) / n), 0),
    );
    return typed(hostTensor(c, values, [size], TYPES.float.dtype), type);
  });

/** Triangles over the frequencies, as far apart as the ear hears them. */
async function melWeights(c: Call<{ output_datatype: number }>): Promise<TensorValue> {
  const [bins, length, rate, low, high] = [
    await c.scalar(0),
    await c.scalar(1),
    await c.scalar(2),
    await c.scalar(3),
    await c.scalar(4),
  ];
  const rows = Math.floor(length / 2) + 1;
  if (!(bins >= 0 && rows * bins < 2 ** 26)) c.fail(`${bins} filters of ${rows} frequencies`);
  const mel = (hertz: number): number => 2595 * Math.log10(1 + hertz / 700);
  const step = (mel(high) - mel(low)) / (bins + 2);
  const edges = range(bins + 2).map((i) => {
    const hertz = 700 * (10 ** ((i * step + mel(low)) / 2595) - 1);
    return Math.floor(((length + 1) * hertz) / rate);
  });
  const data = new Array<number>(rows * bins).fill(0);
  range(bins).forEach((i) => {
    const [a, b, e] = edges.slice(i, i + 3) as [number, number, number];
    const set = (j: number, x: number): void => {
      if (j >= 0 && j < rows) data[j * bins + i] = x;
    };
    if (a === b) set(b, 1);
    else for (let j = a; j <= b; j++) set(j, (j - a) / (b - a));
    for (let j = b; j < e; j++) set(j, (e - j) / (e - b));
  });
  return typed(
    hostTensor(c, data, [rows, bins], TYPES.float.dtype),
    typeOfCode(c.attr.output_datatype, c.where),
  );
}

export const signal: OpTable = {
  DFT: versions(
    op({ axis: int(1), inverse: flag(false), onesided: flag(false) }, (c) => dft(c, c.attr.axis), 17),
    op(
      { inverse: flag(false), onesided: flag(false) },
      async (c) => dft(c, c.has(2) ? await c.scalar(2) : -2),
      20,
    ),
  ),
  STFT: op({ onesided: flag(true) }, stft),
  HannWindow: window(0.5, -0.5),
  HammingWindow: window(25 / 46, -21 / 46),
  BlackmanWindow: window(0.42, -0.5, 0.08),
  MelWeightMatrix: op({ output_datatype: int(1) }, melWeights),
};
