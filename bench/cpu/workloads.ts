// The workloads of the cpu bench: what is computed, how much of it, and the targets. Engines (gradloom.ts,
// jax.mjs …) say how; cpu.ts runs them alternately. Sizes are here so that every engine computes the same
// thing.

export const WORKLOADS = {
  matmul: {
    what: "matmul 1024³",
    flops: 2 * 1024 ** 3,
  },
  relu: { what: "relu(a*b+c)*0.5, 16 Mi", bytes: 4 * 4 * 2 ** 24 },
  sum: { what: "sum of 16 Mi", bytes: 4 * 2 ** 24 },
  softmax: { what: "softmax 4096×1024", bytes: 8 * 4096 * 1024 },
  layernorm: { what: "layernorm 4096×1024", bytes: 8 * 4096 * 1024 },
  var: { what: "var(1) 4096×1024", bytes: 4 * 4096 * 1024 },
  conv: { what: "conv2d 3×3, 8×32×56×56 → 64", flops: 2 * 8 * 64 * 56 * 56 * 32 * 9 },
  mlp: { what: "MLP 784-512-512-10 step, batch 128, Adam" },
  mnist: { what: "beautiful_mnist step, batch 128, Adam" },
  gpt2: { what: "GPT-2 small, one token, 64 keys", bytes: 4 * 124e6 },
} as const satisfies Record<string, { what: string; flops?: number; bytes?: number }>;
export type WorkloadName = keyof typeof WORKLOADS;

/** One engine's implementation of a workload: each `run` does all of it and waits for the end. */
export interface Workload {
  run(): Promise<unknown>;
  close?(): void;
}
export type Engine = Partial<Record<WorkloadName, () => Promise<Workload>>>;

/** The sizes of GPT-2 small. */
export const GPT2 = { layers: 12, dim: 768, heads: 12, vocab: 50257, positions: 1024, keys: 64 } as const;

/** Numbers between -1/2 and 1/2, the same in every engine. */
export function numbers(n: number, seed = 1): Float32Array<ArrayBuffer> {
  const out = new Float32Array(n);
  let s = seed * 747796405;
  for (let i = 0; i < n; i++) {
    s = (Math.imul(s, 1664525) + 1013904223) | 0;
    out[i] = s / 2 ** 32;
  }
  return out;
}
