// Resize and Upsample. Each axis is a list of taps: which elements make one of the output, and with what
// weights. The host works them out from the sizes; a tap of all places of an axis is one selection.

import { dtypes } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { bool, cast, hostTensor, sizes, wideOf } from "./common.ts";
import { type Call, flag, float, floats, ints, type OpTable, op, string, versions } from "./op.ts";

interface Resizing {
  readonly mode: string;
  readonly coordinate_transformation_mode: string;
  readonly nearest_mode: string;
  readonly cubic_coeff_a: number;
  readonly exclude_outside: boolean;
  readonly extrapolation_value: number;
  readonly antialias: boolean;
}
/** An axis that changes. */
interface ResizedAxis {
  readonly dim: number;
  readonly from: number;
  readonly to: number;
  readonly scale: number;
  /** the part of the input that is taken, where the mode crops */
  readonly roi: readonly [number, number];
}

/** Where an element of the output is in the input. */
const COORDINATES: Readonly<Record<string, (x: number, a: ResizedAxis) => number>> = {
  half_pixel: (x, { scale }) => (x + 0.5) / scale - 0.5,
  half_pixel_symmetric: (x, { scale, from, to }) => {
    const adjustment = to / (scale * from);
    return (from / 2) * (1 - adjustment) + (x + 0.5) / scale - 0.5;
  },
  pytorch_half_pixel: (x, { scale, to }) => (to > 1 ? (x + 0.5) / scale - 0.5 : 0),
  align_corners: (x, { from, to }) => (to === 1 ? 0 : (x * (from - 1)) / (to - 1)),
  asymmetric: (x, { scale }) => x / scale,
  tf_half_pixel_for_nn: (x, { scale }) => (x + 0.5) / scale,
  tf_crop_and_resize: (x, { from, to, roi: [start, end] }) =>
    to > 1
      ? start * (from - 1) + (x * (end - start) * (from - 1)) / (to - 1)
      : 0.5 * (start + end) * (from - 1),
};
const NEAREST: Readonly<Record<string, (x: number) => number>> = {
  round_prefer_floor: (x) => Math.ceil(x - 0.5),
  round_prefer_ceil: (x) => Math.floor(x + 0.5),
  floor: Math.floor,
  ceil: Math.ceil,
};
/** The weight of an element at a distance. */
const linear = (d: number): number => Math.max(0, 1 - Math.abs(d));
const cubic = (d: number, a: number): number => {
  const x = Math.abs(d);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
};

/** `index[k][i]` and `weight[k][i]`: tap k of element i. */
interface ResizeTaps {
  readonly index: readonly (readonly number[])[];
  readonly weight: readonly (readonly number[])[];
}
function tapsOf(c: Call<Resizing>, axis: ResizedAxis): ResizeTaps {
  const { mode, nearest_mode, cubic_coeff_a, exclude_outside, antialias, coordinate_transformation_mode } =
    c.attr;
  const at = COORDINATES[coordinate_transformation_mode] as (x: number, a: ResizedAxis) => number;
  const places = range(axis.to).map((i) => at(i, axis));
  const inside = (i: number): number => Math.min(Math.max(i, 0), axis.from - 1);
  if (mode === "nearest") {
    const nearest = NEAREST[nearest_mode] ?? c.fail(`nearest_mode is "${nearest_mode}"`);
    return { index: [places.map((x) => inside(nearest(x)))], weight: [] };
  }
  const reach = mode === "cubic" ? 2 : 1;
  // a smaller picture looks at as many more elements
  const shrink = antialias ? Math.min(axis.scale, 1) : 1;
  const first = Math.floor(-reach / shrink) + 1;
  const taps = range(2 - 2 * first).map((k) => k + first);
  const rows = places.map((x) => {
    const base = Math.floor(x);
    const weights = taps.map((k) => {
      const d = (k - (x - base)) * shrink;
      const w = mode === "cubic" ? cubic(d, cubic_coeff_a) : linear(d);
      const i = base + k;
      return exclude_outside && (i < 0 || i >= axis.from) ? 0 : w;
    });
    const sum = weights.reduce((a, b) => a + b, 0);
    return {
      index: taps.map((k) => inside(base + k)),
      weights: antialias || exclude_outside ? weights.map((w) => w / sum) : weights,
    };
  });
  return {
    index: taps.map((_, k) => rows.map((r) => r.index[k] as number)),
    weight: taps.map((_, k) => rows.map((r) => r.weights[k] as number)),
  };
}

function alongAxis(c: Call<Resizing>, x: Tensor, axis: ResizedAxis): Tensor {
  const { index, weight } = tapsOf(c, axis);
  const picked = index.map((list) =>
    x.indexSelect(axis.dim, hostTensor(c, list, [list.length], dtypes.int32)),
  );
  if (weight.length === 0) return picked[0] as Tensor;
  const shape = sizes(x).map((_, d) => (d === axis.dim ? axis.to : 1));
  return picked
    .map((p, k) => p.mul(hostTensor(c, weight[k] as number[], shape, x.dtype)))
    .reduce((a, b) => a.add(b));
}

/** Outside of the input there is another value, in the mode that crops. */
function extrapolated(c: Call<Resizing>, y: Tensor, axes: readonly ResizedAxis[]): Tensor {
  const at = COORDINATES.tf_crop_and_resize as (x: number, a: ResizedAxis) => number;
  return axes.reduce((z, axis) => {
    const places = range(axis.to).map((i) => at(i, axis));
    const outside = places.map((x) => (x < 0 || x > axis.from - 1 ? 1 : 0));
    if (!outside.includes(1)) return z;
    const shape = sizes(y).map((_, d) => (d === axis.dim ? axis.to : 1));
    const mask = bool(hostTensor(c, outside, shape, dtypes.bool));
    return mask.where(z.fullLike(c.attr.extrapolation_value), z);
  }, y);
}

