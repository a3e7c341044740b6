// The workloads in jax-js: everything goes through jit. Arrays are reference counted: a use consumes an
// array, `.ref` keeps it. The package is installed by npm install --prefix bench.

import { blockUntilReady, defaultDevice, init, jit, lax, nn, numpy as np, valueAndGrad } from "@jax-js/jax";
import { installGpu } from "../webgpu/dawn.mjs";
import { numbers } from "./workloads.ts";

const backend = process.env.BACKEND ?? "wasm";
if (backend === "webgpu") await installGpu();
await init(backend);
defaultDevice(backend);

const array = (seed, ...shape) =>
  np
    .array(
      numbers(
        shape.reduce((a, b) => a * b, 1),
        seed,
      ),
    )
    .reshape(shape);

/** Waits for the result. On WebGPU only a value that is read back is there. */
async function finish(out) {
  if (backend === "webgpu") await out.ravel().slice([0, 1]).data();
  else {
    await blockUntilReady(out);
    out.dispose();
  }
}

function workload(f, ...xs) {
  const fast = jit(f);
  return {
    async run() {
      await finish(fast(...xs.map((x) => x.ref)));
    },
    close: () => {
      for (const x of xs) x.dispose();
    },
  };
}

/** Adam with the usual constants, by hand: jax-js leaves optimisers to another package. Gives losses. */
export function mlpSteps() {
  const layer = (i, o) => [array(i + o, i, o).mul(0.05), np.zeros([o])];
  const shapes = [...layer(784, 512), ...layer(512, 512), ...layer(512, 10)];
  const zeros = () => shapes.map((w) => np.zeros(w.shape));
  let state = { w: shapes, m: zeros(), v: zeros() };
  const x = array(1, 128, 784);
  const y = nn.oneHot(np.arange(128).astype(np.int32).mod(10), 10);
  const loss = ([w1, b1, w2, b2, w3, b3], x, y) => {
    const h1 = nn.relu(np.dot(x, w1).add(b1));
    const h2 = nn.relu(np.dot(h1, w2).add(b2));
    return nn
      .logSoftmax(np.dot(h2, w3).add(b3), -1)
      .mul(y)
      .sum()
      .mul(-1 / 128);
  };
  const step = jit((w, m, v, x, y) => {
    const [l, grads] = valueAndGrad(loss)(
      w.map((a) => a.ref),
      x,
      y,
    );
    const m2 = m.map((a, i) => a.mul(0.9).add(grads[i].ref.mul(0.1)));
    const v2 = v.map((a, i) => a.mul(0.999).add(np.square(grads[i]).mul(0.001)));
    const w2 = w.map((a, i) => {
      const size = np.sqrt(v2[i].ref).add(1e-8);
      return a.sub(m2[i].ref.mul(0.001).div(size));
    });
    return [l, w2, m2, v2];
  });
  const all = () => [state.w, state.m, state.v];
  const next = () => {
    const [l, w, m, v] = step(...all(), x.ref, y.ref);
    state = { w, m, v };
    return l;
  };
  return { next, all };
}
function mlp() {
  const { next, all } = mlpSteps();
  return {
    async run() {
      const loss = next();
      await blockUntilReady(all());
      await finish(loss);
    },
  };
}

const rows = () => array(1, 4096, 1024);

export const engine = {
  matmul: async () => workload((a, b) => np.matmul(a, b), array(1, 1024, 1024), array(2, 1024, 1024)),
  relu: async () =>
    workload(
      (a, b, c) => nn.relu(a.mul(b).add(c)).mul(0.5),
      array(1, 2 ** 24),
      array(2, 2 ** 24),
      array(3, 2 ** 24),
    ),
  sum: async () => workload((a) => a.sum(), array(1, 2 ** 24)),
  softmax: async () => workload((a) => nn.softmax(a, -1), rows()),
  layernorm: async () => workload((a) => nn.standardize(a, -1), rows()),
  var: async () => workload((a) => np.var_(a, 1, { correction: 1 }), rows()),
  conv: async () =>
    workload(
      (x, w) => lax.convGeneralDilated(x, w, [1, 1], "SAME"),
      array(1, 8, 32, 56, 56),
      array(2, 64, 32, 3, 3),
    ),
  mlp: async () => mlp(),
};
