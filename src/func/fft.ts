// Fourier transforms, with the names and conventions of torch.fft. There is no complex dtype: a complex
// Tensor has a last dim of 2, the real and the imaginary part, as torch.view_as_real gives it. Dims are
// counted without that one. Any length: composite ones are split by Cooley and Tukey, down to products with
// small matrices; primes above 64 go by Bluestein. dft.ts has the algorithm. Gradients flow as through any
// op.

import { ArgumentError, ShapeError } from "../errors.ts";
import { prod, range } from "../helpers.ts";
import { movedim } from "../tensor/movement/arrange.ts";
import { catAll, narrow, stackAll } from "../tensor/movement/join.ts";
import { flip, padConstant } from "../tensor/movement/views.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor, type TensorOptions } from "../tensor/tensor.ts";
import { dft } from "./dft.ts";

/** How results are scaled: by 1/n in the inverse, by 1/sqrt(n) in both, by 1/n in the forward transform. */
export type Norm = "backward" | "ortho" | "forward";
export interface FFTOptions {
  /** the length of the signal, which is cut or padded with zeros; default: that of the dim */
  readonly n?: number;
  /** the dim to transform, not counting the last dim of a complex Tensor; default: -1 */
  readonly dim?: number;
  /** default: "backward" */
  readonly norm?: Norm;
}
export interface FFTnOptions {
  /** the lengths of the signal by dim */
  readonly s?: readonly number[];
  /** the dims to transform; default: all, or the last two of fft2 */
  readonly dim?: readonly number[];
  /** default: "backward" */
  readonly norm?: Norm;
}

// ---- checks ----

function requireSpacing(who: string, d: number): void {
  if (d !== 0) return;
  throw new ArgumentError(`${who}: d is 0, expected the time between two samples, such as 1 / 44100`);
}
function requireComplex(who: string, x: unknown): asserts x is Tensor {
  if (!(x instanceof Tensor)) throw new ArgumentError(`${who}: got ${typeof x}, expected a Tensor`);
  if (x.ndim > 0 && x.shape.at(-1) === 2 && x.dtype.isFloat) return;
  throw new ShapeError(
    `${who}: ${showShape(x.shape)} ${x.dtype.name} is not complex; expected floats with a last dim of 2, ` +
      "the real and the imaginary part. For real numbers use rfft, or fft.complex(x)",
  );
}
function axis(who: string, dim: number, ndim: number): number {
  const at = dim < 0 ? dim + ndim : dim;
  if (Number.isInteger(at) && at >= 0 && at < ndim) return at;
  throw new ShapeError(`${who}: dim is ${dim}, and there are ${ndim} dims to transform`);
}
function lengthOf(who: string, n: number | undefined, size: number): number {
  const length = n ?? size;
  if (Number.isInteger(length) && length > 0) return length;
  throw new ShapeError(`${who}: the length is ${String(length)}, expected an integer above 0`);
}
function factorOf(who: string, norm: Norm | undefined, n: number, inverse: boolean): number {
  switch (norm ?? "backward") {
    case "ortho":
      return 1 / Math.sqrt(n);
    case "backward":
      return inverse ? 1 / n : 1;
    case "forward":
      return inverse ? 1 : 1 / n;
    default:
      throw new ArgumentError(`${who}: norm is ${String(norm)}, expected "backward", "ortho" or "forward"`);
  }
}
/** The dim cut or padded with zeros at its end. */
function resized(x: Tensor, at: number, n: number): Tensor {
  const size = x.shape[at] as number;
  if (n === size) return x;
  if (n < size) return narrow(x, at, 0, n);
  return padConstant(x, x.shape.map((_, i) => (i === at ? ([0, n - size] as const) : null)) as never);
}

// ---- one dim ----

/** Transforms axis `at` of a complex Tensor, as it is. */
function transformed(x: Tensor, at: number, inverse: boolean, factor: number): Tensor {
  const last = x.ndim - 2;
  const front = at === last ? x : movedim(x, at, last);
  const n = front.shape[last] as number;
  const flat = front.reshape(prod(front.shape.slice(0, last)), n, 2);
  const y = dft(flat, inverse ? 1 : -1)
    .mul(factor)
    .reshape(front.shape);
  return at === last ? y : movedim(y, last, at);
}
function along(who: string, x: Tensor, { n, dim = -1, norm }: FFTOptions, inverse: boolean): Tensor {
  const at = axis(who, dim, x.ndim - 1);
  const length = lengthOf(who, n, x.shape[at] as number);
  return transformed(resized(x, at, length), at, inverse, factorOf(who, norm, length, inverse));
}

