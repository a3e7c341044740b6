// nn.init against torch's formulas: bounds and deviations of large draws, exact values where nothing is
// random, and that parameters stay parameters.

import { nn, Tensor } from "gradloom";
import { expect, test } from "vitest";
import { expectClose, matmul, transpose } from "./close.ts";

const { init } = nn;
const weight = (...shape: number[]): Tensor => nn.parameter(Tensor.full(shape, 9, { dtype: "float32" }));

/** Mean, standard deviation and largest magnitude. */
async function facts(t: Tensor): Promise<{ mean: number; std: number; most: number }> {
  const xs = [...((await t.data()) as Float32Array)];
  const mean = xs.reduce((a, b) => a + b, 0) / xs.length;
  const std = Math.sqrt(xs.reduce((s, x) => s + (x - mean) ** 2, 0) / xs.length);
  return { mean, std, most: Math.max(...xs.map(Math.abs)) };
}

// [64, 32, 3, 3]: fan in 288, fan out 576
const NORMAL: readonly [string, (t: Tensor) => Tensor, number][] = [
  ["normal_", (t) => init.normal_(t, 0, 0.02), 0.02],
  ["xavierNormal_", (t) => init.xavierNormal_(t, 2), 2 * Math.sqrt(2 / 864)],
  ["kaimingNormal_", (t) => init.kaimingNormal_(t), Math.sqrt(2 / 288)],
  [
    "kaimingNormal_, fanOut, tanh",
    (t) => init.kaimingNormal_(t, { mode: "fanOut", nonlinearity: "tanh" }),
    5 / 3 / Math.sqrt(576),
  ],
];
const EVEN: readonly [string, (t: Tensor) => Tensor, number][] = [
  ["uniform_", (t) => init.uniform_(t, -0.3, 0.3), 0.3],
  ["xavierUniform_", (t) => init.xavierUniform_(t), Math.sqrt(6 / 864)],
  ["kaimingUniform_", (t) => init.kaimingUniform_(t, { a: 1 }), Math.sqrt(3 / 288)],
];

