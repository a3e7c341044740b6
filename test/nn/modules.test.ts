// Activations, pooling and losses as classes: each gives what the method of Tensor gives, has torch's
// arguments by position and by name, and refuses what it would ignore.

import { nn, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { expectClose, numbers } from "./close.ts";

const x = new Tensor(Float32Array.from(numbers(3)(48).map((v) => 4 * v))).reshape(1, 4, 3, 4);
type Case = readonly [{ forward(x: Tensor): Tensor }, (x: Tensor) => Tensor];

const CASES: Readonly<Record<string, Case>> = {
  ReLU: [new nn.ReLU(), (t) => t.relu()],
  ReLU6: [new nn.ReLU6(), (t) => t.relu6()],
  LeakyReLU: [new nn.LeakyReLU({ negativeSlope: 0.2 }), (t) => t.leakyRelu(0.2)],
  ELU: [new nn.ELU(0.5), (t) => t.elu(0.5)],
  CELU: [new nn.CELU(0.5), (t) => t.celu(0.5)],
  SELU: [new nn.SELU(), (t) => t.selu()],
  SiLU: [new nn.SiLU(), (t) => t.silu()],
  Mish: [new nn.Mish(), (t) => t.mish()],
  Sigmoid: [new nn.Sigmoid(), (t) => t.sigmoid()],
  LogSigmoid: [new nn.LogSigmoid(), (t) => t.logsigmoid()],
  Tanh: [new nn.Tanh(), (t) => t.tanh()],
  Softsign: [new nn.Softsign(), (t) => t.softsign()],
  Hardsigmoid: [new nn.Hardsigmoid(), (t) => t.hardsigmoid()],
  Hardswish: [new nn.Hardswish(), (t) => t.hardswish()],
  Hardtanh: [new nn.Hardtanh(-0.5, 2), (t) => t.hardtanh(-0.5, 2)],
  Tanhshrink: [new nn.Tanhshrink(), (t) => t.tanhshrink()],
  Softshrink: [new nn.Softshrink(1), (t) => t.softshrink(1)],
  Hardshrink: [new nn.Hardshrink(1), (t) => t.hardshrink(1)],
  Threshold: [new nn.Threshold(0.5, 7), (t) => t.threshold(0.5, 7)],
  Softplus: [new nn.Softplus(2, 3), (t) => t.softplus(2, 3)],
  GELU: [new nn.GELU({ approximate: "tanh" }), (t) => t.gelu("tanh")],
  GLU: [new nn.GLU(1), (t) => t.glu(1)],
  Softmin: [new nn.Softmin({ dim: 2 }), (t) => t.softmin(2)],
  Softmax: [new nn.Softmax({ dim: 1 }), (t) => t.softmax(1)],
  LogSoftmax: [new nn.LogSoftmax(1), (t) => t.logSoftmax(1)],
  PReLU: [new nn.PReLU(4, { init: 0.5 }), (t) => t.leakyRelu(0.5)],
  MaxPool1d: [new nn.MaxPool1d(2), (t) => t.maxPool1d(2)],
  "MaxPool2d, torch's positions": [
    new nn.MaxPool2d(2, 1, 1),
    (t) => t.maxPool2d(2, { stride: 1, padding: 1 }),
  ],
  MaxPool2d: [new nn.MaxPool2d(2, { ceilMode: true }), (t) => t.maxPool2d(2, { ceilMode: true })],
  MaxPool3d: [
    new nn.MaxPool3d(2, { dilation: 2, stride: 1 }),
    (t) => t.maxPool3d(2, { dilation: 2, stride: 1 }),
  ],
  AvgPool1d: [new nn.AvgPool1d(3, { stride: 1 }), (t) => t.avgPool1d(3, { stride: 1 })],
  AvgPool2d: [
    new nn.AvgPool2d([3, 2], { padding: 1, countIncludePad: false }),
    (t) => t.avgPool2d([3, 2], { padding: 1, countIncludePad: false }),
  ],
  AvgPool3d: [new nn.AvgPool3d(2), (t) => t.avgPool3d(2)],
  AdaptiveAvgPool1d: [new nn.AdaptiveAvgPool1d(2), (t) => t.adaptiveAvgPool1d(2)],
  AdaptiveAvgPool2d: [new nn.AdaptiveAvgPool2d([1, null]), (t) => t.adaptiveAvgPool2d([1, null])],
  AdaptiveAvgPool3d: [new nn.AdaptiveAvgPool3d(1), (t) => t.adaptiveAvgPool3d(1)],
  AdaptiveMaxPool1d: [new nn.AdaptiveMaxPool1d(2), (t) => t.adaptiveMaxPool1d(2)],
  AdaptiveMaxPool2d: [new nn.AdaptiveMaxPool2d(2), (t) => t.adaptiveMaxPool2d(2)],
  AdaptiveMaxPool3d: [new nn.AdaptiveMaxPool3d(1), (t) => t.adaptiveMaxPool3d(1)],
  Upsample: [
    new nn.Upsample({ size: [6, 2], mode: "bilinear" }),
    (t) => t.interpolate({ size: [6, 2], mode: "bilinear" }),
  ],
  PixelShuffle: [new nn.PixelShuffle(2), (t) => t.pixelShuffle(2)],
  PixelUnshuffle: [new nn.PixelUnshuffle(1), (t) => t.pixelUnshuffle(1)],
  ZeroPad2d: [new nn.ZeroPad2d([1, 2, 0, 3]), (t) => t.pad([1, 2, 0, 3])],
  Flatten: [new nn.Flatten(), (t) => t.reshape(1, 48)],
  "Flatten of some dims": [new nn.Flatten(0, 1), (t) => t.reshape(4, 3, 4)],
  Unflatten: [new nn.Unflatten(1, [2, -1]), (t) => t.reshape(1, 2, 2, 3, 4)],
  Identity: [new nn.Identity(54, "ignored"), (t) => t],
};

/** Layers over one or three dims take an input without the batch. */
const inputOf = (name: string): Tensor => (/1d/.test(name) ? x.reshape(4, 3, 4) : x);

test.each(Object.entries(CASES))("%s", async (name, [layer, method]) => {
  const input = inputOf(name);
  const [got, want] = [layer.forward(input), method(input)];
  expect(got.shape).toEqual(want.shape);
  await expectClose(got, await want.tolist());
});

test("a network of modules trains, and only PReLU has parameters", async () => {
  Tensor.manualSeed(5);
  const model = new nn.Sequential(
    new nn.Conv2d(1, 4, 3),
    new nn.PReLU(4),
    new nn.MaxPool2d(2, 2),
    new nn.Flatten(),
    new nn.Linear(16, 2),
    new nn.LogSoftmax(1),
  );
  const names = ["0.weight", "0.bias", "1.weight", "4.weight", "4.bias"];
  expect(Object.keys(nn.getStateDict(model))).toEqual(names);
  const data = Tensor.randn(8, 1, 6, 6);
  const target = new Tensor([0, 1, 0, 1, 0, 1, 0, 1]);
  const opt = new nn.optim.RMSprop(nn.getParameters(model), { lr: 0.02 });
  const loss = new nn.NLLLoss();
  const losses: number[] = [];
  for (let i = 0; i < 8; i++) {
    opt.zeroGrad();
    const now = loss.forward(model.forward(data), target).backward();
    await opt.step(now);
    losses.push(await now.item());
  }
  expect(losses.at(-1)).toBeLessThan(losses[0] as number);
});

describe("losses", () => {
  const [a, b] = [
    new Tensor([
      [0.2, 0.9],
      [0.4, 0.1],
    ]),
    new Tensor([
      [0.5, 0.5],
      [1, 0],
    ]),
  ];
  const classes = new Tensor([1, 0]);
  const cases: readonly (readonly [string, Tensor, Tensor])[] = [
    ["MSELoss", new nn.MSELoss({ reduction: "sum" }).forward(a, b), a.mseLoss(b, { reduction: "sum" })],
    ["L1Loss", new nn.L1Loss().forward(a, b), a.l1Loss(b)],
    ["SmoothL1Loss", new nn.SmoothL1Loss({ beta: 0.3 }).forward(a, b), a.smoothL1Loss(b, { beta: 0.3 })],
    ["HuberLoss", new nn.HuberLoss({ delta: 0.3 }).forward(a, b), a.huberLoss(b, { delta: 0.3 })],
    [
      "CrossEntropyLoss",
      new nn.CrossEntropyLoss({ labelSmoothing: 0.1, ignoreIndex: 0 }).forward(a, classes),
      a.crossEntropy(classes, { labelSmoothing: 0.1, ignoreIndex: 0 }),
    ],
    ["NLLLoss", new nn.NLLLoss().forward(a, classes), a.nllLoss(classes)],
    ["BCELoss", new nn.BCELoss().forward(a, b), a.binaryCrossEntropy(b)],
    [
      "BCEWithLogitsLoss",
      new nn.BCEWithLogitsLoss({ posWeight: b }).forward(a, b),
      a.bceWithLogits(b, { posWeight: b }),
    ],
    [
      "KLDivLoss",
      new nn.KLDivLoss({ reduction: "batchmean" }).forward(a, b),
      a.klDiv(b, { reduction: "batchmean" }),
    ],
  ];
  test.each(cases)("%s", async (_, got, want) => expect(await got.item()).toBe(await want.item()));
});

test.each<[string, () => unknown, RegExp]>([
  [
    "an unknown key",
    () => new nn.Softmax({ axis: 1 } as never),
    /Softmax: unknown option axis; expected dim/,
  ],
  [
    "a text",
    () => new nn.LeakyReLU("0.1" as never),
    /LeakyReLU: negativeSlope is the string "0.1", expected a number/,
  ],
  ["NaN", () => new nn.ELU(NaN), /ELU: alpha is NaN/],
  [
    "an unknown way",
    () => new nn.GELU("fast" as never),
    /GELU: approximate is fast, expected "none" or "tanh"/,
  ],
  ["limits the wrong way round", () => new nn.Hardtanh(1, -1), /Hardtanh: minVal 1 is not below maxVal -1/],
  [
    "a snake",
    () => new nn.MaxPool2d(2, { ceil_mod: 1 } as never),
    /MaxPool2d: unknown option ceil_mod; did you/,
  ],
  [
    "padding twice",
    () => new nn.AvgPool2d(2, { stride: 1 }, 1),
    /AvgPool2d: padding is given after the options/,
  ],
  ["no kernel", () => new nn.MaxPool1d({ kernelSize: 2 } as never), /MaxPool1d: kernelSize is an object \{/],
  [
    "a loss with a text",
    () => new nn.MSELoss(5 as never),
    /MSELoss: option reduction is 5, expected a string/,
  ],
  ["Flatten of options", () => new nn.Flatten({ startDim: 0 } as never), /Flatten: startDim is/],
])("refused: %s", (_, make, message) => expect(make).toThrow(message));
