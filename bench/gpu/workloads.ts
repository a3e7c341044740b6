// What the GPU bench measures: each workload by name, with the bytes or operations it takes and how gradloom
// does it. pytorch.py has the same names. A workload prepares its tensors on a device and returns a function
// that runs it once, captured, without waiting.

import { Convnet } from "../../examples/convnet.ts";
import { type DTypeName, nn, Tensor, TinyJit } from "../../src/index.ts";

const MANY = 2 ** 28;
const [ROWS, COLUMNS] = [16384, 4096];
const SIDE = 4096;
const BATCH = 512;
export const KERNELS = 200;

export interface Workload {
  readonly what: string;
  /** bytes to be moved, or operations; undefined: only the time counts */
  readonly amount: number | undefined;
  readonly unit: "TB/s" | "TFLOP/s" | "µs a kernel" | "ms";
  /** relative to PyTorch's rate on the same GPU, or an absolute rate in `unit` */
  readonly target: { readonly ratio: number } | { readonly least: number } | { readonly most: number };
  prepare(): Promise<Run>;
}
export interface Run {
  (): void | Promise<void>;
  /** kernels of one run, as captured */
  kernels(): number;
}

/** A function of fixed tensors: captured, then replayed; its result is freed at once. */
export async function captured(inputs: readonly Tensor[], body: (...xs: Tensor[]) => Tensor): Promise<Run> {
  await Tensor.realize(...inputs);
  const step = new TinyJit((...xs: Tensor[]) => body(...xs));
  const run = () => step.sync(...inputs).dispose();
  // those that compile wait
  for (let i = 0; i < 3; i++) (await step(...inputs)).dispose();
  return Object.assign(run, { kernels: () => step.jitCache.length });
}

export const random = (...shape: number[]): Tensor => Tensor.rand(...shape);
const bytes = (arrays: number, elements: number): number => 4 * arrays * elements;

function matmul(dtype: DTypeName, ratio: number): Workload {
  return {
    what: `matmul ${SIDE} ${dtype}`,
    amount: 2 * SIDE ** 3,
    unit: "TFLOP/s",
    target: { ratio },
    async prepare() {
      const [a, b] = [random(SIDE, SIDE).sub(0.5).cast(dtype), random(SIDE, SIDE).sub(0.5).cast(dtype)];
      return captured([await a.realize(), await b.realize()], (x, y) => (x as Tensor).matmul(y as Tensor));
    },
  };
}

/** A step with Adam on one batch, captured. */
export async function trainingStep(model: { forward(x: Tensor): Tensor }, x: Tensor): Promise<Run> {
  const optimizer = new nn.optim.Adam(nn.getParameters(model));
  const y = await Tensor.randint(0, 10, [x.shape[0] as number]).realize();
  const step = new TinyJit(async (images: Tensor, labels: Tensor) => {
    const loss = Tensor.train(() => model.forward(images)).crossEntropy(labels);
    optimizer.zeroGrad();
    loss.backward();
    await optimizer.step(loss);
    return loss;
  });
  for (let i = 0; i < 3; i++) (await step(x, y)).dispose();
  const run = async () => (await step(x, y)).dispose();
  return Object.assign(run, { kernels: () => step.jitCache.length });
}
export async function mnistStep(batch: number): Promise<Run> {
  Tensor.manualSeed(1);
  const x = await Tensor.randint(0, 256, [batch, 1, 28, 28], { dtype: "uint8" }).realize();
  return trainingStep(new Convnet(), x);
}

export const WORKLOADS: Readonly<Record<string, Workload>> = {
  add: {
    what: "add, 2^28 f32",
    amount: bytes(3, MANY),
    unit: "TB/s",
    target: { ratio: 0.95 },
    prepare: () => captured([random(MANY), random(MANY)], (a, b) => (a as Tensor).add(b as Tensor)),
  },
  sum: {
    what: "sum, 2^28 f32",
    amount: bytes(1, MANY),
    unit: "TB/s",
    target: { ratio: 0.95 },
    prepare: () => captured([random(MANY)], (a) => (a as Tensor).sum()),
  },
  fused: {
    what: "relu(a*b+c)*0.5, 2^28",
    amount: bytes(4, MANY),
    unit: "TB/s",
    target: { least: 4 },
    prepare: () =>
      captured([random(MANY), random(MANY), random(MANY)], (a, b, c) =>
        (a as Tensor)
          .mul(b as Tensor)
          .add(c as Tensor)
          .relu()
          .mul(0.5),
      ),
  },
  softmax: {
    what: `softmax ${ROWS}×${COLUMNS} f32`,
    amount: bytes(2, ROWS * COLUMNS),
    unit: "TB/s",
    target: { ratio: 1.4 },
    prepare: () => captured([random(ROWS, COLUMNS)], (x) => (x as Tensor).softmax(-1)),
  },
  layernorm: {
    what: `layernorm ${ROWS}×${COLUMNS}`,
    amount: bytes(2, ROWS * COLUMNS),
    unit: "TB/s",
    target: { ratio: 1.3 },
    prepare: () => captured([random(ROWS, COLUMNS)], (x) => (x as Tensor).layerNorm([COLUMNS])),
  },
  var: {
    what: `var(-1) ${ROWS}×${COLUMNS}`,
    amount: bytes(1, ROWS * COLUMNS),
    unit: "TB/s",
    target: { ratio: 1.2 },
    prepare: () => captured([random(ROWS, COLUMNS)], (x) => (x as Tensor).var(-1)),
  },
  "matmul-bf16": matmul("bfloat16", 0.45),
  "matmul-f16": matmul("float16", 0.45),
  "matmul-f32": matmul("float32", 0.6),
  chain: {
    what: `${KERNELS} dependent tiny kernels, captured`,
    amount: undefined,
    unit: "µs a kernel",
    target: { most: 0.9 },
    prepare: () =>
      captured([Tensor.zeros(1024).contiguous()], (x) => {
        let y = x as Tensor;
        for (let i = 0; i < KERNELS; i++) y = y.add(1).contiguous();
        return y;
      }),
  },
  mnist: {
    what: `beautiful_mnist step, batch ${BATCH}`,
    amount: undefined,
    unit: "ms",
    target: { most: 2 },
    prepare: () => mnistStep(BATCH),
  },
};
