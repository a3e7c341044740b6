// Ops that look between the elements of a picture: GridSample, RoiAlign, DeformConv, and the grids that say
// where. A place between elements is a weighted sum of its neighbours, in any number of dims.

import { dtypes } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { cast, hostTensor, sizeOf, sizes, wideOf } from "./common.ts";
import { type Call, flag, float, int, ints, type OpTable, op, string } from "./op.ts";

/** What lies outside: nothing, the edge, or the mirror image. */
type Border = "zeros" | "border" | "reflection";
interface Sampling {
  readonly mode: "nearest" | "linear" | "cubic";
  readonly border: Border;
  /** mirrors stand at the centres of the outer elements, and not at their edges */
  readonly alignCorners: boolean;
}
/** A neighbour in one dim: its index, which may lie outside, and its weight. */
type Neighbour = readonly [index: Tensor, weight: Tensor | undefined];

const A = -0.75;
function neighbours(x: Tensor, mode: Sampling["mode"]): Neighbour[] {
  if (mode === "nearest") return [[x.round(), undefined]];
  const low = x.floor();
  const t = x.sub(low);
  if (mode === "linear")
    return [
      [low, t.neg().add(1)],
      [low.add(1), t],
    ];
  const near = (d: Tensor): Tensor =>
    d
      .mul(A + 2)
      .sub(A + 3)
      .mul(d)
      .mul(d)
      .add(1);
  const far = (d: Tensor): Tensor =>
    d
      .mul(A)
      .sub(5 * A)
      .mul(d)
      .add(8 * A)
      .mul(d)
      .sub(4 * A);
  const u = t.neg().add(1);
  return [
    [low.sub(1), far(t.add(1))],
    [low, near(t)],
    [low.add(1), near(u)],
    [low.add(2), far(u.add(1))],
  ];
}

/** Back and forth between two mirrors. */
function reflected(x: Tensor, low: number, high: number): Tensor {
  const span = high - low;
  if (span <= 0) return x.zerosLike();
  const at = x
    .sub(low)
    .abs()
    .remainder(2 * span);
  return at
    .gt(span)
    .where(at.neg().add(2 * span), at)
    .add(low);
}

/**
 * Values of `x` [n, channels, ...sizes] at places [n, points] of each spatial dim: [n, channels, points].
 */
function sample(x: Tensor, places: readonly Tensor[], { mode, border, alignCorners }: Sampling): Tensor {
  const spatial = sizes(x).slice(2);
  const [n, channels] = sizes(x) as [number, number];
  const points = sizeOf(places[0] as Tensor, 1);
  const flat = x.reshape([n, channels, prod(spatial)]);
  const lists = places.map((p, d) => {
    const size = spatial[d] as number;
    const [low, high] = alignCorners ? [0, size - 1] : [-0.5, size - 0.5];
    return neighbours(p, mode).map(([index, weight]): Neighbour & readonly [Tensor, Tensor | undefined] => {
      const isInside = index.ge(0).bitwiseAnd(index.le(size - 1));
      const kept = border === "reflection" ? reflected(index, low, high).round() : index;
      const at = cast(kept.maximum(0).minimum(size - 1), dtypes.int32);
      const own = weight ?? p.onesLike();
      return [at, border === "zeros" ? isInside.where(own, own.zerosLike()) : weight];
    });
  });
  // every choice of a neighbour in each dim
  let choices: Neighbour[] = [
    [Tensor.zeros([n, points], { dtype: dtypes.int32, device: x.device }), undefined],
  ];
  lists.forEach((list, d) => {
    choices = choices.flatMap(([at, weight]) =>
      list.map(([index, w]): Neighbour => {
        const next = at.mul(spatial[d] as number).add(index);
        return [next, weight === undefined ? w : w === undefined ? weight : weight.mul(w)];
      }),
    );
  });
  const terms = choices.map(([at, weight]) => {
    const value = flat.gather(2, at.unsqueeze(1).expand([n, channels, points]));
    return weight === undefined ? value : value.mul(weight.unsqueeze(1));
  });
  return terms.reduce((a, b) => a.add(b));
}

