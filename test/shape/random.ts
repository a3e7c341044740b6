// A small seeded generator for the random tests of this folder: a failure names
// its seed and so can be run again.

export class Random {
  #state: number;

  constructor(seed: number) {
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

  /** An integer from lo to hi, both included. */
  int(lo: number, hi: number): number {
    return lo + (this.#next() % (hi - lo + 1));
  }

  chance(percent: number): boolean {
    return this.int(0, 99) < percent;
  }

  pick<T>(xs: readonly T[]): T {
    return xs[this.int(0, xs.length - 1)] as T;
  }

  shuffled<T>(xs: readonly T[]): T[] {
    const out = [...xs];
    for (let i = out.length - 1; i > 0; i--) {
      const j = this.int(0, i);
      [out[i], out[j]] = [out[j] as T, out[i] as T];
    }
    return out;
  }
}
