// Ops that move elements or say where they are: reshaping, joining, cutting, padding.

import { dtypes } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { decided } from "../../shape/guards.ts";
import { idiv, lt, mod, type Sint, smin, sprod, sub } from "../../shape/symbolic.ts";
import { sameSize } from "../../shape/view.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { type ElementType, TYPES, typeOfCode } from "../elements.ts";
import {
  countTo,
  NO_SOURCES,
  SequenceValue,
  type SizeArray,
  type SizeElement,
  sizeTensor,
  TensorValue,
} from "../values.ts";
import { bool, cast, cut, dims, hostTensor, int64, sizeOf, sizes, typed } from "./common.ts";
import {
  bigInt,
  bigInts,
  type Call,
  flag,
  float,
  floats,
  int,
  ints,
  type OpTable,
  type Output,
  ofShapes,
  op,
  sparse,
  string,
  strings,
  tensor,
  type Versions,
  versions,
} from "./op.ts";
import { broadcastShapes, sliceBounds } from "./shapes.ts";
import { onTexts } from "./texts.ts";

/** A shape does not depend on the elements, only on the tensor's. */
const known = (c: Call, shape: readonly number[], data: SizeArray["data"]): TensorValue =>
  TensorValue.ofHost({ type: TYPES.int64, shape, data }, c.device, NO_SOURCES);

const elementOf = (size: Sint): SizeElement => (typeof size === "number" ? BigInt(size) : size);

const shapeOp = op({ start: int(0), end: int() }, (c) => {
  const shape = c.dims(0);
  const at = (x: number): number => Math.min(Math.max(x < 0 ? x + shape.length : x, 0), shape.length);
  const part = shape.slice(at(c.attr.start), at(c.attr.end ?? shape.length));
  return known(c, [part.length], part.map(elementOf));
});

function reshape(c: Call, wanted: readonly Sint[], allowZero: boolean): Tensor {
  const x = c.t(0);
  const shape = wanted.map((d, i) => {
    if (d !== 0 || allowZero) return d;
    return dims(x)[i] ?? c.fail(`dim ${i} is to stay, the input has ${x.ndim} dims`);
  });
  if (shape.filter((d) => d === -1).length > 1 || shape.some((d) => smin(d) < -1))
    c.fail(`[${wanted.join(", ")}] is not a shape`);
  const rest = sprod(shape.filter((d) => d !== -1));
  const total = sprod(dims(x));
  const unfit = (): never =>
    c.fail(`${total} elements of shape [${dims(x).join(", ")}] do not fit into [${wanted.join(", ")}]`);
  const whole = shape.map((d) =>
    d !== -1 ? d : smin(rest) > 0 && isWhole(total, rest) ? idiv(total, rest) : unfit(),
  );
  return sameSize(sprod(whole), total) ? x.reshape(whole) : unfit();
}
const isWhole = (total: Sint, part: Sint): boolean => decided(mod(total, part)) === 0;

const flatten = op({ axis: int(1) }, (c) => {
  const x = c.t(0);
  const axis = c.attr.axis < 0 ? c.attr.axis + x.ndim : c.attr.axis;
  if (axis < 0 || axis > x.ndim) c.fail(`axis ${c.attr.axis} is not one of ${x.ndim} dims`);
  return x.reshape([sprod(dims(x).slice(0, axis)), sprod(dims(x).slice(axis))]);
});

function squeeze(c: Call, given: readonly number[] | undefined): Tensor {
  const x = c.t(0);
  const axes = given === undefined ? undefined : c.axes(given, x.ndim);
  const odd = axes?.find((a) => dims(x)[a] !== 1);
  if (odd !== undefined) c.fail(`dim ${odd} of [${dims(x).join(", ")}] is not 1`);
  return x.reshape(dims(x).filter((s, d) => (axes === undefined ? s !== 1 : !axes.includes(d))));
}
function unsqueeze(c: Call, given: readonly number[]): Tensor {
  const x = c.t(0);
  const n = x.ndim + given.length;
  const axes = c.axes(given, n);
  const rest = [...dims(x)];
  return x.reshape(range(n).map((d) => (axes.includes(d) ? 1 : (rest.shift() as Sint))));
}