const MODES: Readonly<Record<string, Sampling["mode"]>> = {
  nearest: "nearest",
  linear: "linear",
  bilinear: "linear",
  cubic: "cubic",
  bicubic: "cubic",
};
const isBorder = (x: string): x is Border => ["zeros", "border", "reflection"].includes(x);

function gridSample(c: Call<{ mode: string; padding_mode: string; align_corners: boolean }>): Tensor {
  const { mode: name, padding_mode: border, align_corners: alignCorners } = c.attr;
  const mode = Object.hasOwn(MODES, name) ? MODES[name] : undefined;
  if (mode === undefined || !isBorder(border)) return c.fail(`mode is "${name}", padding_mode "${border}"`);
  const given = c.t(0);
  const wide = wideOf(given.dtype);
  const [x, grid] = [cast(given, wide), cast(c.t(1), wide)];
  const spatial = sizes(x).slice(2);
  const n = spatial.length;
  const out = sizes(grid).slice(1, -1);
  const places = spatial.map((size, d) => {
    // the last coordinate of the grid is that of the first dim
    const g = grid.select(grid.ndim - 1, n - 1 - d).reshape([sizeOf(grid, 0), prod(out)]);
    const at = alignCorners ? g.add(1).mul((size - 1) / 2) : g.add(1).mul(size).sub(1).div(2);
    if (border === "border" && mode !== "cubic") return at.maximum(0).minimum(size - 1);
    if (border !== "reflection" || mode === "cubic") return at;
    return alignCorners ? reflected(at, 0, size - 1) : reflected(at, -0.5, size - 0.5);
  });
  const y = sample(x, places, { mode, border, alignCorners });
  return cast(y.reshape([...sizes(x).slice(0, 2), ...out]), given.dtype);
}

/** Places from -1 to 1 of each dim, moved by a matrix. */
async function affineGrid(c: Call<{ align_corners: boolean }>): Promise<Tensor> {
  const given = c.t(0);
  const theta = cast(given, wideOf(given.dtype));
  const spatial = (await c.ints(1)).slice(2);
  const n = spatial.length;
  const options = { dtype: theta.dtype, device: theta.device };
  const axes = spatial.map((size, d) => {
    const step = c.attr.align_corners ? (size > 1 ? 2 / (size - 1) : 0) : 2 / size;
    const start = c.attr.align_corners ? -1 : step / 2 - 1;
    const line = Tensor.arange(size, options).mul(step).add(start);
    return line.reshape(range(n).map((i) => (i === d ? size : 1))).expand(spatial);
  });
  const places = Tensor.stack([...axes.reverse(), Tensor.ones(spatial, options)], n).reshape([
    1,
    prod(spatial),
    n + 1,
  ]);
  const moved = places.matmul(theta.transpose(1, 2));
  return cast(moved.reshape([sizeOf(theta, 0), ...spatial, n]), given.dtype);
}

// ---- regions of interest ----

