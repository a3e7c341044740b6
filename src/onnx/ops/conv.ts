// Convolutions and pooling, of any number of spatial dims that gradloom's kernels have. Padding that differs
// on both sides, windows that start at the end and gaps between taps are all views of the padded input.

import { dtypes } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { TYPES } from "../elements.ts";
import type { TensorValue } from "../values.ts";
import { cast, dims as dimsIn, int64, sizeOf, sizes, spatialOf, typed, wideOf } from "./common.ts";
import { type Call, flag, int, ints, type OpTable, op, string } from "./op.ts";

interface Windows {
  readonly auto_pad: string;
  readonly kernel_shape: readonly number[] | undefined;
  readonly strides: readonly number[] | undefined;
  readonly pads: readonly number[] | undefined;
  readonly dilations: readonly number[] | undefined;
}
const WINDOWS = {
  auto_pad: string("NOTSET"),
  kernel_shape: ints(),
  strides: ints(),
  pads: ints(),
  dilations: ints(),
};

/** One spatial dim of a window that moves. */
interface Dim {
  readonly size: number;
  readonly kernel: number;
  readonly stride: number;
  readonly dilation: number;
  readonly before: number;
  readonly after: number;
  /** how many windows there are */
  readonly out: number;
}
const reach = (d: Dim): number => (d.kernel - 1) * d.dilation + 1;

/** What moves a window, and how to refuse one. */
interface Moving {
  readonly attr: Windows;
  fail(why: string): never;
}
function dimsOf(c: Moving, spatial: readonly number[], kernel: readonly number[], ceil = false): Dim[] {
  const { auto_pad, strides, pads, dilations } = c.attr;
  const n = spatial.length;
  for (const [name, list, length] of [
    ["strides", strides, n],
    ["pads", pads, 2 * n],
    ["dilations", dilations, n],
    ["kernel_shape", kernel, n],
  ] as const) {
    if (list !== undefined && list.length !== length)
      c.fail(`${name} has ${list.length} numbers, expected ${length}`);
  }
  return spatial.map((size, i) => {
    const [k, stride, dilation] = [kernel[i] as number, strides?.[i] ?? 1, dilations?.[i] ?? 1];
    if (k < 1 || stride < 1 || dilation < 1)
      c.fail(`kernel ${k}, stride ${stride}, dilation ${dilation}: expected 1 or more`);
    const span = (k - 1) * dilation + 1;
    const isSame = auto_pad === "SAME_UPPER" || auto_pad === "SAME_LOWER";
    if (!isSame && auto_pad !== "NOTSET" && auto_pad !== "VALID") c.fail(`auto_pad is "${auto_pad}"`);
    const total = isSame ? Math.max(0, (Math.ceil(size / stride) - 1) * stride + span - size) : 0;
    const small = Math.floor(total / 2);
    const explicit = auto_pad === "NOTSET" ? [pads?.[i] ?? 0, pads?.[i + n] ?? 0] : [0, 0];
    const [before, after] = !isSame
      ? explicit
      : auto_pad === "SAME_UPPER"
        ? [small, total - small]
        : [total - small, small];
    const steps = (size + (before as number) + (after as number) - span) / stride;
    let out = (ceil ? Math.ceil(steps) : Math.floor(steps)) + 1;
    // a window that starts in the padding behind the input has nothing to see
    if (ceil && (out - 1) * stride >= size + (before as number)) out--;
    if (out < 0) c.fail(`a window of ${span} does not fit into ${size} elements`);
    return { size, kernel: k, stride, dilation, before: before as number, after: after as number, out };
  });
}

// ---- convolution ----

const CONV = { ...WINDOWS, group: int(1) };
const METHODS = ["conv1d", "conv2d", "conv3d"] as const;
const TRANSPOSED = ["convTranspose1d", "convTranspose2d", "convTranspose3d"] as const;
/** For each count of spatial dims the method; 4 and more have none. */
function methodOf<T>(c: Call, methods: readonly T[], n: number): T {
  return methods[n - 1] ?? c.unsupported(`${n} spatial dims; there are 1 to 3`);
}

