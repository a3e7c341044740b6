// A stand-in for metal_stdlib: clang++ and g++ check Metal kernels with it where no Metal is, and run them. A
// threadgroup's threads are fibres that take turns at barriers, in another order each time, so that a missing
// barrier shows; values of other threads and matrices of a SIMD group go through slots. What no hardware
// would survive (a barrier that some threads do not reach) ends the run with a message. Kernels run on Linux.

const SCALARS = ["float", "half", "int", "uint", "char", "uchar", "short", "ushort", "long", "ulong", "bool"];

/** Bits of a half by software: not every compiler has the type in C++. */
const HALF = `
struct half {
  ushort bits;
  half() {}
  half(float x) {
    uint u; __builtin_memcpy(&u, &x, 4);
    uint sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
    if (magnitude > 0x7f800000) bits = sign | 0x7e00;
    else if (magnitude >= 0x477ff000) bits = sign | 0x7c00;
    else if (magnitude >= 0x38800000) bits = sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    else { float m; __builtin_memcpy(&m, &magnitude, 4); bits = sign | (ushort)__builtin_nearbyintf(m * 16777216.0f); }
  }
  operator float() const {
    uint sign = (uint)(bits & 0x8000) << 16, rest = bits & 0x7fff, u;
    float x;
    if (rest >= 0x7c00) u = 0x7f800000 | (rest & 0x3ff) << 13;
    else if (rest >= 0x400) u = (rest << 13) + 0x38000000;
    else { x = rest / 16777216.0f; __builtin_memcpy(&u, &x, 4); }
    u |= sign; __builtin_memcpy(&x, &u, 4);
    return x;
  }
  half operator-() const { half r; r.bits = bits ^ 0x8000; return r; }
};
${["+", "-", "*", "/"].map((o) => `inline half operator${o}(half a, half b) { return half((float)a ${o} (float)b); }`).join("\n")}
${["<", ">", "==", "!="].map((o) => `inline bool operator${o}(half a, half b) { return (float)a ${o} (float)b; }`).join("\n")}`;

/** Threads as fibres, and what they do together. */
const THREADS = `
namespace fibres {
enum State { RUNS, AT_BARRIER, AT_SIMD, ENDED };
const int SLOT = 32;
struct Fibre { ucontext_t context; char* stack; State state; int together; uint3 lid; char slots[2][SLOT]; };
static ucontext_t scheduler;
static Fibre* all;
static int count, current;
static void (*body)(uint3, uint3);
static uint3 group;
static uint turn = 1;
/** what a launch is given */
static void** buffers;
static const int* vals;

inline void fault(const char* what) { dprintf(2, "%s\\n", what); exit(3); }
inline void pause(State state) { Fibre& f = all[current]; f.state = state; swapcontext(&f.context, &scheduler); }
/** Shows a value to the SIMD group; the slot of one of its threads. */
inline const char* exchange(const void* mine, int bytes, int lane) {
  Fibre& f = all[current];
  int side = f.together++ & 1, first = current / 32 * 32;
  __builtin_memcpy(f.slots[side], mine, bytes);
  pause(AT_SIMD);
  if (first + lane >= count) fault("a value of a thread that is not there");
  return all[first + lane].slots[side];
}
inline const char* slotOf(int lane) {
  Fibre& f = all[current / 32 * 32 + lane];
  return f.slots[(all[current].together - 1) & 1];
}
inline void start() { body(group, all[current].lid); all[current].state = ENDED; swapcontext(&all[current].context, &scheduler); }
/** Lets those go on whom nobody has to wait for any more; whether there are any. */
inline bool release() {
  bool moved = false;
  int barriers = 0, ended = 0;
  for (int i = 0; i < count; i++) { barriers += all[i].state == AT_BARRIER; ended += all[i].state == ENDED; }
  if (barriers == count) { for (int i = 0; i < count; i++) all[i].state = RUNS; return true; }
  for (int first = 0; first < count; first += 32) {
    int last = first + 32 < count ? first + 32 : count, ready = 0;
    for (int i = first; i < last; i++) ready += all[i].state == AT_SIMD;
    if (ready != last - first) continue;
    for (int i = first; i < last; i++) all[i].state = RUNS;
    moved = true;
  }
  if (!moved && ended != count) fault("some threads wait at a barrier or shuffle that others never reach");
  return moved;
}
inline void runGroup(uint3 local) {
  const int STACK = 64 << 10;
  count = local.x * local.y * local.z;
  if (count < 1 || count > 1024) fault("a threadgroup has 1 to 1024 threads");
  all = new Fibre[count];
  for (int i = 0; i < count; i++) {
    Fibre& f = all[i];
    f.state = RUNS; f.together = 0; f.stack = new char[STACK];
    f.lid = uint3{uint(i % local.x), uint(i / local.x % local.y), uint(i / (local.x * local.y))};
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack; f.context.uc_stack.ss_size = STACK; f.context.uc_link = 0;
    makecontext(&f.context, start, 0);
  }
  do {
    turn = turn * 1664525 + 1013904223;
    for (int n = 0, from = turn >> 8; n < count; n++) {
      int i = (turn & 0x80000000 ? from + n : from + count - n) % count;
      if (all[i].state != RUNS) continue;
      current = i;
      swapcontext(&scheduler, &all[i].context);
    }
  } while (release());
  for (int i = 0; i < count; i++) delete[] all[i].stack;
  delete[] all;
}
inline void runGrid(void (*kernel_)(uint3, uint3), const uint* groups, const uint* local) {
  body = kernel_;
  for (uint z = 0; z < groups[2]; z++) for (uint y = 0; y < groups[1]; y++) for (uint x = 0; x < groups[0]; x++) {
    group = uint3{x, y, z};
    runGroup(uint3{local[0], local[1], local[2]});
  }
}
}`;