interface Roi {
  readonly mode: string;
  readonly output_height: number;
  readonly output_width: number;
  readonly sampling_ratio: number;
  readonly spatial_scale: number;
  readonly coordinate_transformation_mode: string;
}
/** Places of one dim of a region: as many in each cell, with the neighbours below and above. */
interface RoiLine {
  readonly low: readonly number[];
  readonly high: readonly number[];
  readonly weight: readonly number[];
  readonly isInside: readonly boolean[];
}
function lineOf(start: number, size: number, cells: number, samples: number, limit: number): RoiLine {
  const cell = size / cells;
  const places = range(cells * samples).map(
    (i) => start + Math.floor(i / samples) * cell + (((i % samples) + 0.5) * cell) / samples,
  );
  const kept = places.map((p) => Math.max(p, 0));
  const low = kept.map((p) => Math.min(Math.floor(p), limit - 1));
  return {
    low,
    high: low.map((l) => Math.min(l + 1, limit - 1)),
    weight: kept.map((p, i) => (Math.floor(p) >= limit - 1 ? 0 : p - (low[i] as number))),
    isInside: places.map((p) => p >= -1 && p <= limit),
  };
}
async function roiAlign(c: Call<Roi>, isHalf: boolean): Promise<Tensor> {
  const { mode, output_height: oh, output_width: ow, sampling_ratio, spatial_scale } = c.attr;
  const given = c.t(0);
  const x = cast(given, wideOf(given.dtype));
  const [, channels, h, w] = sizes(x) as [number, number, number, number];
  const rois = await c.numbers(1);
  const batches = await c.ints(2);
  if (batches.length === 0) return Tensor.zeros([0, channels, oh, ow], { dtype: given.dtype, ...c.on });
  const shift = isHalf ? 0.5 : 0;
  const regions = batches.map((b, i) => {
    const [x1, y1, x2, y2] = rois.slice(4 * i, 4 * i + 4).map((r) => r * spatial_scale - shift) as [
      number,
      number,
      number,
      number,
    ];
    const [rw, rh] = isHalf ? [x2 - x1, y2 - y1] : [Math.max(x2 - x1, 1), Math.max(y2 - y1, 1)];
    const samples = (size: number, cells: number): number =>
      Math.max(1, sampling_ratio > 0 ? sampling_ratio : Math.ceil(size / cells));
    const [sh, sw] = [samples(rh, oh), samples(rw, ow)];
    const [rows, columns] = [lineOf(y1, rh, oh, sh, h), lineOf(x1, rw, ow, sw, w)];
    const terms = cornersOf(c, x.select(0, b), rows, columns);
    const cells = (t: Tensor): Tensor =>
      t
        .reshape([channels, oh, sh, ow, sw])
        .permute(0, 1, 3, 2, 4)
        .reshape([channels, oh, ow, sh * sw]);
    if (mode === "max") return cells(terms.reduce((a, t) => a.maximum(t))).max(-1);
    return cells(terms.reduce((a, t) => a.add(t))).mean(-1);
  });
  return cast(Tensor.stack(regions, 0), given.dtype);
}
/** The four neighbours of each place of a grid, weighted: [channels, rows, columns] each. */
function cornersOf(c: Call, image: Tensor, rows: RoiLine, columns: RoiLine): Tensor[] {
  const pick = (isLow: boolean, l: RoiLine): readonly [number[], number[]] => [
    [...(isLow ? l.low : l.high)],
    l.weight.map((t, i) => (l.isInside[i] ? (isLow ? 1 - t : t) : 0)),
  ];
  return [true, false].flatMap((isTop) =>
    [true, false].map((isLeft) => {
      const [[y, wy], [x, wx]] = [pick(isTop, rows), pick(isLeft, columns)];
      const at = (list: number[]): Tensor => hostTensor(c, list, [list.length], dtypes.int32);
      const value = image.indexSelect(1, at(y)).indexSelect(2, at(x));
      const weights = hostTensor(c, wy, [1, wy.length, 1], image.dtype).mul(
        hostTensor(c, wx, [1, 1, wx.length], image.dtype),
      );
      return value.mul(weights);
    }),
  );
}
const ROI = {
  mode: string("avg"),
  output_height: int(1),
  output_width: int(1),
  sampling_ratio: int(0),
  spatial_scale: float(1),
  coordinate_transformation_mode: string("half_pixel"),
};

/** The largest element of each cell of a region, whose edges are rounded. */
async function maxRoiPool(
  c: Call<{ pooled_shape: readonly number[]; spatial_scale: number }>,
): Promise<Tensor> {
  const x = c.t(0);
  const [, channels, h, w] = sizes(x) as [number, number, number, number];
  const [ph, pw] = c.attr.pooled_shape as [number, number];
  const rois = await c.numbers(1);
  const regions = range(rois.length / 5).map((i) => {
    const [b, ...edges] = rois.slice(5 * i, 5 * i + 5) as [number, number, number, number, number];
    const [x1, y1, x2, y2] = edges.map((e) => Math.round(e * c.attr.spatial_scale)) as [
      number,
      number,
      number,
      number,
    ];
    const bounds = (
      k: number,
      start: number,
      end: number,
      cells: number,
      limit: number,
    ): readonly [number, number] => {
      const cell = Math.max(end - start + 1, 1) / cells;
      const clamp = (p: number): number => Math.min(Math.max(p + start, 0), limit);
      return [clamp(Math.floor(k * cell)), clamp(Math.ceil((k + 1) * cell))];
    };
    const cells = range(ph * pw).map((k) => {
      const [top, bottom] = bounds(Math.floor(k / pw), y1, y2, ph, h);
      const [left, right] = bounds(k % pw, x1, x2, pw, w);
      if (bottom <= top || right <= left) return Tensor.zeros([channels], { dtype: x.dtype, ...c.on });
      return x
        .select(0, b)
        .shrink([null, [top, bottom], [left, right]])
        .max([1, 2]);
    });
    return Tensor.stack(cells, 1).reshape([channels, ph, pw]);
  });
  return regions.length === 0
    ? Tensor.zeros([0, channels, ph, pw], { dtype: x.dtype, ...c.on })
    : Tensor.stack(regions, 0);
}

