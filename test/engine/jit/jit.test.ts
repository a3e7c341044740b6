// TinyJit: the three calls of seed 004, and that a replay gives what an eager call gives: with new inputs,
// in-place updates, random numbers, symbolic sizes, several devices, nested jits, held results.
// What is refused: misuse.test.ts.

import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import {
  BufferCopy,
  CompiledRunner,
  Device,
  GlobalCounters,
  nn,
  StaleError,
  Tensor,
  TinyJit,
  Variable,
  withEnv,
} from "gradloom";
import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { sub } from "../../../src/shape/symbolic.ts";
import { collect } from "../../runtime/gc.ts";

beforeAll(async () => {
  for (const d of ["JS", "WASM:1"]) await Device.open(d);
});
beforeEach(() => Tensor.manualSeed(7));

/** A seeded generator of the test's own. */
function dice(seed: number): () => number {
  let s = seed;
  return () => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
    return s / 2 ** 32;
  };
}
const floats = (random: () => number, n: number): Float32Array =>
  Float32Array.from({ length: n }, () => random() * 2 - 1);

describe("the three calls of seed 004", () => {
  test("the function runs twice; the cache holds the kernel and the copy out", async () => {
    const [a, b] = [new Tensor([1, 2]), new Tensor([3, 4])];
    let runs = 0;
    const run = new TinyJit(async () => {
      runs++;
      return a.dot(b).data();
    });
    expect([...(await run())]).toEqual([11]);
    expect([runs, run.cnt, run.jitCache.length]).toEqual([1, 1, 0]);
    expect([...(await run())]).toEqual([11]);
    expect([runs, run.cnt]).toEqual([2, 2]);
    expect(run.jitCache.map((x) => x.runner.name)).toEqual([expect.stringMatching(/^r_2/), "copy"]);
    expect(run.jitCache[0]?.runner).toBeInstanceOf(CompiledRunner);
    expect(run.jitCache[1]?.runner).toBeInstanceOf(BufferCopy);
    expect(run.jitCache.map((x) => x.args.length)).toEqual([3, 2]); // the kernel: one output, two inputs
    const { kernelCount, copyCount } = GlobalCounters;
    expect([...(await run())]).toEqual([11]);
    expect(runs).toBe(2);
    expect([GlobalCounters.kernelCount - kernelCount, GlobalCounters.copyCount - copyCount]).toEqual([1, 1]);
  });
  test("a captured copy out is new at each call, and follows memory that was assigned to", async () => {
    const [a, b] = [await new Tensor([1, 2]).realize(), new Tensor([3, 4])];
    const run = new TinyJit(() => a.dot(b).data());
    const results = [];
    for (let i = 0; i < 5; i++) {
      results.push(await run());
      a.assign(a.add(1));
    }
    expect(results.map(([x]) => x)).toEqual([11, 18, 25, 32, 39]);
  });
  test("JIT=0 runs the function every time", async () => {
    let runs = 0;
    const f = new TinyJit((x: Tensor) => {
      runs++;
      return x.add(1);
    });
    await withEnv({ JIT: 0 }, async () => {
      for (let i = 0; i < 4; i++) expect(await (await f(new Tensor([i]))).item()).toBe(i + 1);
    });
    expect([runs, f.jitCache.length]).toEqual([4, 0]);
  });
  test("DEBUG=1 says what was captured, DEBUG=2 lists what a replay runs", async () => {
    const f = new TinyJit((x: Tensor) => x.add(1).sum().add(x));
    const log = vi.spyOn(console, "log").mockImplementation(() => {});
    const lines = () => log.mock.calls.map(([line]) => String(line));
    await withEnv({ DEBUG: 1 }, async () => {
      await f(new Tensor([1, 2]));
      await f(new Tensor([1, 2]));
    });
    expect(lines().some((l) => /^JIT captured \d+ kernels with 1 inputs; /.test(l))).toBe(true);
    log.mockClear();
    const x = await new Tensor([5, 6]).realize();
    const y = await withEnv({ DEBUG: 2 }, () => f(x));
    expect(lines().filter((l) => l.startsWith("***")).length).toBe(f.jitCache.length);
    log.mockRestore();
    expect(await y.tolist()).toEqual([18, 19]);
  });
  test("a different kind of input before the capture starts over: the call before has to be like it", async () => {
    let runs = 0;
    const f = new TinyJit((x: Tensor) => {
      runs++;
      return x.sum();
    });
    for (const [x, after] of [
      [[1, 2, 3], 1],
      [[1, 2], 2],
      [[3, 4], 3],
      [[5, 6], 3],
    ] as const) {
      expect(await (await f(new Tensor(x))).item()).toBe(x.reduce((a, b) => a + b, 0));
      expect(runs).toBe(after);
    }
  });
});

