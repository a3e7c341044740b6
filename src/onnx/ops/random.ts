// Random ops. Without a seed each run draws other numbers, in a replay too; with one the numbers are those of
// the standard's reference.

import { dtypes } from "../../dtype.ts";
import { prod } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { type ElementType, TYPES, typeOfCode } from "../elements.ts";
import type { TensorValue } from "../values.ts";
import { bool, cast, hostTensor, sizes, typed } from "./common.ts";
import { mersenne, normal } from "./mersenne.ts";
import { type Call, float, int, ints, type OpTable, op, random } from "./op.ts";

/** More numbers are not made one by one on the host. */
const MAX_SEEDED = 2 ** 24;

/** What becomes of the numbers that are drawn; by default they stay as they are, in float32. */
interface DrawnRange {
  readonly times?: number;
  readonly plus?: number;
  readonly type?: ElementType;
}
type DrawNumbers = (
  c: Call,
  shape: readonly number[],
  seed: number | undefined,
  range?: DrawnRange,
) => Tensor;
const drawn =
  (
    seeded: (seed: number) => () => number,
    free: (shape: number[], options: { device?: string }) => Tensor,
  ): DrawNumbers =>
  (c, shape, seed, { times = 1, plus = 0, type = TYPES.float } = {}) => {
    const n = prod(shape);
    const dtype = type === TYPES.double ? dtypes.float64 : dtypes.float32;
    if (n === 0) return Tensor.zeros([...shape], { ...c.on, dtype });
    if (seed === undefined)
      return cast(free([...shape], c.on), dtype)
        .mul(times)
        .add(plus);
    if (n > MAX_SEEDED) c.unsupported(`${n} numbers from a seed; up to ${MAX_SEEDED} are drawn`);
    const next = seeded(Math.trunc(seed));
    // the reference computes with doubles, which not every device has
    const numbers = Array.from({ length: n }, () => next() * times + plus);
    return hostTensor(c, numbers, shape, dtype);
  };
export const uniform: DrawNumbers = drawn(mersenne, (shape, options) => Tensor.rand(shape, options));
const gaussian: DrawNumbers = drawn(normal, (shape, options) => Tensor.randn(shape, options));

interface DrawingAttributes {
  readonly dtype: number | undefined;
  readonly seed: number | undefined;
  readonly shape?: readonly number[];
}
function shapeAndType(c: Call<DrawingAttributes>): readonly [readonly number[], ElementType] {
  const { dtype, shape } = c.attr;
  if (shape !== undefined) return [shape, typeOfCode(dtype ?? 1, c.where)];
  return [c.shape(0), dtype === undefined ? c.type(0) : typeOfCode(dtype, c.where)];
}
const DRAWING = { dtype: int(), seed: float() };
const UNIFORM = { ...DRAWING, low: float(0), high: float(1) };
const NORMAL = { ...DRAWING, mean: float(0), scale: float(1) };
const SHAPED = { shape: ints.required };

const uniformly = (c: Call<DrawingAttributes & { low: number; high: number }>): TensorValue => {
  const [shape, type] = shapeAndType(c);
  const { low, high, seed } = c.attr;
  return typed(uniform(c, shape, seed, { times: high - low, plus: low, type }), type);
};
const normally = (c: Call<DrawingAttributes & { mean: number; scale: number }>): TensorValue => {
  const [shape, type] = shapeAndType(c);
  const { seed, scale: times, mean: plus } = c.attr;
  return typed(gaussian(c, shape, seed, { times, plus, type }), type);
};

const bernoulli = random(
  op(DRAWING, (c) => {
    const p = c.t(0);
    const type = c.attr.dtype === undefined ? c.type(0) : typeOfCode(c.attr.dtype, c.where);
    const draw = uniform(c, sizes(p), c.attr.seed, { type: c.type(0) });
    return typed(bool(draw.lt(cast(p, draw.dtype))), type);
  }),
);

/** As many classes of each row as wanted, by their log weights. */
const multinomial = random(
  op({ dtype: int(6), sample_size: int(1), seed: float() }, (c) => {
    const x = c.t(0);
    const [rows, classes] = sizes(x) as [number, number];
    const { sample_size: n, seed, dtype } = c.attr;
    const draw = uniform(c, [rows, n, 1], seed, { type: c.type(0) });
    const total = cast(x, draw.dtype).softmax(1).cumsum(1).reshape([rows, 1, classes]);
    const index = cast(draw.ge(total), dtypes.int32)
      .sum(2)
      .minimum(classes - 1);
    return typed(index, dtype === 6 ? TYPES.int32 : typeOfCode(dtype, c.where));
  }),
);

export const randomOps: OpTable = {
  RandomUniform: random(op({ ...UNIFORM, ...SHAPED }, uniformly)),
  RandomUniformLike: random(op(UNIFORM, uniformly)),
  RandomNormal: random(op({ ...NORMAL, ...SHAPED }, normally)),
  RandomNormalLike: random(op(NORMAL, normally)),
  Bernoulli: bernoulli,
  Multinomial: multinomial,
};
