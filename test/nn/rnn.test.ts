// RNN, LSTM and GRU over sequences: values and gradients against numpy (rnn.py wrote rnn.json), the names of
// torch, dropout between layers, lengths, and the number of kernels.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createSchedule, nn, Tensor, TinyJit } from "gradloom";
import { describe, expect, test } from "vitest";
import { expectClose, numbers } from "./close.ts";

const [TIME, BATCH, INPUT, HIDDEN] = [4, 3, 2, 3];

type Case = nn.LSTMOptions &
  nn.RNNOptions & {
    readonly kind: "RNN" | "LSTM" | "GRU";
    readonly lengths?: readonly number[];
    readonly state?: boolean;
    readonly unbatched?: boolean;
  };
interface Expected {
  readonly case: Case;
  readonly results: readonly number[][];
  readonly gradients: Readonly<Record<string, number[]>>;
}
const EXPECTED = JSON.parse(readFileSync(join(import.meta.dirname, "rnn.json"), "utf8")) as Expected[];

/** The layer, and its results as a list. */
function layerOf({ kind, lengths: _, state: __, unbatched: ___, ...c }: Case) {
  if (kind === "LSTM") {
    const layer = new nn.LSTM(INPUT, HIDDEN, c);
    const forward = (x: Tensor, state: Tensor[], options: nn.SequenceOptions): Tensor[] => {
      const [output, last] = layer.forward(
        x,
        state.length === 0 ? undefined : (state as [Tensor, Tensor]),
        options,
      );
      return [output, ...last];
    };
    return { layer, forward };
  }
  const layer = kind === "RNN" ? new nn.RNN(INPUT, HIDDEN, c) : new nn.GRU(INPUT, HIDDEN, c);
  return {
    layer,
    forward: (x: Tensor, [h]: Tensor[], options: nn.SequenceOptions): Tensor[] =>
      layer.forward(x, h, options),
  };
}

describe("numpy's values and gradients", () => {
  test.each(EXPECTED.map((e) => [JSON.stringify(e.case), e] as const))("%s", async (_, expected) => {
    const c = expected.case;
    const draw = numbers(7);
    const take = (shape: readonly number[]): Tensor =>
      nn.parameter(new Tensor(draw(shape.reduce((a, b) => a * b))).reshape([...shape]));
    const { layer, forward } = layerOf(c);
    const named = nn.getStateDict(layer);
    expect(Object.keys(named)).toEqual(
      Object.keys(expected.gradients).filter((k) => !/^(x|state\d)$/.test(k)),
    );
    const given = Object.fromEntries(Object.entries(named).map(([name, t]) => [name, take(t.shape)]));
    await nn.loadStateDict(layer, given);
    const x = take(c.unbatched ? [TIME, INPUT] : c.batchFirst ? [BATCH, TIME, INPUT] : [TIME, BATCH, INPUT]);
    const count = (c.numLayers ?? 1) * (c.bidirectional ? 2 : 1);
    const sizes = c.kind === "LSTM" ? [c.projSize ?? HIDDEN, HIDDEN] : [HIDDEN];
    const state = c.state ? sizes.map((s) => take([count, BATCH, s])) : [];
    const results = forward(x, state, c.lengths === undefined ? {} : { lengths: c.lengths });
    const weighed = results.map((r) => r.mul(take(r.shape).detach()).sum());
    weighed.reduce((a, b) => a.add(b)).backward();
    const leaves = { ...named, x, ...Object.fromEntries(state.map((t, k) => [`state${k}`, t])) };
    const gradients = Object.values(leaves).map((t) => t.grad as Tensor);
    await Tensor.realize(...results, ...gradients);
    expect(results.length).toBe(expected.results.length);
    for (const [i, r] of results.entries())
      await expectClose(r.flatten(), expected.results[i] as number[], 2e-6);
    for (const [i, name] of Object.keys(leaves).entries())
      await expectClose((gradients[i] as Tensor).flatten(), expected.gradients[name] as number[], 2e-5);
  });
});