describe("replays equal eager calls", () => {
  test("1,000 replays of a small network with new inputs", async () => {
    const random = dice(1);
    const w = await new Tensor(floats(random, 24)).reshape(6, 4).contiguous().realize();
    const fn = (x: Tensor, y: Tensor) => {
      const h = x.dot(w).relu();
      return { loss: h.sub(y).square().mean(), h, top: h.max(1) };
    };
    const step = new TinyJit(fn);
    let runs = 0;
    for (let i = 0; i < 1002; i++) {
      const x = new Tensor(floats(random, 18)).reshape(3, 6);
      const y = new Tensor(floats(random, 12)).reshape(3, 4);
      const got = await step(x, y);
      if (i < 2) continue;
      runs++;
      const want = fn(x, y);
      expect(await got.h.data()).toEqual(await want.h.data());
      expect(await got.top.data()).toEqual(await want.top.data());
      expect(await got.loss.item()).toBe(await want.loss.item());
    }
    expect([runs, step.cnt]).toEqual([1000, 1002]);
  }, 60_000);

  test("scopes that the function opens are part of it: a model with dropout is evaluated or trained", async () => {
    const model = new nn.Sequential(new nn.Dropout(1));
    const x = Tensor.ones(2);
    const inside = new TinyJit((t: Tensor) => Tensor.noGrad(() => model.forward(t)).add(1));
    const after = new TinyJit((t: Tensor) =>
      Tensor.noGrad(async () => {
        await t.add(1).realize();
        return model.forward(t).add(1);
      }),
    );
    const train = new TinyJit((t: Tensor) => Tensor.train(() => model.forward(t)).add(1));
    for (let i = 0; i < 4; i++) {
      expect(await (await inside(x)).tolist()).toEqual([2, 2]);
      expect(await (await after(x)).tolist()).toEqual([2, 2]);
      expect(await (await train(x)).tolist()).toEqual([1, 1]);
      expect(inside.sync(x).tolistSync()).toEqual([2, 2]);
    }
    // where the function itself is called still decides what it leaves open
    const open = new TinyJit((t: Tensor) => model.forward(t).add(1));
    for (let i = 0; i < 3; i++) {
      expect(await (await Tensor.noGrad(() => open(x))).tolist()).toEqual([2, 2]);
    }
    await expect(open(x)).rejects.toThrow(/Tensor\.training is true, and was false/);
  });

  test("training with Adam, batch norm, dropout and a changing rate: the same losses and weights, bit for bit", async () => {
    const train = async (jitted: boolean) => {
      Tensor.manualSeed(3);
      const model = new nn.Sequential(
        new nn.Conv2d(1, 4, 3),
        new nn.BatchNorm2d(4),
        (x) => x.relu().flatten(1),
        new nn.Dropout(0.2),
        new nn.Linear(64, 5),
      );
      const optimizer = new nn.optim.Adam(nn.getParameters(model), { lr: 0.01 });
      const body = async (x: Tensor, y: Tensor) => {
        const loss = Tensor.train(() => model.forward(x)).crossEntropy(y);
        optimizer.zeroGrad();
        loss.backward();
        await optimizer.step(loss);
        return loss;
      };
      const step = jitted ? new TinyJit(body) : body;
      const losses: number[] = [];
      for (let i = 0; i < 12; i++) {
        if (i === 6) optimizer.lr = 0.05;
        losses.push(await (await step(Tensor.rand(8, 1, 6, 6), Tensor.randint(0, 5, [8]))).item());
      }
      const weights = await Promise.all(nn.getParameters(model).map((t) => t.data()));
      const state = nn.getStateDict(model);
      return { losses, weights, mean: await state["1.runningMean"]!.data(), runs: step };
    };
    const [eager, jitted] = [await train(false), await train(true)];
    expect(jitted.losses).toEqual(eager.losses);
    expect(jitted.weights).toEqual(eager.weights);
    expect(jitted.mean).toEqual(eager.mean);
    expect(new Set(eager.losses).size).toBe(12);
  });

  for (const [name, make] of Object.entries({
    SGD: (p: Tensor[]) => new nn.optim.SGD(p, { lr: 0.1, momentum: 0.9, nesterov: true }),
    AdamW: (p: Tensor[]) => new nn.optim.AdamW(p),
    LAMB: (p: Tensor[]) => new nn.optim.LAMB(p),
    Muon: (p: Tensor[]) => new nn.optim.Muon(p),
  })) {
    test(`${name}: jitted steps equal eager ones`, async () => {
      const train = async (jitted: boolean) => {
        Tensor.manualSeed(5);
        const w = Tensor.randn(4, 3, { requiresGrad: true });
        const optimizer = make([w]);
        const body = async (x: Tensor) => {
          optimizer.zeroGrad();
          const loss = x.dot(w).sub(1).square().mean().backward();
          await optimizer.step(loss);
          return loss;
        };
        const step = jitted ? new TinyJit(body) : body;
        const losses: number[] = [];
        for (let i = 0; i < 6; i++) losses.push(await (await step(Tensor.rand(5, 4))).item());
        return [losses, await w.data()];
      };
      expect(await train(true)).toEqual(await train(false));
    });
  }

  for (const device of ["JS", "CLANG"]) {
    test(`${device}: the same result as without the jit`, async ({ skip }) => {
      const why = await Device.open(device).then(
        () => "",
        (e: Error) => e.message,
      );
      skip(why !== "", why);
      const train = async (jitted: boolean) => {
        Tensor.manualSeed(6);
        const w = Tensor.randn(4, 3, { requiresGrad: true, device });
        const optimizer = new nn.optim.Adam([w]);
        const body = async (x: Tensor) => {
          optimizer.zeroGrad();
          const loss = Tensor.train(() => x.dropout(0.3))
            .dot(w)
            .square()
            .mean()
            .backward();
          await optimizer.step(loss);
          return loss.to("WASM").mul(2).to(device);
        };
        const step = jitted ? new TinyJit(body) : body;
        const losses: number[] = [];
        for (let i = 0; i < 5; i++) losses.push(await (await step(Tensor.rand(5, 4, { device }))).item());
        return [losses, await w.data()];
      };
      expect(await train(true)).toEqual(await train(false));
    });
  }
  test("JIT=2: item by item on WASM, too", async () => {
    await withEnv({ JIT: 2 }, async () => {
      const f = new TinyJit((x: Tensor) => x.add(1).contiguous().mul(2));
      for (let i = 0; i < 4; i++) expect(await (await f(new Tensor([i]))).item()).toBe(2 * i + 2);
    });
  });

  test("a scheduler outside moves the rate of a captured step", async () => {
    const w = new Tensor([1, 1], { dtype: "float32", requiresGrad: true });
    const optimizer = new nn.optim.SGD([w], { lr: 1 });
    const step = new TinyJit(async () => {
      optimizer.zeroGrad();
      await optimizer.step(w.sum().backward());
    });
    let expected = 1;
    for (let i = 0; i < 6; i++) {
      optimizer.lr = 1 / (i + 1);
      expected -= 1 / (i + 1);
      await step();
      expect(await w.tolist()).toEqual([expect.closeTo(expected, 5), expect.closeTo(expected, 5)]);
    }
  });
  test("loaded weights are seen by a captured function", async () => {
    const layer = new nn.Linear(3, 2);
    const f = new TinyJit((x: Tensor) => layer.forward(x));
    const x = new Tensor([[1, 2, 3]]).cast("float32");
    for (let i = 0; i < 3; i++) await f(x);
    const other = new nn.Linear(3, 2);
    await nn.loadStateDict(layer, nn.getStateDict(other));
    expect(await (await f(x)).data()).toEqual(await other.forward(x).data());
  });
});

