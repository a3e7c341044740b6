// How a language spells what the threads of a warp do together: cudawarp.ts, amdwarp.ts and metalwarp.ts have
// their texts, cstyle.ts puts them into kernels.

import type { TensorCore } from "../uop/matrix.ts";

/** What the threads of a warp do together, and copies that they do not wait for. */
export interface WarpWords {
  /** the value of the thread whose number in the warp differs in these bits */
  readonly shuffle: (x: string, mask: number) => Helped;
  /** `inside`: where it is false zeros are written and nothing is read */
  readonly copy: (to: string, from: string, bytes: number, inside: string | undefined) => Helped;
  readonly commit: string;
  readonly wait: (left: number) => string;
  readonly loadMatrix: (address: string, words: number, transposed: boolean) => Helped;
  readonly multiply: (core: TensorCore, a: string, b: string, c: string) => Helped;
}
export interface Helped {
  readonly text: string;
  /** a function that the text calls; empty: the language has it */
  readonly helper: string;
}
