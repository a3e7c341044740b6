// Kernels with several outputs: which kernels become one, that the result is the same (also where one output
// is the old value of another), and which stay separate.

import { createSchedule, GlobalCounters, Tensor as T, type Tensor, TinyJit, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";
import { Random } from "../shape/random.ts";
import { itemsOf, kernels, opsOf, ready, worst } from "./count.ts";

const x = ready([8, 16]);
const y = ready([8, 16], {}, 5);
const outputsOf = (...ts: readonly Tensor[]): number[] =>
  itemsOf(...ts)
    .filter((si) => si.ast[0]?.op === "STORE")
    .map((si) => si.outputs.length);

/** With the previous neighbour, if there is one. exp2(0) is 1, so the padding stays above it. */
const withNeighbour = (t: Tensor): Tensor => {
  const [n, ...rest] = t.shape as number[];
  const e = t.tanh().exp2();
  const others = rest.map(() => null);
  return e.add(e.pad([[1, 0], ...others]).shrink([[0, n as number], ...others]));
};

describe("one kernel", () => {
  test("for outputs that read the same input at the same indexes", () => {
    expect(outputsOf(x.add(1), x.mul(2), x.mul(y))).toEqual([3]);
    expect(withEnv({ FUSE: 0 }, () => outputsOf(x.add(1), x.mul(2)))).toEqual([1, 1]);
  });
  test("of eight outputs, not of more", () => {
    const many = (n: number): Tensor[] => Array.from({ length: n }, (_, i) => x.add(i + 1));
    expect(outputsOf(...many(8))).toEqual([8]);
    expect(outputsOf(...many(9)).sort()).toEqual([1, 8]);
  });
  test("for a value that was asked for and what is computed from it", () => {
    const a = x.add(y);
    expect(outputsOf(a, a.exp())).toEqual([2]);
  });
  test("for reduces of the same input in the same loops: mean and variance", () => {
    const [mean, variance] = [x.mean(1), x.var(1)];
    expect(outputsOf(mean, variance)).toEqual([2]);
    T.realizeSync(mean, variance);
    expect(
      worst(
        mean.dataSync(),
        withEnv({ FUSE: 0 }, () => x.mean(1).dataSync()),
      ),
    ).toBeLessThan(1e-6);
    expect(
      worst(
        variance.dataSync(),
        withEnv({ FUSE: 0 }, () => x.var(1).dataSync()),
      ),
    ).toBeLessThan(1e-5);
  });
  test("for a reduce and another that reads it in its own loop: max and argmax", () => {
    const top = x.max(1, true);
    const at = x.eq(top).mul(3).sum(1, true);
    expect(outputsOf(top, at)).toEqual([2]);
    const picture = ready([2, 3, 8, 10]);
    const pooled = picture.reshape(2, 3, 4, 2, 5, 2);
    const most = pooled.max([3, 5], true);
    const count = pooled.eq(most).cast("int32").sum([3, 5], true);
    expect(outputsOf(most, count)).toEqual([2]);
    const apart = withEnv({ FUSE: 0 }, () => {
      const again = picture.reshape(2, 3, 4, 2, 5, 2);
      const m = again.max([3, 5], true);
      return [m.dataSync().slice(), again.eq(m).cast("int32").sum([3, 5], true).dataSync().slice()];
    });
    T.realizeSync(most, count);
    expect([most.dataSync(), count.dataSync()]).toEqual(apart);
  });
  test("for a reduce and its epilogues", () => {
    const sum = x.sum(1, true);
    expect(outputsOf(sum, sum.add(1), sum.mul(2))).toEqual([3]);
  });
});

describe("kernels stay apart", () => {
  test("with other shapes, other inputs, other loops", () => {
    expect(outputsOf(x.add(1), x.T.contiguous().add(1)).length).toBeGreaterThan(1);
    expect(outputsOf(x.add(1), y.add(1))).toEqual([1, 1]);
    expect(outputsOf(x.sum(1), x.add(1))).toEqual([1, 1]);
    expect(outputsOf(x.narrow(0, 0, 4).add(1), x.narrow(0, 4, 4).add(1))).toEqual([1, 1]);
  });
  test("where both are contractions that share an operand: its elements come from a cache anyway", () => {
    const [a, b, c] = [ready([64, 64]), ready([64, 32]), ready([64, 32], {}, 5)];
    expect(outputsOf(a.matmul(b), a.matmul(c))).toEqual([1, 1]);
    // a matrix that is read once costs what memory costs
    const [v, w] = [ready([64, 1]), ready([64, 1], {}, 5)];
    expect(outputsOf(a.matmul(v), a.matmul(w))).toEqual([2]);
  });
  test("where one reads the other at another index", () => {
    const a = x.add(1);
    expect(outputsOf(a, a.flip(1).add(a))).toEqual([1, 1]);
    expect(outputsOf(a, a.sub(a.sum(1, true))).length).toBeGreaterThan(1);
  });
  test("where one reads the other's result of another row, or of all rows", () => {
    const top = x.max(1, true);
    expect(outputsOf(top, x.eq(top.flip(0)).sum(1, true))).toEqual([1, 1]);
    expect(outputsOf(top, x.eq(top.max(0, true)).sum(1, true)).length).toBeGreaterThan(1);
    const square = ready([8, 8]);
    const columns = square.max(0, true);
    expect(outputsOf(columns, square.eq(columns.T).sum(0, true))).toEqual([1, 1]);
  });
  test("where a third one must run between them", () => {
    // b needs the sum of a, which is another kernel: a and b cannot be one
    const a = x.add(1);
    const b = a.sum(0, true).expand([8, 16]).contiguous().add(a);
    expect(kernels(a, b)).toBeGreaterThan(1);
    T.realizeSync(a, b);
    const want = Array.from({ length: 128 }, (_, i) => {
      const column = Array.from({ length: 8 }, (_, r) => Number(x.dataSync()[r * 16 + (i % 16)]) + 1);
      return column.reduce((p, q) => p + q, 0) + Number(x.dataSync()[i]) + 1;
    });
    expect(worst(b.dataSync(), want)).toBeLessThan(1e-5);
  });
  test("where another device waits for the first", () => {
    const a = x.add(1);
    expect(opsOf(a.to("JS"), a.mul(2))).toEqual(["STORE", "COPY", "STORE"]);
  });
  test("contiguous() that only one kernel reads is a kernel of its own", () => {
    expect(kernels(x.add(1).contiguous().mul(2))).toBe(2);
  });
});

describe("assigns", () => {
  test("to two tensors, each from the old value of both", () => {
    const [a, b] = [ready([40]), ready([40], {}, 7)];
    const [a0, b0] = [a.dataSync().slice(), b.dataSync().slice()] as [Float32Array, Float32Array];
    const [na, nb] = [a.add(b), a.mul(b)];
    a.assign(na);
    b.assign(nb);
    T.realizeSync(a, b);
    expect(
      worst(
        a.dataSync(),
        a0.map((v, i) => v + (b0[i] as number)),
      ),
    ).toBeLessThan(1e-6);
    expect(
      worst(
        b.dataSync(),
        a0.map((v, i) => v * (b0[i] as number)),
      ),
    ).toBeLessThan(1e-6);
  });
  test("of an optimiser: one kernel, also in a jit", async () => {
    const [p, m] = [ready([64]), ready([64], {}, 3)];
    const step = new TinyJit((g: Tensor) => {
      m.assign(m.mul(0.9).add(g));
      p.assign(p.sub(m.mul(0.1)));
      return p;
    });
    const model = { p: Array.from(p.dataSync(), Number), m: Array.from(m.dataSync(), Number) };
    for (let i = 0; i < 5; i++) {
      GlobalCounters.reset();
      const g = await ready([64], {}, i).realize();
      GlobalCounters.reset();
      await step(g);
      expect(GlobalCounters.kernelCount).toBe(1);
      Array.from(g.dataSync(), Number).forEach((v, k) => {
        model.m[k] = (model.m[k] as number) * 0.9 + v;
        model.p[k] = (model.p[k] as number) - (model.m[k] as number) * 0.1;
      });
    }
    expect(worst(p.dataSync(), model.p)).toBeLessThan(1e-5);
    expect(worst(m.dataSync(), model.m)).toBeLessThan(1e-5);
  });
});

describe("small updates of tensors of one shape", () => {
  const pair = (shape: readonly number[], seed: number): [Tensor, Tensor] => [
    ready(shape, {}, seed),
    ready(shape, {}, seed + 50),
  ];
  /** Parameters with a momentum; all of them change. */
  function updated(pairs: readonly (readonly [Tensor, Tensor])[]): Tensor[] {
    return pairs.flatMap(([p, m], i) => {
      m.assign(m.mul(0.5).add(p.mul(i + 1)));
      p.assign(p.sub(m.mul(0.1)));
      return [p, m];
    });
  }
  test("are one kernel, up to sixteen of them", () => {
    expect(outputsOf(...updated([pair([32], 1), pair([32], 2), pair([32], 3)]))).toEqual([6]);
    const many = Array.from({ length: 9 }, (_, i) => pair([5], i));
    expect(outputsOf(...updated(many))).toEqual([16, 2]);
  });
  test("not of other shapes, not of large tensors, not of other kernels", () => {
    expect(outputsOf(...updated([pair([32], 1), pair([31], 2)]))).toEqual([2, 2]);
    const large = 2 ** 14;
    expect(outputsOf(...updated([pair([large], 1), pair([large], 2)]))).toEqual([4]);
    expect(outputsOf(...updated([pair([large + 1], 1), pair([large + 1], 2)]))).toEqual([2, 2]);
    expect(outputsOf(ready([32]).add(1), ready([32], {}, 2).mul(3))).toEqual([1, 1]);
  });
  test("not where one waits for a sum of another", () => {
    const [[a], [b]] = [pair([16], 1), pair([16], 2)];
    const want = b.add(a.mul(2).sum()).dataSync();
    a.assign(a.mul(2));
    b.assign(b.add(a.sum().contiguous()));
    expect(outputsOf(a, b).length).toBeGreaterThan(1);
    T.realizeSync(a, b);
    expect(worst(b.dataSync(), want)).toBeLessThan(1e-5);
  });
  test("random ones have the values of FUSE=0", () => {
    for (let seed = 1; seed <= 40; seed++) {
      const run = (): ArrayLike<number | bigint>[] => {
        const r = new Random(seed);
        const all = Array.from({ length: 6 }, (_, i) => ready([r.pick([4, 6])], {}, seed + i));
        for (let i = 0; i < 8; i++) {
          const a = r.pick(all);
          const b = r.pick(all.filter((t) => t.shape[0] === a.shape[0]));
          const other = r.pick(all);
          a.assign(
            r.pick([
              () => a.add(b),
              () => a.mul(b.sum()),
              () => a.sub(other.max()),
              () => b.flip(0).mul(a),
              () => withNeighbour(b),
            ])(),
          );
        }
        T.realizeSync(...all);
        return all.map((t) => t.dataSync().slice());
      };
      const apart = withEnv({ FUSE: 0 }, run);
      run().forEach(
        (v, i) => void expect(worst(v, apart[i] as Float32Array), `seed ${seed}`).toBeLessThan(1e-4),
      );
    }
  });
});

test("the target of an assign is read in place and at a neighbour: two kernels", () => {
  const w = ready([64]);
  w.assign(w.add(1));
  const e = w.exp2();
  const both = e.add(e.pad([[1, 0]]).shrink([[0, 64]]));
  expect(outputsOf(w, both)).toEqual([1, 1]);
  T.realizeSync(w, both);
  const after = [...(w.dataSync() as Float32Array)].map((v) => 2 ** v);
  const want = after.map((v, i) => v + (after[i - 1] ?? 0));
  expect(worst(both.dataSync(), new Float32Array(want))).toBeLessThan(1e-4);
});

test("random graphs with many outputs equal the same graphs with FUSE=0", () => {
  let joined = 0;
  for (let seed = 1; seed <= 150; seed++) {
    const build = (): Tensor[] => {
      const r = new Random(seed);
      const nodes: Tensor[] = [ready([6, 8], {}, seed), ready([6, 8], {}, seed + 1)];
      for (let i = 0; i < 10; i++) {
        const [a, b] = [r.pick(nodes), r.pick(nodes)];
        const made = r.pick([
          () => a.add(b),
          () => a.mul(b).sub(1),
          () => a.sub(b.mean(1, true)),
          () => a.flip(0).add(b),
          () => a.T.contiguous().T.mul(b),
          () => a.sum(0, true).add(b),
          () => a.relu(),
          () => a.clone().assign(b.mul(0.5)),
          () => withNeighbour(a),
        ])();
        nodes.push(made);
      }
      return nodes.filter((_, i) => i > 1 && i % 2 === seed % 2);
    };
    const together = build();
    joined += createSchedule(together.map((t) => t.lazydata)).filter((si) => si.outputs.length > 1).length;
    T.realizeSync(...together);
    const apart = withEnv({ FUSE: 0 }, () => build().map((t) => t.dataSync().slice()));
    together.forEach(
      (t, i) => void expect(worst(t.dataSync(), apart[i] as Float32Array), `seed ${seed}`).toBeLessThan(1e-4),
    );
  }
  expect(joined).toBeGreaterThan(100);
});