describe("inputs", () => {
  test("are swapped by position, also when the same tensor is passed twice, at the capture or later", async () => {
    const f = new TinyJit((x: Tensor, y: Tensor) => x.mul(10).add(y));
    const [a, b] = [new Tensor([1, 2]), new Tensor([3, 4])];
    for (const [x, y, want] of [
      [a, a, [11, 22]],
      [a, a, [11, 22]],
      [a, b, [13, 24]],
      [b, a, [31, 42]],
      [b, b, [33, 44]],
    ] as const) {
      expect(await (await f(x, y)).tolist()).toEqual(want);
    }
  });
  test("that the function also uses as a closure stay apart from it", async () => {
    const w = await new Tensor([1, 2]).realize();
    const f = new TinyJit((x: Tensor) => x.mul(10).add(w));
    for (const [x, want] of [
      [w, [11, 22]],
      [w, [11, 22]],
      [new Tensor([5, 6]), [51, 62]],
      [w, [11, 22]],
    ] as const) {
      expect(await (await f(x)).tolist()).toEqual(want);
    }
  });
  test("that one kernel reads in two ways, or as a closure besides", async () => {
    const w = await new Tensor([
      [1, 2],
      [3, 4],
    ]).realize();
    const other = new Tensor([
      [0, 1],
      [1, 0],
    ]);
    const square = new TinyJit((x: Tensor, y: Tensor) => x.dot(y));
    const product = new TinyJit((x: Tensor) => x.dot(w));
    const [ww, swapped] = [
      [7, 10, 15, 22],
      [3, 4, 1, 2],
    ];
    for (const [x, want] of [
      [w, ww],
      [w, ww],
      [other, swapped],
      [w, ww],
    ] as const) {
      expect([...(await (await square(x, w)).data())]).toEqual(want);
      expect([...(await (await product(x)).data())]).toEqual(want);
    }
  });
  test("may lie in arrays and objects; other values go with them", async () => {
    const f = new TinyJit(({ xs, scale }: { xs: Tensor[]; scale: number }, sign: number = 1) =>
      xs.map((x) => x.mul(scale * sign)),
    );
    for (let i = 0; i < 4; i++) {
      const [p, q] = await f({ xs: [new Tensor([i]), new Tensor([i + 1])], scale: 3 });
      expect([await p?.item(), await q?.item()]).toEqual([3 * i, 3 * i + 3]);
    }
  });
  test("may be views, constants and unrealised graphs", async () => {
    const f = new TinyJit((x: Tensor, c: Tensor) => x.add(c));
    const random = dice(4);
    for (let i = 0; i < 5; i++) {
      const data = floats(random, 6);
      const x = new Tensor(data).reshape(2, 3).T;
      expect(await (await f(x.contiguous().mul(2), Tensor.full([3, 2], i))).data()).toEqual(
        await x.mul(2).add(i).data(),
      );
    }
    const g = new TinyJit((x: Tensor) => x.add(1));
    for (let i = 0; i < 5; i++) {
      const x = await new Tensor(floats(random, 6)).realize();
      const view = x.reshape(2, 3).T.shrink([[1, 3], null]);
      expect(await (await g(view)).data()).toEqual(await view.add(1).data());
    }
  });
  test("that are assigned to are written where they lie, and so is a returned one", async () => {
    const f = new TinyJit((cache: Tensor, x: Tensor) => {
      cache.assign(cache.add(x));
      return { cache, double: cache.mul(2) };
    });
    const caches = [await new Tensor([0, 0]).realize(), await new Tensor([100, 100]).realize()];
    for (let i = 0; i < 6; i++) {
      const cache = caches[i % 2] as Tensor;
      const { cache: same, double } = await f(cache, new Tensor([1, 2]));
      expect(same).toBe(cache);
      const base = i % 2 === 0 ? 0 : 100;
      const k = Math.floor(i / 2) + 1;
      expect(await cache.tolist()).toEqual([base + k, base + 2 * k]);
      expect(await double.tolist()).toEqual([2 * (base + k), 2 * (base + 2 * k)]);
    }
  });
  test("may be on another device than the work", async () => {
    const f = new TinyJit((x: Tensor) => x.to("WASM:1").mul(3).to("WASM"));
    const input = (i: number) => new Tensor([i, 1], { device: "WASM" });
    for (let i = 0; i < 4; i++) expect(await (await f(input(i))).tolist()).toEqual([3 * i, 3]);
    expect(f.jitCache.map((x) => x.runner.name)).toEqual(["xfer", expect.stringMatching(/^E_2/), "xfer"]);
  });
  test("on several devices: a sharded batch and sharded weights", async () => {
    const devices = ["WASM", "WASM:1"];
    const train = async (jitted: boolean) => {
      Tensor.manualSeed(2);
      const w = Tensor.randn(4, 3).shard(devices);
      w.requiresGrad = true;
      const sgd = new nn.optim.SGD([w], { lr: 0.1 });
      const body = async (x: Tensor) => {
        sgd.zeroGrad();
        const out = x.dot(w);
        const loss = out.square().mean().backward();
        await sgd.step(loss);
        return { loss, out };
      };
      const step = jitted ? new TinyJit(body) : body;
      const found = [];
      for (let i = 0; i < 5; i++) {
        const { loss, out } = await step(Tensor.rand(6, 4).shard(devices, 0));
        found.push(await loss.item(), await out.data());
      }
      return found;
    };
    expect(await train(true)).toEqual(await train(false));
  });
});

