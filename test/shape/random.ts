// A small seeded generator for the random tests of this folder: a failure names
// its seed and so can be run again.

import { Choices } from "../../scripts/fuzz/generate/dice.ts";

export class Random extends Choices {
  #state: number;

  constructor(seed: number) {
    super();
    this.#state = (seed ^ 0x2545f491) >>> 0 || 1;
    for (let i = 0; i < 4; i++) this.#next();
  }

  /** xorshift32: short, and good enough to shuffle test cases. */
  #next(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state;
  }

  override int(lo: number, hi: number): number {
    return lo + (this.#next() % (hi - lo + 1));
  }

  chance(percent: number): boolean {
    return this.int(0, 99) < percent;
  }
}
