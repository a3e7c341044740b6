// A schedule of known structure is bound again instead of made again, and never where anything differs that a
// schedule depends on. A schedule that was bound again has the values of variables of the first one, the same
// objects; equal kernels share an AST in any case.

import {
  createSchedule,
  Device,
  LazyBuffer,
  nn,
  type ScheduleItem,
  scan,
  Tensor,
  Variable,
  withEnv,
} from "gradloom";
import { beforeEach, describe, expect, test } from "vitest";
import { clearSchedules } from "../../src/schedule/reuse.ts";
import { ready, worst } from "./count.ts";

beforeEach(() => clearSchedules());

const schedule = (...ts: readonly Tensor[]): ScheduleItem[] => createSchedule(ts.map((t) => t.lazydata));
/** Whether the second graph got the schedule of the first: the values of variables are the same objects. */
function isReused(first: readonly Tensor[], second: readonly Tensor[]): boolean {
  const [a, b] = [schedule(...first), schedule(...second)];
  return a.length === b.length && a.every((si, i) => si.ast === b[i]?.ast && si.varVals === b[i]?.varVals);
}

describe("the same structure", () => {
  test("gets the same kernels on its own buffers", () => {
    const [x, y] = [ready([4, 4]), ready([4, 4], {}, 9)];
    const f = (t: Tensor): Tensor => t.dot(t.T).relu().softmax(-1).sum(0);
    const [a, b] = [schedule(f(x)), schedule(f(y))];
    expect(b.map((si) => si.ast)).toEqual(a.map((si) => si.ast));
    expect(b.every((si, i) => si.ast === a[i]?.ast && si.varVals === a[i]?.varVals)).toBe(true);
    expect(b[0]?.inputs).toEqual([y.lazydata.base.buffer]);
    expect(b[0]?.inputs).not.toContain(x.lazydata.base.buffer);
    const plain = withEnv({ FUSE: 0 }, () => f(y).dataSync());
    expect(worst(f(y).dataSync(), plain)).toBeLessThan(1e-5);
  });
  test("serves all steps of training, with the values of schedules made anew", async () => {
    const losses = async (isAgain: boolean): Promise<number[]> => {
      Tensor.manualSeed(3);
      const model = new nn.Sequential(new nn.Linear(4, 8), (x) => x.tanh(), new nn.Linear(8, 1));
      const optimizer = new nn.optim.Adam(nn.getParameters(model), { lr: 0.05 });
      const [x, y] = [ready([8, 4]), ready([8, 1])];
      const found: number[] = [];
      for (let i = 0; i < 6; i++) {
        if (!isAgain) clearSchedules();
        const loss = model.forward(x).sub(y).square().mean();
        optimizer.zeroGrad();
        loss.backward();
        await optimizer.step();
        found.push(await loss.item());
      }
      return found;
    };
    expect(await losses(true)).toEqual(await losses(false));
  });
});

describe("with loops", () => {
  const w = ready([3, 3], {}, 5);
  /** A kernel, a loop whose second result nobody reads, and a kernel. */
  const recurrent = (x: Tensor, times = 2): Tensor =>
    scan(
      (h: Tensor, row: Tensor) => [h.dot(w).add(row).tanh(), h.mul(times)],
      x.select(0, 0),
      x.mul(2),
    )[0].add(1);
  test("kernels beside a loop are those of the first graph, the loop runs its own body", () => {
    const [x, y] = [ready([4, 3]), ready([4, 3], {}, 9)];
    const [a, b, other] = [schedule(recurrent(x)), schedule(recurrent(y)), schedule(recurrent(y, 5))];
    const beside = (items: readonly ScheduleItem[]) =>
      items.filter((si) => si.partOf === undefined).map((si) => si.varVals);
    expect(beside(a).length).toBeGreaterThan(1);
    for (const items of [b, other]) {
      expect(items.length).toBe(a.length);
      beside(items).forEach((varVals, i) => {
        expect(varVals).toBe(beside(a)[i]);
      });
    }
    const inputs = (items: readonly ScheduleItem[]) => items.flatMap((si) => si.inputs);
    expect(inputs(b)).not.toContain(x.lazydata.base.buffer);
    expect(other.map((si) => si.ast)).not.toEqual(b.map((si) => si.ast));
    for (const t of [x, y]) {
      const known = recurrent(t).dataSync();
      clearSchedules();
      expect(known).toEqual(recurrent(t).dataSync());
    }
  });
  test("training steps have the values of schedules made anew", async () => {
    const losses = async (isAgain: boolean): Promise<number[]> => {
      Tensor.manualSeed(3);
      const model = { lstm: new nn.LSTM(3, 4), head: new nn.Linear(4, 1) };
      const optimizer = new nn.optim.Adam(nn.getParameters(model), { lr: 0.05 });
      const found: number[] = [];
      for (let i = 0; i < 4; i++) {
        if (!isAgain) clearSchedules();
        const loss = model.head
          .forward(model.lstm.forward(ready([5, 2, 3]))[0])
          .square()
          .mean();
        optimizer.zeroGrad();
        loss.backward();
        await optimizer.step();
        found.push(await loss.item());
      }
      return found;
    };
    expect(await losses(true)).toEqual(await losses(false));
  });
  test("results of one loop and of two are not the same graph", () => {
    const x = ready([4, 3]);
    const both = (same: boolean): Tensor => {
      const body = (h: Tensor, row: Tensor): [Tensor, Tensor] => [h.add(row), h.mul(2)];
      const [h, ys] = scan(body, x.select(0, 0), x);
      return h.add((same ? ys : scan(body, x.select(0, 0), x)[1]).sum(0));
    };
    const [one, two] = [schedule(both(true)), schedule(both(false))];
    expect(two.length).toBeGreaterThan(one.length);
    expect(both(true).dataSync()).toEqual(both(false).dataSync());
  });
});

