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
/** What is behind a host buffer of keys and counters. */
interface DrawFacts {
  /** the position in the stream, and how many values the draw takes */
  readonly at: number;
  readonly n: number;
  /** where each row of four words starts, counted from `at`; a scan has a row for each step */
  readonly rows: readonly number[];
}
const draws = new WeakMap<Buffer, DrawFacts>();
/** the draws that are made while a scan traces its body */
let noted: Buffer[] | undefined;

/** Key and counter as the four words a kernel reads, for each row. */
const words = (at: number, rows: readonly number[]): Uint8Array =>
  new Uint8Array(
    Uint32Array.from(rows.flatMap((r) => [...state.key, (at + r) % WORD, Math.floor((at + r) / WORD)]))
      .buffer,
  );

/** The next `n` values as a host buffer. */
export function draw(n: number): Buffer {
  const at = state.drawn;
  state.drawn += n;
  return bufferOf({ at, n, rows: [0] });
}
function bufferOf(facts: DrawFacts): Buffer {
  const { at, rows } = facts;
  const buffer = new Buffer("EXT", 4 * rows.length, dtypes.uint32).allocate(words(at, rows));
  draws.set(buffer, facts);
  noted?.push(buffer);
  CacheCollector.draw({ buffer, at, redraw: (from) => void redraw(buffer, from) });
  return buffer;
}

/** Whether the buffer has the key and the counter of a draw. */
export const isDraw = (buffer: Buffer): boolean => draws.has(buffer);

/** Runs `fn` and says which draws it made, and how many values they took. */
export function noteDraws<T>(fn: () => T): { result: T; made: readonly Buffer[]; taken: number } {
  const [before, from] = [noted, state.drawn];
  const made: Buffer[] = [];
  noted = made;
  try {
    return { result: fn(), made, taken: state.drawn - from };
  } finally {
    noted = before;
  }
}

/** A draw for each of `length` steps that take `taken` values each; the first step is the draw itself. */
export function drawSteps(first: Buffer, length: number, taken: number, reverse: boolean): Buffer {
  const { at, n, rows } = draws.get(first) as DrawFacts;
  const steps = range(length).map((i) => (reverse ? length - 1 - i : i) * taken);
  return bufferOf({ at, n: n + taken * (length - 1), rows: steps.flatMap((s) => rows.map((r) => s + r)) });
}

/**
 * For a replay of a captured graph: gives the draw that copies from `buffer` the values from
 * `at` on, or those that come next.
 */
export function redraw(buffer: Buffer, at?: number): boolean {
  const facts = draws.get(buffer);
  if (facts === undefined) return false;
  void buffer.fill(words(at ?? state.drawn, facts.rows));
  if (at === undefined) state.drawn += facts.n;
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
