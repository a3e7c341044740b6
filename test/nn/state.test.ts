// The state of a model: how tensors are found and named, and loading that changes everything or nothing.

import { nn, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";

const net = () => ({
  conv: new nn.Conv2d(1, 2, 3),
  blocks: [new nn.Linear(2, 2), { norm: new nn.BatchNorm1d(2) }],
  act: (x: Tensor) => x.relu(),
  name: "net",
  nothing: undefined,
});

describe("getStateDict", () => {
  test("a name is the path to the tensor: properties, arrays, nested objects", () => {
    expect(Object.keys(nn.getStateDict(net()))).toEqual([
      "conv.weight",
      "conv.bias",
      "blocks.0.weight",
      "blocks.0.bias",
      "blocks.1.norm.weight",
      "blocks.1.norm.bias",
      "blocks.1.norm.runningMean",
      "blocks.1.norm.runningVar",
      "blocks.1.norm.numBatchesTracked",
    ]);
  });
  test("Sequential names its layers by number, maps by key, a prefix goes in front", () => {
    const seq = new nn.Sequential((x) => x, new nn.Linear(1, 1, { bias: false }));
    expect(Object.keys(nn.getStateDict(seq))).toEqual(["1.weight"]);
    const map = new Map([["a", new Tensor([1])]]);
    expect(Object.keys(nn.getStateDict({ map }, "model"))).toEqual(["model.map.a"]);
    expect(Object.keys(nn.getStateDict(new Tensor([1]), "x"))).toEqual(["x"]);
  });
  test("a part that points back to its owner is entered once", () => {
    const parent: Record<string, unknown> = { weight: new Tensor([1]) };
    parent.child = { parent, weight: new Tensor([2]) };
    expect(Object.keys(nn.getStateDict(parent))).toEqual(["weight", "child.weight"]);
  });
  test("a tied tensor has both names in the state and is one parameter", () => {
    const shared = new nn.Linear(2, 2);
    const model = { a: shared, b: shared };
    expect(Object.keys(nn.getStateDict(model))).toHaveLength(4);
    expect(nn.getParameters(model)).toHaveLength(2);
  });
  test("getParameters leaves running statistics out", () => {
    expect(nn.getParameters(net())).toHaveLength(6);
  });
});

describe("loadStateDict", () => {
  test("values, types and devices: there and back through a file", async () => {
    const [a, b] = [net(), net()];
    const result = await nn.loadStateDict(b, await nn.safeLoad(await nn.safeSave(nn.getStateDict(a))));
    expect(result).toEqual({ missing: [], unexpected: [] });
    const [x, y] = [nn.getStateDict(a), nn.getStateDict(b)];
    for (const name of Object.keys(x)) expect(await y[name]?.tolist()).toEqual(await x[name]?.tolist());
    expect(b.conv.weight.requiresGrad).toBe(true);
  });
  test("another type is converted, another device moved", async () => {
    const model = new nn.Linear(2, 1);
    const state = {
      weight: new Tensor([[1.5, 2]], { dtype: "float16", device: "JS" }),
      bias: new Tensor([3]),
    };
    await nn.loadStateDict(model, state);
    expect([model.weight.dtype.name, model.weight.device]).toEqual(["float32", "WASM"]);
    expect(await model.weight.tolist()).toEqual([[1.5, 2]]);
    expect(await model.bias?.tolist()).toEqual([3]);
  });
  test("names in the spelling of torch match", async () => {
    const model = new nn.BatchNorm1d(1);
    const one = () => new Tensor([4]);
    const count = new Tensor([9n]).reshape([]);
    const state = {
      weight: one(),
      bias: one(),
      running_mean: one(),
      running_var: one(),
      num_batches_tracked: count,
    };
    await nn.loadStateDict(model, state);
    expect(await model.runningVar?.tolist()).toEqual([4]);
    expect(await model.numBatchesTracked?.item()).toBe(9n);
  });
  test("the memory of a model that has been realised is kept", async () => {
    const model = new nn.Linear(2, 1);
    await Tensor.realize(model.weight, model.bias as Tensor);
    const before = model.weight.lazydata.base.buffer;
    await nn.loadStateDict(model, { weight: new Tensor([[1, 2]]), bias: new Tensor([3]) });
    expect(model.weight.lazydata.base.buffer).toBe(before);
    expect(await model.weight.tolist()).toEqual([[1, 2]]);
  });
  test("two models that loaded one state do not share memory", async () => {
    const [a, b] = [new nn.Linear(1, 1, { bias: false }), new nn.Linear(1, 1, { bias: false })];
    const state = { weight: new Tensor([[5]], { dtype: "float32" }) };
    await nn.loadStateDict(a, state);
    await nn.loadStateDict(b, state);
    const opt = new nn.optim.SGD([a.weight], { lr: 1 });
    a.weight.sum().backward();
    await opt.step();
    expect(await a.weight.tolist()).toEqual([[4]]);
    expect(await b.weight.tolist()).toEqual([[5]]);
    expect(await state.weight.tolist()).toEqual([[5]]);
  });

  const state = () => ({ weight: new Tensor([[9, 9]]), extra: new Tensor([1]), bias: new Tensor([1, 2]) });
  test("an error names everything missing, unexpected or of the wrong shape, and nothing is loaded", async () => {
    const model = { lin: new nn.Linear(2, 1), weight: Tensor.zeros(1, 2), bias: Tensor.zeros(1) };
    const loading = nn.loadStateDict(model, state());
    await expect(loading).rejects.toThrow(
      "loadStateDict: missing in the state: lin.weight, lin.bias; unexpected, the model has no such name: extra; " +
        "misshapen: bias is [1] in the model and [2] in the state. Nothing was loaded",
    );
    expect(await model.weight.tolist()).toEqual([[0, 0]]);
  });
  test("strict: false ignores names, never shapes", async () => {
    const model = { weight: Tensor.zeros(1, 2), other: Tensor.zeros(1) };
    const { bias: _, ...rest } = state();
    const result = await nn.loadStateDict(model, rest, { strict: false });
    expect(result).toEqual({ missing: ["other"], unexpected: ["extra"] });
    expect(await model.weight.tolist()).toEqual([[9, 9]]);
    await expect(nn.loadStateDict({ weight: Tensor.zeros(2) }, rest, { strict: false })).rejects.toThrow(
      /misshapen/,
    );
  });
  test("a long list is shortened", async () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`t${i}`, new Tensor([1])]));
    await expect(nn.loadStateDict({}, many)).rejects.toThrow(/t18, t19 and 10 more/);
  });
  test("a read that fails changes nothing", async () => {
    const model = { a: Tensor.zeros(1), b: Tensor.zeros(1) };
    const gone = Tensor.fromFile("no/such/file", [1], "float32");
    await expect(nn.loadStateDict(model, { a: new Tensor([1.5]), b: gone })).rejects.toThrow(/cannot open/);
    expect(await model.a.tolist()).toEqual([0]);
  });
});