const concat = op({ axis: int(1) }, (c) => {
  const list = c.all();
  const [first] = list;
  if (first === undefined) return c.fail("there is nothing to join");
  return Tensor.cat(list, c.axis(c.attr.axis, first.ndim));
});

/** Parts of these sizes, or of equal ones with a smaller last one. */
export function splitSizes(
  c: Call,
  size: number,
  given: readonly number[] | undefined,
  parts: number,
): number[] {
  if (given !== undefined) {
    if (given.reduce((a, b) => a + b, 0) !== size || given.some((n) => n < 0))
      c.fail(`parts of ${given.join(", ")} are not ${size} elements`);
    return [...given];
  }
  const each = Math.ceil(size / parts);
  return range(parts).map((i) => Math.max(0, Math.min(each, size - i * each)));
}
export function pieces(x: Tensor, axis: number, lengths: readonly number[]): Tensor[] {
  let start = 0;
  return lengths.map((count) => {
    const part = cut(
      x,
      dims(x).map((n, d) => (d === axis ? { start, step: 1, count } : { start: 0, step: 1, count: n })),
    );
    start += count;
    return part;
  });
}
const split = versions(
  op({ axis: int(0), split: ints() }, (c) => {
    const x = c.t(0);
    const axis = c.axis(c.attr.axis, x.ndim);
    return pieces(x, axis, splitSizes(c, sizeOf(x, axis), c.attr.split, c.outputs.length));
  }),
  op(
    { axis: int(0), num_outputs: int() },
    async (c) => {
      const x = c.t(0);
      const axis = c.axis(c.attr.axis, x.ndim);
      return pieces(
        x,
        axis,
        splitSizes(c, sizeOf(x, axis), await c.maybeInts(1), c.attr.num_outputs ?? c.outputs.length),
      );
    },
    13,
  ),
);

const slice = versions(
  op({ starts: ints.required, ends: ints.required, axes: ints() }, (c) => {
    const { starts, ends, axes } = c.attr;
    return cut(c.t(0), sliceBounds<Sint>(c, c.dims(0), starts, ends, axes));
  }),
  op(
    {},
    async (c) => {
      const [starts, ends] = [await c.sizes(1), await c.sizes(2)];
      const cuts = sliceBounds(c, c.dims(0), starts, ends, await c.maybeInts(3), await c.maybeInts(4));
      return cut(c.t(0), cuts);
    },
    10,
  ),
);

const expand = op({}, async (c) => {
  const x = c.t(0);
  const shape = broadcastShapes<Sint>([dims(x), await c.sizes(1)]);
  return x.reshape([...new Array<number>(shape.length - x.ndim).fill(1), ...dims(x)]).expand(shape);
});
const tile = versions(
  op({}, async (c) => {
    const x = c.t(0);
    const [times, axis] = [await c.scalar(1), await c.scalar(2)];
    return x.repeat(sizes(x).map((_, d) => (d === axis ? times : 1)));
  }),
  op(
    {},
    async (c) => {
      const repeats = await c.ints(1);
      if (repeats.length !== c.t(0).ndim) c.fail(`${repeats.length} repeats for ${c.t(0).ndim} dims`);
      return repeats.some((r) => r === 0)
        ? Tensor.zeros(
            sizes(c.t(0)).map((s, d) => s * (repeats[d] as number)),
            { dtype: c.t(0).dtype, ...c.on },
          )
        : c.t(0).repeat(repeats);
    },
    6,
  ),
);

// ---- padding ----

const MODES: Readonly<Record<string, (x: Tensor, d: number, before: number, after: number) => Tensor>> = {
  edge: (x, d, before, after) => picked(x, d, before, after, (i, n) => Math.min(Math.max(i, 0), n - 1)),
  reflect: (x, d, before, after) =>
    picked(x, d, before, after, (i, n) => {
      if (n === 1) return 0;
      const at = ((i % (2 * n - 2)) + 2 * n - 2) % (2 * n - 2);
      return at < n ? at : 2 * n - 2 - at;
    }),
  wrap: (x, d, before, after) => picked(x, d, before, after, (i, n) => ((i % n) + n) % n),
};
/** Elements beyond the ends are copies of others, which `from` names. */
function picked(
  x: Tensor,
  d: number,
  before: number,
  after: number,
  from: (i: number, n: number) => number,
): Tensor {
  const n = sizeOf(x, d);
  const at = range(n + before + after).map((i) => from(i - before, n));
  return x.indexSelect(d, new Tensor(at, { dtype: dtypes.int32, device: x.device }));
}
const span = (x: Tensor, d: number, start: number, count: number): Tensor =>
  cut(
    x,
    sizes(x).map((n, i) => (i === d ? { start, step: 1, count } : { start: 0, step: 1, count: n })),
  );

