// A stand-in for metal_stdlib, so that clang++ can check Metal kernels for names and types where no Metal is.
// It declares only what our kernels use and computes nothing.

const scalars = ["float", "half", "int", "uint", "char", "uchar", "short", "ushort", "long", "ulong", "bool"];

export const METAL_STDLIB = `#pragma once
#define kernel extern "C"
#define device
#define constant const
#define threadgroup
typedef __fp16 half;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
namespace metal {
template <class T> struct vec4 { T x, y, z, w; vec4(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {} };
${scalars.map((s) => `using ${s}4 = vec4<${s}>;`).join("\n")}
struct uint3 { uint x, y, z; };
enum class mem_flags { mem_none, mem_device, mem_threadgroup };
void threadgroup_barrier(mem_flags);
template <class T, class F> T as_type(F x) { static_assert(sizeof(T) == sizeof(F), "as_type"); return T(); }
namespace precise {
${["exp2", "log2", "sin", "cos", "sqrt", "trunc"].map((f) => `float ${f}(float);`).join("\n")}
float fmod(float, float);
}
}
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
`;