describe("what torch does", () => {
  test("state dicts of torch load by name", async () => {
    const layer = new nn.LSTM(2, 3, { numLayers: 2, bidirectional: true, projSize: 2 });
    const names = ["l0", "l0_reverse", "l1", "l1_reverse"].flatMap((s) =>
      ["weight_ih_", "weight_hh_", "bias_ih_", "bias_hh_", "weight_hr_"].map((w) => w + s),
    );
    const own = Object.values(nn.getStateDict(layer));
    expect(own.length).toBe(names.length);
    const state = Object.fromEntries(
      names.map((n, i) => [n, Tensor.full((own[i] as Tensor).shape as number[], i)]),
    );
    await nn.loadStateDict(layer, state);
    expect(await (layer.weightHrL1Reverse as Tensor).tolist()).toEqual([
      [19, 19, 19],
      [19, 19, 19],
    ]);
    expect(await (layer.biasIhL0Reverse as Tensor).mean().item()).toBe(7);
  });
  test("a sequence is what the cell gives step by step", async () => {
    Tensor.manualSeed(2);
    const x = await Tensor.randn(4, 2, 3).realize();
    for (const [layer, cell] of [
      [new nn.RNN(3, 5, { nonlinearity: "relu" }), new nn.RNNCell(3, 5, { nonlinearity: "relu" })],
      [new nn.GRU(3, 5), new nn.GRUCell(3, 5)],
    ] as const) {
      await nn.loadStateDict(
        cell,
        Object.fromEntries(
          Object.entries(nn.getStateDict(layer)).map(([name, t]) => [name.replace("L0", ""), t]),
        ),
      );
      let h: Tensor | undefined;
      for (let t = 0; t < 4; t++) h = cell.forward(x.select(0, t), h);
      const [, last] = layer.forward(x);
      await expectClose(last.squeeze(0), (await (h as Tensor).tolist()) as number[][], 1e-6);
    }
  });
  test("dropout between layers, not behind the last, in training only, the same for a seed", async () => {
    const layer = new nn.GRU(2, 64, { numLayers: 2, dropout: 0.5 });
    const x = await Tensor.ones(3, 1, 2).realize();
    const train = async (seed: number): Promise<unknown> => {
      Tensor.manualSeed(seed);
      return Tensor.train(() => layer.forward(x))[0].tolist();
    };
    const still = await Tensor.noGrad(() => layer.forward(x))[0].tolist();
    expect(await Tensor.noGrad(() => layer.forward(x))[0].tolist()).toEqual(still);
    const [a, b, c] = [await train(1), await train(1), await train(2)];
    expect(a).toEqual(b);
    expect(a).not.toEqual(c);
    expect(a).not.toEqual(still);
    expect((a as number[][][]).flat(2).filter((v) => v === 0)).toEqual([]);
  });
});

describe("lengths", () => {
  test("a tensor of lengths may change in a jitted training step", async () => {
    const losses = async (jitted: boolean): Promise<number[]> => {
      Tensor.manualSeed(3);
      const layer = new nn.LSTM(2, 3, { bidirectional: true });
      const optimizer = new nn.optim.Adam(nn.getParameters(layer), { lr: 0.05 });
      const step = async (x: Tensor, lengths: Tensor): Promise<Tensor> => {
        const [output, [h]] = layer.forward(x, undefined, { lengths });
        const loss = output.square().sum().add(h.sum());
        optimizer.zeroGrad();
        loss.backward();
        await optimizer.step(loss);
        return loss;
      };
      const run = jitted ? new TinyJit(step) : step;
      const found: number[] = [];
      for (const lengths of [
        [1, 4],
        [3, 2],
        [4, 4],
        [2, 1],
      ]) {
        const loss = await run(await Tensor.rand(4, 2, 2).realize(), await new Tensor(lengths).realize());
        found.push(Number(await loss.item()));
      }
      return found;
    };
    const [got, want] = [await losses(true), await losses(false)];
    got.forEach((g, i) => void expect(g).toBeCloseTo(want[i] as number, 5));
    expect(new Set(want).size).toBe(4);
  });
  test("what lies behind the length does not matter", async () => {
    const layer = new nn.GRU(2, 3, { bidirectional: true });
    const x = await Tensor.rand(4, 2, 2).realize();
    const changed = x.mul(
      new Tensor([
        [[1], [1]],
        [[1], [1]],
        [[1], [9]],
        [[5], [NaN]],
      ]),
    );
    const run = async (x: Tensor): Promise<unknown[]> => {
      for (const p of nn.getParameters(layer)) p.grad = undefined;
      const results = layer.forward(x, undefined, { lengths: [3, 2] });
      (results[0] as Tensor).square().sum().add(results[1].sum()).backward();
      return Promise.all(
        [...results, ...nn.getParameters(layer).map((p) => p.grad as Tensor)].map((t) => t.tolist()),
      );
    };
    expect(await run(changed)).toEqual(await run(x));
  });
});