describe("results", () => {
  test("that a caller holds are not overwritten by later replays", async () => {
    const f = new TinyJit((x: Tensor) => [x.add(1), x.add(1).sum()]);
    const held: (readonly Tensor[])[] = [];
    for (let i = 0; i < 10; i++) held.push(await f(new Tensor([i, i])));
    for (const [i, [a, b]] of held.entries()) {
      expect(await a?.tolist()).toEqual([i + 1, i + 1]);
      expect(await b?.item()).toBe(2 * i + 2);
    }
  });
  test("may be an input, a view of one, a weight, a constant, a list of the same", async () => {
    const w = await new Tensor([7, 8]).realize();
    const f = new TinyJit((x: Tensor) => {
      const y = x.add(w);
      return {
        x,
        back: x.reshape(2, 1),
        w,
        wt: w.reshape(1, 2),
        one: Tensor.ones(2),
        ys: [y, y.flip(0)],
        n: 5,
      };
    });
    for (let i = 0; i < 4; i++) {
      const x = new Tensor([i, i + 1]);
      const r = await f(x);
      expect(r.x).toBe(x);
      expect(await r.back.tolist()).toEqual([[i], [i + 1]]);
      expect(await r.w.tolist()).toEqual(await w.tolist());
      expect(await r.wt.tolist()).toEqual([await w.tolist()]);
      expect(await r.one.tolist()).toEqual([1, 1]);
      expect(await r.ys[0]?.tolist()).toEqual([i + 7 + i, i + 9 + i].map((_, k) => i + k + 7 + k + i));
      expect(await r.ys[1]?.flip(0).tolist()).toEqual(await r.ys[0]?.tolist());
      expect(r.n).toBe(5);
      w.assign(w.add(1));
    }
  });
  test("go into the next call", async () => {
    const f = new TinyJit((x: Tensor) => x.mul(2));
    let x = new Tensor([1]);
    for (let i = 0; i < 10; i++) x = await f(x);
    expect(await x.item()).toBe(1024);
  });
  test("of calls that are not waited for come in order", async () => {
    const total = await new Tensor([0]).realize();
    const f = new TinyJit((x: Tensor) => {
      total.assign(total.add(x));
      return total.add(0);
    });
    const results = await Promise.all(Array.from({ length: 8 }, (_, i) => f(new Tensor([i]))));
    expect(await Promise.all(results.map((r) => r.item()))).toEqual([0, 1, 3, 6, 10, 15, 21, 28]);
  });
  test("carry no gradient, in any call", async () => {
    const w = new Tensor([1.5], { requiresGrad: true });
    const f = new TinyJit((x: Tensor) => x.mul(w).sum());
    for (let i = 0; i < 4; i++) {
      const y = await f(new Tensor([2]));
      expect([y.requiresGrad, y.context]).toEqual([false, undefined]);
    }
  });
  test("gradients may be returned", async () => {
    const w = new Tensor([1.5, 2], { requiresGrad: true });
    const f = new TinyJit((x: Tensor) => {
      w.grad = undefined;
      x.mul(w).square().sum().backward();
      return w.grad as unknown as Tensor;
    });
    for (let i = 1; i < 5; i++) expect(await (await f(new Tensor([i, 1]))).tolist()).toEqual([3 * i * i, 4]);
  });
  test("sync gives them at once", () => {
    const f = new TinyJit((x: Tensor) => x.add(1));
    for (let i = 0; i < 4; i++) expect(f.sync(new Tensor([i])).itemSync()).toBe(i + 1);
    expect(f.jitCache.length).toBe(1);
  });
});

