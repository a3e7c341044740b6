// Metrics of a batch against figures by hand, and over batches: as if all had been one.

import { nn, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { numbers, rows } from "./close.ts";

const { metrics } = nn;
const scores = new Tensor([
  [0.7, 0.2, 0.1],
  [0.1, 0.3, 0.6],
  [0.3, 0.4, 0.3],
  [0.5, 0.1, 0.4],
]);
const labels = new Tensor([0, 2, 0, 2]);

describe("of a batch", () => {
  test("accuracy of scores, classes, probabilities and images", async () => {
    expect(await metrics.accuracy(scores, labels).item()).toBe(0.5);
    expect(await metrics.accuracy(new Tensor([0, 2, 1, 2]), labels).item()).toBe(0.75);
    expect(await metrics.accuracy(new Tensor([0.7, 0.2]), new Tensor([1, 1])).item()).toBe(0.5);
    expect(await metrics.accuracy(new Tensor([0.7, 0.2]), new Tensor([1, 1]), 0.1).item()).toBe(1);
    // a class for each of two pixels: [n, classes, pixels]
    const pixels = new Tensor([
      [
        [0.9, 0.2],
        [0.1, 0.8],
      ],
    ]);
    expect(await metrics.accuracy(pixels, new Tensor([[0, 0]])).item()).toBe(0.5);
  });
  test("topkAccuracy", async () => {
    const hits = [1, 2, 3].map((k) => metrics.topkAccuracy(scores, labels, k).item());
    expect(await Promise.all(hits)).toEqual([0.5, 1, 1]);
  });
  test("confusionMatrix has targets in rows", async () => {
    expect(await metrics.confusionMatrix(scores, labels, 3).tolist()).toEqual([
      [1, 1, 0],
      [0, 0, 0],
      [1, 0, 1],
    ]);
  });
  test("mse, rmse, mae, r2", async () => {
    const [p, t] = [new Tensor([2.5, 0, 2, 8]), new Tensor([3, -0.5, 2, 7])];
    expect(await metrics.mse(p, t).item()).toBeCloseTo(0.375, 6);
    expect(await metrics.rmse(p, t).item()).toBeCloseTo(Math.sqrt(0.375), 6);
    expect(await metrics.mae(p, t).item()).toBeCloseTo(0.5, 6);
    expect(await metrics.r2(p, t).item()).toBeCloseTo(0.9486, 4);
  });
});

describe("over batches", () => {
  const [p, t] = [numbers(1)(30), numbers(2)(30).map((x) => x + 5)];
  const classes = numbers(3)(30).map((x) => Math.floor((x + 1) * 1.5));
  const guesses = rows(numbers(4)(90), 3);
  const parts = [
    [0, 7],
    [7, 20],
    [20, 30],
  ] as const;

  test("Mean weighs by the number of samples", async () => {
    const mean = new metrics.Mean();
    expect(mean.compute()).toBeNaN();
    await mean.update(new Tensor(2.0), 3);
    await mean.update(6);
    expect(mean.compute()).toBe(3);
    mean.reset();
    await mean.update(7);
    expect(mean.compute()).toBe(7);
  });
  test("Accuracy and Confusion", async () => {
    const [top1, top2, confusion] = [
      new metrics.Accuracy(),
      new metrics.Accuracy({ k: 2 }),
      new metrics.Confusion(3),
    ];
    for (const [a, b] of parts) {
      const [g, c] = [new Tensor(guesses.slice(a, b)), new Tensor(classes.slice(a, b))];
      for (const m of [top1, top2, confusion]) await m.update(g, c);
    }
    const [g, c] = [new Tensor(guesses), new Tensor(classes)];
    expect(top1.compute()).toBeCloseTo(await metrics.accuracy(g, c).item(), 6);
    expect(top2.compute()).toBeCloseTo(await metrics.topkAccuracy(g, c, 2).item(), 6);
    expect(confusion.compute()).toEqual(await metrics.confusionMatrix(g, c, 3).tolist());
    expect(confusion.accuracy()).toBeCloseTo(top1.compute(), 9);
    for (const m of [top1, confusion]) m.reset();
    expect(top1.compute()).toBeNaN();
    expect(confusion.compute().flat()).toEqual(new Array(9).fill(0));
  });
  test("precision, recall and F1 in all averages, as scikit-learn has them", async () => {
    const m = new metrics.Confusion(3);
    await m.update(new Tensor([0, 2, 1, 0, 0, 1]), new Tensor([0, 1, 2, 0, 1, 2]));
    expect(m.perClass()).toEqual([
      { precision: 2 / 3, recall: 1, f1: 0.8 },
      { precision: 0, recall: 0, f1: 0 },
      { precision: 0, recall: 0, f1: 0 },
    ]);
    const macro = m.figures();
    expect([macro.precision, macro.recall, macro.f1].map((x) => x.toFixed(4))).toEqual([
      "0.2222",
      "0.3333",
      "0.2667",
    ]);
    const { precision, recall, f1 } = m.figures("weighted");
    expect([precision, recall, f1].map((x) => x.toFixed(4))).toEqual(["0.2222", "0.3333", "0.2667"]);
    expect(m.figures("micro")).toEqual({ precision: 1 / 3, recall: 1 / 3, f1: 1 / 3 });
  });
  test("Regression, with targets far from zero", async () => {
    const m = new metrics.Regression();
    for (const [a, b] of parts) await m.update(new Tensor(p.slice(a, b)), new Tensor(t.slice(a, b)));
    const mean = t.reduce((a, b) => a + b) / 30;
    const squares = p.reduce((s, x, i) => s + (x - (t[i] as number)) ** 2, 0);
    const { mse, rmse, mae, r2 } = m.compute();
    expect(mse).toBeCloseTo(squares / 30, 4);
    expect(rmse).toBeCloseTo(Math.sqrt(squares / 30), 5);
    expect(mae).toBeCloseTo(p.reduce((s, x, i) => s + Math.abs(x - (t[i] as number)), 0) / 30, 5);
    expect(r2).toBeCloseTo(1 - squares / t.reduce((s, x) => s + (x - mean) ** 2, 0), 3);
    m.reset();
    expect(m.compute().mse).toBeNaN();
  });
});

test.each<[() => unknown, RegExp]>([
  [
    () => metrics.accuracy(scores, new Tensor([0, 1])),
    /accuracy: scores of shape \[4, 3\] do not fit .* \[2\]/,
  ],
  [
    () => metrics.accuracy([0] as never, labels),
    /predictions of shape \[1\] do not fit targets of shape \[4\]/,
  ],
  [() => metrics.topkAccuracy(scores, labels, 4), /k is 4, expected an integer from 1 to 3/],
  [() => metrics.mse(scores, labels), /mse: predictions of shape \[4, 3\] do not fit/],
  [() => metrics.confusionMatrix(scores, labels, 0), /numClasses is 0/],
  [() => new metrics.Confusion(2).figures("all" as never), /average is all, expected "macro"/],
])("refused: %s", (make, message) => expect(make).toThrow(message));
test("classes outside the matrix are refused, not lost", async () => {
  await expect(new metrics.Confusion(2).update(scores, labels)).rejects.toThrow(
    /2 of 4 samples have a class outside 0 to 1/,
  );
});
