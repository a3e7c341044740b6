// Operators that work element by element, and those that make tensors from nothing.

import { Tensor } from "gradloom";
import { type Handler, invoke, method, statically, type Table } from "./call.ts";
import type { Arg } from "./sample.ts";

const UNARY =
  "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac " +
  "isfinite isinf isnan isneginf isposinf isreal lgamma log log10 log1p log2 logical_not neg positive rad2deg reciprocal " +
  "rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc bitwise_not angle i0 relu clone";
const BINARY =
  "atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign eq float_power " +
  "floor_divide fmax fmin fmod ge gt heaviside hypot le logaddexp logaddexp2 logical_and logical_or logical_xor lt " +
  "maximum minimum mul ne nextafter pow remainder xlogy gcd lcm ldexp dist equal";

const rows = (names: string, spec: string): Table =>
  Object.fromEntries(names.split(" ").map((n) => [n, spec]));

/** The device of a sample is where torch ran it; we run it where we were told to. */
const PLACE = "~device ~layout ~pin_memory ~requires_grad ~memory_format";

/** cond.where(x, y), which torch also spells x.where(cond, y). */
const where: Handler = (c) => {
  const { condition, other } = c.named("condition", "other");
  return (condition as Tensor).where(c.tensor, other as Tensor);
};
/** Numbers may stand on the left of a power or an xlogy. */
const asTensor = (x: Arg): Tensor => (x instanceof Tensor ? x : new Tensor(x as number));

export const elementwise: Table = {
  ...rows(UNARY, ""),
  ...rows(BINARY, "other"),
  pow: (c) => invoke(asTensor(c.input), "pow", c.named("exponent").exponent),
  float_power: (c) => invoke(asTensor(c.input), "floatPower", c.named("exponent").exponent),
  add: "other *alpha",
  sub: "other *alpha",
  rsub: "other *alpha",
  div: "other *rounding_mode",
  true_divide: method("div", "other"),
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
  polygamma: (c) => invoke(c.named("self").self as Tensor, "polygamma", c.input),
  round: "decimals",
  where,

  arange: statically("arange", `end step *dtype ${PLACE}`),
  empty_like: `*dtype ${PLACE}`,
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
