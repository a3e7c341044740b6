// The kernels in which the workloads of the cpu bench spend their time, each as the tensor from which it is
// scheduled. Nothing holds data: beam.ts compiles and times them,
// test/codegen/opt/heuristics/innerloops.test.ts reads them.

import { createSchedule, type ScheduleItem, Tensor } from "../../src/index.ts";
import { GPT2 } from "./workloads.ts";

const empty = (...shape: number[]): Tensor => Tensor.empty(shape);
const { dim, heads, vocab, keys } = GPT2;

export const KERNELS = {
  "matmul 1024³": () => empty(1024, 1024).matmul(empty(1024, 1024)),
  "matmul 512³, B transposed": () => empty(512, 512).matmul(empty(512, 512).T),
  "matmul 512³, A transposed": () => empty(512, 512).T.matmul(empty(512, 512)),
  "linear 128×784 → 512, relu": () => empty(128, 784).linear(empty(512, 784), empty(512)).relu(),
  "conv2d 3×3, padded": () => empty(8, 32, 56, 56).conv2d(empty(64, 32, 3, 3), undefined, { padding: 1 }),
  "max pool 2×2": () => empty(8, 64, 56, 56).maxPool2d(2),
  "softmax 4096×1024": () => empty(4096, 1024).softmax(),
  "layernorm 4096×1024": () => empty(4096, 1024).layerNorm(1024),
  "var(1) 4096×1024": () => empty(4096, 1024).var(1),
  "sum of 16 Mi": () => empty(2 ** 24).sum(),
  "relu(a*b+c)*0.5, 16 Mi": () =>
    empty(2 ** 24)
      .mul(empty(2 ** 24))
      .add(empty(2 ** 24))
      .relu()
      .mul(0.5),
  "transposed copy 2048×2048": () => empty(2048, 2048).T.contiguous(),
  "GPT-2, a row times 768×3072, gelu": () =>
    empty(1, dim)
      .dot(empty(dim, 4 * dim))
      .add(empty(4 * dim))
      .gelu("tanh"),
  "GPT-2, a row times 3072×768": () =>
    empty(1, 4 * dim)
      .dot(empty(4 * dim, dim))
      .add(empty(dim)),
  "GPT-2, a row times 50257 rows": () => empty(1, dim).dot(empty(vocab, dim).T),
  "GPT-2, attention's scores": () =>
    empty(heads, 1, dim / heads)
      .matmul(empty(heads, keys, dim / heads).transpose(1, 2))
      .softmax(),
} as const satisfies Readonly<Record<string, () => Tensor>>;
export type KernelName = keyof typeof KERNELS;

/** The items of the schedule that are kernels. */
export const kernelItems = (t: Tensor): ScheduleItem[] =>
  createSchedule([t.lazydata]).filter((si) => si.ast[0]?.op === "STORE");
