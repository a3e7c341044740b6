// The workloads as ONNX models, built here, for any package that runs such models: ort.mjs and ortweb.mjs
// provide the sessions.

import { Graph } from "./onnx.ts";
import { GPT2, numbers } from "./workloads.ts";

const count = (shape) => shape.reduce((a, b) => a * b, 1);

/** `open` makes a session of a model's bytes, `Tensor` is the class of what it takes. */
const runner = (open, Tensor) => async (inputs, shape, build) => {
  const g = new Graph();
  const names = inputs.map((i) => g.input(i.name, ...i.shape));
  const session = await open(g.model(build(g, ...names), shape));
  const feeds = Object.fromEntries(
    inputs.map((i, k) => [i.name, new Tensor("float32", numbers(count(i.shape), k + 1), i.shape)]),
  );
  return { run: () => session.run(feeds), close: () => void session.release() };
};
const scalar = (g, x) => g.weight(Float32Array.of(x), 1);
const rows = [{ name: "x", shape: [4096, 1024] }];

async function gpt2(workload) {
  const { layers, dim, heads, vocab, keys } = GPT2;
  const head = dim / heads;
  return workload([{ name: "token", shape: [1, dim] }], [1, vocab], (g, token) => {
    const weights = (...shape) =>
      g.weight(
        numbers(count(shape), shape.length).map((x) => x * 0.05),
        ...shape,
      );
    const norm = (x) =>
      g.op("LayerNormalization", [x, weights(dim), weights(dim)], { axis: -1, epsilon: 1e-5 });
    const dense = (x, i, o) => g.op("Add", [g.op("MatMul", [x, weights(i, o)]), weights(o)]);
    let x = g.op("Add", [token, weights(1, dim)]);
    for (let l = 0; l < layers; l++) {
      const all = g.op("Reshape", [dense(norm(x), dim, 3 * dim), g.ints(3, heads, 1, head)]);
      const [q, k, v] = g
        .ops("Split", [all], 3, { axis: 0, num_outputs: 3 })
        .map((s) => g.op("Squeeze", [s, g.ints(0)]));
      const past = (now) => g.op("Concat", [weights(heads, keys - 1, head), now], { axis: 1 });
      const scores = g.op("MatMul", [q, g.op("Transpose", [past(k)], { perm: [0, 2, 1] })]);
      const shares = g.op("Softmax", [g.op("Mul", [scores, scalar(g, 1 / Math.sqrt(head))])], { axis: -1 });
      const seen = g.op("Reshape", [g.op("MatMul", [shares, past(v)]), g.ints(1, dim)]);
      x = g.op("Add", [x, dense(seen, dim, dim)]);
      const wide = dense(norm(x), dim, 4 * dim);
      const cubed = g.op("Mul", [g.op("Mul", [wide, wide]), wide]);
      const inner = g.op("Mul", [
        g.op("Add", [wide, g.op("Mul", [cubed, scalar(g, 0.044715)])]),
        scalar(g, Math.sqrt(2 / Math.PI)),
      ]);
      const gelu = g.op("Mul", [
        g.op("Mul", [wide, scalar(g, 0.5)]),
        g.op("Add", [g.op("Tanh", [inner]), scalar(g, 1)]),
      ]);
      x = g.op("Add", [x, dense(gelu, 4 * dim, dim)]);
    }
    return g.op("MatMul", [norm(x), weights(dim, vocab)]);
  });
}

export function models(open, Tensor) {
  const workload = runner(open, Tensor);
  return {
    matmul: () =>
      workload(
        [
          { name: "a", shape: [1024, 1024] },
          { name: "b", shape: [1024, 1024] },
        ],
        [1024, 1024],
        (g, a, b) => g.op("MatMul", [a, b]),
      ),
    relu: () =>
      workload(
        ["a", "b", "c"].map((name) => ({ name, shape: [2 ** 24] })),
        [2 ** 24],
        (g, a, b, c) => g.op("Mul", [g.op("Relu", [g.op("Add", [g.op("Mul", [a, b]), c])]), scalar(g, 0.5)]),
      ),
    sum: () =>
      workload([{ name: "x", shape: [2 ** 24] }], [], (g, x) => g.op("ReduceSum", [x], { keepdims: 0 })),
    softmax: () => workload(rows, [4096, 1024], (g, x) => g.op("Softmax", [x], { axis: -1 })),
    layernorm: () =>
      workload(rows, [4096, 1024], (g, x) => {
        const [one, zero] = [
          g.weight(new Float32Array(1024).fill(1), 1024),
          g.weight(new Float32Array(1024), 1024),
        ];
        return g.op("LayerNormalization", [x, one, zero], { axis: -1, epsilon: 1e-5 });
      }),
    var: () =>
      workload(rows, [4096, 1], (g, x) => {
        const rest = g.op("Sub", [x, g.op("ReduceMean", [x, g.ints(1)])]);
        return g.op("Mul", [
          g.op("ReduceMean", [g.op("Mul", [rest, rest]), g.ints(1)]),
          scalar(g, 1024 / 1023),
        ]);
      }),
    conv: () =>
      workload([{ name: "x", shape: [8, 32, 56, 56] }], [8, 64, 56, 56], (g, x) =>
        g.op("Conv", [x, g.weight(numbers(64 * 32 * 9), 64, 32, 3, 3)], { pads: [1, 1, 1, 1] }),
      ),
    gpt2: () => gpt2(workload),
  };
}