describe("another schedule is made for", () => {
  /** A node of its own on the memory of a tensor. */
  const named = ({ lazydata, shape }: Tensor): Tensor =>
    new Tensor(LazyBuffer.fromBuffer(lazydata.base.buffer, shape));
  const x = ready([4, 4]);
  const y = ready([4, 4], {}, 5);
  const other: [string, (differs: boolean) => Tensor[]][] = [
    ["another constant", (d) => [x.mul(d ? 3 : 2)]],
    ["a zero of another sign", (d) => [x.maximum(d ? -0 : 0)]],
    ["another type", (d) => [x.cast(d ? "float64" : "float16")]],
    ["another axis", (d) => [x.sum(d ? 1 : 0)]],
    ["another view", (d) => [(d ? x.T : x).add(y)]],
    ["another part", (d) => [x.shrink([d ? [1, 3] : [2, 4], null]).add(1)]],
    ["zeros elsewhere", (d) => [x.pad([d ? [1, 0] : [0, 1], null]).add(1)]],
    ["the same buffer twice", (d) => [x.add(d ? x : y)]],
    ["two nodes of one memory", (d) => [named(x).add(named(d ? x : y))]],
    ["another op", (d) => [d ? x.exp2() : x.sqrt()]],
    ["another order of what is wanted", (d) => (d ? [x.exp2(), x.sqrt()] : [x.sqrt(), x.exp2()])],
    ["a value that is shared", (d) => ((e) => [e.add(1), (d ? e : x.exp2()).mul(2)])(x.exp2())],
    ["a value that is stored", (d) => ((e) => [(d ? e.contiguous() : e).mul(2)])(x.exp2())],
    ["more that is wanted", (d) => ((e) => (d ? [e, e.mul(2)] : [e.mul(2)]))(x.exp2())],
  ];
  for (const [name, build] of other) {
    test(name, () => {
      expect(isReused(build(false), build(false))).toBe(true);
      expect(isReused(build(false), build(true))).toBe(false);
    });
  }
  test("other settings", () => {
    const build = (): Tensor => x.sub(x.max(1, true)).exp2().sum(1);
    const fused = schedule(build());
    expect(withEnv({ FUSE: 0 }, () => schedule(build())).length).toBeGreaterThan(fused.length);
    expect(schedule(build()).length).toBe(fused.length);
  });
  test("other values of variables", () => {
    const i = Variable("i", 1, 4);
    const build = (n: number): Tensor =>
      x
        .shrink([
          [0, i.bind(n)],
          [0, 4],
        ])
        .sum();
    expect(schedule(build(2))[0]?.varVals).toEqual(new Map([[i, 2]]));
    expect(schedule(build(3))[0]?.varVals).toEqual(new Map([[i, 3]]));
    expect(build(3).itemSync()).toBeCloseTo(
      x
        .shrink([
          [0, 3],
          [0, 4],
        ])
        .sum()
        .itemSync(),
      5,
    );
  });
  test("another device", async () => {
    await Device.open("JS");
    const onJs = ready([4, 4], { device: "JS" });
    expect(isReused([x.add(1)], [onJs.add(1)])).toBe(false);
  });
});

describe("with assigns", () => {
  test("the same buffer written and read, and another one read", () => {
    const [a, b] = [ready([4]), ready([4], {}, 2)];
    expect(isReused([a.assign(b.mul(2))], [ready([4]).assign(ready([4]).mul(2))])).toBe(true);
    const c = ready([4]);
    expect(isReused([c.assign(b.mul(3))], [((t) => t.assign(t.mul(3)))(ready([4]))])).toBe(false);
  });
  test("somebody who still reads the old value gets it, also when the schedule is known", () => {
    for (let i = 0; i < 3; i++) {
      const w = ready([3]);
      const before = w.dataSync() as Float32Array;
      const reads = i === 2 ? w.mul(10) : undefined;
      w.assign(w.add(1)).realizeSync();
      if (reads !== undefined) expect(reads.dataSync()).toEqual(before.map((v) => 10 * v));
      expect(w.dataSync()).toEqual(before.map((v) => v + 1));
    }
  });
});

test("what was not used for long is forgotten, and all together stay bounded", () => {
  const x = ready([4]);
  const chain = (c: number): Tensor => {
    let t = x;
    for (let i = 0; i < 20; i++) t = t.add(c);
    return t;
  };
  clearSchedules(5000);
  const first = schedule(chain(1))[0]?.varVals;
  expect(schedule(chain(1))[0]?.varVals).toBe(first);
  for (let c = 2; c < 20; c++) schedule(chain(c));
  expect(schedule(chain(1))[0]?.varVals).not.toBe(first);
  expect(schedule(chain(19))[0]?.varVals).toBe(schedule(chain(19))[0]?.varVals);
});
