// The source of random numbers: Threefry-2x32 of 20 rounds, written in tensor ops on a counter, so that a draw is lazy
// and gives the same bits on every device. The state is plain: a key (`manualSeed`) and how many values were drawn so
// far. A draw takes its piece of the counter when it is built and carries key and counter as four words that are copied
// to the device; kernels therefore do not depend on them, and a jit advances a replayed draw with `redraw`.

import { dtypes } from "../dtype.ts";
import { CacheCollector } from "../engine/jit/collector.ts";
import { range } from "../helpers.ts";
import { Buffer } from "../runtime/buffer.ts";
import type { CreationTensor } from "./creation.ts";

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

/** For a replay of a captured graph: gives the draw that copies from `buffer` the values from `at` on, or those that come next. */
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
export function threefry<T extends CreationTensor>(key: Pair<T>, counter: Pair<T>): Pair<T> {
  const keys = [...key, key[0].bitwiseXor(key[1]).bitwiseXor(PARITY)] as const;
  let x = counter[0].add(keys[0]);
  let y = counter[1].add(keys[1]);
  for (const round of range(20)) {
    const by = ROTATIONS[round % 8] as number;
    x = x.add(y);
    y = y
      .lshift(by)
      .bitwiseOr(y.rshift(32 - by))
      .bitwiseXor(x);
    if (round % 4 !== 3) continue;
    const turn = (round + 1) / 4;
    x = x.add(keys[turn % 3] as T);
    y = y.add(keys[(turn + 1) % 3] as T).add(turn);
  }
  return [x, y];
}