/**
 * The discrete Fourier transform of a complex Tensor [..., n, 2].
 * @example
 * await fft.fft(fft.complex(new Tensor([1.0, 0, 0, 0]))).tolist() // => [[1, 0], [1, 0], [1, 0], [1, 0]]
 */
export function fft(x: Tensor, options: FFTOptions = {}): Tensor {
  requireComplex("fft", x);
  return along("fft", x, options, false);
}
/**
 * The inverse of fft.
 * @example
 * const x = fft.complex(new Tensor([1.0, 2, 3]));
 * (await fft.ifft(fft.fft(x)).round().tolist()).map(([re]) => re) // => [1, 2, 3]
 */
export function ifft(x: Tensor, options: FFTOptions = {}): Tensor {
  requireComplex("ifft", x);
  return along("ifft", x, options, true);
}
/**
 * The transform of real numbers [..., n]: the first n/2 + 1 of it, complex; the rest is their mirror image.
 * @example
 * await fft.rfft(new Tensor([1.0, 2, 1, 0])).tolist() // => [[4, 0], [0, -2], [0, 0]]
 */
export function rfft(x: Tensor, options: FFTOptions = {}): Tensor {
  requireReal("rfft", x);
  const at = axis("rfft", options.dim ?? -1, x.ndim);
  const y = along("rfft", complex(x), { ...options, dim: at }, false);
  return narrow(y, at, 0, Math.floor((y.shape[at] as number) / 2) + 1);
}
/**
 * The inverse of rfft: real numbers. For an odd length say `n`, since both n and n - 1 give the same number
 * of values.
 * @example
 * await fft.irfft(new Tensor([[4.5, 0], [0, -2], [0, 0]])).tolist() // => [1.125, 2.125, 1.125, 0.125]
 */
export function irfft(x: Tensor, options: FFTOptions = {}): Tensor {
  requireComplex("irfft", x);
  const at = axis("irfft", options.dim ?? -1, x.ndim - 1);
  const n = lengthOf("irfft", options.n, 2 * ((x.shape[at] as number) - 1));
  const half = resized(x, at, Math.floor(n / 2) + 1);
  const rest = Math.ceil(n / 2) - 1;
  const whole = rest === 0 ? half : catAll([half, conj(flip(narrow(half, at, 1, rest), [at]))], at);
  return real(transformed(whole, at, true, factorOf("irfft", options.norm, n, true)));
}
function requireReal(who: string, x: unknown): asserts x is Tensor {
  if (x instanceof Tensor && x.ndim > 0) return;
  throw new ArgumentError(`${who}: expected a Tensor of real numbers with at least one dim`);
}

// ---- several dims ----

/** The axes and their lengths; `ndim` without the last dim of a complex Tensor. */
function axesOf(who: string, x: Tensor, ndim: number, { s, dim }: FFTnOptions, usual: readonly number[]) {
  const dims = dim ?? (s === undefined ? usual : range(s.length).map((i) => i - s.length));
  const at = dims.map((d) => axis(who, d, ndim));
  if (new Set(at).size !== at.length) throw new ShapeError(`${who}: dims [${dims}] name one dim twice`);
  if (s !== undefined && s.length !== at.length) {
    throw new ArgumentError(`${who}: there are ${s.length} lengths in s and ${at.length} dims`);
  }
  return at.map((a, i) => [a, lengthOf(who, s?.[i], x.shape[a] as number)] as const);
}
function manyDims(
  who: string,
  x: Tensor,
  options: FFTnOptions,
  usual: readonly number[],
  inverse: boolean,
): Tensor {
  requireComplex(who, x);
  return axesOf(who, x, x.ndim - 1, options, usual).reduce(
    (y, [at, n]) => transformed(resized(y, at, n), at, inverse, factorOf(who, options.norm, n, inverse)),
    x,
  );
}
const allDims = (x: Tensor): number[] => range(Math.max(0, (x?.ndim ?? 1) - 1));
/**
 * fft over the last two dims of a complex Tensor [..., h, w, 2].
 * @example
 * fft.fft2(fft.complex(Tensor.ones(3, 4, 5))).shape // => [3, 4, 5, 2]
 */
