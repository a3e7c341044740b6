// What the threads of a warp of an NVIDIA GPU (Ampere and later) do together, as functions of CUDA C++ around
// PTX instructions: asynchronous copies from global to shared memory, reading matrices from shared memory,
// and products of matrices. Also, how many workgroups should share a multiprocessor. languages.ts has the
// rest of the language.

import { InternalError } from "../errors.ts";
import { range } from "../helpers.ts";
import type { TensorCore } from "../uop/matrix.ts";
import type { LaunchFacts } from "./cstyle.ts";
import type { Helped, WarpWords } from "./warp.ts";

const words = (n: number): string => (n === 1 ? "unsigned" : `uint${n}`);
const parts = (x: string, n: number): string[] => range(n).map((i) => `${x}.${"xyzw"[i]}`);
const list = (from: number, n: number): string =>
  `{${range(n)
    .map((i) => `%${from + i}`)
    .join(",")}}`;
const device = (type: string): string => `static __device__ __forceinline__ ${type}`;
const SHARED = "(unsigned)__cvta_generic_to_shared";

/** Copies of 16 bytes bypass the first cache, smaller ones go through it. */
function copy(to: string, from: string, bytes: number, inside: string | undefined): Helped {
  const way = bytes === 16 ? "cg" : "ca";
  const name = `copy${bytes}${inside === undefined ? "" : "inside"}`;
  const [size, given] = inside === undefined ? ["", ""] : [", %2", `, "r"(inside ? ${bytes} : 0)`];
  const instruction = `cp.async.${way}.shared.global [%0], [%1], ${bytes}${size};`;
  return {
    text: `${name}(${to}, ${from}${inside === undefined ? "" : `, ${inside}`})`,
    helper: `${device("void")} ${name}(void* to, const void* from${inside === undefined ? "" : ", bool inside"}) {
  asm volatile("${instruction}" :: "r"(${SHARED}(to)), "l"(from)${given} : "memory");
}`,
  };
}

function loadMatrix(address: string, count: number, transposed: boolean): Helped {
  const [type, name] = [words(count), `ldmatrix${count}${transposed ? "t" : ""}`];
  const instruction = `ldmatrix.sync.aligned.m8n8.x${count}${transposed ? ".trans" : ""}.shared.b16`;
  return {
    text: `${name}(${address})`,
    helper: `${device(type)} ${name}(const void* p) {
  ${type} r;
  asm volatile("${instruction} ${list(0, count)}, [%${count}];" : ${parts("r", count)
    .map((x) => `"=r"(${x})`)
    .join(", ")} : "r"(${SHARED}(p)) : "memory");
  return r;
}`,
  };
}

/** The names of operand types in PTX. */
const PTX: Readonly<Record<string, string>> = {
  bfloat16: "bf16",
  float16: "f16",
  float32: "tf32",
  float8e4m3: "e4m3",
  float8e5m2: "e5m2",
};

function multiply(core: TensorCore, a: string, b: string, c: string): Helped {
  const type = PTX[core.from.name];
  if (type === undefined) throw new InternalError(`WMMA of ${core.from.name} has no name in PTX`);
  const shape = `m${core.m}n${core.n}k${core.k}`;
  const name = `mma_${shape}_${type}`;
  const [na, nb] = [core.a, core.b].map((f) => (f.elements * core.from.itemsize) / 4) as [number, number];
  const operands = [...parts("a", na), ...parts("b", nb)].map((x) => `"r"(${x})`);
  const sums = parts("c", core.c.elements).map((x) => `"f"(${x})`);
  const n = core.c.elements;
  return {
    text: `${name}(${a},${b},${c})`,
    helper: `${device("float4")} ${name}(${words(na)} a, ${words(nb)} b, float4 c) {
  float4 d;
  asm volatile("mma.sync.aligned.${shape}.row.col.f32.${type}.${type}.f32 ${list(0, n)}, ${list(n, na)}, ${list(n + na, nb)}, ${list(n + na + nb, n)};"
    : ${parts("d", n)
      .map((x) => `"=f"(${x})`)
      .join(", ")} : ${[...operands, ...sums].join(", ")});
  return d;
}`,
  };
}

export const cudaWarp: WarpWords = {
  shuffle: (x, mask) => ({ text: `__shfl_xor_sync(0xffffffffu,${x},${mask})`, helper: "" }),
  copy,
  commit: 'asm volatile("cp.async.commit_group;" ::: "memory");',
  wait: (left) => `asm volatile("cp.async.wait_group ${left};" ::: "memory");`,
  loadMatrix,
  multiply,
};

/** Registers of a multiprocessor. */
const REGISTERS = 65536;
/**
 * How many workgroups should share a multiprocessor; empty: the compiler decides. With WMMA and much shared
 * memory, one workgroup that prefetches its operands is faster than several. Where accumulators fill an
 * eighth of the registers or more, two workgroups fit, with as much again for operands. The bound keeps the
 * compiler from taking a few registers more, after which only one would fit.
 */
function groupsOf({ threads, dynamicShared, multiplies, copies, accumulators }: LaunchFacts): number[] {
  if (multiplies) return dynamicShared > 0 ? [1] : [];
  const part = (threads * accumulators) / REGISTERS;
  return copies && part > 1 / 8 && part <= 1 / 4 ? [2] : [];
}
export const cudaBounds = (size: LaunchFacts): string =>
  `__launch_bounds__(${[size.threads, ...groupsOf(size)].join(", ")}) `;