test.each(NORMAL)("%s", async (_, fill, std) => {
  Tensor.manualSeed(1);
  const t = weight(64, 32, 3, 3);
  expect(fill(t)).toBe(t);
  const found = await facts(t);
  expect(Math.abs(found.mean)).toBeLessThan(0.03 * std);
  expect(Math.abs(found.std / std - 1)).toBeLessThan(0.02);
  expect(found.most).toBeGreaterThan(3 * std);
  expect(t.requiresGrad && t.context === undefined).toBe(true);
});
test.each(EVEN)("%s", async (_, fill, bound) => {
  Tensor.manualSeed(1);
  const { mean, std, most } = await facts(fill(weight(64, 32, 3, 3)));
  expect(Math.abs(mean)).toBeLessThan(0.03 * bound);
  expect(Math.abs((std * Math.sqrt(3)) / bound - 1)).toBeLessThan(0.02);
  expect(most).toBeLessThanOrEqual(bound);
  expect(most).toBeGreaterThan(0.99 * bound);
});
test("truncNormal_ follows the truncated distribution", async () => {
  Tensor.manualSeed(2);
  // one sided: the mean of N(0, 1) between 0 and 1 is (phi(0) - phi(1)) / (Phi(1) - Phi(0))
  const t = init.truncNormal_(weight(20000), 0, 1, 0, 1);
  const { mean, most } = await facts(t);
  expect(mean).toBeCloseTo(0.45986, 2);
  expect(most).toBeLessThanOrEqual(1);
  // far out: Phi is computed from its tail
  const far = await facts(init.truncNormal_(weight(5000), 0, 1, 3, 5));
  expect(far.mean).toBeCloseTo(3.2831, 1);
});
test("values that are not random", async () => {
  await expectClose(init.zeros_(weight(2)), [0, 0]);
  await expectClose(init.ones_(weight(2)), [1, 1]);
  await expectClose(init.constant_(weight(2), -2.5), [-2.5, -2.5]);
  await expectClose(init.eye_(weight(3, 2)), [
    [1, 0],
    [0, 1],
    [0, 0],
  ]);
  // two groups of two filters over one channel each: the first of each group keeps the channel
  await expectClose(init.dirac_(weight(4, 1, 3), 2), [[[0, 1, 0]], [[0, 0, 0]], [[0, 1, 0]], [[0, 0, 0]]]);
});
test.each([[[5, 3]], [[3, 5]], [[4, 2, 2]]])("orthogonal_ of %j", async (shape) => {
  Tensor.manualSeed(4);
  const t = init.orthogonal_(weight(...shape), 2);
  const rows = (await t.reshape(shape[0] as number, -1).tolist()) as number[][];
  const wide = rows.length <= (rows[0] as number[]).length;
  const gram = wide ? matmul(rows, transpose(rows)) : matmul(transpose(rows), rows);
  gram.forEach((row, i) => {
    for (const [j, v] of row.entries()) expect(v).toBeCloseTo(i === j ? 4 : 0, 4);
  });
});
test("sparse_: as many zeros in each column as asked for", async () => {
  const t = init.sparse_(weight(10, 3), 0.35);
  expect(await t.eq(0).sum(0).tolist()).toEqual([4, 4, 4]);
});
test("calculateGain", () => {
  const gains = (["linear", "sigmoid", "tanh", "relu", "selu"] as const).map((n) => init.calculateGain(n));
  expect(gains).toEqual([1, 1, 5 / 3, Math.SQRT2, 0.75]);
  expect(init.calculateGain("leakyRelu", 0.5)).toBe(Math.sqrt(1.6));
  expect(init.calculateGain("leakyRelu")).toBe(Math.sqrt(2 / 1.0001));
  expect(init.calculateGain("leaky_relu", 0.5)).toBe(Math.sqrt(1.6)); // torch's spelling
});
test("before and after the first use, in the dtype of the parameter", async () => {
  const layer = new nn.Linear(2, 1, { bias: false });
  init.constant_(layer.weight, 3);
  const x = new Tensor([[1, 2.5]]);
  expect(await layer.forward(x).item()).toBe(10.5);
  init.constant_(layer.weight, -1);
  expect(await layer.forward(x).item()).toBe(-3.5);
  const half = init.normal_(nn.parameter(Tensor.zeros(4, { dtype: "float16" })));
  expect(half.dtype.name).toBe("float16");
  Tensor.manualSeed(8);
  const first = await init.uniform_(weight(3)).tolist();
  Tensor.manualSeed(8);
  expect(await init.uniform_(weight(3)).tolist()).toEqual(first);
});
test.each<[() => unknown, RegExp]>([
  [() => init.xavierUniform_(weight(3)), /init\.xavierUniform_: shape \[3\] has no inputs and outputs/],
  [() => init.kaimingNormal_(weight(3, 3), { mode: "fan_on" } as never), /mode is fan_on, expected "fanIn"/],
  [
    () => init.kaimingNormal_(weight(3, 3), 0.5 as never),
    /init\.kaimingNormal_: options is 0\.5, expected options \{ a, mode/,
  ],
  [() => init.normal_(weight(3), "0" as never), /init\.normal_: mean is the string "0", expected a number/],
  [
    () => init.zeros_(new nn.Linear(2, 2) as never),
    /init\.zeros_: tensor is of type Linear, expected a Tensor/,
  ],
  [() => init.zeros_(weight(2).mul(2)), /was computed from others/],
  [
    () => init.ones_(Tensor.ones(2, { dtype: "int32" })),
    /init\.ones_: the tensor is int32, expected a float/,
  ],
  [() => init.calculateGain("leaky" as never), /nonlinearity is leaky, expected linear/],
  [() => init.eye_(weight(2, 2, 2)), /init\.eye_: shape \[2, 2, 2\], expected 2 dims/],
  [() => init.dirac_(weight(3, 1, 3), 2), /groups 2 do not divide 3/],
])("refused: %s", (make, message) => expect(make).toThrow(message));
