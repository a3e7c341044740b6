// Conversions of the element type, and quantisation: from numbers to few bits with a scale, and back. A
// float of a byte or less is rounded here to the values that its type has, and carried as float32.

import { dtypes } from "../../dtype.ts";
import { range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { type ElementType, encodeElements, TYPES, typeOfCode } from "../elements.ts";
import { rawHost, TensorValue } from "../values.ts";
import { bool, cast, sizes, typed } from "./common.ts";
import { type Call, flag, int, type OpTable, op, string, type Versions, versions } from "./op.ts";

interface Rounding {
  readonly saturate: boolean;
  readonly round_mode: string;
}

/** A power of two that is not above the magnitude of `x`: its exponent alone. */
const binade = (x: Tensor): Tensor => x.bitcast(dtypes.int32).bitwiseAnd(0x7f800000).bitcast(dtypes.float32);

/** The nearest values of a float of a byte or less, ties to even; too large ones as `saturate` says. */
export function roundSmall(given: Tensor, type: ElementType, saturate: boolean): Tensor {
  const { small } = type;
  if (small === undefined) return given;
  const x = cast(given, dtypes.float32);
  const step = binade(x)
    .maximum(2 ** (1 - small.bias))
    .mul(2 ** -small.mantissa);
  const rounded = x.div(step).round().mul(step);
  const positive = x.ge(0);
  const limit = positive.where(Tensor.full([], small.max, on(x)), Tensor.full([], -small.max, on(x)));
  const keeps = saturate || !small.hasNan;
  const over = keeps ? limit : small.hasInfinity ? limit.mul(Infinity) : limit.mul(Number.NaN);
  // infinite steps make NaN of infinities: they are too large, too
  const isLarge = rounded.abs().gt(small.max).bitwiseOr(x.abs().eq(Infinity));
  const bounded = isLarge.where(over, rounded);
  const plain = small.isUnsignedZero ? bounded.eq(0).where(bounded.abs(), bounded) : bounded;
  return small.hasNan ? plain : x.ne(x).where(x.zerosLike(), plain);
}
const on = (x: Tensor): { dtype: typeof x.dtype; device: string } => ({ dtype: x.dtype, device: x.device });

/** The exponent alone: a power of two of 2^-127 to 2^127, or NaN. */
function toPower(given: Tensor, { round_mode, saturate }: Rounding): Tensor {
  const x = cast(given, dtypes.float32).abs();
  const down = binade(x).maximum(2 ** -127);
  const fraction = x.div(down);
  const isUp =
    round_mode === "up" ? fraction.gt(1) : round_mode === "down" ? bool(x.zerosLike()) : fraction.ge(1.5);
  const lifted = isUp.where(down.mul(2), down);
  const isLarge = lifted.gt(2 ** 127);
  const top = saturate ? 2 ** 127 : Number.NaN;
  return x.ne(x).where(x, isLarge.where(Tensor.full([], top, on(x)), lifted));
}

/** Integers of less than a byte keep their low bits. */
function lowBits(x: Tensor, { bits, dtype, isSigned }: ElementType): Tensor {
  const wide = cast(x, dtypes.int32).bitwiseAnd(2 ** bits - 1);
  const half = 2 ** (bits - 1);
  return cast(isSigned ? wide.ge(half).where(wide.sub(2 ** bits), wide) : wide, dtype);
}

export function convert(x: Tensor, to: ElementType, rounding: Rounding): TensorValue {
  if (to === TYPES.float8e8m0) return typed(toPower(x, rounding), to);
  if (to.small !== undefined) return typed(roundSmall(x, to, rounding.saturate), to);
  return typed(to.bits < 8 ? lowBits(x, to) : x, to);
}

/** Numbers as texts: integers whole, floats as short as they can be said in their type. */
function textsOf(call: Call, value: TensorValue): TensorValue | Promise<TensorValue> {
  const say = (host: { data: ArrayLike<number | bigint> }): TensorValue => {
    const data = Array.from(host.data, (x) => spelled(x, value.type));
    return TensorValue.ofTexts({ shape: value.shape, data }, call.sources);
  };
  const host = call.env.read(value);
  return host instanceof Promise ? host.then(say) : say(host as Awaited<typeof host>);
}
function spelled(x: number | bigint, type: ElementType): string {
  if (type === TYPES.bool) return x ? "True" : "False";
  if (typeof x === "bigint" || !type.dtype.isFloat) return String(x);
  if (Number.isNaN(x)) return "NaN";
  if (Math.abs(x) === Infinity) return x > 0 ? "INF" : "-INF";
  const short =
    type === TYPES.double
      ? x
      : (range(17)
          .map((n) => Number(x.toPrecision(n + 1)))
          .find((y) => Math.fround(y) === x) ?? x);
  return Number.isInteger(short) && Math.abs(short) < 1e16 ? short.toFixed(1) : String(short);
}
function parsed(call: Call, value: TensorValue, to: ElementType): TensorValue {
  const special: Readonly<Record<string, number>> = {
    inf: Infinity,
    "+inf": Infinity,
    "-inf": -Infinity,
    nan: Number.NaN,
  };
  const data = value.texts.map((text) => {
    const t = text.trim();
    if (to.dtype.isBig && /^[+-]?\d+$/.test(t)) return BigInt(t);
    const x = special[t.toLowerCase()] ?? Number(t);
    if (t === "" || (Number.isNaN(x) && t.toLowerCase() !== "nan")) call.fail(`"${text}" is not a number`);
    return to.dtype.isBig ? BigInt(Math.trunc(x)) : to.dtype.isInt ? Math.trunc(x) : x;
  });
  return call.known(to, value.shape, data);
}

function castTo(call: Call<Rounding>, to: ElementType): TensorValue | Promise<TensorValue> {
  const value = call.value(0);
  if (to === TYPES.string) return value.isText ? value : textsOf(call, value);
  if (value.isText) return parsed(call, value, to);
  return convert(value.tensor, to, call.attr);
}
const ROUNDING = { saturate: flag(true), round_mode: string("up") };

/** The same bits. Types that a wider dtype carries are read on the host. */
async function bitCast(call: Call<{ to: number }>): Promise<TensorValue> {
  const value = call.value(0);
  const to = typeOfCode(call.attr.to, call.where);
  if (to.bits !== value.type.bits || to === TYPES.string)
    call.fail(`${value.type.name} has ${value.type.bits} bits, ${to.name} ${to.bits}`);
  const isPlain = (t: ElementType): boolean => t.stored === t.dtype;
  if (isPlain(value.type) && isPlain(to) && value.type !== TYPES.bool && to !== TYPES.bool)
    return typed(value.tensor.bitcast(to.dtype), to);
  const host = await call.env.read(value);
  return TensorValue.ofHost(
    rawHost(to, value.shape, encodeElements(value.type, host.data)),
    call.device,
    call.sources,
  );
}

// ---- quantisation ----

/**
 * A scale or zero point, so that it broadcasts against the values: one for all, one an index, one a block.
 */
export function spread(call: Call, part: Tensor, x: Tensor, axis: number, block: number): Tensor {
  if (part.size === 1 && part.ndim <= 1) return part.reshape([]);
  const at = axis < 0 ? axis + x.ndim : axis;
  if (part.ndim === 1 && block === 0) {
    if (part.shape[0] !== x.shape[at])
      call.fail(`${part.shape[0]} scales for dim ${at} of [${x.shape.join(", ")}]`);
    return part.reshape(sizes(x).map((_, d) => (d === at ? -1 : 1)));
  }
  const blocks = part.shape[at] as number;
  const each = block === 0 ? Math.ceil((x.shape[at] as number) / blocks) : block;
  const shape = sizes(part).toSpliced(at + 1, 0, 1);
  const wide = part.reshape(shape).expand(shape.with(at + 1, each));
  const flat = wide.reshape(sizes(part).with(at, blocks * each));
  return flat.shrink(sizes(flat).map((n, d) => [0, d === at ? (x.shape[at] as number) : n]));
}

const LIMITS = ({ bits, isSigned }: ElementType): readonly [number, number] =>
  isSigned ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];

