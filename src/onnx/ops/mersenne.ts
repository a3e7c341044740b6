// Numbers for ops that say a seed: the generator that the standard's reference draws from (MT19937 of 32
// bits), so that a seed means the same numbers here. Ops without a seed draw from gradloom's own generator.

const N = 624;
const M = 397;

/** Numbers from 0 to below 1 with 53 bits, in turn. */
export function mersenne(seed: number): () => number {
  const state = new Uint32Array(N);
  state[0] = seed >>> 0;
  for (let i = 1; i < N; i++) {
    const before = state[i - 1] as number;
    state[i] = Math.imul(before ^ (before >>> 30), 1812433253) + i;
  }
  let at = N;
  const refill = (): void => {
    for (let i = 0; i < N; i++) {
      const y = ((state[i] as number) & 0x80000000) | ((state[(i + 1) % N] as number) & 0x7fffffff);
      state[i] = (state[(i + M) % N] as number) ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    at = 0;
  };
  const word = (): number => {
    if (at >= N) refill();
    let y = state[at++] as number;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  };
  return () => ((word() >>> 5) * 67108864 + (word() >>> 6)) / 9007199254740992;
}

/** Numbers of the normal distribution, made in pairs from points of the unit disc. */
export function normal(seed: number): () => number {
  const uniform = mersenne(seed);
  let kept: number | undefined;
  return () => {
    if (kept !== undefined) {
      const x = kept;
      kept = undefined;
      return x;
    }
    for (;;) {
      const [a, b] = [2 * uniform() - 1, 2 * uniform() - 1];
      const r = a * a + b * b;
      if (r >= 1 || r === 0) continue;
      const f = Math.sqrt((-2 * Math.log(r)) / r);
      kept = f * a;
      return f * b;
    }
  };
}