describe("what changes outside between replays", () => {
  test("what was built on a weight and waits is computed before a replay writes to it", async () => {
    const w = await new Tensor([1, 2]).realize();
    const f = new TinyJit(() => {
      w.assign(w.mul(2));
    });
    for (let i = 0; i < 3; i++) await f();
    const pending = w.add(100);
    await f();
    expect(await pending.tolist()).toEqual([108, 116]);
    expect(await w.tolist()).toEqual([16, 32]);
  });
  test("another name of the old value is stale afterwards, as in an eager call", async () => {
    const w = await new Tensor([1, 2]).realize();
    const f = new TinyJit(() => {
      w.assign(w.mul(2));
    });
    for (let i = 0; i < 3; i++) {
      const old = w.detach();
      await f();
      await expect(old.add(1).data()).rejects.toThrow(StaleError);
    }
    expect(await w.tolist()).toEqual([8, 16]);
  });
  test("an assign that waits is done first", async () => {
    const [w, v] = [await new Tensor([1]).realize(), await new Tensor([1]).realize()];
    const f = new TinyJit((x: Tensor) => {
      v.assign(v.add(1));
      return x.mul(w).add(v);
    });
    for (let i = 0; i < 5; i++) {
      w.assign(new Tensor([10 ** i]));
      v.assign(new Tensor([i]));
      expect(await (await f(new Tensor([2]))).item()).toBe(2 * 10 ** i + i + 1);
    }
  });
  test("two jits on the same weights, one trains and one looks", async () => {
    const w = await new Tensor([1]).realize();
    const train = new TinyJit(() => {
      w.assign(w.mul(3));
    });
    const look = new TinyJit((x: Tensor) => x.add(w));
    for (let i = 1; i < 6; i++) {
      await train();
      expect(await (await look(new Tensor([0]))).item()).toBe(3 ** i);
    }
  });
});