const FUNCTIONS = ["exp2", "log2", "sin", "cos", "sqrt", "trunc"]
  .map((f) => `inline float ${f}(float x) { return __builtin_${f}f(x); }`)
  .join("\n");

/** How threads hold a matrix: worked out from thread numbers, not from the table that the compiler has. */
const MATRICES = `
template <class T, int R, int C> struct simdgroup_matrix { T held[2]; T* thread_elements() { return held; } };
inline void place(int lane, int element, int& row, int& column) {
  int quad = lane / 4;
  row = (quad & 4) + lane / 2 % 4;
  column = (quad & 2) * 2 + lane % 2 * 2 + element;
}
template <class T> void simdgroup_multiply_accumulate(simdgroup_matrix<float, 8, 8>& d, simdgroup_matrix<T, 8, 8> a,
    simdgroup_matrix<T, 8, 8> b, simdgroup_matrix<float, 8, 8> c) {
  float mine[4] = {(float)a.held[0], (float)a.held[1], (float)b.held[0], (float)b.held[1]};
  fibres::exchange(mine, sizeof(mine), 31);
  float left[8][8], right[8][8];
  for (int lane = 0; lane < 32; lane++) for (int e = 0; e < 2; e++) {
    int row, column; place(lane, e, row, column);
    const float* theirs = (const float*)fibres::slotOf(lane);
    left[row][column] = theirs[e]; right[row][column] = theirs[2 + e];
  }
  for (int e = 0; e < 2; e++) {
    int row, column; place(fibres::current % 32, e, row, column);
    float sum = c.held[e];
    for (int k = 0; k < 8; k++) sum += left[row][k] * right[k][column];
    d.held[e] = sum;
  }
}`;

export const METAL_STDLIB = `#pragma once
#ifdef _WIN32
struct ucontext_t { struct { void* ss_sp; unsigned long ss_size; } uc_stack; ucontext_t* uc_link; };
extern "C" int getcontext(ucontext_t*);
extern "C" int swapcontext(ucontext_t*, const ucontext_t*);
extern "C" void makecontext(ucontext_t*, void (*)(), int, ...);
#else
#define _XOPEN_SOURCE 700
#include <ucontext.h>
#endif
extern "C" void exit(int) noexcept(true);
extern "C" int dprintf(int, const char*, ...);
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
${HALF}
template <class T, int N> struct vec;
template <class T> struct alignas(2 * sizeof(T)) vec<T, 2> {
  T x, y; vec() {} vec(T a, T b) : x(a), y(b) {}
  T operator[](int i) const { return i == 0 ? x : y; }
};
template <class T> struct alignas(4 * sizeof(T)) vec<T, 4> {
  T x, y, z, w; vec() {} vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  T operator[](int i) const { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
};
struct uint3 { uint x, y, z; };
namespace metal {
${[2, 4].flatMap((n) => SCALARS.map((s) => `using ${s}${n} = vec<${s}, ${n}>;`)).join("\n")}
${THREADS}
enum class mem_flags { mem_none, mem_device, mem_threadgroup };
inline void threadgroup_barrier(mem_flags) { fibres::pause(fibres::AT_BARRIER); }
template <class T, class F> T as_type(F x) {
  static_assert(sizeof(T) == sizeof(F), "as_type");
  T y; __builtin_memcpy(&y, &x, sizeof(T)); return y;
}
/** Not of bool and not of 64 bits, as in Metal. */
template <class T> T simd_shuffle_xor(T x, ushort mask) {
  static_assert(sizeof(T) <= 4 || alignof(T) == 8, "simd_shuffle_xor");
  T y; __builtin_memcpy(&y, fibres::exchange(&x, sizeof(T), fibres::current % 32 ^ mask), sizeof(T)); return y;
}
inline bool simd_shuffle_xor(bool, ushort) = delete;
inline long simd_shuffle_xor(long, ushort) = delete;
inline ulong simd_shuffle_xor(ulong, ushort) = delete;
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
namespace precise {
${FUNCTIONS}
inline float fmod(float x, float y) { return __builtin_fmodf(x, y); }
}
${MATRICES}
}
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define kernel
#define device
#define constant const
#define threadgroup
`;
