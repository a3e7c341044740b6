// The works of works.ts in jax-js: everything goes through jit, arrays are consumed by use.

import { defaultDevice, init, jit, lax, nn, numpy as np } from "@jax-js/jax";
import { numbers } from "../cpu/workloads.ts";
import { COLUMNS, CONV, ELEMENTS, ROWS } from "./works.ts";

process.env.BACKEND = "webgpu";
await init("webgpu");
defaultDevice("webgpu");

const array = (seed, ...shape) =>
  np
    .array(
      numbers(
        shape.reduce((a, b) => a * b, 1),
        seed,
      ),
    )
    .reshape(shape);
/**
 * A result that nobody reads is not computed, so each run takes the result of the one before as its first
 * operand; the last one is read.
 */
function work(f, first, ...others) {
  const fast = jit(f);
  let last = first;
  return {
    run() {
      last = fast(last, ...others.map((x) => x.ref));
    },
    wait: () => read(last.ref),
  };
}
const read = async (x) => void (await x.ravel().slice([0, 1]).data());
const matmul = (n) => work((a, b) => np.matmul(a, b), array(1, n, n), array(2, n, n));
const { batch, channels, side, kernel } = CONV;

export const engine = {
  add24: async () => work((a, b) => a.add(b), array(1, ELEMENTS), array(2, ELEMENTS)),
  "matmul-1024": async () => matmul(1024),
  "matmul-4096": async () => matmul(4096),
  "softmax-4096": async () => work((a) => nn.softmax(a, -1), array(1, ROWS, COLUMNS)),
  "layernorm-4096": async () => work((a) => nn.standardize(a, -1), array(1, ROWS, COLUMNS)),
  conv16: async () =>
    work(
      (x, w) => lax.convGeneralDilated(x, w, [1, 1], "SAME"),
      array(1, batch, channels, side, side),
      array(2, channels, channels, kernel, kernel),
    ),
  mlp: async () => {
    const { mlpSteps } = await import("../cpu/jax.mjs");
    const { next } = mlpSteps();
    let loss;
    return {
      run() {
        loss?.dispose();
        loss = next();
      },
      wait: () => read(loss.ref),
    };
  },
};