describe("random numbers", () => {
  test("advance on replay, and are those of eager calls", async () => {
    const fn = (x: Tensor) => x.add(Tensor.rand(3)).add(Tensor.randint(0, 100, [3]));
    const draw = async (f: (x: Tensor) => Promise<Tensor> | Tensor) => {
      Tensor.manualSeed(11);
      const found = [];
      for (let i = 0; i < 6; i++) found.push(await (await f(Tensor.zeros(3))).tolist());
      return [found, await Tensor.rand(2).tolist()];
    };
    const jitted = await draw(new TinyJit(fn));
    expect(jitted).toEqual(await draw(fn));
    expect(new Set((jitted[0] as number[][]).map(String)).size).toBe(6);
  });
  test("a draw that nothing uses still advances the stream", async () => {
    const fn = (x: Tensor) => {
      Tensor.rand(5);
      return x.add(Tensor.rand(1));
    };
    const draw = async (f: (x: Tensor) => Promise<Tensor> | Tensor) => {
      Tensor.manualSeed(12);
      const found = [];
      for (let i = 0; i < 5; i++) found.push(await (await f(Tensor.zeros(1))).item());
      return found;
    };
    expect(await draw(new TinyJit(fn))).toEqual(await draw(fn));
  });
  test("a checkpointed segment draws the same numbers twice, in a replay too", async () => {
    const grads = async (jitted: boolean) => {
      Tensor.manualSeed(4);
      const w = new Tensor([1, 2, 3, 4], { dtype: "float32", requiresGrad: true });
      const body = (x: Tensor) => {
        w.grad = undefined;
        Tensor.train(() =>
          Tensor.checkpoint((y: Tensor) => y.mul(w).dropout(0.5).square().sum(), x).backward(),
        );
        return w.grad as unknown as Tensor;
      };
      const f = jitted ? new TinyJit(body) : body;
      const found = [];
      for (let i = 0; i < 5; i++) found.push(await (await f(Tensor.ones(4))).tolist());
      return found;
    };
    expect(await grads(true)).toEqual(await grads(false));
  });
});

describe("symbolic sizes", () => {
  const n = Variable("n", 1, 10);
  const table = Float32Array.from({ length: 40 }, (_, i) => Math.sin(i));

  test("one capture serves all lengths", async () => {
    const cache = await new Tensor(table).reshape(10, 4).contiguous().realize();
    const fn = (q: Tensor, k: ReturnType<typeof n.bind>) => {
      const keys = cache.shrink([[0, k], null]);
      return keys.mul(q).sum(1).softmax().reshape(1, k).dot(keys);
    };
    let runs = 0;
    const f = new TinyJit((q: Tensor, k: ReturnType<typeof n.bind>) => {
      runs++;
      return fn(q, k);
    });
    for (let i = 1; i <= 10; i++) {
      const q = new Tensor([i, 1, -i, 0.5]);
      expect(await (await f(q, n.bind(i))).data()).toEqual(await fn(q, n.bind(i)).data());
    }
    expect(runs).toBe(2);
  });
  test("a KV cache that is written at the position of the call", async () => {
    const at = Variable("at", 0, 7);
    const make = async () => await Tensor.zeros(8, 3).contiguous().realize();
    const caches = [await make(), await make()] as const;
    const body = (cache: Tensor) => (x: Tensor, pos: ReturnType<typeof at.bind>) => {
      const row = x.reshape(1, 3).pad([
        [pos, sub(7, pos)],
        [0, 0],
      ]);
      cache.assign(cache.add(row));
      return cache.sum(0);
    };
    const f = new TinyJit(body(caches[0]));
    for (let i = 0; i < 8; i++) {
      const x = new Tensor([i, i + 1, i + 2]);
      const [got, want] = [await f(x, at.bind(i)), await body(caches[1])(x, at.bind(i)).realize()];
      expect(await got.tolist()).toEqual(await want.tolist());
    }
    expect(await caches[0].tolist()).toEqual(await caches[1].tolist());
  });
  test("a length that was captured twice with one value is looked at once more with the next", async () => {
    const x = await new Tensor(table).realize();
    let runs = 0;
    const f = new TinyJit((k: ReturnType<typeof n.bind>) => {
      runs++;
      return x.shrink([[0, k]]).sum();
    });
    const want = (k: number) => table.slice(0, k).reduce((a, b) => a + b, 0);
    for (const [k, after] of [
      [3, 1],
      [3, 2],
      [3, 2],
      [5, 3],
      [7, 3],
      [3, 3],
    ] as const) {
      expect(await (await f(n.bind(k))).item()).toBeCloseTo(want(k), 5);
      expect(runs).toBe(after);
    }
  });
  test("symbolic inputs and results", async () => {
    const x = await new Tensor(table).realize();
    const f = new TinyJit((part: Tensor) => part.mul(2));
    for (let k = 1; k <= 6; k++) {
      const y = await f(x.shrink([[0, n.bind(k)]]));
      expect(y.shape).toEqual([k]);
      expect(await y.data()).toEqual(table.slice(0, k).map((v) => v * 2));
    }
  });
});