export function fft2(x: Tensor, options: FFTnOptions = {}): Tensor {
  return manyDims("fft2", x, options, [-2, -1], false);
}
/**
 * The inverse of fft2.
 * @example
 * fft.ifft2(Tensor.ones(4, 5, 2)).shape // => [4, 5, 2]
 */
export function ifft2(x: Tensor, options: FFTnOptions = {}): Tensor {
  return manyDims("ifft2", x, options, [-2, -1], true);
}
/**
 * fft over all dims, or those in `dim`.
 * @example
 * fft.fftn(fft.complex(Tensor.ones(2, 3, 4))).shape // => [2, 3, 4, 2]
 */
export function fftn(x: Tensor, options: FFTnOptions = {}): Tensor {
  return manyDims("fftn", x, options, allDims(x), false);
}
/**
 * The inverse of fftn.
 * @example
 * fft.ifftn(Tensor.ones(2, 3, 2)).shape // => [2, 3, 2]
 */
export function ifftn(x: Tensor, options: FFTnOptions = {}): Tensor {
  return manyDims("ifftn", x, options, allDims(x), true);
}
/**
 * rfft over the last dim of real numbers, then fft over the one before.
 * @example
 * fft.rfft2(Tensor.ones(3, 4, 5)).shape // => [3, 4, 3, 2]
 */
export function rfft2(x: Tensor, options: FFTnOptions = {}): Tensor {
  requireReal("rfft2", x);
  return realDims("rfft2", x, options, [-2, -1]);
}
/**
 * rfft over the last dim of `dim`, then fft over the others; all dims by default.
 * @example
 * fft.rfftn(Tensor.ones(2, 3, 4)).shape // => [2, 3, 3, 2]
 */
export function rfftn(x: Tensor, options: FFTnOptions = {}): Tensor {
  requireReal("rfftn", x);
  return realDims("rfftn", x, options, range(x.ndim));
}
function realDims(who: string, x: Tensor, options: FFTnOptions, usual: readonly number[]): Tensor {
  const axes = axesOf(who, x, x.ndim, options, usual);
  const [at, n] = axes.at(-1) as readonly [number, number];
  const norm = options.norm === undefined ? {} : { norm: options.norm };
  return axes
    .slice(0, -1)
    .reduce((y, [dim, m]) => along(who, y, { dim, n: m, ...norm }, false), rfft(x, { dim: at, n, ...norm }));
}
/**
 * The inverse of rfft2: real numbers. For an odd width say `s`.
 * @example
 * fft.irfft2(Tensor.ones(4, 3, 2)).shape // => [4, 4]
 */
export function irfft2(x: Tensor, options: FFTnOptions = {}): Tensor {
  requireComplex("irfft2", x);
  return inverseRealDims("irfft2", x, options, [-2, -1]);
}
/**
 * The inverse of rfftn: real numbers. For an odd last length say `s`.
 * @example
 * fft.irfftn(Tensor.ones(2, 3, 3, 2)).shape // => [2, 3, 4]
 */
export function irfftn(x: Tensor, options: FFTnOptions = {}): Tensor {
  requireComplex("irfftn", x);
  return inverseRealDims("irfftn", x, options, allDims(x));
}
function inverseRealDims(who: string, x: Tensor, options: FFTnOptions, usual: readonly number[]): Tensor {
  const axes = axesOf(who, x, x.ndim - 1, options, usual);
  const [dim] = axes.at(-1) as readonly [number, number];
  const n = options.s?.at(-1);
  const norm = options.norm === undefined ? {} : { norm: options.norm };
  const rest = axes.slice(0, -1).reduce((y, [d, m]) => along(who, y, { dim: d, n: m, ...norm }, true), x);
  return irfft(rest, { dim, ...(n !== undefined && { n }), ...norm });
}

// ---- complex numbers ----

/**
 * A complex Tensor [..., 2] of real and imaginary parts; without the second, they are zeros.
 * @example
 * await fft.complex(new Tensor([1.5, 2]), new Tensor([0.5, 4])).tolist() // => [[1.5, 0.5], [2, 4]]
 */
export function complex(re: Tensor, im?: Tensor): Tensor {
  if (!(re instanceof Tensor)) throw new ArgumentError(`complex: got ${typeof re}, expected a Tensor`);
  const x = re.dtype.isFloat ? re : re.cast("float32");
  return stackAll([x, im === undefined ? x.detach().zerosLike() : im.cast(x.dtype)], -1);
}
/**
 * The real part.
 * @example
 * await fft.real(new Tensor([[1.5, 0.5], [2, 4]])).tolist() // => [1.5, 2]
 */
