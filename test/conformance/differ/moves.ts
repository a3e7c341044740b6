// Random cases of ops that move elements: cutting, padding, picking and placing by index.

import { type CaseDice, type CaseMaker, full, type HostData, ints, makeCase, scalar } from "./cases.ts";

export const NUMBERS = ["float", "float", "double", "int32", "int64"] as const;

export const number = (r: CaseDice): string => r.pick(NUMBERS);

/** Not zero. */
export const nonZero = (x: HostData): HostData => ({
  ...x,
  data: Array.from(x.data, (v) => (Number(v) === 0 ? (typeof v === "bigint" ? 3n : 3) : v)),
});

const index = (r: CaseDice, shape: readonly number[], size: number): HostData =>
  r.tensor(r.pick(["int32", "int64"]), shape, size === 0 ? 0 : -size, Math.max(size - 1, 0));

const REDUCTIONS = ["none", "add", "mul", "min", "max"] as const;

/** Rows in which no two places are the same, so that the order of the updates does not count. */
function distinct(r: CaseDice, rows: number, size: number): number[] {
  const all = Array.from({ length: size }, (_, i) => i);
  return r.shuffled(all).slice(0, rows);
}

export const MOVES: Readonly<Record<string, CaseMaker>> = {
  Slice: (r) => {
    const shape = r.shape(1, 4, 7);
    const axes = r.shuffled(r.some(shape.map((_, d) => d)));
    const steps = axes.map(() => r.pick([1, 1, 2, 3, -1, -1, -2, -3, 9, -9]));
    const near = (): number => r.pick([r.int(-9, 9), r.int(-3, 8)]);
    // onnxruntime takes the largest integer for the end backwards, too
    const far = (step: number): number => (r.chance(70) ? near() : step > 0 ? 2 ** 31 - 1 : -(2 ** 31));
    const [starts, ends] = [axes.map(near), steps.map(far)];
    const opset = r.pick([7, 10, 11, 13]);
    const x = r.tensor(r.pick([...NUMBERS, "uint8", "bool"]), shape);
    if (opset < 10)
      return makeCase(
        "Slice",
        [r.tensor("float", shape)],
        { starts, ends: ends.map(Math.abs), axes },
        { opset },
      );
    const type = r.pick(["int32", "int64"]);
    const named = opset < 11 || r.chance(50) ? axes : axes.map((a) => a - shape.length);
    return makeCase(
      "Slice",
      [
        x,
        ints(starts, type),
        ints(ends, type),
        ints(named, type),
        r.chance(20) ? undefined : ints(steps, type),
      ],
      {},
      { opset },
    );
  },
  Pad: (r) => {
    const shape = full(r.shape(1, 4));
    const mode = r.pick(["constant", "constant", "reflect", "edge", "wrap"]);
    const limit = (n: number): number => (mode === "constant" || mode === "edge" ? 4 : n - 1);
    const before = shape.map((n) => r.int(r.chance(20) ? -Math.floor(n / 2) : 0, limit(n)));
    const after = shape.map((n) => r.int(r.chance(20) ? -Math.floor((n - 1) / 2) : 0, limit(n)));
    const opset = mode === "wrap" ? 19 : r.pick([2, 11, 13, 18, 21]);
    const pads = [...before, ...after];
    if (opset === 2)
      return makeCase("Pad", [r.tensor("float", shape)], { pads, mode, value: 1.5 }, { opset: 7 });
    const type = r.pick(["float", "double", "int32", "int64"]);
    const value = r.chance(50) ? undefined : { ...r.tensor(type, [1]), shape: [] };
    if (opset < 18 || r.chance(50))
      return makeCase("Pad", [r.tensor(type, shape), ints(pads), value], { mode }, { opset });
    const axes = r.shuffled(r.some(shape.map((_, d) => d)));
    const some = [...axes.map((a) => before[a] as number), ...axes.map((a) => after[a] as number)];
    const named = axes.map((a) => (r.chance(50) ? a : a - shape.length));
    return makeCase("Pad", [r.tensor(type, shape), ints(some), value, ints(named)], { mode }, { opset });
  },
  Gather: (r) => {
    const shape = full(r.shape(1, 4));
    const axis = r.axis(shape.length);
    return makeCase(
      "Gather",
      [r.tensor(number(r), shape), index(r, r.shape(0, 3), shape.at(axis) as number)],
      { axis },
      { opset: r.pick([11, 13]) },
    );
  },
  GatherElements: (r) => {
    const shape = full(r.shape(1, 4));
    const axis = r.axis(shape.length);
    const at = axis < 0 ? axis + shape.length : axis;
    const part = shape.map((n, d) => (d === at ? r.int(1, 6) : r.int(1, n)));
    return makeCase(
      "GatherElements",
      [r.tensor(number(r), shape), index(r, part, shape[at] as number)],
      { axis },
      { opset: 13 },
    );
  },
  GatherND: (r) => {
    const shape = full(r.shape(2, 5));
    const batch_dims = r.int(0, Math.min(2, shape.length - 1));
    const k = r.int(1, shape.length - batch_dims);
    const lead = [...shape.slice(0, batch_dims), ...full(r.shape(0, 2, 3))];
    const limit = Math.min(...shape.slice(batch_dims, batch_dims + k));
    const at = { ...index(r, [...lead, k], limit), type: "int64" };
    return makeCase(
      "GatherND",
      [r.tensor(number(r), shape), { ...at, data: Array.from(at.data, BigInt) }],
      { batch_dims },
      { opset: r.pick([12, 13]) },
    );
  },
  ScatterElements: (r) => {
    const shape = full(r.shape(1, 4));
    const axis = r.axis(shape.length);
    const at = axis < 0 ? axis + shape.length : axis;
    const size = shape[at] as number;
    const reduction = r.pick(REDUCTIONS);
    const part = shape.map((n, d) => (d === at && reduction !== "none" ? r.int(1, 6) : r.int(1, n)));
    const type = r.pick(["float", "double", "int32", "int64"]);
    const places = index(r, part, size);
    const inner = part.slice(at + 1).reduce((a, b) => a * b, 1);
    const n = part[at] as number;
    const orders = new Map<number, number[]>();
    const data =
      reduction !== "none"
        ? places.data
        : Array.from(places.data, (x, i) => {
            const line = Math.floor(i / (inner * n)) * inner + (i % inner);
            const order = orders.get(line) ?? distinct(r, n, size);
            orders.set(line, order);
            const place = (order[Math.floor(i / inner) % n] as number) - (r.chance(30) ? size : 0);
            return typeof x === "bigint" ? BigInt(place) : place;
          });
    const opset =
      reduction === "none"
        ? r.pick([11, 13, 16, 18])
        : reduction === "min" || reduction === "max"
          ? 18
          : r.pick([16, 18]);
    return makeCase(
      "ScatterElements",
      [r.tensor(type, shape), { ...places, data }, r.tensor(type, part)],
      { axis, ...(opset < 16 ? {} : { reduction }) },
      { opset, slack: 1e-5 },
    );
  },
  ScatterND: (r) => {
    const shape = full(r.shape(1, 4));
    const k = r.int(1, shape.length);
    const places = shape.slice(0, k).reduce((a, b) => a * b, 1);
    const reduction = r.pick(REDUCTIONS);
    const n = r.int(1, Math.min(places, 5));
    const flat =
      reduction === "none" ? distinct(r, n, places) : Array.from({ length: n }, () => r.int(0, places - 1));
    const tuples = flat.flatMap((f) => {
      let rest = f;
      return shape.slice(0, k).map((size, d) => {
        const inner = shape.slice(d + 1, k).reduce((a, b) => a * b, 1);
        const i = Math.floor(rest / inner);
        rest %= inner;
        return r.chance(20) ? i - size : i;
      });
    });
    const type = r.pick(["float", "double", "int32", "int64"]);
    const opset =
      reduction === "none"
        ? r.pick([11, 13, 16, 18])
        : reduction === "min" || reduction === "max"
          ? 18
          : r.pick([16, 18]);
    const at = { ...ints(tuples), shape: [n, k] };
    return makeCase(
      "ScatterND",
      [r.tensor(type, shape), at, r.tensor(type, [n, ...shape.slice(k)])],
      opset < 16 ? {} : { reduction },
      { opset, slack: 1e-5 },
    );
  },
  TopK: (r) => {
    const shape = full(r.shape(1, 4, 7));
    const axis = r.axis(shape.length);
    const k = r.int(0, shape.at(axis) as number);
    return makeCase(
      "TopK",
      [r.tensor(number(r), shape, -2, 2), ints([k])],
      r.maybe({ largest: r.int(0, 1), sorted: 1, axis }),
      { opset: 11, outputs: 2 },
    );
  },
  Split: (r) => {
    const shape = full(r.shape(1, 4, 7));
    const axis = r.axis(shape.length);
    const size = shape.at(axis) as number;
    const x = r.tensor(number(r), shape);
    const n = r.int(1, Math.min(size, 4));
    const cuts = r
      .shuffled(Array.from({ length: size + 1 }, (_, i) => i))
      .slice(0, n - 1)
      .sort((a, b) => a - b);
    const parts = [...cuts, size].map((c, i) => c - (cuts[i - 1] ?? 0));
    const how = r.pick(["sizes", "attribute", "count"]);
    if (how === "attribute") return makeCase("Split", [x], { axis, split: parts }, { opset: 11, outputs: n });
    if (how === "sizes")
      return makeCase("Split", [x, ints(parts)], { axis }, { opset: r.pick([13, 18]), outputs: n });
    return makeCase("Split", [x], { axis, num_outputs: n }, { opset: 18, outputs: n });
  },
  Concat: (r) => {
    const shape = r.shape(1, 4);
    const axis = r.axis(shape.length);
    const type = r.pick([...NUMBERS, "bool", "uint8"]);
    const parts = Array.from({ length: r.int(1, 4) }, () => r.tensor(type, shape.with(axis, r.int(0, 3))));
    return makeCase("Concat", parts, { axis }, { opset: r.pick([11, 13]) });
  },
  Reshape: (r) => {
    const shape = r.shape(1, 4);
    const joined = r.pick([
      [-1],
      [0, -1],
      [0, -1, 1],
      [...shape, 1],
      [1, ...shape],
      shape.map((n, d) => (d === 0 ? -1 : n)),
    ]);
    return makeCase(
      "Reshape",
      [r.tensor(number(r), shape), ints(joined)],
      r.maybe({ allowzero: r.chance(20) ? 1 : 0 }),
      { opset: 14 },
    );
  },
  Expand: (r) => {
    const shape = r.shape(0, 4);
    const to = r.broadcast(shape);
    return makeCase(
      "Expand",
      [r.tensor(number(r), r.broadcast(shape)), ints(r.chance(50) ? shape : to)],
      {},
      { opset: r.pick([8, 13]) },
    );
  },
  Tile: (r) => {
    const shape = r.shape(1, 4);
    return makeCase(
      "Tile",
      [r.tensor(number(r), shape), ints(shape.map(() => r.int(r.chance(5) ? 0 : 1, 3)))],
      {},
      { opset: r.pick([7, 13]) },
    );
  },
  Transpose: (r) => {
    const shape = r.shape(0, 5);
    const perm = r.shuffled(shape.map((_, d) => d));
    return makeCase("Transpose", [r.tensor(number(r), shape)], shape.length === 0 ? {} : r.maybe({ perm }), {
      opset: 13,
    });
  },
  Squeeze: (r) => {
    const shape = r.shape(1, 5).map((n) => (r.chance(40) ? 1 : n));
    const ones = shape.flatMap((n, d) => (n === 1 ? [r.chance(50) ? d : d - shape.length] : []));
    const axes = r.some(ones);
    const opset = r.pick([11, 13]);
    if (opset === 11)
      return makeCase("Squeeze", [r.tensor("float", shape)], axes.length === 0 ? {} : r.maybe({ axes }), {
        opset,
      });
    return makeCase(
      "Squeeze",
      [r.tensor(number(r), shape), axes.length === 0 || r.chance(30) ? undefined : ints(axes)],
      {},
      { opset },
    );
  },
  Unsqueeze: (r) => {
    const shape = r.shape(0, 3);
    const n = shape.length + r.int(1, 2);
    const axes = r
      .shuffled(Array.from({ length: n }, (_, d) => d))
      .slice(0, n - shape.length)
      .map((d) => (r.chance(50) ? d : d - n));
    return r.chance(40)
      ? makeCase("Unsqueeze", [r.tensor("float", shape)], { axes }, { opset: 11 })
      : makeCase("Unsqueeze", [r.tensor(number(r), shape), ints(axes)], {}, { opset: 13 });
  },
  Flatten: (r) => {
    const shape = r.shape(1, 4);
    return makeCase(
      "Flatten",
      [r.tensor("float", shape)],
      r.maybe({ axis: r.int(-shape.length, shape.length) }),
      { opset: 13 },
    );
  },
  DepthToSpace: (r) => {
    const b = r.int(1, 3);
    const shape = [r.int(1, 2), b * b * r.int(1, 3), r.int(1, 3), r.int(1, 3)];
    return makeCase(
      "DepthToSpace",
      [r.tensor("float", shape)],
      { blocksize: b, ...r.maybe({ mode: r.pick(["DCR", "CRD"]) }) },
      { opset: r.pick([11, 13]) },
    );
  },
  SpaceToDepth: (r) => {
    const b = r.int(1, 3);
    return makeCase(
      "SpaceToDepth",
      [r.tensor("float", [r.int(1, 2), r.int(1, 3), b * r.int(1, 3), b * r.int(1, 3)])],
      { blocksize: b },
      { opset: 13 },
    );
  },
  ReverseSequence: (r) => {
    const shape = full(r.shape(2, 4));
    const isFirst = r.chance(50);
    const [batch, time] = isFirst ? [0, 1] : [1, 0];
    const lengths = Array.from({ length: shape[batch] as number }, () => r.int(1, shape[time] as number));
    return makeCase(
      "ReverseSequence",
      [r.tensor("float", shape), ints(lengths)],
      { batch_axis: batch, time_axis: time },
      { opset: 10 },
    );
  },
  Where: (r) => {
    const shape = r.shape(0, 4);
    const type = r.pick(["float", "double", "int32", "int64", "uint8"]);
    return makeCase(
      "Where",
      [
        r.tensor("bool", r.broadcast(shape)),
        r.tensor(type, r.broadcast(shape)),
        r.tensor(type, r.broadcast(shape)),
      ],
      {},
      { opset: r.pick([9, 16]) },
    );
  },
  Compress: (r) => {
    const shape = full(r.shape(1, 4));
    const isFlat = r.chance(30);
    const axis = r.axis(shape.length);
    const size = isFlat ? shape.reduce((a, b) => a * b, 1) : (shape.at(axis) as number);
    return makeCase(
      "Compress",
      [r.tensor(number(r), shape), r.tensor("bool", [r.int(1, size)])],
      isFlat ? {} : { axis },
      { opset: 11 },
    );
  },
  OneHot: (r) => {
    const shape = full(r.shape(1, 3));
    const depth = r.int(1, 6);
    const type = r.pick(["float", "int64", "int32"]);
    return makeCase(
      "OneHot",
      [
        r.tensor(r.pick(["int64", "int32"]), shape, -depth - 2, depth + 2),
        scalar(depth, "int64"),
        r.tensor(type, [2]),
      ],
      r.maybe({ axis: r.int(-shape.length - 1, shape.length) }),
      { opset: 11 },
    );
  },
  EyeLike: (r) =>
    makeCase(
      "EyeLike",
      [r.tensor("float", [r.int(1, 5), r.int(1, 5)])],
      r.maybe({ k: r.int(-5, 5), dtype: r.pick([1, 7, 11]) }),
      { opset: 9 },
    ),
  Trilu: (r) => {
    const shape = r.shape(2, 4);
    return makeCase(
      "Trilu",
      [r.tensor(r.pick(["float", "int64"]), shape), r.chance(60) ? scalar(r.int(-6, 6)) : undefined],
      r.maybe({ upper: r.int(0, 1) }),
      { opset: 14 },
    );
  },
  Range: (r) => {
    const type = r.pick(["float", "double", "int32", "int64"]);
    const one = (low: number, high: number): HostData => ({ ...r.tensor(type, [1], low, high), shape: [] });
    return makeCase("Range", [one(-5, 5), one(-9, 9), nonZero(one(-3, 3))], {}, { opset: 11 });
  },
  NonZero: (r) =>
    makeCase(
      "NonZero",
      [r.tensor(r.pick(["float", "int32", "int64", "bool"]), r.shape(1, 4), -1, 1)],
      {},
      { opset: 13 },
    ),
  Unique: (r) => {
    const shape = full(r.shape(1, 3));
    const axis = r.axis(shape.length);
    return makeCase(
      "Unique",
      [r.tensor(r.pick(["float", "double", "int64"]), shape, 0, 1)],
      { ...r.maybe({ sorted: r.int(0, 1) }), ...(r.chance(50) ? { axis } : {}) },
      { opset: 11, outputs: 4 },
    );
  },
  Shape: (r) =>
    makeCase(
      "Shape",
      [r.tensor("float", r.shape(0, 5))],
      r.maybe({ start: r.int(-6, 6), end: r.int(-6, 6) }),
      { opset: 15 },
    ),
  CenterCropPad: (r) => {
    const shape = full(r.shape(1, 4));
    const axes = r.some(shape.map((_, d) => d));
    return makeCase(
      "CenterCropPad",
      [r.tensor("float", shape), ints(axes.map(() => r.int(1, 7)))],
      { axes: axes.map((d) => (r.chance(50) ? d : d - shape.length)) },
      { opset: 18 },
    );
  },
};
