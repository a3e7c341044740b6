// Headers of the CUDA toolkit that rendered kernels include, in our own words: NVRTC alone, as the driver's
// machine or a wheel has it, brings none. They define what src/render spells and no more; where the toolkit's
// own are found, those are used (nvrtc.ts).

const BINARY = ["+", "-", "*", "/"];
const COMPARE = ["<", ">", "<=", ">=", "==", "!="];

/** Every op on halves rounds the float result once: for + - * / that is the correctly rounded half. */
const FP16 = `#pragma once
struct __align__(2) half {
  unsigned short bits;
  half() = default;
  template <class T> __device__ explicit half(T x) { *this = fromFloat((float)x); }
  __device__ explicit half(double x) {
    asm("{ .reg .b16 h; cvt.rn.f16.f64 h, %1; mov.b16 %0, h; }" : "=h"(bits) : "d"(x));
  }
  __device__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
  static __device__ half fromFloat(float x) {
    half h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
    return h;
  }
  __device__ half operator-() const { half h; h.bits = bits ^ 0x8000; return h; }
};
${BINARY.map((op) => `static __device__ inline half operator${op}(half a, half b) { return half::fromFloat((float)a ${op} (float)b); }`).join("\n")}
${COMPARE.map((op) => `static __device__ inline bool operator${op}(half a, half b) { return (float)a ${op} (float)b; }`).join("\n")}
static __device__ inline half __shfl_xor_sync(unsigned mask, half x, int lane) {
  half h;
  h.bits = (unsigned short)__shfl_xor_sync(mask, (unsigned)x.bits, lane);
  return h;
}
typedef half __half;
`;

/** By the name that `#include` gives. */
export const HEADERS: Readonly<Record<string, string>> = { "cuda_fp16.h": FP16 };