export function pad(
  c: Call,
  x: Tensor,
  pads: readonly number[],
  mode: string,
  value: Tensor | number,
  axes: readonly number[],
): Tensor {
  if (pads.length !== 2 * axes.length)
    c.fail(`${pads.length} pads for ${axes.length} dims; expected two a dim`);
  const [before, after] = [new Array<number>(x.ndim).fill(0), new Array<number>(x.ndim).fill(0)];
  c.axes(axes, x.ndim).forEach((d, i) => {
    before[d] = pads[i] as number;
    after[d] = pads[i + axes.length] as number;
  });
  if (mode === "constant") {
    const amounts = before.map((b, d) => [b, after[d] as number] as const);
    if (typeof value === "number") return x.pad(amounts, "constant", value);
    const inside = bool(x.onesLike({ dtype: dtypes.bool })).pad(amounts);
    return inside.where(x.pad(amounts), cast(value.reshape([]), x.dtype));
  }
  const one = Object.hasOwn(MODES, mode) ? MODES[mode] : undefined;
  if (one === undefined)
    return c.fail(`mode is "${mode}", expected constant, ${Object.keys(MODES).join(", ")}`);
  // what is cut off is cut off first: edges are those of the rest
  return range(x.ndim).reduce((y, d) => {
    const [b, a] = [before[d] as number, after[d] as number];
    if (b === 0 && a === 0) return y;
    const start = Math.max(0, -b);
    const kept = b < 0 || a < 0 ? span(y, d, start, sizeOf(y, d) - start - Math.max(0, -a)) : y;
    return one(kept, d, Math.max(0, b), Math.max(0, a));
  }, x);
}
const PAD = { mode: string("constant") };
const padOp = versions(
  op({ ...PAD, paddings: ints(), pads: ints(), value: float(0) }, (c) =>
    pad(c, c.t(0), c.attr.pads ?? c.attr.paddings ?? [], c.attr.mode, c.attr.value, range(c.t(0).ndim)),
  ),
  op(
    PAD,
    async (c) => {
      const axes = (await c.maybeInts(3)) ?? range(c.t(0).ndim);
      const value = c.has(2) && c.value(2).size > 0 ? c.t(2) : 0;
      return pad(c, c.t(0), await c.ints(1), c.attr.mode, value, axes);
    },
    11,
  ),
);
const centerCropPad = op({ axes: ints() }, async (c) => {
  const x = c.t(0);
  const axes = c.axes(c.attr.axes ?? range(x.ndim), x.ndim);
  const wanted = await c.ints(1);
  return axes.reduce((y, d, i) => {
    const [size, to] = [sizeOf(y, d), wanted[i] as number];
    if (to <= size) return span(y, d, Math.floor((size - to) / 2), to);
    const before = Math.floor((to - size) / 2);
    return y.pad(sizes(y).map((_, k) => (k === d ? [before, to - size - before] : [0, 0])));
  }, x);
});

// ---- new tensors ----

