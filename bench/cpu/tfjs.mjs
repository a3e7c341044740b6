// The workloads in TensorFlow.js, on its wasm or webgpu backend, which compute eagerly. Its convolutions are
// NHWC, and its memory is freed by hand. The packages are installed by npm install --prefix bench.

import * as tf from "@tensorflow/tfjs";
import { installGpu } from "../webgpu/dawn.mjs";
import { GPT2, numbers } from "./workloads.ts";

const backend = process.env.BACKEND ?? "wasm";
if (backend === "webgpu") {
  await installGpu();
  await import("@tensorflow/tfjs-backend-webgpu");
} else await import("@tensorflow/tfjs-backend-wasm");
await tf.setBackend(backend);
await tf.ready();

const tensor = (seed, ...shape) =>
  tf.tensor(
    numbers(
      shape.reduce((a, b) => a * b, 1),
      seed,
    ),
    shape,
  );
/** Waits for the result. On WebGPU only a value that is read back is there. */
async function finish(out) {
  if (backend === "webgpu") {
    const first = tf.tidy(() => tf.slice(tf.reshape(out, [-1]), 0, 1));
    await first.data();
    first.dispose();
  }
  out.dispose();
}
const workload = (f, ...xs) => ({
  run: () => finish(tf.tidy(() => f(...xs))),
  close: () => tf.dispose(xs),
});

function layernorm(x) {
  const { mean, variance } = tf.moments(x, -1, true);
  return tf.div(tf.sub(x, mean), tf.sqrt(tf.add(variance, 1e-5)));
}

/** A step that gives the loss. */
export function mlpStep() {
  const layer = (i, o) => [tf.variable(tf.mul(tensor(i + o, i, o), 0.05)), tf.variable(tf.zeros([o]))];
  const [w1, b1, w2, b2, w3, b3] = [...layer(784, 512), ...layer(512, 512), ...layer(512, 10)];
  const adam = tf.train.adam(0.001);
  const x = tensor(1, 128, 784);
  const y = tf.oneHot(
    tf.tensor1d(
      Array.from({ length: 128 }, (_, i) => i % 10),
      "int32",
    ),
    10,
  );
  const dense = (x, w, b) => tf.add(tf.matMul(x, w), b);
  const loss = () => {
    const h2 = tf.relu(dense(tf.relu(dense(x, w1, b1)), w2, b2));
    return tf.neg(tf.mean(tf.sum(tf.mul(tf.logSoftmax(dense(h2, w3, b3)), y), 1)));
  };
  return () => adam.minimize(loss, true);
}

function mlp() {
  const step = mlpStep();
  return { run: () => finish(step()) };
}

function gpt2() {
  const { layers, dim, heads, vocab, keys } = GPT2;
  const head = dim / heads;
  const weights = (...shape) => tf.mul(tensor(shape.length, ...shape), 0.05);
  const blocks = Array.from({ length: layers }, () => ({
    qkv: weights(dim, 3 * dim),
    k: weights(heads, keys - 1, head),
    v: weights(heads, keys - 1, head),
    out: weights(dim, dim),
    up: weights(dim, 4 * dim),
    down: weights(4 * dim, dim),
    bias: [3 * dim, dim, 4 * dim, dim, dim, dim, dim, dim].map((n) => weights(n)),
  }));
  const [wte, position, token] = [weights(vocab, dim), weights(1, dim), weights(1, dim)];
  const normed = (x, g, b) => tf.add(tf.mul(layernorm(x), g), b);
  const gelu = (x) => {
    const inner = tf.mul(tf.add(x, tf.mul(tf.mul(tf.mul(x, x), x), 0.044715)), Math.sqrt(2 / Math.PI));
    return tf.mul(tf.mul(x, 0.5), tf.add(tf.tanh(inner), 1));
  };
  const forward = () => {
    let x = tf.add(token, position);
    for (const { qkv, k, v, out, up, down, bias } of blocks) {
      const all = tf.reshape(tf.add(tf.matMul(normed(x, bias[4], bias[5]), qkv), bias[0]), [
        3,
        heads,
        1,
        head,
      ]);
      const [q, k1, v1] = tf.unstack(all, 0);
      const scores = tf.div(tf.matMul(q, tf.concat([k, k1], 1), false, true), Math.sqrt(head));
      const seen = tf.matMul(tf.softmax(scores), tf.concat([v, v1], 1));
      x = tf.add(x, tf.add(tf.matMul(tf.reshape(seen, [1, dim]), out), bias[1]));
      const wide = gelu(tf.add(tf.matMul(normed(x, bias[6], bias[7]), up), bias[2]));
      x = tf.add(x, tf.add(tf.matMul(wide, down), bias[3]));
    }
    return tf.matMul(layernorm(x), wte, false, true);
  };
  return { run: () => finish(tf.tidy(forward)), close: () => tf.disposeVariables() };
}

export const engine = {
  matmul: async () => workload((a, b) => tf.matMul(a, b), tensor(1, 1024, 1024), tensor(2, 1024, 1024)),
  relu: async () =>
    workload(
      (a, b, c) => tf.mul(tf.relu(tf.add(tf.mul(a, b), c)), 0.5),
      tensor(1, 2 ** 24),
      tensor(2, 2 ** 24),
      tensor(3, 2 ** 24),
    ),
  sum: async () => workload((a) => tf.sum(a), tensor(1, 2 ** 24)),
  softmax: async () => workload((a) => tf.softmax(a), tensor(1, 4096, 1024)),
  layernorm: async () => workload((a) => layernorm(a), tensor(1, 4096, 1024)),
  var: async () => workload((a) => tf.mul(tf.moments(a, 1).variance, 1024 / 1023), tensor(1, 4096, 1024)),
  conv: async () =>
    workload((x, w) => tf.conv2d(x, w, 1, "same"), tensor(1, 8, 56, 56, 32), tensor(2, 3, 3, 32, 64)),
  mlp: async () => mlp(),
  gpt2: async () => gpt2(),
};