describe("nesting, reset, decorators", () => {
  test("a jit inside a jitted function is part of its capture", async () => {
    const inner = new TinyJit((x: Tensor) => x.mul(2));
    const outer = new TinyJit(async (x: Tensor) => (await inner(x)).add(1));
    for (let i = 0; i < 5; i++) expect(await (await outer(new Tensor([i]))).item()).toBe(2 * i + 1);
    expect([inner.cnt, outer.jitCache.length]).toEqual([0, 1]);
    for (let i = 0; i < 4; i++) expect(await (await inner(new Tensor([i]))).item()).toBe(2 * i);
    expect(inner.jitCache.length).toBe(1);
    outer.reset();
    for (let i = 0; i < 4; i++) expect(await (await outer(new Tensor([i]))).item()).toBe(2 * i + 1);
  });
  test("after a reset other shapes are captured", async () => {
    const f = new TinyJit((x: Tensor) => x.sum());
    for (let i = 0; i < 4; i++) expect(await (await f(new Tensor([i, i]))).item()).toBe(2 * i);
    f.reset();
    expect([f.cnt, f.jitCache.length, f.memory]).toEqual([0, 0, undefined]);
    for (let i = 0; i < 4; i++) expect(await (await f(new Tensor([i, i, i]))).item()).toBe(3 * i);
  });
  test("a function that throws leaves the jit as it was", async () => {
    let fail = false;
    const w = await new Tensor([1]).realize();
    const f = new TinyJit((x: Tensor) => {
      if (fail) throw new Error("not now");
      return x.mul(w);
    });
    await f(new Tensor([1]));
    fail = true;
    await expect(f(new Tensor([2]))).rejects.toThrow("not now");
    expect(f.cnt).toBe(1);
    fail = false;
    for (let i = 0; i < 3; i++) expect(await (await f(new Tensor([i]))).item()).toBe(i);
    expect(f.jitCache.length).toBe(1);
  });
  test("works without new, and by the protocol of decorators: a jit for each object", async () => {
    const f = TinyJit((x: Tensor) => x.add(1));
    for (let i = 0; i < 3; i++) expect(await (await f(new Tensor([i]))).item()).toBe(i + 1);
    let runs = 0;
    async function scaled(this: { by: Tensor }, x: Tensor): Promise<Tensor> {
      runs++;
      return x.mul(this.by);
    }
    const context = { kind: "method", name: "scaled", static: false } as ClassMethodDecoratorContext<{
      by: Tensor;
    }>;
    const method = TinyJit(scaled, context);
    const objects = [2, 3].map((k) => ({ by: new Tensor([k]) }));
    for (let i = 0; i < 4; i++) {
      for (const o of objects)
        expect(await (await method.call(o, new Tensor([i]))).item()).toBe(i * (await o.by.item()));
    }
    expect(runs).toBe(4);
  });
  test("@TinyJit on a method, compiled by a real compiler", { timeout: 30_000 }, () => {
    const tsx = createRequire(import.meta.url).resolve("tsx/cli");
    const run = spawnSync(process.execPath, [tsx, join(import.meta.dirname, "decorated.ts")], {
      encoding: "utf8",
    });
    expect(run.stderr).toBe("");
    expect(JSON.parse(run.stdout)).toEqual({ sums: [3, 10, 21, 36], runs: 2 });
  });
});

describe("at the same time", () => {
  const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

  test("what others compute while a function is captured is not part of it", async () => {
    const [w, other] = [await new Tensor([1]).realize(), await new Tensor([1]).realize()];
    const f = new TinyJit(async (x: Tensor) => {
      const y = x.mul(2);
      await pause();
      w.assign(w.add(y));
      await pause();
      return w.mul(10);
    });
    for (let i = 0; i < 5; i++) {
      const running = f(new Tensor([i]));
      await pause();
      // in the middle of it
      await other.assign(other.add(1)).realize();
      expect(await other.mul(2).item()).toBe(2 * (i + 2));
      await running;
    }
    expect(f.jitCache.length).toBe(1); // one kernel writes the weight and the result
    expect(await w.item()).toBe(1 + 2 * (0 + 1 + 2 + 3 + 4));
    expect(await other.item()).toBe(6);
  });
  test("two jits, called together", async () => {
    const make = (k: number) =>
      new TinyJit(async (x: Tensor) => {
        await pause();
        return x.mul(k);
      });
    const [f, g] = [make(2), make(3)];
    for (let i = 0; i < 5; i++) {
      const [a, b] = await Promise.all([f(new Tensor([i])), g(new Tensor([i]))]);
      expect([await a.item(), await b.item()]).toEqual([2 * i, 3 * i]);
    }
    expect([f.jitCache.length, g.jitCache.length]).toEqual([1, 1]);
  });
  test("a jit inside one, after an await", async () => {
    const inner = new TinyJit((x: Tensor) => x.mul(2));
    const outer = new TinyJit(async (x: Tensor) => {
      await pause();
      const y = await inner(x);
      await pause();
      return y.add(1);
    });
    for (let i = 0; i < 4; i++) expect(await (await outer(new Tensor([i]))).item()).toBe(2 * i + 1);
    expect([inner.cnt, outer.jitCache.length]).toEqual([0, 1]);
  });
});

