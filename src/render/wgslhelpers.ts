// Functions that WGSL kernels call for what the language does not promise: NaN, infinity, an exact remainder
// and casts that saturate as castValue does. In go the names a kernel uses, out come their texts, callees
// first.

import { type HelperText, WIDE_HELPERS, type WideHelper } from "./wgslwide.ts";

export type WgslHelper =
  | WideHelper
  | "inf"
  | "nan"
  | "is_nan"
  | "nan_max"
  | "zero_of"
  | "mul_inf"
  | "div_zero"
  | "div_same"
  | "div"
  | "nan_exp2"
  | "fmod"
  | "to_i32"
  | "to_u32";

const HELPERS: Record<WgslHelper, HelperText<WgslHelper>> = {
  ...WIDE_HELPERS,
  // a constant expression must not be infinite, so the bits pass through a variable
  inf: {
    calls: [],
    text: `fn inf() -> f32 {
  var bits = 0x7f800000u;
  return bitcast<f32>(bits);
}`,
  },
  nan: {
    calls: [],
    text: `fn nan() -> f32 {
  var bits = 0x7fc00000u;
  return bitcast<f32>(bits);
}`,
  },
  // by its bits, because x == x may be taken for true
  is_nan: {
    calls: [],
    text: `fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}`,
  },
  nan_max: {
    calls: ["is_nan"],
    text: `fn nan_max(a: f32, b: f32) -> f32 {
  if (is_nan(a)) { return a; }
  if (is_nan(b)) { return b; }
  return max(a, b);
}`,
  },
  // a product with 0 and x - x may be taken for 0, which they are not for NaN and infinities
  zero_of: {
    calls: ["nan"],
    text: `fn zero_of(x: f32) -> f32 {
  if ((bitcast<u32>(x) & 0x7f800000u) == 0x7f800000u) { return nan(); }
  return 0.0f;
}`,
  },
  // where x is known to be 0, so may this product be
  mul_inf: {
    calls: ["nan", "is_nan"],
    text: `fn mul_inf(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits << 1u) == 0u || is_nan(x)) { return nan(); }
  return bitcast<f32>(0x7f800000u | (bits & 0x80000000u));
}`,
  },
  // x / x may be taken for 1
  div_same: {
    calls: ["nan"],
    text: `fn div_same(x: f32) -> f32 {
  let size = bitcast<u32>(x) & 0x7fffffffu;
  if (size == 0u || size >= 0x7f800000u) { return nan(); }
  return 1.0f;
}`,
  },
  // WGSL promises nothing for divisors above 2^126
  div: {
    calls: [],
    text: `fn div(a: f32, b: f32) -> f32 {
  let scale = select(1.0f, 0.25f, abs(b) > 8.507059e37f);
  return (a * scale) / (b * scale);
}`,
  },
  // 0 / x may be taken for 0 as well
  div_zero: {
    calls: ["nan", "is_nan"],
    text: `fn div_zero(x: f32) -> f32 {
  if (x == 0.0f || is_nan(x)) { return nan(); }
  return 0.0f;
}`,
  },
  // SwiftShader gives infinity for NaN
  nan_exp2: {
    calls: ["is_nan"],
    text: `fn nan_exp2(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  return exp2(x);
}`,
  },
  // long division of the mantissas, eight bits of quotient at a time
  fmod: {
    calls: ["nan"],
    text: `fn fmod(x: f32, y: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let ux = bits & 0x7fffffffu;
  let uy = bitcast<u32>(y) & 0x7fffffffu;
  if (uy == 0u || ux >= 0x7f800000u || uy > 0x7f800000u) { return nan(); }
  if (ux < uy) { return x; }
  let ey = max(i32(uy >> 23u), 1);
  let my = select((uy & 0x7fffffu) | 0x800000u, uy, uy < 0x800000u);
  var m = select((ux & 0x7fffffu) | 0x800000u, ux, ux < 0x800000u) % my;
  var e = max(i32(ux >> 23u), 1) - ey;
  while (e > 0) {
    let step = min(e, 8);
    m = (m << u32(step)) % my;
    e -= step;
  }
  let shift = max(min(i32(countLeadingZeros(m)) - 8, ey - 1), 0);
  m = m << u32(shift);
  let r = select(m, (m & 0x7fffffu) | (u32(ey - shift) << 23u), m >= 0x800000u);
  return bitcast<f32>((bits & 0x80000000u) | r);
}`,
  },
  to_i32: {
    calls: ["is_nan"],
    text: `fn to_i32(x: f32) -> i32 {
  if (is_nan(x)) { return 0; }
  if (x >= 2147483648.0f) { return 2147483647; }
  if (x <= -2147483648.0f) { return i32(-2147483648); }
  return i32(x);
}`,
  },
  // saturates at 64 bits and keeps the low 32 of them
  to_u32: {
    calls: ["is_nan"],
    text: `fn to_u32(x: f32) -> u32 {
  if (is_nan(x) || x <= -9223372036854775808.0f) { return 0u; }
  if (x >= 9223372036854775808.0f) { return 0xffffffffu; }
  let t = trunc(abs(x));
  let low = u32(t - floor(t * 2.3283064365386963e-10f) * 4294967296.0f);
  return select(low, 0u - low, x < 0.0f);
}`,
  },
};

export function helperTexts(names: Iterable<string>): string[] {
  const wanted = new Set<WgslHelper>();
  const want = (name: WgslHelper): void => {
    if (wanted.has(name)) return;
    for (const callee of HELPERS[name].calls) want(callee);
    wanted.add(name);
  };
  for (const name of names as Iterable<WgslHelper>) want(name);
  return [...wanted].map((name) => HELPERS[name].text);
}