export function real(x: Tensor): Tensor {
  requireComplex("real", x);
  return x.select(-1, 0);
}
/**
 * The imaginary part.
 * @example
 * await fft.imag(new Tensor([[1.5, 0.5], [2, 4]])).tolist() // => [0.5, 4]
 */
export function imag(x: Tensor): Tensor {
  requireComplex("imag", x);
  return x.select(-1, 1);
}
/**
 * The complex conjugate.
 * @example
 * await fft.conj(new Tensor([[1.5, 0.5]])).tolist() // => [[1.5, -0.5]]
 */
export function conj(x: Tensor): Tensor {
  requireComplex("conj", x);
  return x.mul(new Tensor([1, -1], { dtype: x.dtype, device: x.device }));
}
/**
 * The magnitude. Its gradient at 0 is 0.
 * @example
 * await fft.abs(new Tensor([[3.0, 4.5]])).tolist() // => [5.4083]
 */
export function abs(x: Tensor): Tensor {
  requireComplex("abs", x);
  const square = x.square().sum(-1);
  const isZero = square.eq(0);
  return isZero.where(0, isZero.where(1, square).sqrt());
}
/**
 * The angle, from -π to π.
 * @example
 * await fft.angle(new Tensor([[0, 2.5]])).tolist() // => [1.5708]
 */
export function angle(x: Tensor): Tensor {
  return imag(x).atan2(real(x));
}
/**
 * The product of complex numbers.
 * @example
 * await fft.mul(new Tensor([[1.5, 1]]), new Tensor([[2, 0.5]])).tolist() // => [[2.5, 2.75]]
 */
export function mul(x: Tensor, y: Tensor): Tensor {
  requireComplex("mul", x);
  requireComplex("mul", y);
  const [a, b, c, d] = [real(x), imag(x), real(y), imag(y)];
  return stackAll([a.mul(c).sub(b.mul(d)), a.mul(d).add(b.mul(c))], -1);
}

// ---- frequencies ----

/**
 * The frequencies of the values of fft, for samples that are `d` apart.
 * @example
 * await fft.fftfreq(5, 0.5).tolist() // => [0, 0.4, 0.8, -0.8, -0.4]
 */
export function fftfreq(n: number, d = 1, options: TensorOptions = {}): Tensor {
  requireSpacing("fftfreq", d);
  lengthOf("fftfreq", n, 1);
  const half = Math.ceil(n / 2);
  return new Tensor(
    Float32Array.from({ length: n }, (_, i) => (i < half ? i : i - n) / (n * d)),
    options,
  );
}
/**
 * The frequencies of the values of rfft, for samples that are `d` apart.
 * @example
 * await fft.rfftfreq(4, 0.5).tolist() // => [0, 0.5, 1]
 */
export function rfftfreq(n: number, d = 1, options: TensorOptions = {}): Tensor {
  requireSpacing("rfftfreq", d);
  lengthOf("rfftfreq", n, 1);
  return new Tensor(
    Float32Array.from({ length: Math.floor(n / 2) + 1 }, (_, i) => i / (n * d)),
    options,
  );
}
/**
 * Moves frequency 0 to the middle of a dim, or of several; dims are those of the given Tensor.
 * @example
 * await fft.fftshift(fft.fftfreq(4), 0).tolist() // => [-0.5, -0.25, 0, 0.25]
 */
export function fftshift(x: Tensor, dim: number | readonly number[]): Tensor {
  return shifted("fftshift", x, dim, (n) => Math.floor(n / 2));
}
/**
 * Undoes fftshift.
 * @example
 * await fft.ifftshift(new Tensor([-0.5, -0.25, 0, 0.25]), 0).tolist() // => [0, 0.25, -0.5, -0.25]
 */
export function ifftshift(x: Tensor, dim: number | readonly number[]): Tensor {
  return shifted("ifftshift", x, dim, (n) => Math.ceil(n / 2));
}
function shifted(who: string, x: Tensor, dim: number | readonly number[], by: (n: number) => number): Tensor {
  if (!(x instanceof Tensor)) throw new ArgumentError(`${who}: got ${typeof x}, expected a Tensor`);
  const dims = (typeof dim === "number" ? [dim] : dim).map((d) => axis(who, d, x.ndim));
  return dims.reduce((y, at) => y.roll(by(y.shape[at] as number), at), x);
}
