// Scopes of noGrad, enableGrad and train: two async tasks that take turns do not change each other's in Node;
// in a page, which cannot tell tasks apart, a scope holds for the synchronous part, and doubt is an error.

import { nn, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { Scopes } from "../../src/engine/scope.ts";
import { makeAsyncScope } from "../../src/host/browser.ts";

const pass = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

describe("in Node", () => {
  test("a task that evaluates and a task that trains, in turns", async () => {
    const w = new Tensor([1.5, 2], { requiresGrad: true });
    const seen: [string, boolean, boolean][] = [];
    const look = (who: string) => seen.push([who, w.mul(2).requiresGrad, Tensor.training]);
    const task = async (who: string): Promise<void> => {
      for (let i = 0; i < 3; i++) {
        look(who);
        await pass();
      }
    };
    await Promise.all([
      Tensor.noGrad(() => task("evaluates")),
      task("trains"),
      Tensor.train(() => task("evaluates by train"), false),
      task("trains"),
    ]);
    look("trains");
    expect(seen).toHaveLength(13);
    for (const [who, recorded, training] of seen) {
      expect([who, recorded]).toEqual([who, who !== "evaluates"]);
      expect([who, training]).toEqual([who, who === "trains"]);
    }
  });
  test("each task has the running statistics of its own steps", async () => {
    const model = new nn.Sequential(new nn.Linear(2, 2), new nn.BatchNorm1d(2));
    const x = await new Tensor(
      [
        [1, 2],
        [3, 5],
      ],
      { dtype: "float32" },
    ).realize();
    const bn = model[1] as nn.BatchNorm1d;
    const evaluates = Tensor.noGrad(async () => {
      for (let i = 0; i < 4; i++) await model.forward(x).data();
    });
    const optimizer = new nn.optim.SGD(nn.getParameters(model), { lr: 0.01 });
    for (let i = 0; i < 3; i++) {
      optimizer.zeroGrad();
      model.forward(x).square().mean().backward();
      await optimizer.step();
    }
    await evaluates;
    expect(await bn.numBatchesTracked?.item<bigint>()).toBe(3n);
  });
  test("what a function throws ends its scope, at once or later", async () => {
    const fail = (): never => {
      throw new Error("no");
    };
    expect(() => Tensor.noGrad(fail)).toThrow("no");
    const later = Tensor.noGrad(async () => {
      await pass();
      fail();
    });
    await expect(later).rejects.toThrow("no");
    expect(Tensor.training).toBe(true);
  });
  test("a gradient's own ops are not recorded, and do not change whether layers train", () => {
    const x = new Tensor([1, 2], { dtype: "float32", requiresGrad: true });
    const seen: boolean[] = [];
    const look = (t: Tensor): Tensor => {
      seen.push(Tensor.training);
      return t.mul(1);
    };
    Tensor.custom({ forward: look, backward: look })(x).sum().backward();
    expect(seen).toEqual([true, true]);
  });
});

describe("in a page", () => {
  const scopes = () => new Scopes(makeAsyncScope());
  test("a scope holds for the synchronous part; the rest runs by the function that is passed", async () => {
    const s = scopes();
    const seen: boolean[] = [];
    await s.run({ recording: false }, async (within) => {
      seen.push(s.get("recording"));
      await pass();
      within(() => seen.push(s.get("recording")));
    });
    seen.push(s.get("recording"));
    expect(seen).toEqual([false, false, true]);
  });
  test("what may belong to an async function that is under way is refused, unless it says what it is", async () => {
    const s = scopes();
    const evaluates = s.run({ recording: false }, async () => {
      await pass();
      return s.get("recording");
    });
    expect(() => s.get("recording")).toThrow(/a page cannot tell if this belongs to it/);
    expect(s.run({ recording: true }, () => s.get("recording"))).toBe(true);
    expect(s.get("training")).toBeUndefined(); // the same for all of them
    await expect(evaluates).rejects.toThrow(/after an await use the function that it passes/i);
    expect(s.get("recording")).toBe(true);
  });
});
