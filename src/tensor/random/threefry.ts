// The source of random numbers: Threefry-2x32 of 20 rounds, written in tensor ops on a counter, so that a
// draw is lazy and gives the same bits on every device. The state is plain: a key (`manualSeed`) and how many
// values were drawn so far. A draw takes its piece of the counter when it is built and carries key and
// counter as four words that are copied to the device; kernels therefore do not depend on them, and a jit
// advances a replayed draw with `redraw`.

import { dtypes } from "../../dtype.ts";
import { CacheCollector } from "../../engine/jit/collector.ts";
import { range } from "../../helpers.ts";
import { Buffer } from "../../runtime/buffer.ts";
import { add, bitwiseOr, bitwiseXor, lshift, rshift } from "../math/arithmetic.ts";
import type { Tensor } from "../tensor.ts";

// ---- the state ----

export const WORD = 2 ** 32;
export const state = { key: [0, 0] as [number, number], drawn: 0 };
/** How many values the draw behind a host buffer of key and counter takes. */
const draws = new WeakMap<Buffer, number>();

/** Key and counter as the four words a kernel reads. */
const words = (at: number): Uint8Array =>
  new Uint8Array(Uint32Array.of(...state.key, at % WORD, Math.floor(at / WORD)).buffer);

/** The next `n` values as a host buffer. */
export function draw(n: number): Buffer {
  const at = state.drawn;
  state.drawn += n;
  const buffer = new Buffer("EXT", 4, dtypes.uint32).allocate(words(at));
  draws.set(buffer, n);
  CacheCollector.draw({ buffer, at, redraw: (from) => void redraw(buffer, from) });
  return buffer;
}

/**
 * For a replay of a captured graph: gives the draw that copies from `buffer` the values from
 * `at` on, or those that come next.
 */
export function redraw(buffer: Buffer, at?: number): boolean {
  const n = draws.get(buffer);
  if (n === undefined) return false;
  void buffer.copyin(words(at ?? state.drawn));
  if (at === undefined) state.drawn += n;
  return true;
}

CacheCollector.stream = state;

// ---- Threefry ----

const ROTATIONS = [13, 15, 26, 6, 17, 29, 16, 24] as const;
const PARITY = 0x1bd11bda;

export type Pair<T> = readonly [T, T];

/** Twenty rounds of add, rotate and xor; the key goes in before the first and after every fourth. */
export function threefry(key: Pair<Tensor>, counter: Pair<Tensor>): Pair<Tensor> {
  const keys = [...key, bitwiseXor(bitwiseXor(key[0], key[1]), PARITY)] as const;
  let x = add(counter[0], keys[0]);
  let y = add(counter[1], keys[1]);
  for (const round of range(20)) {
    const by = ROTATIONS[round % 8] as number;
    x = add(x, y);
    y = bitwiseXor(bitwiseOr(lshift(y, by), rshift(y, 32 - by)), x);
    if (round % 4 !== 3) continue;
    const turn = (round + 1) / 4;
    x = add(x, keys[turn % 3] as Tensor);
    y = add(add(y, keys[(turn + 1) % 3] as Tensor), turn);
  }
  return [x, y];
}