/** Numbers that are to be stored in few bits: rounded, shifted, and kept within the type. */
export function quantised(
  scaled: Tensor,
  zero: Tensor | undefined,
  type: ElementType,
  saturate = true,
): TensorValue {
  if (type.small !== undefined) {
    return typed(
      roundSmall(zero === undefined ? scaled : scaled.add(cast(zero, scaled.dtype)), type, saturate),
      type,
    );
  }
  const [low, high] = LIMITS(type);
  const wide = cast(scaled.round(), dtypes.float32);
  const shifted = zero === undefined ? wide : wide.add(cast(zero, dtypes.float32));
  return typed(shifted.maximum(low).minimum(high), type);
}

interface Quantising {
  readonly axis: number;
  readonly block_size: number;
  readonly output_dtype: number;
  readonly saturate: boolean;
  readonly precision: number;
}
function quantizeLinear(call: Call<Quantising>): TensorValue {
  const { axis, block_size, output_dtype, saturate, precision } = call.attr;
  const x = call.t(0);
  const zero = call.maybe(2);
  const stated = output_dtype === 0 ? TYPES.uint8 : typeOfCode(output_dtype, call.where);
  const type = call.has(2) ? call.type(2) : stated;
  const dtype = precision === 0 ? call.t(1).dtype : typeOfCode(precision, call.where).dtype;
  const fitted = (part: Tensor): Tensor => spread(call, part, x, axis, block_size);
  const scaled = cast(x, dtype).div(cast(fitted(call.t(1)), dtype));
  return quantised(scaled, zero === undefined ? undefined : fitted(zero), type, saturate);
}
function dequantizeLinear(call: Call<Omit<Quantising, "saturate" | "precision">>): TensorValue {
  const { axis, block_size, output_dtype } = call.attr;
  const x = call.t(0);
  const zero = call.maybe(2);
  const scaleType = call.type(1);
  const own = scaleType === TYPES.float8e8m0 ? TYPES.float : scaleType;
  const type = output_dtype === 0 ? own : typeOfCode(output_dtype, call.where);
  const fitted = (part: Tensor): Tensor => spread(call, part, x, axis, block_size);
  const isInt = x.dtype.isInt;
  const wide = isInt ? cast(x, dtypes.int32) : x;
  const shifted = zero === undefined ? wide : wide.sub(cast(fitted(zero), wide.dtype));
  const product = cast(shifted, dtypes.float32).mul(cast(fitted(call.t(1)), dtypes.float32));
  return typed(product, type);
}
const PLACE = { axis: int(1), block_size: int(0), output_dtype: int(0) };