export function convolve(
  c: Call<Windows & { group: number }>,
  x: Tensor,
  w: Tensor,
  bias: Tensor | undefined,
): Tensor {
  const n = x.ndim - 2;
  const dims = dimsOf(c, spatialOf(x), c.attr.kernel_shape ?? sizes(w).slice(2));
  const isEven = dims.every((d) => d.before === d.after);
  const padded = isEven ? x : x.pad([[0, 0], [0, 0], ...dims.map((d) => [d.before, d.after] as const)]);
  const wide = wideOf(x.dtype);
  const options = {
    stride: dims.map((d) => d.stride),
    dilation: dims.map((d) => d.dilation),
    groups: c.attr.group,
    ...(isEven ? { padding: dims.map((d) => d.before) } : {}),
  };
  const y = cast(padded, wide)[methodOf(c, METHODS, n)](
    cast(w, wide),
    bias === undefined ? null : cast(bias, wide),
    options,
  );
  return cast(y, x.dtype);
}

interface Transposed extends Windows {
  readonly group: number;
  readonly output_padding: readonly number[] | undefined;
  readonly output_shape: readonly number[] | undefined;
}
function convTranspose(c: Call<Transposed>): Tensor {
  const [x, w] = [c.t(0), c.t(1)];
  const n = x.ndim - 2;
  const { auto_pad, strides, pads, dilations, group, output_padding, output_shape } = c.attr;
  const wide = wideOf(x.dtype);
  const stride = range(n).map((i) => strides?.[i] ?? 1);
  const dilation = range(n).map((i) => dilations?.[i] ?? 1);
  const full = cast(x, wide)[methodOf(c, TRANSPOSED, n)](cast(w, wide), null, {
    stride,
    dilation,
    groups: group,
  });
  const amounts = range(n).map((i) => {
    const extra = output_padding?.[i] ?? 0;
    const whole = sizeOf(full, i + 2) + extra;
    const isSame = auto_pad === "SAME_UPPER" || auto_pad === "SAME_LOWER";
    const wanted =
      output_shape?.[i + output_shape.length - n] ??
      (isSame ? sizeOf(x, i + 2) * (stride[i] as number) : undefined);
    if (wanted === undefined) {
      const explicit = auto_pad === "NOTSET" ? [pads?.[i] ?? 0, pads?.[i + n] ?? 0] : [0, 0];
      return [-(explicit[0] as number), extra - (explicit[1] as number)] as const;
    }
    // a kernel that is shorter than the stride leaves nothing to cut off
    const total = isSame && output_shape === undefined ? Math.max(0, whole - wanted) : whole - wanted;
    const small = Math.floor(total / 2);
    const before = auto_pad === "SAME_UPPER" ? small : total - small;
    return [-before, extra - (total - before)] as const;
  });
  const cropped = full.pad([[0, 0], [0, 0], ...amounts]);
  const bias = c.maybe(2);
  return cast(
    bias === undefined ? cropped : cropped.add(cast(bias, wide).reshape([1, -1, ...stride.map(() => 1)])),
    x.dtype,
  );
}

// ---- pooling ----

export const POOL = { ...WINDOWS, ceil_mode: flag(false) };
export interface PoolAttributes extends Windows {
  readonly ceil_mode: boolean;
}

/** The taps of each window behind the windows, in one dim; what lies outside is `fill`. */
export function tapsOf(x: Tensor, dims: readonly Dim[], fill: number): Tensor {
  const lead = x.ndim - dims.length;
  const amounts = dims.map((d) => [d.before, (d.out - 1) * d.stride + reach(d) - d.size - d.before] as const);
  let y = x.pad([...new Array<readonly [number, number]>(lead).fill([0, 0]), ...amounts], "constant", fill);
  dims.forEach((d, i) => {
    const windows = y.unfold(lead + i, reach(d), d.stride);
    y =
      d.dilation === 1
        ? windows
        : windows.stride(range(windows.ndim).map((k) => (k === windows.ndim - 1 ? d.dilation : 1)));
  });
  return y.reshape([...dimsIn(y).slice(0, lead + dims.length), prod(dims.map((d) => d.kernel))]);
}