// ---- convolution whose taps move ----

interface Deform {
  readonly dilations: readonly number[] | undefined;
  readonly group: number;
  readonly kernel_shape: readonly number[] | undefined;
  readonly offset_group: number;
  readonly pads: readonly number[] | undefined;
  readonly strides: readonly number[] | undefined;
}
function deformConv(c: Call<Deform>): Tensor {
  const given = c.t(0);
  const wide = (t: Tensor): Tensor => cast(t, wideOf(given.dtype));
  const [x, w, offset] = [wide(given), wide(c.t(1)), wide(c.t(2))];
  const { group, offset_group: og, pads, strides, dilations } = c.attr;
  const d = x.ndim - 2;
  const kernel = sizes(w).slice(2);
  const [batch, channels] = sizes(x) as [number, number];
  const out = sizes(offset).slice(2);
  const [taps, points] = [prod(kernel), prod(out)];
  // [batch * groups, taps, which coordinate, points]
  const moves = offset.reshape([batch * og, taps, d, points]);
  const places = range(d).map((i) => {
    const inner = prod(kernel.slice(i + 1));
    const tap = range(taps).map(
      (t) => (Math.floor(t / inner) % (kernel[i] as number)) * (dilations?.[i] ?? 1) - (pads?.[i] ?? 0),
    );
    const innerOut = prod(out.slice(i + 1));
    const base = range(points).map(
      (p) => (Math.floor(p / innerOut) % (out[i] as number)) * (strides?.[i] ?? 1),
    );
    const grid = hostTensor(c, tap, [1, taps, 1], x.dtype).add(hostTensor(c, base, [1, 1, points], x.dtype));
    return moves
      .select(2, i)
      .add(grid)
      .reshape([batch * og, taps * points]);
  });
  const parts = x.reshape([batch * og, channels / og, ...sizes(x).slice(2)]);
  const values = sample(parts, places, { mode: "linear", border: "zeros", alignCorners: true });
  const mask = c.maybe(4);
  const shape = [batch * og, channels / og, taps, points];
  const columns = values.reshape(shape);
  const weighted =
    mask === undefined ? columns : columns.mul(wide(mask).reshape([batch * og, 1, taps, points]));
  const filters = sizeOf(w, 0);
  const rows = w.reshape([1, group, filters / group, (channels / group) * taps]);
  const y = rows.matmul(weighted.reshape([batch, group, (channels / group) * taps, points]));
  const whole = y.reshape([batch, filters, ...out]);
  const bias = c.maybe(3);
  return cast(
    bias === undefined ? whole : whole.add(wide(bias).reshape([1, -1, ...out.map(() => 1)])),
    given.dtype,
  );
}

export const sampling: OpTable = {
  GridSample: op(
    { mode: string("linear"), padding_mode: string("zeros"), align_corners: flag(false) },
    gridSample,
  ),
  AffineGrid: op({ align_corners: flag(false) }, affineGrid),
  RoiAlign: [
    ...op(ROI, (c) => roiAlign(c, false), 10),
    ...op(ROI, (c) => roiAlign(c, c.attr.coordinate_transformation_mode === "half_pixel"), 16),
  ],
  MaxRoiPool: op({ pooled_shape: ints.required, spatial_scale: float(1) }, maxRoiPool),
  DeformConv: op(
    {
      dilations: ints(),
      group: int(1),
      kernel_shape: ints(),
      offset_group: int(1),
      pads: ints(),
      strides: ints(),
    },
    deformConv,
  ),
};
