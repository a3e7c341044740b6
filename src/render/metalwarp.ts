// What the threads of a SIMD group do together, in the Metal Shading Language: values of other threads, and
// products of matrices, of which each thread holds two elements. metal.ts has the rest of the language.

import { dtypes } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { range } from "../helpers.ts";
import type { TensorCore } from "../uop/matrix.ts";
import type { BodyFacts } from "./cstyle.ts";
import type { Helped, WarpWords } from "./warp.ts";

/** simd_shuffle_xor takes neither bools nor integers of 64 bits: those go as words. */
const SHUFFLE = "lane_xor";
export function shuffleHelpers({ body, scalars }: BodyFacts): string[] {
  if (!body.includes(`${SHUFFLE}(`)) return [];
  const long = (type: string): string =>
    `static inline ${type} ${SHUFFLE}(${type} x, ushort mask) { return as_type<${type}>(simd_shuffle_xor(as_type<uint2>(x), mask)); }`;
  return [
    `template <class T> static inline T ${SHUFFLE}(T x, ushort mask) { return simd_shuffle_xor(x, mask); }`,
    ...(scalars.has(dtypes.bool)
      ? [`static inline bool ${SHUFFLE}(bool x, ushort mask) { return simd_shuffle_xor(uint(x), mask)!=0; }`]
      : []),
    ...(scalars.has(dtypes.int64) ? [long("long")] : []),
    ...(scalars.has(dtypes.uint64) ? [long("ulong")] : []),
  ];
}

/** The names that matrices and vectors of these elements begin with. */
const ELEMENTS: Readonly<Record<string, string>> = { float16: "half", float32: "float" };

/** c += a · b; operands come as words, the sum as a vector. */
function multiply(core: TensorCore, a: string, b: string, c: string): Helped {
  const [from, to] = [ELEMENTS[core.from.name], ELEMENTS[core.to.name]];
  if (from === undefined || to === undefined)
    throw new InternalError(`WMMA of ${core.from.name} has no name in Metal`);
  const name = `multiply_${from}_${core.m}x${core.n}x${core.k}`;
  const words = (n: number): string => (n === 1 ? "uint" : `uint${n}`);
  const [na, nb] = [core.a, core.b].map((f) => (f.elements * core.from.itemsize) / 4) as [number, number];
  const matrix = (type: string): string => `simdgroup_matrix<${type},${core.m},${core.n}>`;
  const put = (m: string, n: number, value: string): string =>
    range(n)
      .map((i) => `${m}.thread_elements()[${i}] = ${value}[${i}];`)
      .join(" ");
  const { elements } = core.c;
  const [va, vb] = [core.a.elements, core.b.elements].map((n) => `${from}${n}`);
  return {
    text: `${name}(${a},${b},${c})`,
    helper: `static inline ${to}${elements} ${name}(${words(na)} a, ${words(nb)} b, ${to}${elements} c) {
  ${matrix(from)} ma, mb;
  ${matrix(to)} mc;
  ${va} ea = as_type<${va}>(a);
  ${vb} eb = as_type<${vb}>(b);
  ${put("ma", core.a.elements, "ea")}
  ${put("mb", core.b.elements, "eb")}
  ${put("mc", elements, "c")}
  simdgroup_multiply_accumulate(mc, ma, mb, mc);
  return ${to}${elements}(${range(elements)
    .map((i) => `mc.thread_elements()[${i}]`)
    .join(", ")});
}`,
  };
}

/** Neither copies nor reads of matrices go by themselves: the target says so. */
const none = (what: string): never => {
  throw new InternalError(`Metal has no ${what}`);
};

export const metalWarp: WarpWords = {
  // shuffleHelpers() has its function, one for each type
  shuffle: (x, mask) => ({ text: `${SHUFFLE}(${x},${mask})`, helper: "" }),
  copy: () => none("asynchronous copies"),
  get commit() {
    return none("asynchronous copies");
  },
  wait: () => none("asynchronous copies"),
  loadMatrix: () => none("loads of matrices by all threads of a SIMD group"),
  multiply,
};