function poolDims(c: Call<PoolAttributes>, x: Tensor): Dim[] {
  return dimsOf(
    c,
    spatialOf(x),
    c.attr.kernel_shape ?? c.fail("attribute kernel_shape is missing"),
    c.attr.ceil_mode,
  );
}

export function maxPool(
  c: Call<PoolAttributes & { storage_order: number }>,
  x: Tensor,
): readonly [Tensor, TensorValue?] {
  const dims = poolDims(c, x);
  const fill = x.dtype.isFloat ? -Infinity : x.dtype.kind === "int" ? -(2 ** (x.dtype.bits - 1)) : 0;
  const taps = tapsOf(x, dims, fill);
  if (!c.wants(1)) return [taps.max(-1)];
  const spatial = spatialOf(x);
  const places = Tensor.arange(prod(spatial), { dtype: dtypes.int32, ...c.on });
  const isColumns = c.attr.storage_order === 1;
  const grid = isColumns
    ? places.reshape([...spatial].reverse()).permute(range(spatial.length).reverse())
    : places.reshape(spatial);
  const best = taps.argmax(-1, true);
  const shape = sizes(best);
  const from = tapsOf(grid.reshape([1, 1, ...spatial]), dims, 0).expand([
    ...shape.slice(0, -1),
    sizeOf(taps, -1),
  ]);
  const at = from.gather(-1, cast(best, dtypes.int32)).reshape(shape.slice(0, -1));
  const images = Tensor.arange(sizeOf(x, 0) * sizeOf(x, 1), { dtype: dtypes.int32, ...c.on }).mul(
    prod(spatial),
  );
  const index = at.add(images.reshape([sizeOf(x, 0), sizeOf(x, 1), ...spatial.map(() => 1)]));
  return [taps.max(-1), typed(int64(index), TYPES.int64)];
}

export function averagePool(c: Call<PoolAttributes & { count_include_pad: boolean }>, x: Tensor): Tensor {
  const dims = poolDims(c, x);
  const wide = cast(x, wideOf(x.dtype));
  const ones = Tensor.ones([1, 1, ...dims.map((d) => d.size)], { dtype: wide.dtype, ...c.on });
  // padding counts, but not what a window has beyond it
  const counted = c.attr.count_include_pad
    ? tapsOf(
        ones.pad([[0, 0], [0, 0], ...dims.map((d) => [d.before, d.after] as const)], "constant", 1),
        dims.map((d) => ({ ...d, size: d.size + d.before + d.after, before: 0, after: 0 })),
        0,
      )
    : tapsOf(ones, dims, 0);
  return cast(tapsOf(wide, dims, 0).sum(-1).div(counted.sum(-1)), x.dtype);
}
const lpNorm = (x: Tensor, p: number): Tensor =>
  cast(
    cast(x, wideOf(x.dtype))
      .abs()
      .pow(p)
      .sum(-1)
      .pow(1 / p),
    x.dtype,
  );

/** All of an image as one window. */
const globally =
  (f: (taps: Tensor) => Tensor) =>
  (c: Call): Tensor => {
    const x = c.t(0);
    const lead = dimsIn(x).slice(0, 2);
    const rest = spatialOf(x);
    return f(x.reshape([...lead, prod(rest)])).reshape([...lead, ...rest.map(() => 1)]);
  };

async function maxUnpool(
  c: Call<{
    kernel_shape: readonly number[];
    pads: readonly number[] | undefined;
    strides: readonly number[] | undefined;
  }>,
): Promise<Tensor> {
  const [x, at] = [c.t(0), c.t(1)];
  const { kernel_shape, pads, strides } = c.attr;
  const n = x.ndim - 2;
  const inferred = range(n).map((i) => {
    const stride = strides?.[i] ?? 1;
    return (
      (sizeOf(x, i + 2) - 1) * stride + (kernel_shape[i] as number) - (pads?.[i] ?? 0) - (pads?.[i + n] ?? 0)
    );
  });
  const whole = [...sizes(x).slice(0, 2), ...inferred];
  const wanted = (await c.maybeInts(2)) ?? whole;
  // indices count in the inferred shape, whose rows a larger output has longer
  const flat = Tensor.zeros([prod(whole)], { dtype: x.dtype, ...c.on });
  const placed = flat.scatter(0, cast(at, dtypes.int32).reshape([-1]), x.reshape([-1]));
  if (prod(wanted) === prod(whole)) return placed.reshape(wanted);
  const larger = Tensor.zeros([prod(wanted)], { dtype: x.dtype, ...c.on });
  return larger.scatter(0, cast(at, dtypes.int32).reshape([-1]), x.reshape([-1])).reshape(wanted);
}

