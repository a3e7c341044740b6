// Operators that work element by element, and those that make tensors from nothing.

import { type DTypeName, Tensor } from "gradloom";
import { type Call, camel, type Handler, invoke, method, statically, type Table, Unset } from "./call.ts";
import type { Arg } from "./sample.ts";

const UNARY =
  "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac " +
  "isfinite isinf isnan isneginf isposinf isreal lgamma log log10 log1p log2 logical_not neg positive rad2deg reciprocal " +
  "rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc bitwise_not angle i0 relu clone";
const BINARY =
  "atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign eq float_power " +
  "floor_divide fmax fmin fmod ge gt heaviside hypot le logaddexp logaddexp2 logical_and logical_or logical_xor lt " +
  "maximum minimum mul ne nextafter pow remainder xlogy gcd lcm";

const rows = (names: string, spec: string): Table =>
  Object.fromEntries(names.split(" ").map((n) => [n, spec]));

/** The device of a sample is where torch ran it; we run it where we were told to. */
const PLACE = "~device ~layout ~pin_memory ~requires_grad ~memory_format";

/** cond.where(x, y), which torch also spells x.where(cond, y). */
const where: Handler = (c) => {
  const { condition, other } = c.named("condition", "other");
  return (condition as Tensor).where(c.input as Tensor, other as Tensor);
};
/** What lies in new memory is anybody's guess: only shape and type are compared. */
const unset: Handler = (c) => {
  const { dtype } = c.named("dtype", "device", "layout", "pin_memory", "requires_grad", "memory_format");
  const made = c.tensor.emptyLike(dtype === undefined ? {} : { dtype: dtype as DTypeName });
  return new Unset(made);
};
/** A number may stand on the left: a 0-d tensor promotes as it does. */
const asTensor = (x: Arg): Tensor => (x instanceof Tensor ? x : new Tensor(x as number));
const numberFirst = (names: string): Table =>
  Object.fromEntries(
    names
      .split(" ")
      .map((n) => [n, (c: Call) => invoke(asTensor(c.input), camel(n), c.named("other").other)]),
  );
const scaled =
  (name: string): Handler =>
  (c) => {
    const { other, alpha } = c.named("other", "alpha");
    return invoke(asTensor(c.input), name, other, alpha === undefined ? {} : { alpha });
  };

export const elementwise: Table = {
  ...rows(UNARY, ""),
  ...numberFirst(BINARY),
  ldexp: "other",
  dist: "other p",
  equal: async (c) => Boolean(await c.tensor.equal(c.named("other").other as Tensor).item()),
  clone: "~memory_format",
  pow: (c) => invoke(asTensor(c.input), "pow", c.named("exponent").exponent),
  float_power: (c) => invoke(asTensor(c.input), "floatPower", c.named("exponent").exponent),
  add: scaled("add"),
  sub: scaled("sub"),
  rsub: "other *alpha",
  div: (c) => {
    const { other, rounding_mode } = c.named("other", "rounding_mode");
    const options = rounding_mode === undefined ? {} : { roundingMode: rounding_mode };
    return invoke(asTensor(c.input), "div", other, options);
  },
  true_divide: (c) => invoke(asTensor(c.input), "div", c.named("other").other),
  addcdiv: "tensor1 tensor2 *value",
  addcmul: "tensor1 tensor2 *value",
  clamp: "min max",
  clamp_min: "min",
  clamp_max: "max",
  fill: "value",
  isclose: "other *rtol *atol *equal_nan",
  allclose: async (c) => {
    const { other, ...options } = c.named("other", "rtol", "atol", "equal_nan");
    const spelt = { rtol: options.rtol, atol: options.atol, equalNan: options.equal_nan };
    const given = Object.fromEntries(Object.entries(spelt).filter(([, v]) => v !== undefined));
    const answer = await invoke(c.tensor, "allclose", other, given);
    return answer instanceof Tensor ? Boolean(await answer.item()) : answer;
  },
  lerp: "end weight",
  logit: "eps",
  mvlgamma: "p",
  nan_to_num: "nan posinf neginf",
  round: "decimals",
  where,

  // with one number it is the end
  arange: (c) => {
    const a = c.named("end", "step", "dtype", "device", "layout", "pin_memory", "requires_grad");
    const numbers = [c.input, a.end, a.step].filter((x) => x !== undefined).map(Number);
    return invoke(Tensor, "arange", ...numbers, a.dtype === undefined ? {} : { dtype: a.dtype });
  },
  empty_like: unset,
  eye: (c) => {
    const { m, dtype } = c.named("m", "dtype", "device", "requires_grad", "layout");
    return invoke(Tensor, "eye", c.input, m ?? c.input, { dtype });
  },
  full: statically("full", `fill_value *dtype ${PLACE}`),
  full_like: `fill_value *dtype ${PLACE}`,
  linspace: statically("linspace", `end steps *dtype ${PLACE}`),
  logspace: (c) => {
    const { end, steps, base, dtype } = c.named("end", "steps", "base", "dtype", "device", "layout");
    return invoke(Tensor, "logspace", c.input, end, steps, base ?? 10, { dtype });
  },
  ones: statically("ones", `*dtype ${PLACE}`),
  ones_like: `*dtype ${PLACE}`,
  zeros: statically("zeros", `*dtype ${PLACE}`),
  zeros_like: `*dtype ${PLACE}`,
  to: method("cast", "dtype"),
};
