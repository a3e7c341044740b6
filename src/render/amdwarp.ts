// What the threads of a wavefront of an AMD GPU do together, as functions of HIP around the compiler's
// builtins: exchanging values through the crossbar of LDS, and products of matrices. hip.ts has the rest of
// the language.

import { dtypes } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import type { TensorCore } from "../uop/matrix.ts";
import type { LaunchFacts } from "./cstyle.ts";
import type { Helped, WarpWords } from "./warp.ts";

/**
 * A swizzle exchanges within 32 threads, a permute within the wavefront, and both move words of 32 bits. The
 * first needs no address.
 */
const SHUFFLE = `template <int mask, class T> static __attribute__((device)) inline T hip_shuffle(T x) {
  int words[(sizeof(T)+3)/4] = {};
  __builtin_memcpy(words, &x, sizeof(T));
  for (int& word : words) {
    if constexpr (mask < 32) word = __builtin_amdgcn_ds_swizzle(word, 31|(mask<<10));
    else {
      int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
      word = __builtin_amdgcn_ds_bpermute((lane^mask)<<2, word);
    }
  }
  __builtin_memcpy(&x, words, sizeof(T));
  return x;
}`;

/** The builtin of a core, by its name, and what follows the operands. */
const BUILTINS: Readonly<Record<string, readonly [name: string, rest: string]>> = {
  "mfma f16": ["mfma_f32_16x16x16f16", ", 0, 0, 0"],
  "mfma bf16": ["mfma_f32_16x16x16bf16_1k", ", 0, 0, 0"],
  "wmma f16": ["wmma_f32_16x16x16_f16_w32", ""],
  "wmma bf16": ["wmma_f32_16x16x16_bf16_w32", ""],
  "wmma12 f16": ["wmma_f32_16x16x16_f16_w32_gfx12", ""],
  "wmma12 bf16": ["wmma_f32_16x16x16_bf16_w32_gfx12", ""],
};

function multiply(core: TensorCore, a: string, b: string, c: string): Helped {
  const builtin = BUILTINS[core.name];
  if (builtin === undefined) throw new InternalError(`AMD's GPUs have no builtin for ${core.name}`);
  const [instruction, rest] = builtin;
  const name = `mma_${core.name.replace(" ", "_")}`;
  const operand = core.a.elements;
  // the builtins take the bits of bfloat16 as integers
  const element = core.from === dtypes.float16 ? "_Float16" : "short";
  const [words, sums] = [`uint${operand / 2}`, `float${core.c.elements}`];
  return {
    text: `${name}(${a},${b},${c})`,
    helper: `static __attribute__((device)) inline ${sums} ${name}(${words} a, ${words} b, ${sums} c) {
  typedef ${element} operand __attribute__((ext_vector_type(${operand})));
  return __builtin_amdgcn_${instruction}(__builtin_bit_cast(operand, a), __builtin_bit_cast(operand, b), c${rest});
}`,
  };
}

const absent = (what: string) => (): never => {
  throw new InternalError(`AMD's GPUs have no ${what}; their target says so`);
};

export const amdWarp: WarpWords = {
  shuffle: (x, mask) => ({ text: `hip_shuffle<${mask}>(${x})`, helper: SHUFFLE }),
  copy: absent("asynchronous copies to shared memory"),
  commit: "",
  wait: absent("asynchronous copies to shared memory"),
  loadMatrix: absent("loads of matrices from shared memory"),
  multiply,
};

/** Without it the compiler leaves registers for workgroups of 1024 threads. */
export const amdBounds = ({ threads }: LaunchFacts): string =>
  `__attribute__((amdgpu_flat_work_group_size(${threads}, ${threads}))) `;
