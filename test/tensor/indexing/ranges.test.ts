// Indices out of range: refused where the array that they came in shows it; those that the device computes
// are refused with CHECK=1, when they are computed.

import { ArgumentError, nn, Tensor, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";

const x = Tensor.arange(6, { dtype: "float32" }).reshape(2, 3);
const one = Tensor.ones(1, 1);
const row = Tensor.ones(1, 3);
const table = new nn.Embedding(4, 2);

/** What an op does with an index, an index that it takes, and one that it does not. */
const OPS: readonly (readonly [string, (i: Tensor) => Tensor, number, number, string])[] = [
  ["gather", (i) => x.gather(1, i.reshape(1, 1)), 2, 3, "0 to 2"],
  ["gather", (i) => x.gather(0, i.reshape(1, 1)), 1, -1, "0 to 1"],
  ["indexSelect", (i) => x.indexSelect(0, i), 1, 2, "0 to 1"],
  ["embedding", (i) => i.embedding(x), 1, 2, "0 to 1"],
  ["embedding", (i) => table.forward(i), 3, 4, "0 to 3"],
  ["takeAlongDim", (i) => x.takeAlongDim(i.reshape(1, 1), 1), -3, 3, "-3 to 2"],
  ["takeAlongDim", (i) => x.takeAlongDim(i), -6, -7, "-6 to 5"],
  ["take", (i) => x.take(i), 5, 6, "-6 to 5"],
  ["get", (i) => x.get(i), -2, 2, "-2 to 1"],
  ["get", (i) => x.get(":", i), -3, 3, "-3 to 2"],
  ["scatter", (i) => x.scatter(1, i.reshape(1, 1), 5), 2, 3, "0 to 2"],
  ["scatterAdd", (i) => x.scatterAdd(1, i.reshape(1, 1), one), 2, 3, "0 to 2"],
  ["scatterReduce", (i) => x.scatterReduce(1, i.reshape(1, 1), one, "sum"), 2, 3, "0 to 2"],
  ["indexAdd", (i) => x.indexAdd(0, i, row), 1, 2, "-2 to 1"],
  ["indexCopy", (i) => x.indexCopy(0, i, row), 1, 2, "-2 to 1"],
  ["indexFill", (i) => x.indexFill(0, i, 1), 1, 2, "-2 to 1"],
  ["indexPut", (i) => x.indexPut([i], 5), 1, 2, "-2 to 1"],
  ["put", (i) => x.put(i, new Tensor([1.5])), 5, 6, "-6 to 5"],
  ["setitem", (i) => x.clone().setitem([i], 1), 1, 2, "-2 to 1"],
  ["oneHot", (i) => i.oneHot(3), 2, 3, "0 to 2"],
  ["crossEntropy", (i) => x.get([0, 1]).crossEntropy(i), 2, 3, "0 to 2"],
  ["nllLoss", (i) => x.get([0, 1]).nllLoss(i), 2, -1, "0 to 2"],
  ["sparseCategoricalCrossentropy", (i) => x.get([0, 1]).sparseCategoricalCrossentropy(i), -1, -2, "0 to 2"],
];

describe.each(OPS)("%s", (name, run, good, bad, range) => {
  const text = `${name}: index ${bad} is out of range, expected ${range}`;
  test("is refused at once where an array has the index", () => {
    for (const data of [[bad], new Int32Array([bad]), new BigInt64Array([BigInt(bad)])]) {
      expect(() => run(new Tensor(data))).toThrow(text);
    }
    expect(run(new Tensor([good]))).toBeInstanceOf(Tensor);
  });
  test("CHECK=1 refuses a computed one", async () => {
    await withEnv({ CHECK: 1 }, async () => {
      const wrong = run(new Tensor([bad - 1]).add(1));
      await expect(wrong.tolist()).rejects.toThrow(ArgumentError);
      await expect(run(new Tensor([bad - 1]).add(1)).tolist()).rejects.toThrow(text);
      const right = await run(new Tensor([good - 1]).add(1)).tolist();
      expect(right).toEqual(await run(new Tensor([good])).tolist());
    });
  });
});

test("a part of an array is known only to the device", async () => {
  const part = new Tensor([1, 7]).get([0, 1]);
  expect(await x.indexSelect(0, part).tolist()).toEqual([[3, 4, 5]]);
  expect(() => x.indexSelect(0, new Tensor([1, 7]))).toThrow("index 7");
});
test("the number that is ignored may be anything", () => {
  expect(x.crossEntropy(new Tensor([0, -100])).shape).toEqual([]);
  expect(x.crossEntropy(new Tensor([0, 255]), { ignoreIndex: 255 }).shape).toEqual([]);
  expect(() => x.crossEntropy(new Tensor([255, 255]), { ignoreIndex: 254 })).toThrow("index 255");
});
test("an array of many is looked at by its range", () => {
  const labels = new Tensor(Int32Array.from({ length: 5000 }, (_, i) => i % 4));
  expect(() => labels.oneHot(3)).toThrow("oneHot: index 3 is out of range");
  expect(labels.oneHot(4).shape).toEqual([5000, 4]);
});