test("the number of kernels does not depend on the number of steps", () => {
  const layer = new nn.LSTM(2, 8, { numLayers: 2, bidirectional: true });
  const kernels = (steps: number): { launched: number; kinds: number } => {
    for (const p of nn.getParameters(layer)) p.grad = undefined;
    const [output] = layer.forward(Tensor.empty([steps, 4, 2]));
    output.square().sum().backward();
    const items = createSchedule(nn.getParameters(layer).map((p) => (p.grad as unknown as Tensor).lazydata));
    return { launched: items.length, kinds: new Set(items.map((i) => i.ast)).size };
  };
  const [a, b, c] = [kernels(10), kernels(11), kernels(41)];
  expect([b.kinds, c.kinds]).toEqual([a.kinds, a.kinds]);
  expect(c.launched - b.launched).toBe(30 * (b.launched - a.launched));
  // for each of 4 scans: at most 3 kernels of the forward and 5 of the backward pass
  expect(b.launched - a.launched).toBeLessThanOrEqual(4 * 8);
});

describe("refused by name", () => {
  const gru = new nn.GRU(2, 3);
  const x = Tensor.zeros(4, 2, 2);
  const cases: readonly [string, () => unknown, RegExp][] = [
    [
      "features",
      () => gru.forward(Tensor.zeros(4, 2, 3)),
      /GRU: input has shape \[4, 2, 3\], expected 2 features/,
    ],
    ["dims", () => gru.forward(Tensor.zeros(2)), /expected \[time, batch, features\], or \[time, features\]/],
    [
      "a state",
      () => gru.forward(x, Tensor.zeros(2, 3)),
      /the first state has shape \[2, 3\], expected \[1, 2, 3\]/,
    ],
    ["no steps", () => gru.forward(Tensor.zeros(0, 2, 2)), /0 steps; expected at least 1/],
    [
      "too few lengths",
      () => gru.forward(x, undefined, { lengths: [4] }),
      /lengths has shape \[1\], expected \[2\]/,
    ],
    [
      "a length of 0",
      () => gru.forward(x, undefined, { lengths: [4, 0] }),
      /lengths\[1\] is 0, expected an integer from 1 to the 4 steps/,
    ],
    [
      "lengths of floats",
      () => gru.forward(x, undefined, { lengths: new Tensor([1.5, 2]) }),
      /lengths is float32, expected integers/,
    ],
    ["layers", () => new nn.RNN(2, 3, { numLayers: 0 }), /RNN: numLayers is 0/],
    ["dropout", () => new nn.LSTM(2, 3, { dropout: 2 }), /dropout is 2, expected a probability/],
    [
      "a projection",
      () => new nn.LSTM(2, 3, { projSize: 3 }),
      /projSize is 3, expected less than hiddenSize 3/,
    ],
    ["a nonlinearity", () => new nn.RNN(2, 3, { nonlinearity: "gelu" as never }), /nonlinearity is gelu/],
  ];
  test.each(cases)("%s", (_, run, message) => void expect(run).toThrow(message));
});