const constant = op(
  {
    value: tensor(),
    sparse_value: sparse(),
    value_float: float(),
    value_floats: floats(),
    value_int: bigInt(),
    value_ints: bigInts(),
    value_string: string(),
    value_strings: strings(),
  },
  (c) => {
    const a = c.attr;
    if (a.value !== undefined) return a.value;
    if (a.sparse_value !== undefined) return a.sparse_value;
    if (a.value_float !== undefined) return c.known(TYPES.float, [], [a.value_float]);
    if (a.value_floats !== undefined) return c.known(TYPES.float, [a.value_floats.length], a.value_floats);
    if (a.value_int !== undefined) return c.known(TYPES.int64, [], [a.value_int]);
    if (a.value_ints !== undefined) return c.known(TYPES.int64, [a.value_ints.length], a.value_ints);
    if (a.value_string !== undefined) return TensorValue.ofTexts({ shape: [], data: [a.value_string] });
    if (a.value_strings !== undefined)
      return TensorValue.ofTexts({ shape: [a.value_strings.length], data: a.value_strings });
    return c.fail("it has no value");
  },
);
const MAX_FILLED = 2 ** 32;
const isPlainShape = (shape: readonly Sint[]): shape is number[] => shape.every((d) => typeof d === "number");
const constantOfShape = op({ value: tensor() }, async (c) => {
  const shape = await c.sizes(0);
  const size = sprod(shape);
  if (shape.some((d) => smin(d) < 0) || smin(size) > MAX_FILLED)
    c.fail(`[${shape.join(", ")}] is not a shape to fill`);
  const { value } = c.attr;
  const type: ElementType = value?.type ?? TYPES.float;
  const x = value?.host.data[0] ?? 0;
  if (isPlainShape(shape) && Number(size) <= 1024)
    return TensorValue.ofHost(
      { type, shape, data: new Array(Number(size)).fill(x) },
      c.device,
      c.value(0).sources,
    );
  return typed(Tensor.full(shape, x, { dtype: type.dtype, ...c.on }), type);
});
const rangeOp = op({ stash_type: int(1) }, async (c) => {
  const type = c.type(0);
  const counted = type.dtype.isInt ? [await c.sizes(0), await c.sizes(1), await c.sizes(2)].flat() : [];
  const [from = 0, to = 0, by] = counted;
  // counting is what a symbolic size is for
  if (by === 1 && [from, to].some((x) => typeof x !== "number") && decided(lt(to, from)) === 0) {
    const places = cast(countTo(sub(to, from), c.on), type.dtype);
    return typed(from === 0 ? places : places.add(sizeTensor(from, c.on)), type);
  }
  const [start, limit, delta] = [await c.scalar(0), await c.scalar(1), await c.scalar(2)];
  const n = Math.max(0, Math.ceil((limit - start) / delta));
  if (!(n <= MAX_FILLED)) c.fail(`from ${start} to ${limit} by ${delta} there are ${n} elements`);
  const wide = type.dtype.isFloat && type.dtype.bits < 32 ? dtypes.float32 : type.dtype;
  const places = Tensor.arange(n, { dtype: wide, ...c.on });
  return typed(places.mul(delta).add(start), type);
});
const eyeLike = op({ dtype: int(), k: int(0) }, (c) => {
  const [rows, columns] = c.shape(0) as [number, number];
  const type = c.attr.dtype === undefined ? c.type(0) : typeOfCode(c.attr.dtype, c.where);
  const down = Tensor.arange(rows, { dtype: dtypes.int32, ...c.on }).reshape([rows, 1]);
  const across = Tensor.arange(columns, { dtype: dtypes.int32, ...c.on });
  return typed(across.sub(down).eq(c.attr.k), type);
});
const oneHot = op({ axis: int(-1) }, async (c) => {
  const indices = c.t(0);
  const depth = await c.scalar(1);
  const axis = c.axis(c.attr.axis, indices.ndim + 1);
  const at = indices.dtype.isFloat ? cast(indices, dtypes.int32) : cast(indices, dtypes.int32);
  const wrapped = at.lt(0).where(at.add(depth), at).unsqueeze(axis);
  const places = Tensor.arange(depth, { dtype: dtypes.int32, ...c.on });
  const isHot = places.reshape(range(indices.ndim + 1).map((d) => (d === axis ? depth : 1))).eq(wrapped);
  const values = c.t(2);
  return typed(isHot.where(values.select(0, 1), values.select(0, 0)), c.type(2));
});
const trilu = op({ upper: flag(true) }, async (c) => {
  const k = c.has(1) ? await c.scalar(1) : 0;
  const x = c.t(0);
  if (dims(x).includes(0)) return x;
  return cast(c.attr.upper ? x.triu(k) : x.tril(k), x.dtype);
});

// ---- blocks ----