function resized(c: Call<Resizing>, axes: readonly ResizedAxis[]): Tensor {
  const { mode, coordinate_transformation_mode: transformation } = c.attr;
  if (!["nearest", "linear", "cubic"].includes(mode))
    c.fail(`mode is "${mode}", expected nearest, linear or cubic`);
  if (!Object.hasOwn(COORDINATES, transformation))
    c.fail(`coordinate_transformation_mode is "${transformation}"`);
  const given = c.t(0);
  const changing = axes.filter(
    (a) => a.from !== a.to || a.scale !== 1 || transformation === "tf_crop_and_resize",
  );
  if (prod(axes.map((a) => a.to)) === 0) {
    const shape = sizes(given);
    for (const a of axes) shape[a.dim] = a.to;
    return Tensor.zeros(shape, { dtype: given.dtype, ...c.on });
  }
  const x =
    mode === "nearest"
      ? given
      : given.dtype.isFloat
        ? cast(given, wideOf(given.dtype))
        : cast(given, dtypes.float32);
  const y = changing.reduce((z, axis) => alongAxis(c, z, axis), x);
  const whole = transformation === "tf_crop_and_resize" ? extrapolated(c, y, changing) : y;
  return cast(given.dtype.isInt && mode !== "nearest" ? whole.round() : whole, given.dtype);
}

/** Sizes as they are given, or as far as one scale for all reaches. */
function fittedSizes(
  c: Call,
  sizesGiven: readonly number[],
  from: readonly number[],
  policy: string,
): readonly [size: number, scale: number][] {
  const scales = sizesGiven.map((s, i) => s / (from[i] as number));
  if (policy === "stretch") return sizesGiven.map((s, i) => [s, scales[i] as number]);
  if (policy !== "not_larger" && policy !== "not_smaller") c.fail(`keep_aspect_ratio_policy is "${policy}"`);
  const scale = policy === "not_larger" ? Math.min(...scales) : Math.max(...scales);
  return from.map((n) => [Math.floor(n * scale + 0.5), scale]);
}

const RESIZE = {
  mode: string("nearest"),
  coordinate_transformation_mode: string("half_pixel"),
  nearest_mode: string("round_prefer_floor"),
  cubic_coeff_a: float(-0.75),
  exclude_outside: flag(false),
  extrapolation_value: float(0),
  antialias: flag(false),
  axes: ints(),
  keep_aspect_ratio_policy: string("stretch"),
};
type ResizeCall = Call<
  Resizing & { readonly axes: readonly number[] | undefined; readonly keep_aspect_ratio_policy: string }
>;
async function resize(c: ResizeCall): Promise<Tensor> {
  const shape = c.shape(0);
  const dims = c.axes(c.attr.axes ?? range(shape.length), shape.length);
  const isGiven = (i: number): boolean => c.has(i) && c.value(i).size > 0;
  const isCrop = c.attr.coordinate_transformation_mode === "tf_crop_and_resize";
  const rois = isCrop && isGiven(1) ? await c.numbers(1) : [];
  const roi = dims.map((_, i) => [rois[i] ?? 0, rois[i + dims.length] ?? 1] as const);
  const from = dims.map((d) => shape[d] as number);
  let targets: readonly (readonly [number, number])[];
  if (isGiven(3)) targets = fittedSizes(c, await c.ints(3), from, c.attr.keep_aspect_ratio_policy);
  else if (isGiven(2)) {
    const scales = await c.numbers(2);
    targets = from.map((n, i) => {
      const [start, end] = isCrop ? (roi[i] as readonly [number, number]) : [0, 1];
      return [Math.floor(n * (end - start) * (scales[i] as number)), scales[i] as number];
    });
  } else return c.fail("neither scales nor sizes are given");
  if (targets.length !== dims.length) c.fail(`${targets.length} sizes or scales for ${dims.length} dims`);
  const axes = dims.map((dim, i): ResizedAxis => {
    const [to, scale] = targets[i] as readonly [number, number];
    return { dim, from: from[i] as number, to, scale, roi: roi[i] as readonly [number, number] };
  });
  return resized(c, axes);
}

/** Before version 11 elements were repeated or mixed from the first one on. */
const SIMPLE = {
  coordinate_transformation_mode: "asymmetric",
  nearest_mode: "floor",
  cubic_coeff_a: -0.75,
  exclude_outside: false,
  extrapolation_value: 0,
  antialias: false,
};
function simple(c: Call<{ mode: string }>, scales: readonly number[]): Tensor {
  const shape = c.shape(0);
  if (scales.length !== shape.length) c.fail(`${scales.length} scales for ${shape.length} dims`);
  const axes = shape.map((from, dim): ResizedAxis => {
    const scale = scales[dim] as number;
    return { dim, from, to: Math.floor(from * scale), scale, roi: [0, 1] };
  });
  const mode = c.attr.mode === "bilinear" ? "linear" : c.attr.mode;
  return resized(c.withAttributes({ ...SIMPLE, mode }), axes);
}

export const resizing: OpTable = {
  Resize: versions(
    op({ mode: string("nearest") }, async (c) => simple(c, await c.numbers(1)), 10),
    op(RESIZE, resize, 11),
  ),
  Upsample: versions(
    op({ mode: string("nearest"), width_scale: float(1), height_scale: float(1) }, (c) =>
      simple(c, [1, 1, c.attr.height_scale, c.attr.width_scale]),
    ),
    op({ mode: string("nearest"), scales: floats.required }, (c) => simple(c, c.attr.scales), 7),
    op({ mode: string("nearest") }, async (c) => simple(c, await c.numbers(1)), 9),
  ),
};