describe("memory", () => {
  test("is flat over 1,000 replays", async () => {
    const device = "WASM:20";
    const w = await Tensor.rand(64, 64, { device }).realize();
    const f = new TinyJit((x: Tensor) => {
      const y = x.dot(w).relu().dot(w).softmax();
      return y.sum(0);
    });
    const x = () => Tensor.rand(64, 64, { device });
    for (let i = 0; i < 3; i++) await f(x());
    await collect();
    const start = GlobalCounters.memUsedOn(device);
    let peak = 0;
    for (let i = 0; i < 1000; i++) {
      await f(x());
      peak = Math.max(peak, GlobalCounters.memUsedOn(device) - start);
    }
    await collect();
    expect(GlobalCounters.memUsedOn(device)).toBeLessThanOrEqual(start);
    expect(peak).toBeLessThan(64 * 2 ** 20); // the inputs alone are 16 KiB each
  });
  test("a kernel that computes elements twice never writes where it reads", async () => {
    // 1,517 is not a multiple of four: the last vector overlaps the one before, and would
    // double what is doubled already
    const f = new TinyJit((x: Tensor) => {
      let y = x.add(1).contiguous();
      for (let i = 0; i < 6; i++) y = y.mul(2).contiguous();
      return y.add(0);
    });
    const want = Array.from({ length: 1517 }, (_, i) => 64 * (i + 1));
    for (let i = 0; i < 4; i++) {
      const y = await f(Tensor.arange(1517).cast("float32"));
      expect(Array.from(await y.data(), Number)).toEqual(want);
    }
  });
  test("what only the items see shares an arena; the rest of the call's memory is given back", async () => {
    const device = "WASM:21";
    const f = new TinyJit((x: Tensor) => {
      let y = x;
      for (let i = 0; i < 10; i++) y = y.flip(0).add(1).contiguous();
      return y;
    });
    const x = await new Tensor(new Float32Array(1000), { device }).realize();
    await f(x);
    await collect();
    const before = GlobalCounters.memUsedOn(device);
    const y = await f(x);
    // nine steps between input and result, two of which live at a time
    expect(f.memory).toMatchObject({ apart: 9 * 4000, planned: 2 * 4032, buffers: 9, arenas: 1 });
    expect(f.memory?.totalApart).toBe(9 * 4000 + 8000);
    expect(f.memory?.totalPlanned).toBe(2 * 4032 + 8000);
    expect(GlobalCounters.memUsedOn(device) - before).toBe(2 * 4032 + 4000);
    expect((await y.data())[999]).toBe(10);
    f.reset();
    await collect();
    expect(GlobalCounters.memUsedOn(device) - before).toBe(4000);
  });
  test("a result takes the place of an operand that is read at the same element only, for the last time", async () => {
    const steps: Record<string, [(y: Tensor) => Tensor, number]> = {
      "at the same element": [(y) => y.add(1), 1],
      "at others": [(y) => y.flip(0).add(1), 2],
      "at the same element and at others": [(y) => y.add(y.flip(0)), 2],
      "below a reduce": [(y) => y.sub(y.mean()), 2],
    };
    for (const [name, [step, places]] of Object.entries(steps)) {
      const body = (x: Tensor) => {
        let y = x;
        for (let i = 0; i < 6; i++) y = step(y).contiguous();
        return y;
      };
      const f = new TinyJit(body);
      for (let i = 0; i < 4; i++) {
        const x = Tensor.rand(1024, { device: "WASM" }); // no threads share an element there
        expect(await (await f(x)).data(), name).toEqual(await body(x).data());
      }
      expect(f.memory?.planned, name).toBeLessThanOrEqual(places * 4096 + 64);
      expect(f.memory?.planned, name).toBeGreaterThan((places - 1) * 4096);
    }
  });
  test("a result does not keep the memory of the others", async () => {
    const device = "WASM:22";
    const f = new TinyJit((x: Tensor) => x.add(1));
    const x = await new Tensor(new Float32Array(1000), { device }).realize();
    for (let i = 0; i < 3; i++) await f(x);
    await collect();
    expect(GlobalCounters.memUsedOn(device)).toBe(4000);
  });
});