function depthToSpace(c: Call<{ blocksize: number; mode: string }>): Tensor {
  const x = c.t(0);
  const [n, depth, h, w] = sizes(x) as [number, number, number, number];
  const b = c.attr.blocksize;
  const d = depth / (b * b);
  const isColumns = c.attr.mode === "CRD";
  const y = isColumns ? x.reshape([n, d, b, b, h, w]) : x.reshape([n, b, b, d, h, w]);
  const order = isColumns ? [0, 1, 4, 2, 5, 3] : [0, 3, 4, 1, 5, 2];
  return y.permute(order).reshape([n, d, h * b, w * b]);
}
function spaceToDepth(c: Call<{ blocksize: number; mode: string }>): Tensor {
  const x = c.t(0);
  const [n, d, h, w] = sizes(x) as [number, number, number, number];
  const b = c.attr.blocksize;
  const y = x.reshape([n, d, h / b, b, w / b, b]);
  const order = c.attr.mode === "CRD" ? [0, 1, 3, 5, 2, 4] : [0, 3, 5, 1, 2, 4];
  return y.permute(order).reshape([n, d * b * b, h / b, w / b]);
}
const BLOCKS = { blocksize: int.required, mode: string("DCR") };

const transpose = op({ perm: ints() }, (c) => {
  const x = c.t(0);
  const perm = c.attr.perm ?? range(x.ndim).reverse();
  if (perm.length !== x.ndim) c.fail(`perm [${perm.join(", ")}] for ${x.ndim} dims`);
  return x.ndim === 0 ? x : x.permute(c.axes(perm, x.ndim));
});

const splitToSequence = op({ axis: int(0), keepdims: flag(true) }, async (c) => {
  const x = c.t(0);
  const axis = c.axis(c.attr.axis, x.ndim);
  const size = sizeOf(x, axis);
  const given = await c.maybeInts(1);
  const isOne = given !== undefined && c.shape(1).length === 0;
  const one = given?.[0] ?? 1;
  const lengths =
    given === undefined || isOne
      ? range(Math.ceil(size / one)).map((i) => Math.min(one, size - i * one))
      : splitSizes(c, size, given, 0);
  const drops = given === undefined && !c.attr.keepdims;
  const parts = pieces(x, axis, lengths).map((p) => (drops ? p.reshape(sizes(x).toSpliced(axis, 1)) : p));
  return new SequenceValue(parts.map((p) => typed(p, c.type(0))));
});

const texts = (table: Readonly<Record<string, Versions>>): OpTable =>
  Object.fromEntries(Object.entries(table).map(([name, list]) => [name, onTexts(list)]));

export const shape: OpTable = {
  Shape: ofShapes(shapeOp),
  Size: ofShapes(op({}, (c) => known(c, [], [elementOf(sprod(c.dims(0)))]))),
  Constant: constant,
  ConstantOfShape: constantOfShape,
  Range: rangeOp,
  EyeLike: ofShapes(eyeLike),
  OneHot: oneHot,
  Trilu: trilu,
  ...texts({
    Reshape: versions(
      op({ shape: ints.required, consumed_inputs: ints() }, (c) => reshape(c, c.attr.shape, false)),
      op({ allowzero: flag(false) }, async (c) => reshape(c, await c.sizes(1), c.attr.allowzero), 5),
    ),
    Flatten: flatten,
    Squeeze: versions(
      op({ axes: ints() }, (c) => squeeze(c, c.attr.axes)),
      op({}, async (c) => squeeze(c, await c.maybeInts(1)), 13),
    ),
    Unsqueeze: versions(
      op({ axes: ints.required }, (c) => unsqueeze(c, c.attr.axes)),
      op({}, async (c) => unsqueeze(c, await c.ints(1)), 13),
    ),
    Transpose: transpose,
    Concat: concat,
    Split: split,
    Slice: slice,
    Expand: expand,
    Tile: tile,
    Pad: padOp,
    CenterCropPad: centerCropPad,
    SplitToSequence: splitToSequence,
  }),
  DepthToSpace: op(BLOCKS, depthToSpace),
  SpaceToDepth: op(BLOCKS, spaceToDepth),
};
export const asIndices = (c: Call, data: readonly number[]): Output =>
  int64(hostTensor(c, data, [data.length], dtypes.int32));
