// 64-bit integers in WGSL, as functions on two words, the low one first. Signed ones are in two's complement,
// so add, sub, mul and neg serve both.

export interface HelperText<Name extends string> {
  readonly calls: readonly Name[];
  readonly text: string;
}

export type WideHelper =
  | "neg64"
  | "add64"
  | "sub64"
  | "mul64"
  | "lt64"
  | "ult64"
  | "max64"
  | "umax64"
  | "shl64"
  | "shr64"
  | "ushr64"
  | "abs64"
  | "udivmod64"
  | "udiv64"
  | "umod64"
  | "div64"
  | "mod64"
  | "i32_to_i64"
  | "u64_to_f32"
  | "i64_to_f32"
  | "f32_to_u64"
  | "f32_to_i64";

export const WIDE_HELPERS: Record<WideHelper, HelperText<WideHelper | "is_nan">> = {
  neg64: {
    calls: [],
    text: `fn neg64(a: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(0u - a.x, ~a.y + select(0u, 1u, a.x == 0u));
}`,
  },
  add64: {
    calls: [],
    text: `fn add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}`,
  },
  sub64: {
    calls: [],
    text: `fn sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}`,
  },
  // the low word's product in parts of 16 bits; what is above 64 bits is lost
  mul64: {
    calls: [],
    text: `fn mul64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let a0 = a.x & 0xffffu; let a1 = a.x >> 16u;
  let b0 = b.x & 0xffffu; let b1 = b.x >> 16u;
  let low = a0 * b0;
  let middle = a1 * b0 + (low >> 16u);
  let other = a0 * b1 + (middle & 0xffffu);
  let high = a1 * b1 + (middle >> 16u) + (other >> 16u);
  return vec2<u32>((other << 16u) | (low & 0xffffu), high + a.x * b.y + a.y * b.x);
}`,
  },
  lt64: {
    calls: [],
    text: `fn lt64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return select(bitcast<i32>(a.y) < bitcast<i32>(b.y), a.x < b.x, a.y == b.y);
}`,
  },
  ult64: {
    calls: [],
    text: `fn ult64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return select(a.y < b.y, a.x < b.x, a.y == b.y);
}`,
  },
  max64: {
    calls: ["lt64"],
    text: `fn max64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, lt64(a, b));
}`,
  },
  umax64: {
    calls: ["ult64"],
    text: `fn umax64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, ult64(a, b));
}`,
  },
  // a shift of a word by all of its bits is not defined, so the bits that cross take two shifts
  shl64: {
    calls: [],
    text: `fn shl64(a: vec2<u32>, count: u32) -> vec2<u32> {
  let n = count & 31u;
  if ((count & 32u) != 0u) { return vec2<u32>(0u, a.x << n); }
  return vec2<u32>(a.x << n, (a.y << n) | ((a.x >> 1u) >> (31u - n)));
}`,
  },
  shr64: {
    calls: [],
    text: `fn shr64(a: vec2<u32>, count: u32) -> vec2<u32> {
  let n = count & 31u;
  let high = bitcast<u32>(bitcast<i32>(a.y) >> n);
  if ((count & 32u) != 0u) { return vec2<u32>(high, bitcast<u32>(bitcast<i32>(a.y) >> 31u)); }
  return vec2<u32>((a.x >> n) | ((a.y << 1u) << (31u - n)), high);
}`,
  },
  ushr64: {
    calls: [],
    text: `fn ushr64(a: vec2<u32>, count: u32) -> vec2<u32> {
  let n = count & 31u;
  if ((count & 32u) != 0u) { return vec2<u32>(a.y >> n, 0u); }
  return vec2<u32>((a.x >> n) | ((a.y << 1u) << (31u - n)), a.y >> n);
}`,
  },
  abs64: {
    calls: ["neg64"],
    text: `fn abs64(a: vec2<u32>) -> vec2<u32> {
  return select(a, neg64(a), (a.y >> 31u) != 0u);
}`,
  },
  // long division, a bit of the quotient at a time; those above the dividend's first bit are 0
  udivmod64: {
    calls: ["sub64", "ult64"],
    text: `fn udivmod64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if (a.y == 0u && b.y == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }
  var q = vec2<u32>();
  var r = vec2<u32>();
  let zeros = select(countLeadingZeros(a.y), 32u, a.y == 0u);
  for (var i = 63i - i32(zeros); i >= 0; i--) {
    let carry = r.y >> 31u;
    let word = select(a.x, a.y, i >= 32);
    r = vec2<u32>((r.x << 1u) | ((word >> (u32(i) & 31u)) & 1u), (r.y << 1u) | (r.x >> 31u));
    q = vec2<u32>(q.x << 1u, (q.y << 1u) | (q.x >> 31u));
    if (carry != 0u || !ult64(r, b)) {
      r = sub64(r, b);
      q.x |= 1u;
    }
  }
  return vec4<u32>(q, r);
}`,
  },
  udiv64: {
    calls: ["udivmod64"],
    text: `fn udiv64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return udivmod64(a, b).xy;
}`,
  },
  umod64: {
    calls: ["udivmod64"],
    text: `fn umod64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return udivmod64(a, b).zw;
}`,
  },
  div64: {
    calls: ["udivmod64", "abs64", "neg64"],
    text: `fn div64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let q = udivmod64(abs64(a), abs64(b)).xy;
  return select(q, neg64(q), ((a.y ^ b.y) >> 31u) != 0u);
}`,
  },
  mod64: {
    calls: ["udivmod64", "abs64", "neg64"],
    text: `fn mod64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let r = udivmod64(abs64(a), abs64(b)).zw;
  return select(r, neg64(r), (a.y >> 31u) != 0u);
}`,
  },
  i32_to_i64: {
    calls: [],
    text: `fn i32_to_i64(x: i32) -> vec2<u32> {
  return vec2<u32>(bitcast<u32>(x), bitcast<u32>(x >> 31u));
}`,
  },
  // the first 24 bits, rounded to even by the bits that follow
  u64_to_f32: {
    calls: ["ushr64", "shl64"],
    text: `fn u64_to_f32(a: vec2<u32>) -> f32 {
  let bits = select(64u - countLeadingZeros(a.y), 32u - countLeadingZeros(a.x), a.y == 0u);
  if (bits <= 24u) { return f32(a.x); }
  let drop = bits - 24u;
  let top = ushr64(a, drop).x;
  let rest = shl64(a, 64u - drop);
  let isMore = rest.y > 0x80000000u || (rest.y == 0x80000000u && (rest.x != 0u || (top & 1u) != 0u));
  let mantissa = f32(top + select(0u, 1u, isMore));
  return mantissa * bitcast<f32>((127u + drop) << 23u);
}`,
  },
  i64_to_f32: {
    calls: ["u64_to_f32", "abs64"],
    text: `fn i64_to_f32(a: vec2<u32>) -> f32 {
  let size = u64_to_f32(abs64(a));
  return select(size, -size, (a.y >> 31u) != 0u);
}`,
  },
  // a float has at most 24 bits: both words are exact
  f32_to_u64: {
    calls: ["is_nan"],
    text: `fn f32_to_u64(x: f32) -> vec2<u32> {
  if (is_nan(x) || x < 1.0f) { return vec2<u32>(); }
  if (x >= 18446744073709551616.0f) { return vec2<u32>(0xffffffffu); }
  let t = trunc(x);
  let high = floor(t * 2.3283064365386963e-10f);
  return vec2<u32>(u32(t - high * 4294967296.0f), u32(high));
}`,
  },
  f32_to_i64: {
    calls: ["is_nan", "f32_to_u64", "neg64"],
    text: `fn f32_to_i64(x: f32) -> vec2<u32> {
  if (is_nan(x)) { return vec2<u32>(); }
  if (x >= 9223372036854775808.0f) { return vec2<u32>(0xffffffffu, 0x7fffffffu); }
  if (x <= -9223372036854775808.0f) { return vec2<u32>(0u, 0x80000000u); }
  let size = f32_to_u64(abs(x));
  return select(size, neg64(size), x < 0.0f);
}`,
  },
};