/** Codes from 0 to 255 that reach from the smallest to the largest number; one of them stands for 0. */
export function dynamicallyQuantised(x: Tensor): {
  readonly codes: TensorValue;
  readonly scale: Tensor;
  readonly zero: TensorValue;
} {
  const [low, high] = [x.min().minimum(0), x.max().maximum(0)];
  const scale = high.sub(low).div(255);
  const zero = low.neg().div(scale).maximum(0).minimum(255).round();
  const safe = scale.eq(0).where(scale.onesLike(), scale);
  const origin = scale.eq(0).where(zero.zerosLike(), zero);
  const codes = quantised(x.div(safe), origin, TYPES.uint8);
  return { codes, scale, zero: typed(origin, TYPES.uint8) };
}
function dynamicQuantizeLinear(call: Call): readonly (TensorValue | Tensor)[] {
  const { codes, scale, zero } = dynamicallyQuantised(call.t(0));
  return [codes, scale, zero];
}

export const castOps: OpTable = {
  Cast: op({ ...ROUNDING, to: int.required }, (c) => castTo(c, typeOfCode(c.attr.to, c.where))),
  CastLike: op(ROUNDING, (c) => castTo(c, c.type(1))),
  BitCast: op({ to: int.required }, bitCast),
  QuantizeLinear: op({ ...PLACE, saturate: flag(true), precision: int(0) }, quantizeLinear) as Versions,
  DequantizeLinear: versions(op(PLACE, dequantizeLinear)),
  DynamicQuantizeLinear: op({}, dynamicQuantizeLinear),
};