/** Columns, each a block, added up where the blocks were in the image. */
async function col2im(
  c: Call<{
    dilations?: readonly number[] | undefined;
    pads?: readonly number[] | undefined;
    strides?: readonly number[] | undefined;
  }>,
): Promise<Tensor> {
  const x = c.t(0);
  const image = await c.ints(1);
  const block = await c.ints(2);
  const n = image.length;
  const dims = dimsOf(attrs(c), image, block);
  const channels = sizeOf(x, 1) / prod(block);
  // place of each element of the columns in the padded image
  const padded = dims.map((d) => d.size + d.before + d.after);
  const tap = (i: number): Tensor => {
    const d = dims[i] as Dim;
    const k = Tensor.arange(d.kernel, { dtype: dtypes.int32, ...c.on }).mul(d.dilation);
    const o = Tensor.arange(d.out, { dtype: dtypes.int32, ...c.on }).mul(d.stride);
    const at = (t: Tensor, place: number): Tensor =>
      t.reshape(range(2 * n).map((j) => (j === place ? -1 : 1)));
    return at(k, i).add(at(o, n + i));
  };
  const shape = [...dims.map((d) => d.kernel), ...dims.map((d) => d.out)];
  const place = range(n).reduce<Tensor>(
    (sum, i) => sum.mul(padded[i] as number).add(tap(i)),
    Tensor.zeros(shape, { dtype: dtypes.int32, ...c.on }),
  );
  const rows = sizeOf(x, 0) * channels;
  const flat = place.reshape([1, -1]).expand([rows, prod(shape)]);
  const sums = Tensor.zeros([rows, prod(padded)], { dtype: x.dtype, ...c.on }).scatterAdd(
    1,
    flat,
    x.reshape([rows, -1]),
  );
  const whole = sums.reshape([sizeOf(x, 0), channels, ...padded]);
  return whole.shrink([null, null, ...dims.map((d) => [d.before, d.before + d.size] as const)]);
}
/** A call that says what windows `dimsOf` asks for. */
const attrs = (c: Call<Partial<Windows>>): Moving => ({
  attr: {
    auto_pad: "NOTSET",
    kernel_shape: undefined,
    strides: undefined,
    pads: undefined,
    dilations: undefined,
    ...c.attr,
  },
  fail: (why) => c.fail(why),
});

export const conv: OpTable = {
  Conv: op(CONV, (c) => convolve(c, c.t(0), c.t(1), c.maybe(2))),
  ConvTranspose: op({ ...CONV, output_padding: ints(), output_shape: ints() }, convTranspose),
  MaxPool: op({ ...POOL, storage_order: int(0) }, (c) => maxPool(c, c.t(0))),
  AveragePool: op({ ...POOL, count_include_pad: flag(false) }, (c) => averagePool(c, c.t(0))),
  LpPool: op({ ...POOL, p: int(2) }, (c) => lpNorm(tapsOf(c.t(0), poolDims(c, c.t(0)), 0), c.attr.p)),
  GlobalAveragePool: op(
    {},
    globally((x) => x.mean(-1)),
  ),
  GlobalMaxPool: op(
    {},
    globally((x) => x.max(-1)),
  ),
  GlobalLpPool: op({ p: int(2) }, (c) => globally((x) => lpNorm(x, c.attr.p))(c)),
  MaxUnpool: op({ kernel_shape: ints.required, pads: ints(), strides: ints() }, maxUnpool),
  Col2Im: op({ dilations: ints(), pads: ints(), strides: ints() }, col2im),
};
export { CONV, dimsOf, type Windows };
