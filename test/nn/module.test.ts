// Training and evaluation of a model: by whether gradients are recorded, or as `train` and `eval` set it.

import { nn, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";

/** A model of the user's own: nothing is inherited. */
class Net {
  parts = { norm: new nn.BatchNorm1d(2), blocks: [new nn.Sequential(new nn.Dropout(0.5))] };
  attention = new nn.MultiHeadAttention(2, 1, { dropout: 0.5 });
  own = { training: true };
  forward(x: Tensor): Tensor {
    return this.parts.blocks.reduce((y, block) => block.forward(y), this.parts.norm.forward(x));
  }
}

describe("without a word", () => {
  test("a step of training trains, and noGrad evaluates", async () => {
    const model = new Net();
    const x = new Tensor(
      [
        [1, 2],
        [3, 5],
      ],
      { dtype: "float32" },
    );
    const optimizer = new nn.optim.SGD(nn.getParameters(model.parts), { lr: 0.1 });
    model.forward(x).square().mean().backward();
    await optimizer.step();
    const count = () => model.parts.norm.numBatchesTracked?.item<bigint>();
    expect(await count()).toBe(1n);
    const guess = () => Tensor.noGrad(() => model.forward(x)).tolist();
    expect(await guess()).toEqual(await guess());
    expect(await count()).toBe(1n);
  });
});

describe("train and eval", () => {
  test("set every layer of a model, whatever it is made of", () => {
    const model = nn.evaluate(new Net());
    const [block] = model.parts.blocks as [nn.Sequential];
    const all = () => [
      model.parts.norm.training,
      (block[0] as nn.Dropout).training,
      model.attention.training,
      model.own.training,
    ];
    expect(all()).toEqual([false, false, false, false]);
    expect(nn.train(model)).toBe(model);
    expect(all()).toEqual([true, true, true, true]);
  });
  test("count for more than whether gradients are recorded", async () => {
    const drop = new nn.Sequential(new nn.Dropout(1));
    const x = Tensor.ones(2);
    expect(await drop.eval().forward(x).tolist()).toEqual([1, 1]);
    expect(await Tensor.train(() => drop.forward(x)).tolist()).toEqual([1, 1]);
    expect(await Tensor.noGrad(() => drop.train().forward(x)).tolist()).toEqual([0, 0]);
  });
  test("are methods of a Module, and models may point back to their owner", () => {
    class Owned extends nn.Module {
      norm = new nn.BatchNorm1d(2);
      owner = this;
    }
    expect(new Owned().eval().norm.training).toBe(false);
    expect(new Owned().eval().train().norm.training).toBe(true);
  });
});
