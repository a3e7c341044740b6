// What is measured beside jax-js and tfjs: names and sizes, the same for every engine.

export const WORKS = {
  add24: "add, 2^24 f32",
  "matmul-1024": "matmul 1024 f32",
  "matmul-4096": "matmul 4096 f32",
  "softmax-4096": "softmax 4096×4096 f32",
  "layernorm-4096": "layernorm 4096×4096 f32",
  conv16: "conv2d 3×3, 16×64×56×56 → 64",
  mlp: "MLP 784-512-512-10 step, batch 128, Adam",
  mnist128: "beautiful_mnist step, batch 128, Adam",
} as const;
export type WorkName = keyof typeof WORKS;

export const ELEMENTS = 2 ** 24;
export const [ROWS, COLUMNS] = [4096, 4096];
export const CONV = { batch: 16, channels: 64, side: 56, kernel: 3 } as const;
export const BATCH = 128;
