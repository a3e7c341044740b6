// The targets of each workload: the figures of issue 5. A target is compared with what the same run measured.
// If the rival is not an npm package (PyTorch, tinygrad), it is compared with the milliseconds the rival took
// on two AVX2 cores elsewhere.

import { WORKLOADS, type WorkloadName } from "./workloads.ts";

/** By the name of the engine. */
export type Medians = Readonly<Record<string, number>>;

export interface Target {
  readonly workload: WorkloadName;
  readonly engine: string;
  readonly what: string;
  /** whether it is met, and the figure that shows it */
  readonly met: (m: Medians) => readonly [boolean, number];
}

const of = (m: Medians, name: string): number => m[name] ?? NaN;
/** A multiple of the speed of another engine. */
const times =
  (factor: number, other: string) =>
  (workload: WorkloadName, engine: string): Target => ({
    workload,
    engine,
    what: `≥ ${factor} × ${other}`,
    met: (m) => {
      const ratio = of(m, other) / of(m, engine);
      return [ratio >= factor, ratio];
    },
  });
const within =
  (ms: number, whose = "") =>
  (workload: WorkloadName, engine: string): Target => ({
    workload,
    engine,
    what: `≤ ${ms} ms${whose}`,
    met: (m) => [of(m, engine) <= ms, of(m, engine) / ms],
  });

export const TARGETS: readonly Target[] = [
  ...(Object.keys(WORKLOADS) as WorkloadName[]).map((name) => times(0.7, "CLANG 2 t")(name, "OPENCL 2 t")),
  times(1.2, "jax-js")("matmul", "WASM 1 t"),
  times(1.8, "WASM 1 t")("matmul", "WASM 2 t"),
  within(30.7, " (70 GFLOP/s)")("matmul", "CLANG 1 t"),
  times(0.9, "ort-node 1 t")("matmul", "CLANG 1 t"),
  times(0.8, "limit 1 t")("relu", "WASM 1 t"),
  times(0.9, "limit 1 t")("relu", "CLANG 1 t"),
  times(0.7, "limit 1 t")("sum", "WASM 1 t"),
  times(0.85, "limit 1 t")("sum", "CLANG 1 t"),
  times(1.5, "tfjs")("softmax", "WASM 1 t"),
  times(1.3, "ort-node 1 t")("softmax", "CLANG 1 t"),
  within(2.7, " (2 × tinygrad)")("layernorm", "WASM 2 t"),
  within(1.7, " (PyTorch, 2 t)")("layernorm", "CLANG 2 t"),
  times(1, "jax-js")("var", "WASM 1 t"),
  within(1.8, " (2 × tinygrad)")("var", "CLANG 2 t"),
  times(1, "ort-web 2 t")("conv", "WASM 2 t"),
  within(13.6, " (PyTorch, 2 t)")("conv", "CLANG 2 t"),
  times(1.43, "jax-js")("mlp", "WASM 1 t"),
  within(11.6, " (1.3 × PyTorch, 2 t)")("mlp", "CLANG 2 t"),
  within(350)("mnist", "WASM 2 t"),
  within(150)("mnist", "CLANG 2 t"),
  within(40)("gpt2", "WASM 2 t"),
  within(20)("gpt2", "CLANG 2 t"),
];
