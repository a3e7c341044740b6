// Reductions of windows. A product with weights that have the taps, summed, is a Conv; the largest of the
// taps is a MaxPool, their mean an AveragePool. In: a reduction. Out: nodes, or undefined where there are
// no windows that the op of the standard has.

import { type DType, dtypes } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import {
  cut,
  type DataDim,
  dataDims,
  frameOf,
  isWindow,
  nchw,
  refined,
  type WindowAccess,
  windowsOf,
} from "./access.ts";
import type { ProductOperands } from "./contraction.ts";
import type { ExportNode, GraphBuilder, NodeAttributes } from "./graph.ts";
import type { GraphReader } from "./lower.ts";
import { placed, type ReducedSource } from "./reduces.ts";
import { whole } from "./views.ts";

const { float32, float64 } = dtypes;
const MAX_SPATIAL = 3;

/** In the shape of the reduction's result, where dims were split. */
const inShape = (
  b: GraphBuilder,
  x: ExportNode,
  { shape, axes }: { readonly shape: readonly number[]; readonly axes: readonly number[] },
): ExportNode =>
  b.reshape(
    x,
    shape.map((n, d) => (axes.includes(d) ? 1 : n)),
  );

// ---- convolution ----

interface Roles {
  readonly batch: readonly DataDim[];
  readonly groups: readonly DataDim[];
  readonly channels: readonly DataDim[];
  readonly spatial: readonly DataDim[];
}
function rolesOf(
  dims: readonly DataDim[],
  isSummed: (d: number) => boolean,
  isWeight: (d: number) => boolean,
): Roles | undefined {
  const batch: DataDim[] = [];
  const groups: DataDim[] = [];
  const channels: DataDim[] = [];
  const spatial: DataDim[] = [];
  for (const d of dims) {
    const { place, tap } = d;
    if (place === undefined && tap === undefined) continue;
    if (place !== undefined && tap !== undefined) {
      if (isSummed(place) || isWeight(place) || !isWeight(tap)) return undefined;
      spatial.push(d);
    } else if (tap !== undefined) {
      if (!isWeight(tap)) return undefined;
      channels.push(d);
    } else if (isWeight(place as number)) groups.push(d);
    else if (channels.length > 0) spatial.push(d);
    else batch.push(d);
  }
  return { batch, groups, channels, spatial };
}

/** A Conv of the left operand, the data, by the right one. */
export function convolution(l: GraphReader, operands: ProductOperands): ExportNode | undefined {
  return windowsOf(l, operands.left, (access) => convolved(l, operands, access));
}
function convolved(l: GraphReader, given: ProductOperands, access: WindowAccess): ExportNode | undefined {
  const { b } = l;
  const factor = l.operand(given.right);
  if (factor.shape.length !== given.shape.length) return undefined;
  const { shape, axes } = refined(access, given.axes);
  const weights = b.reshape(
    factor,
    access.parts.flatMap((own, d) => (factor.shape[d] === 1 ? own.map(() => 1) : own)),
  );
  const isSummed = (d: number): boolean => axes.includes(d);
  const isWeight = (d: number): boolean => weights.shape[d] !== 1;
  const dims = dataDims(access, isSummed);
  const roles = dims === undefined ? undefined : rolesOf(dims, isSummed, isWeight);
  if (dims === undefined || roles === undefined) return undefined;
  const { batch, groups, channels, spatial } = roles;
  const seen = new Set(dims.flatMap((d) => [d.place, d.tap].filter((x) => x !== undefined)));
  const outer = range(shape.length).filter((d) => isWeight(d) && !seen.has(d));
  const isOdd = outer.some(isSummed) || axes.some((d) => shape[d] !== 1 && !seen.has(d));
  // a product without windows is a Conv only where it leaves the data in its order
  const hasWindows = spatial.some(isWindow);
  const isPicture = batch.length === 1 || (batch.length === 0 && spatial.length > 1);
  const isInOrder = channels.length === 1 && outer.length > 0 && groups.length === 0 && isPicture;
  if (isOdd || spatial.length === 0 || spatial.length > MAX_SPATIAL || !(hasWindows || isInOrder))
    return undefined;
  if (!hasWindows && (outer[0] as number) > (spatial[0]?.place as number)) return undefined;
  const { dtype } = access.x;
  if (dtype !== float32 && !(dtype.isFloat && dtype.bits < 32)) return undefined;
  const data = nchw(
    b,
    cut(b, b.cast(access.x, float32), dims, new Set(spatial), shape),
    batch,
    [...groups, ...channels],
    spatial,
  );
  const { attributes, x } = frameOf(data, spatial, shape, 0);
  const taps = spatial.flatMap((d) => (d.tap === undefined ? [] : [d.tap]));
  const placesOf = (some: readonly DataDim[]): number[] => some.map((d) => (d.place ?? d.tap) as number);
  const size = (some: readonly number[]): number => prod(some.map((d) => shape[d] as number));
  const order = [...placesOf(groups), ...outer, ...placesOf(channels), ...taps];
  const rest = range(shape.length).filter((d) => !order.includes(d));
  const group = size(placesOf(groups));
  const w = b.reshape(b.transpose(b.cast(weights, float32), [...rest, ...order]), [
    group * size(outer),
    size(placesOf(channels)),
    ...(attributes.kernel_shape as readonly number[]),
  ]);
  const places = spatial.map((d) => d.place as number);
  const made = b.node("Conv", {
    inputs: [x, w],
    attributes: { ...attributes, group },
    shape: [data.shape[0] as number, group * size(outer), ...places.map((d) => shape[d] as number)],
    dtype: float32,
  });
  const out = [...placesOf(batch), ...placesOf(groups), ...outer, ...places];
  const parts = b.reshape(
    made,
    out.map((d) => shape[d] as number),
  );
  return b.cast(inShape(b, placed(b, parts, out, shape, axes), given), dtype);
}

