// The works of works.ts in TensorFlow.js: eager, memory freed by hand, convolutions NHWC.

import * as tf from "@tensorflow/tfjs";
import "@tensorflow/tfjs-backend-webgpu";
import { numbers } from "../cpu/workloads.ts";
import { COLUMNS, CONV, ELEMENTS, ROWS } from "./works.ts";

process.env.BACKEND = "webgpu";
await tf.setBackend("webgpu");
await tf.ready();

const tensor = (seed, ...shape) =>
  tf.tensor(
    numbers(
      shape.reduce((a, b) => a * b, 1),
      seed,
    ),
    shape,
  );
/** The newest result waits for all before it when it is read. */
function works(next) {
  let last;
  return {
    run() {
      last?.dispose();
      last = next();
    },
    async wait() {
      const first = tf.tidy(() => tf.slice(tf.reshape(last, [-1]), 0, 1));
      await first.data();
      first.dispose();
    },
  };
}
const work = (f, ...xs) => works(() => tf.tidy(() => f(...xs)));
const matmul = (n) => work((a, b) => tf.matMul(a, b), tensor(1, n, n), tensor(2, n, n));
const { batch, channels, side, kernel } = CONV;

export const engine = {
  add24: async () => work((a, b) => tf.add(a, b), tensor(1, ELEMENTS), tensor(2, ELEMENTS)),
  "matmul-1024": async () => matmul(1024),
  "matmul-4096": async () => matmul(4096),
  "softmax-4096": async () => work((a) => tf.softmax(a), tensor(1, ROWS, COLUMNS)),
  conv16: async () =>
    work(
      (x, w) => tf.conv2d(x, w, 1, "same"),
      tensor(1, batch, side, side, channels),
      tensor(2, kernel, kernel, channels, channels),
    ),
  mlp: async () => {
    const { mlpStep } = await import("../cpu/tfjs.mjs");
    return works(mlpStep());
  },
};
