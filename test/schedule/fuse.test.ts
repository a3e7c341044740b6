// Which nodes are fused into one kernel: the realise rules of seed 001 one by one, what fuses, what must not,
// and that fusion never runs a reduction once per element. Counts are exact: one kernel more or less is a
// change of behaviour.

import { GlobalCounters, Tensor as T, type Tensor, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";
import { costs, itemsOf, kernels, opsOf, ready, totalOps, worst } from "./count.ts";

const x = ready([8, 16]);
const y = ready([8, 16], {}, 5);
const w = ready([16, 12], {}, 9);
const v = ready([16], {}, 3);
const cube = ready([4, 6, 8]);
const square = ready([8, 8]);

const plain = <R>(f: () => R): R => withEnv({ FUSE: 0 }, f);
const layernorm = (t: Tensor): Tensor => {
  const centred = t.sub(t.mean(-1, true));
  return centred.mul(centred.square().mean(-1, true).add(1e-5).rsqrt());
};

describe("the realise rules of seed 001", () => {
  test("the dot product: two COPYs and one kernel, sources first", () => {
    expect(opsOf(new T([1, 2]).dot(new T([3, 4])))).toEqual(["COPY", "COPY", "STORE"]);
  });
  test("an expanded node is stored", () => {
    const small = ready([8, 1]).add(1);
    expect(kernels(small.expand(8, 16).mul(x))).toBe(2);
    expect(plain(() => kernels(small.expand(8, 16).mul(x)))).toBe(2);
  });
  test("an expanded buffer or constant is not stored again", () => {
    expect(kernels(ready([8, 1]).expand(8, 16).mul(x))).toBe(1);
    expect(kernels(x.mul(2).add(T.full([8, 1], 3)))).toBe(1);
  });
  test("of an integer that was widened its source is stored, where both are native", () => {
    const bytes = ready([8, 1]).cast("int8").add(1);
    const items = itemsOf(
      bytes
        .cast("int32")
        .expand(8, 16)
        .mul(ready([8, 16]).cast("int32")),
    );
    expect(items.map((i) => i.outputs[0]?.dtype.name)).toEqual(["int8", "int32"]);
    // a cast to a float is stored itself, and so is one to a narrower integer
    const [float] = itemsOf(bytes.cast("float32").expand(8, 16).mul(x));
    expect(float?.outputs[0]?.dtype.name).toBe("float32");
    const [narrower] = itemsOf(ready([8, 1]).cast("int32").add(1).cast("int8").expand(8, 16).mul(2));
    expect(narrower?.outputs[0]?.dtype.name).toBe("int8");
  });
  test("COPY and its source are stored", () => {
    const there = x.add(1).to("JS");
    expect(opsOf(there)).toEqual(["STORE", "COPY"]);
    expect(opsOf(there.mul(2))).toEqual(["STORE", "COPY", "STORE"]);
    // the source is shared, not computed a second time inside another kernel
    const shared = x.add(1);
    expect(opsOf(shared.to("JS"), shared.mul(2))).toEqual(["STORE", "COPY", "STORE"]);
  });
  test("a COPY of a view that is not whole stores what it shows first", () => {
    expect(opsOf(x.permute(1, 0).to("JS"))).toEqual(["STORE", "COPY"]);
    expect(opsOf(x.reshape(128).to("JS"))).toEqual(["COPY"]);
    expect(
      opsOf(
        x
          .add(1)
          .shrink([[0, 2], null])
          .to("JS"),
      ).slice(-1),
    ).toEqual(["COPY"]);
  });
  test("load ops are items of their own, a constant is not", () => {
    expect(opsOf(T.empty([4]))).toEqual(["EMPTY"]);
    expect(opsOf(T.empty([4]).add(1))).toEqual(["EMPTY", "STORE"]);
    expect(opsOf(T.customOp(() => {}, [4], [v.add(1)]))).toEqual(["STORE", "CUSTOM"]);
    expect(opsOf(T.full([4], 1))).toEqual([]);
    expect(opsOf(T.full([4], 1).contiguous())).toEqual(["STORE"]);
  });
  test("contiguous() forces a store", () => {
    expect(kernels(x.add(1).mul(2))).toBe(1);
    expect(kernels(x.add(1).contiguous().mul(2))).toBe(2);
    expect(kernels(x.contiguous().mul(2))).toBe(1); // in memory already
    expect(kernels(x.permute(1, 0).contiguous())).toBe(1);
    expect(kernels(x.sum(1).contiguous().add(1))).toBe(2);
  });
  test("a padding moves below ops that keep zeros, others are stored", () => {
    const pads = [
      [1, 1],
      [0, 2],
    ] as const;
    const big = ready([10, 18]);
    expect(kernels(x.mul(y).pad(pads).add(big))).toBe(1);
    expect(kernels(x.sub(y).sin().pad(pads).add(big))).toBe(1);
    expect(kernels(x.exp2().pad(pads).add(big))).toBe(2);
    expect(kernels(x.mul(y).reciprocal().neg().pad(pads).add(big))).toBe(2);
    // the unsafe part is stored anyway
    expect(kernels(x.add(1).exp2().contiguous().neg().pad(pads).add(big))).toBe(2);
    expect(
      kernels(
        x
          .expand(3, 8, 16)
          .exp2()
          .pad([[1, 0], null, null])
          .contiguous(),
      ),
    ).toBe(2);
  });
  test("paddings have the right values either way", () => {
    const pads = [[1, 1], null] as const;
    const row = (n: number) => Array.from({ length: 16 }, () => n);
    for (const f of [
      (t: Tensor) => t.exp2(),
      (t: Tensor) => t.add(1),
      (t: Tensor) => t.eq(0).cast("float32"),
    ]) {
      const padded = f(x).pad(pads).dataSync();
      expect([...padded.slice(0, 16)]).toEqual(row(0));
      expect([...padded.slice(-16)]).toEqual(row(0));
      expect([...padded.slice(16, -16)]).toEqual([...f(x).dataSync()]);
    }
  });
  test("a view costs no kernel and no memory", () => {
    const before = GlobalCounters.memUsed;
    const view = x
      .permute(1, 0)
      .reshape(4, 32)
      .flip(0)
      .shrink([[1, 3], null])
      .pad([[1, 0], null]);
    expect(opsOf(view)).toEqual([]);
    view.realizeSync();
    expect(GlobalCounters.memUsed).toBe(before);
    expect(opsOf(view.to("EXT"))).toEqual(["STORE", "COPY"]);
  });
});

/** name, what is built, kernels with FUSE=1, kernels with FUSE=0 (the rules of the seeds) */
const CASES: readonly (readonly [string, () => Tensor, number, number])[] = [
  ["a chain of elementwise ops", () => x.add(1).mul(y).exp().sub(1).relu(), 1, 1],
  ["an elementwise diamond", () => x.add(1).mul(x.add(1).exp()), 1, 1],
  [
    "a reduce and its epilogue",
    () =>
      x
        .mul(y)
        .sum(1)
        .mul(2)
        .exp()
        .add(v.shrink([[0, 8]])),
    1,
    1,
  ],
  ["a reduce seen in another shape", () => x.sum(1).reshape(2, 4).add(1), 1, 1],
  ["two reduces into one op", () => x.sum(1).add(y.sum(1)), 2, 2],
  ["three reduces into one op", () => x.sum(1).add(y.sum(1)).mul(square.max(0)), 3, 3],
  ["a reduce of a reduce", () => x.sum(1).sum(0), 2, 2],
  ["a reduce of an epilogue of a reduce", () => x.sum(1).add(1).square().sum(0), 2, 2],
  ["x*x of a reduce", () => x.sum(1).square(), 1, 1],
  ["a diamond after a reduce", () => x.sum(1).abs(), 1, 1],
  ["a matmul", () => x.dot(w), 1, 1],
  ["relu of a matmul", () => x.dot(w).relu(), 1, 1],
  [
    "matmul, bias, relu",
    () =>
      x
        .dot(w)
        .add(v.shrink([[0, 12]]))
        .relu(),
    1,
    1,
  ],
  ["matmul of an elementwise op", () => x.add(1).dot(w), 2, 2],
  [
    "two layers",
    () =>
      x
        .dot(w)
        .relu()
        .dot(ready([12, 5])),
    2,
    2,
  ],
  ["x minus its mean", () => x.sub(x.mean()), 1, 2],
  ["x minus its mean by row", () => x.sub(x.mean(1, true)), 1, 2],
  ["var of everything", () => x.var(), 1, 2],
  ["var by column", () => x.var(0), 1, 2],
  ["std by row", () => x.std(1), 1, 2],
  ["std of a middle axis", () => cube.std(1), 1, 2],
  ["var over two axes", () => cube.var([0, 2]), 1, 2],
  ["softmax, last axis", () => x.softmax(), 1, 3],
  ["softmax, axis 0 of 3", () => cube.softmax(0), 1, 3],
  ["softmax, axis 1 of 3", () => cube.softmax(1), 1, 3],
  ["softmax, axis 2 of 3", () => cube.softmax(2), 1, 3],
  ["softmax of an elementwise op", () => x.mul(3).add(y).softmax(), 1, 3],
  ["logSoftmax", () => x.logSoftmax(), 1, 3],
  ["logSoftmax summed by row", () => x.logSoftmax().mul(y).sum(1), 1, 3],
  ["layernorm", () => layernorm(x), 1, 3],
  ["layernorm with weight and bias", () => layernorm(x).mul(v).add(1), 1, 3],
  // a value with two fused reductions is stored before a third one reads it, or each pass would compute it
  // again
  ["layernorm of layernorm", () => layernorm(layernorm(x)), 2, 5],
  ["softmax of softmax", () => x.softmax().softmax(), 2, 5],
  ["matmul, then softmax", () => x.dot(w).softmax(), 2, 4],
  ["matmul, bias, relu, then softmax", () => x.dot(w).add(1).relu().softmax(), 2, 4],
  ["softmax, then matmul", () => x.softmax().dot(w), 2, 4],
  ["attention", () => x.dot(y.T).softmax().dot(y), 3, 5],
  ["layernorm, then matmul", () => layernorm(x).dot(w), 2, 4],
  ["layernorm, then matmul, then softmax", () => layernorm(x).dot(w).softmax(), 3, 7],
  ["a mean expanded over something larger", () => cube.sub(cube.mean([1, 2], true).expand(4, 6, 8)), 1, 2],
  ["an expand over another input's size", () => x.mean(1, true).expand(8, 40).add(1), 2, 2],
  ["a mean by row used by column", () => square.sub(square.mean(1).reshape(1, 8)), 2, 2],
  ["centred by row, summed by column", () => x.sub(x.mean(1, true)).sum(0), 2, 2],
  ["softmax by row, largest by column", () => x.softmax(1).max(0), 2, 3],
  ["a mean that is flipped before it expands", () => x.sub(x.mean(1, true).flip(0)), 2, 2],
];

describe("how many kernels", () => {
  for (const [name, build, fused, unfused] of CASES) {
    test(`${name}: ${fused}, FUSE=0: ${unfused}`, () => {
      expect(kernels(build())).toBe(fused);
      expect(plain(() => kernels(build()))).toBe(unfused);
      const [one, two] = [build().dataSync(), plain(() => build().dataSync())];
      expect(worst(one, two)).toBeLessThan(1e-5);
      expect(one.some((n) => n !== 0)).toBe(true);
    });
  }
  test("the counter of kernels that ran agrees with the plan", () => {
    const t = x.softmax().dot(w);
    const planned = kernels(t);
    GlobalCounters.reset();
    t.realizeSync();
    expect(GlobalCounters.kernelCount).toBe(planned);
    t.realizeSync();
    expect(GlobalCounters.kernelCount).toBe(planned);
  });
});

describe("a reduce is computed once, whoever needs it", () => {
  test("expanded into two kernels, it is stored", () => {
    const mean = x.mean(1, true);
    expect(kernels(x.sub(mean), x.mul(mean))).toBe(2); // and both outputs come of one
    expect(kernels(x.sub(mean))).toBe(1);
  });
  test("used by two outputs, it is stored", () => {
    const sum = x.sum(1);
    expect(kernels(sum.add(1), sum.mul(2))).toBe(2);
    expect(kernels(sum, sum.mul(2))).toBe(2);
  });
  test("asked for itself, it is stored even where it could be fused back", () => {
    const mean = x.mean(1, true);
    expect(kernels(mean, x.sub(mean))).toBe(2);
  });
  test("realising several together does the shared work once", () => {
    const heavy = x.dot(w);
    const [a, b] = [heavy.add(1), heavy.mul(2)];
    GlobalCounters.reset();
    T.realizeSync(a, b);
    expect(GlobalCounters.kernelCount).toBe(2);
    const expected = x.dot(w).dataSync();
    expect(
      worst(
        a.dataSync(),
        Float32Array.from(expected as Float32Array, (n) => n + 1),
      ),
    ).toBeLessThan(1e-6);
    expect(
      worst(
        b.dataSync(),
        Float32Array.from(expected as Float32Array, (n) => n * 2),
      ),
    ).toBeLessThan(1e-6);
  });
  test("the same tensor twice is one item", () => {
    const a = x.add(1);
    expect(kernels(a, a, a.reshape(128))).toBe(1);
  });
});

describe("a long reduce to few elements", () => {
  const long = T.ones([1 << 17]);
  test("is split in two, so that threads share the first; one below the threshold is not", () => {
    expect(kernels(long.contiguous().sum())).toBe(3); // with the one that writes the ones
    const items = itemsOf(long.contiguous().sum());
    expect(items.at(-2)?.outputs[0]?.size).toBe(64);
    expect(plain(() => kernels(long.contiguous().sum()))).toBe(2);
    expect(
      kernels(
        T.ones([1 << 16])
          .contiguous()
          .sum(),
      ),
    ).toBe(2);
    expect(
      kernels(
        T.ones([32, 1 << 16])
          .contiguous()
          .sum(1),
      ),
    ).toBe(2);
  });
  test("is right for every op, over several axes, with sizes that have few divisors", () => {
    const counts = T.arange(3 * 60_000).contiguous();
    expect(counts.max().itemSync()).toBe(179_999);
    const rows = [0, 1, 2].map((row) => Array.from({ length: 60_000 }, (_, i) => (60_000 * row + i) % 997));
    const remainders = T.arange(3 * 60_000)
      .remainder(997)
      .contiguous();
    expect(remainders.reshape([3, 200, 300]).sum([1, 2]).dataSync()).toEqual(
      Int32Array.from(rows.map((row) => row.reduce((a, b) => a + b))),
    );
    expect(T.ones([131_073]).contiguous().sum().itemSync()).toBe(131_073);
  });
  test("that selects one element by comparison stays a load", () => {
    const table = T.arange(1 << 18).contiguous();
    table.realizeSync();
    const index = new T([77]).realizeSync();
    const t = table.gather(0, index);
    expect(kernels(t)).toBe(1);
    expect(totalOps(t)).toBeLessThan(100);
    expect(t.itemSync()).toBe(77);
  });
});

describe("the cost of what was fused", () => {
  const n = 32;
  const big = ready([n, n]);
  const BOUNDS: readonly (readonly [string, () => Tensor, readonly number[], number])[] = [
    // name, tensor, depth of the loop nest of each kernel, most operations per element of the input
    ["softmax", () => big.softmax(), [2], 12],
    ["softmax, axis 0", () => big.softmax(0), [2], 12],
    ["logSoftmax", () => big.logSoftmax(), [2], 12],
    ["var", () => big.var(1), [2], 6],
    ["layernorm", () => layernorm(big), [2], 12],
    ["x minus its mean", () => big.sub(big.mean(1, true)), [2], 4],
    ["matmul, then softmax", () => big.dot(square32).softmax(), [3, 2], 2 * n + 14],
    ["attention", () => big.dot(square32).softmax().dot(big), [3, 2, 3], 4 * n + 14],
  ];
  const square32 = ready([n, n], {}, 7);
  for (const [name, build, depths, most] of BOUNDS) {
    test(`${name}: loops ${depths.join(", ")} deep, at most ${most} operations an element`, () => {
      const found = costs(build());
      expect(found.map((c) => c.depth)).toEqual(depths);
      const each = found.reduce((sum, c) => sum + c.ops, 0) / (n * n);
      expect(each).toBeLessThanOrEqual(most);
      expect(each).toBeGreaterThan(1);
    });
  }
  test("the mean of everything runs before the loop that uses it, not in it", () => {
    // two loops of 1024 iterations: a mean inside the second would take a million operations
    expect(totalOps(big.sub(big.mean()))).toBeLessThan(4 * n * n);
    expect(totalOps(big.var())).toBeLessThan(6 * n * n);
  });
  test("a row's mean is not computed again for each column", () => {
    expect(totalOps(big.sub(big.mean(1, true)).sum(0))).toBeLessThan(4 * n * n);
    expect(totalOps(big.softmax(1).sum(0))).toBeLessThan(20 * n * n);
    expect(totalOps(big.softmax(0).max(1))).toBeLessThan(20 * n * n);
  });
  test("a softmax that is reduced to one number does not compute its rows again for each element", () => {
    expect(totalOps(big.softmax().sum())).toBeLessThan(20 * n * n);
    expect(totalOps(big.logSoftmax().mul(square32).sum())).toBeLessThan(20 * n * n);
  });
});

describe("the order of a schedule", () => {
  test("sources come before users, whatever order is asked for", () => {
    const a = x.sum(1);
    const b = a.add(1).contiguous();
    const c = b.reshape(8, 1).expand(8, 16).mul(x).sum(0);
    const d = c.dot(w);
    for (const outs of [[d], [d, c, b, a], [a, d], [b, d, a]]) {
      const made = new Set<unknown>();
      const items = itemsOf(...outs);
      const own = new Set(items.flatMap((si) => si.outputs));
      for (const si of items) {
        for (const i of si.inputs) if (own.has(i)) expect(made.has(i)).toBe(true);
        for (const o of si.outputs) made.add(o);
      }
    }
  });
});

test("stacked softmaxes cost a softmax each, not one more for each below", () => {
  const stack = (n: number) => Array.from({ length: n }).reduce<Tensor>((t) => t.softmax(), x);
  expect(totalOps(stack(16))).toBeLessThanOrEqual(16 * totalOps(stack(1)));
  expect(kernels(stack(16))).toBe(16);
});

describe("views of views", () => {
  // two views that do not commute double the indexes at which the node below is needed, at every level
  const step = (r: Tensor) => {
    const turned = r.reshape(5, 6).T.reshape(30);
    return turned.add(r.reshape(3, 10).T.reshape(30)).mul(0.5);
  };
  const levels = (n: number) => Array.from({ length: n }).reduce<Tensor>((r) => step(r), ready([30]));

  test("a few levels are one kernel", () => expect(kernels(levels(4))).toBe(1));
  test("many are stored on the way, instead of doubling for ever", () => {
    expect(kernels(levels(40))).toBeGreaterThan(4);
    expect(kernels(levels(40))).toBeLessThan(20);
  });
  test("a stencil of nine shifts of something computed is one kernel", () => {
    const y = ready([12]).mul(2);
    const shifts = Array.from({ length: 9 }, (_, i) => y.pad([[i, 8 - i]]));
    expect(kernels(shifts.reduce((a, b) => a.add(b)))).toBe(1);
  });
});

test("a stack of reductions stores an input only if the stack stays: normalisation fuses into pooling", () => {
  const picture = ready([4, 6, 8, 10]);
  const [mean, variance] = [ready([6]), ready([6]).square().realizeSync()];
  picture.requiresGrad = true;
  const pooled = picture.batchNorm(mean, variance, { training: true }).maxPool2d(2);
  pooled.square().sum().backward();
  const gradient = picture.grad as Tensor;
  picture.requiresGrad = false;
  const large = itemsOf(pooled, gradient, mean, variance).filter((si) =>
    si.outputs.some((b) => b.size === picture.size),
  );
  expect(large.map((si) => si.outputs.length)).toEqual([1]);
});