// ---- pools ----

const POOLS: Readonly<
  Partial<Record<string, { readonly op: string; readonly filling: number; readonly extra: NodeAttributes }>>
> = {
  REDUCE_MAX: { op: "MaxPool", filling: -Infinity, extra: {} },
  SUM: { op: "AveragePool", filling: 0, extra: { count_include_pad: 1 } },
};
const poolTypes: ReadonlySet<DType> = new Set([float32, float64]);

export function pooled(l: GraphReader, reduction: ReducedSource): ExportNode | undefined {
  return windowsOf(l, reduction.src, (access) => pooledFrom(l, reduction, access));
}
function pooledFrom(
  l: GraphReader,
  { op, axes: given, src }: ReducedSource,
  access: WindowAccess,
): ExportNode | undefined {
  const { b } = l;
  const pool = POOLS[op];
  if (pool === undefined || !poolTypes.has(src.dtype)) return undefined;
  const { shape, axes } = refined(access, given);
  const dims = dataDims(access, (d) => axes.includes(d));
  if (dims === undefined) return undefined;
  const spatial = dims.filter(isWindow);
  // an index of its own that is reduced is a reduction of another kind
  if (dims.some((d) => d.place === undefined && d.tap !== undefined)) return undefined;
  const used = new Set(spatial.map((d) => d.tap as number));
  if (
    spatial.length === 0 ||
    spatial.length > MAX_SPATIAL ||
    axes.some((d) => shape[d] !== 1 && !used.has(d))
  )
    return undefined;
  if (op === "SUM" && (src.dtype !== float32 || spatial.some((d) => d.dilation !== 1))) return undefined;
  const batch = dims.filter((d) => d.place !== undefined && !spatial.includes(d));
  const data = nchw(b, cut(b, access.x, dims, new Set(spatial), shape), batch, [], spatial);
  const frame = frameOf(data, spatial, shape, pool.filling);
  const places = spatial.map((d) => d.place as number);
  const sizes = (of: readonly number[]): number[] => of.map((d) => shape[d] as number);
  const made = b.node(pool.op, {
    inputs: [frame.x],
    attributes: { ...frame.attributes, ...pool.extra },
    shape: [data.shape[0] as number, 1, ...sizes(places)],
    dtype: src.dtype,
  });
  const taps = prod(sizes([...used]));
  const total = op === "SUM" ? b.map("Mul", [made, b.number(taps, float32)], float32) : made;
  const out = [...batch.map((d) => d.place as number), ...places];
  const reducedTo = { shape: src.shape.map(whole), axes: given };
  return inShape(b, placed(b, b.reshape(total, sizes(out)), out, shape, axes), reducedTo);
}
