// Chance with a seed: the same seed throws the same dice on every machine.

/** What follows from integers at random. */
export abstract class Choices {
  /** An integer from low to high, both included. */
  abstract int(low: number, high: number): number;
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

export class Dice extends Choices {
  #state: bigint;

  constructor(seed: number) {
    super();
    this.#state = BigInt(seed) * 0x9e3779b97f4a7c15n + 1n;
    this.#next();
  }

  /** splitmix64: neighbouring seeds have nothing in common. */
  #next(): number {
    this.#state = BigInt.asUintN(64, this.#state + 0x9e3779b97f4a7c15n);
    let z = this.#state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return Number((z ^ (z >> 31n)) >> 11n) / 2 ** 53;
  }
  override int(low: number, high: number): number {
    return low + Math.floor(this.#next() * (high - low + 1));
  }
  chance(percent: number): boolean {
    return this.#next() * 100 < percent;
  }
  /** Some of them, in order, at least one if there is one. */
  some<T>(xs: readonly T[]): T[] {
    const out = xs.filter(() => this.chance(50));
    return out.length > 0 || xs.length === 0 ? out : [this.pick(xs)];
  }
}
