// Reverse mode itself: what backward reaches and what it leaves alone, gradients of gradients, gradients
// written by hand, checkpoints, what is refused; and the gradient of every primitive against
// central differences in float64.

import { ArgumentError, GlobalCounters, ShapeError, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { toposort } from "../../src/helpers.ts";
import { gap, gradientGap, numbers, tensor } from "./numeric.ts";

const leaf = (data: number | readonly number[] | readonly number[][]): Tensor =>
  new Tensor(data, { dtype: "float64", requiresGrad: true });
const gradOf = (t: Tensor): unknown => t.grad?.tolistSync();
/** The gradient as a tensor, and nothing in its place. */
function takeGrad(t: Tensor): Tensor {
  const { grad } = t;
  t.grad = undefined;
  return grad as Tensor;
}

describe("backward", () => {
  test("fills the gradients of leaves, and only theirs", () => {
    const [x, w] = [leaf([1, 2]), leaf([3, 4])];
    const y = x.mul(w);
    const out = y.sum();
    expect(out.backward()).toBe(out);
    expect([gradOf(x), gradOf(w)]).toEqual([
      [3, 4],
      [1, 2],
    ]);
    expect([y.grad, out.grad]).toEqual([undefined, undefined]);
  });
  test("adds up over calls until the gradient is cleared", () => {
    const x = leaf([1, 2]);
    x.square().sum().backward();
    x.mul(10).sum().backward();
    expect(gradOf(x)).toEqual([12, 14]);
    x.grad = undefined;
    x.sum().backward();
    expect(gradOf(x)).toEqual([1, 1]);
  });
  test("adds up over the ways to a leaf", () => {
    const x = leaf(3);
    const y = x.mul(x);
    y.mul(y).add(x).backward();
    expect(gradOf(x)).toBe(4 * 27 + 1);
  });
  test("twice over one graph", () => {
    const x = leaf([1, 2]);
    const y = x.square().sum();
    y.backward();
    y.backward();
    expect(gradOf(x)).toEqual([4, 8]);
  });
  test("takes the gradient of something that is not a scalar, in any float type", () => {
    const x = leaf([1, 2, 3]);
    x.square().backward(new Tensor([1, 10, 100], { dtype: "float32" }));
    expect(gradOf(x)).toEqual([2, 40, 600]);
    expect(x.grad?.dtype.name).toBe(x.dtype.name);
  });
  test("of a leaf itself", () => {
    const x = leaf(5);
    x.backward();
    expect(gradOf(x)).toBe(1);
  });
  test("reaches a value that is in memory already", async () => {
    const x = leaf([1, 2]);
    const y = await x.exp().realize();
    await y.sum().realize();
    y.sum().backward();
    expect(gap(numbers(x.grad as Tensor), [Math.E, Math.E ** 2])).toBeLessThan(1e-14);
  });
  test("passes a chain that is deeper than the call stack", () => {
    const x = leaf(1);
    let y = x;
    for (let i = 0; i < 20_000; i++) y = y.reshape(1).reshape([]);
    y.backward();
    expect(gradOf(x)).toBe(1);
  });
});

describe("requiresGrad", () => {
  test("is off unless asked for, and inherited", () => {
    const [x, w] = [new Tensor([1.5]), new Tensor([2.5], { requiresGrad: true })];
    expect([x, w, x.add(x), x.add(w), w.exp()].map((t) => t.requiresGrad)).toEqual([
      false,
      true,
      false,
      true,
      true,
    ]);
    x.mul(w).sum().backward();
    expect(x.grad).toBe(undefined);
    expect(gradOf(w)).toEqual([1.5]);
  });
  test("ends where numbers are not floats", () => {
    const x = leaf([1.5, -2.5]);
    expect([x.lt(0), x.cast("int32"), x.argmax()].map((t) => t.requiresGrad)).toEqual([false, false, false]);
  });
  test("detach cuts a way", () => {
    const x = leaf([2, 3]);
    expect(x.exp().detach().requiresGrad).toBe(false);
    x.mul(x.detach()).sum().backward();
    expect(gradOf(x)).toEqual([2, 3]);
  });
});

describe("noGrad", () => {
  test("records nothing, and only inside", () => {
    const x = leaf([1, 2]);
    const y = Tensor.noGrad(() => x.mul(2));
    expect([y.requiresGrad, x.mul(2).requiresGrad]).toEqual([false, true]);
    y.mul(x).sum().backward();
    expect(gradOf(x)).toEqual([2, 4]);
  });
  test("holds until an async function is done", async () => {
    const x = leaf([1, 2]);
    const seen = await Tensor.noGrad(async () => {
      await x.add(1).data();
      return x.mul(2).requiresGrad;
    });
    expect([seen, x.mul(2).requiresGrad]).toEqual([false, true]);
  });
  test("ends with an error, sync or async", async () => {
    const x = leaf(1);
    const fail = () => {
      throw new RangeError("mine");
    };
    expect(() => Tensor.noGrad(fail)).toThrow(RangeError);
    expect(x.neg().requiresGrad).toBe(true);
    await expect(Tensor.noGrad(async () => fail())).rejects.toThrow(RangeError);
    expect(x.neg().requiresGrad).toBe(true);
  });
  test("nests", () => {
    const x = leaf(1);
    Tensor.noGrad(() => {
      Tensor.noGrad(() => x.neg());
      expect(x.neg().requiresGrad).toBe(false);
    });
  });
});

describe("gradients of gradients", () => {
  test("up to the third", () => {
    const x = leaf([1, 2]);
    x.pow(4).sum().backward(undefined, { createGraph: true });
    takeGrad(x).sum().backward(undefined, { createGraph: true });
    const second = takeGrad(x);
    expect(second.tolistSync()).toEqual([12, 48]);
    second.sum().backward();
    expect(gradOf(x)).toEqual([24, 48]);
  });
  test("of a penalty on a gradient", () => {
    // d/dw of (d/dx of w x^2)^2 = d/dw of 4 w^2 x^2
    const [x, w] = [leaf(3), leaf(5)];
    w.mul(x.square()).backward(undefined, { createGraph: true });
    const slope = takeGrad(x);
    w.grad = undefined;
    slope.square().backward();
    expect(gradOf(w)).toBe(8 * 5 * 9);
  });
  test("are not recorded unless asked for", () => {
    const x = leaf(3);
    x.pow(3).backward();
    expect(x.grad?.requiresGrad).toBe(false);
  });
});

describe("custom", () => {
  const straight = Tensor.custom({ forward: (x: Tensor) => x.round(), backward: (g) => g });

  test("one input: its gradient alone is enough", () => {
    const x = leaf([1.4, 2.6]);
    const y = straight(x.mul(2));
    expect(y.tolistSync()).toEqual([3, 5]);
    y.mul(new Tensor([1, 10], { dtype: "float64" }))
      .sum()
      .backward();
    expect(gradOf(x)).toEqual([2, 20]);
  });
  test("several inputs: backward gets the gradient, the inputs and the output", () => {
    const power = Tensor.custom({
      forward: (a: Tensor, b: Tensor) => a.pow(b),
      backward: (g, [a, b], out) => [g.mul(b).mul(out).div(a), g.mul(out).mul(a.log())],
    });
    expect(
      gradientGap(power, [[3], [3]], (v) => v + 2),
      "against differences",
    ).toBeLessThan(1e-8);
    const a = leaf([2, 3]);
    power(a, a).sum().backward();
    const want = [2, 3].map((v) => v ** v * (1 + Math.log(v)));
    expect(gap(numbers(a.grad as Tensor), want), "one tensor twice").toBeLessThan(1e-12);
  });
  test("undefined and inputs without requiresGrad get nothing", () => {
    const [x, y, z] = [leaf(2), leaf(3), new Tensor(4.5)];
    const first = Tensor.custom({
      forward: (a: Tensor, b: Tensor, c: Tensor) => a.mul(b).mul(c),
      backward: (g) => [g, undefined, g],
    });
    first(x, y, z).backward();
    expect([gradOf(x), y.grad, z.grad]).toEqual([1, undefined, undefined]);
  });
  test("nothing of forward is recorded, not even where it returns its input", () => {
    const x = leaf(2);
    const same = Tensor.custom({ forward: (a: Tensor) => a, backward: (g) => g.mul(7) });
    const y = same(x);
    expect(y).not.toBe(x);
    y.backward();
    expect(gradOf(x)).toBe(7);
    expect(Tensor.noGrad(() => straight(x)).requiresGrad).toBe(false);
    expect(straight(new Tensor(1.5)).requiresGrad).toBe(false);
  });
  test("can be differentiated again", () => {
    const cube = Tensor.custom({
      forward: (a: Tensor) => a.mul(a).mul(a),
      backward: (g, [a]) => g.mul(a.square()).mul(3),
    });
    const x = leaf(2);
    cube(x).backward(undefined, { createGraph: true });
    takeGrad(x).backward();
    expect(gradOf(x)).toBe(12);
  });
  test("a gradient in another type becomes that of the input", () => {
    const x = leaf([1, 2]);
    const f = Tensor.custom({
      forward: (a: Tensor) => a.cast("float32"),
      backward: (g) => g.cast("float16"),
    });
    f(x).sum().backward();
    expect(x.grad?.dtype.name).toBe(x.dtype.name);
  });
});

describe("checkpoint", () => {
  /** Values and gradients of `f`, with and without a checkpoint; a sum may be added up in another order. */
  function expectSame(f: (run: typeof Tensor.checkpoint, ...leaves: Tensor[]) => Tensor, n: number): void {
    const plain = ((fn, ...xs) => fn(...xs)) as typeof Tensor.checkpoint;
    const [want, got] = [plain, Tensor.checkpoint].map((run) => {
      const leaves = Array.from({ length: n }, (_, i) => {
        const t = tensor([3, 3], i + 1, "float64");
        t.requiresGrad = true;
        return t;
      });
      const out = f(run, ...leaves);
      out.backward();
      return [out, ...leaves.map((l) => l.grad as Tensor)].flatMap(numbers);
    }) as [number[], number[]];
    expect(gap(got, want), `[${got}] and [${want}]`).toBeLessThan(1e-13);
  }
  type Run = typeof Tensor.checkpoint;
  const two = (run: Run, x: Tensor, w: Tensor): Tensor => run((h) => h.dot(w).tanh().dot(w).exp(), x);

  test("inputs and captured parameters", () => {
    expectSame((run, x, w) => two(run, x, w).sum(), 2);
    expectSame((run, x, w, v) => two(run, x.mul(v), w.add(v)).sin().sum(), 3);
  });
  test("several inputs, one of them made of the other, one twice", () => {
    expectSame((run, x, w) => run((a, b) => a.mul(b).sin().mul(a), x, x.mul(w)).sum(), 2);
    expectSame((run, x) => run((a, b) => a.mul(b.exp()), x, x).sum(), 1);
  });
  test("what is captured may be made of the input, or share its sources", () => {
    expectSame((run, x, w) => {
      const [h, k] = [x.mul(w).exp(), x.cos()];
      return run((a) => a.mul(h).mul(k).mul(w), h).sum();
    }, 2);
  });
  test("one after another and one inside the other", () => {
    expectSame((run, x, w) => two(run, two(run, x, w).tanh(), w).sum(), 2);
    expectSame((run, x, w) => run((a) => two(run, a.sin(), w).mul(a), x).sum(), 2);
  });
  test("a function that gives back what it got, or a leaf", () => {
    expectSame(
      (run, x) =>
        run((a) => a, x)
          .square()
          .sum(),
      1,
    );
    expectSame(
      (run, x) =>
        run((a) => a, x.exp())
          .square()
          .sum(),
      1,
    );
    expectSame(
      (run, x, w) =>
        run(() => w, x)
          .square()
          .add(x)
          .sum(),
      2,
    );
  });
  test("can be differentiated again", () => {
    const [x, w] = [leaf(3), leaf(2)];
    Tensor.checkpoint((a) => a.pow(3).mul(w), x).backward(undefined, { createGraph: true });
    const slope = takeGrad(x);
    w.grad = undefined;
    slope.backward();
    expect([gradOf(x), gradOf(w)]).toEqual([36, 27]);
  });
  test("runs again in backward only, and not at all where nothing is recorded", () => {
    let calls = 0;
    const f = (a: Tensor): Tensor => {
      calls++;
      return a.exp();
    };
    const x = leaf(1);
    const y = Tensor.checkpoint(f, x);
    expect(calls).toBe(1);
    y.backward();
    expect(calls).toBe(2);
    expect(Tensor.noGrad(() => Tensor.checkpoint(f, x)).requiresGrad).toBe(false);
    expect(Tensor.checkpoint(f, new Tensor(1.5)).requiresGrad).toBe(false);
    expect(calls).toBe(4);
  });
  test("draws the same random numbers, in the same mode, and disturbs no others", () => {
    Tensor.manualSeed(3);
    const x = leaf(Array.from({ length: 64 }, () => 1));
    const y = Tensor.train(() => Tensor.checkpoint((a) => a.mul(3).dropout(0.5), x));
    const before = numbers(Tensor.rand(4));
    y.sum().backward();
    const after = numbers(Tensor.rand(4));
    expect(gradOf(x)).toEqual(y.tolistSync());
    expect(new Set(numbers(y))).toEqual(new Set([0, 6]));
    Tensor.manualSeed(3);
    Tensor.train(() => x.mul(3).dropout(0.5));
    expect([before, after]).toEqual([numbers(Tensor.rand(4)), numbers(Tensor.rand(4))]);
  });
  test("the steps' memory is given back once the value is there", async () => {
    const collect = async (): Promise<void> => {
      for (let i = 0; i < 3; i++) {
        (globalThis as { gc?: () => void }).gc?.();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    const used = async (run: Run): Promise<number> => {
      const x = await tensor([128, 128]).realize();
      const w = await tensor([128, 128], 2).realize();
      w.requiresGrad = true;
      const net = (a: Tensor): Tensor => {
        let h = a;
        for (let i = 0; i < 6; i++) h = h.dot(w).tanh();
        return h;
      };
      // what other tests dropped is not this one's
      await collect();
      const before = GlobalCounters.memUsedOn("WASM");
      const y = await run(net, x).realize();
      await collect();
      const kept = GlobalCounters.memUsedOn("WASM") - before;
      y.sum().backward();
      expect(numbers(w.grad as Tensor)).toHaveLength(128 * 128); // y and its record live until here
      return kept / (128 * 128 * 4);
    };
    expect(await used((fn, ...xs) => fn(...xs))).toBeGreaterThanOrEqual(6);
    expect(await used(Tensor.checkpoint)).toBeLessThanOrEqual(2);
  });
  test("what a segment computes again for nothing is not computed before an assign", () => {
    const kernels = (run: Run): number => {
      const [x, w] = [tensor([4, 4]), tensor([4, 4], 2)];
      w.requiresGrad = true;
      const loss = run((a) => a.dot(w), x).sum();
      loss.backward();
      GlobalCounters.reset();
      const grad = w.grad as Tensor;
      w.assign(Tensor.noGrad(() => w.sub(grad)));
      Tensor.realizeSync(w, loss);
      return GlobalCounters.kernelCount;
    };
    expect(kernels(Tensor.checkpoint)).toBe(kernels((fn, ...xs) => fn(...xs)));
  });
});

describe("what is refused, and how", () => {
  const x = leaf([1, 2]);
  const refused = (f: () => unknown, kind: typeof ArgumentError | typeof ShapeError, words: RegExp): void => {
    expect(f).toThrow(kind);
    expect(f).toThrow(words);
  };
  test("backward", () => {
    refused(() => x.exp().backward(), ShapeError, /backward: shape \[2\] is not a scalar; .*t\.sum\(\)/);
    refused(() => new Tensor(1.5).exp().backward(), ArgumentError, /backward: nothing .* requiresGrad/);
    refused(() => Tensor.noGrad(() => x.sum()).backward(), ArgumentError, /requiresGrad/);
    const wrong = new Tensor([1, 2, 3], { dtype: "float64" });
    refused(() => x.exp().backward(wrong), ShapeError, /backward: .*\[3\].*\[2\].*equal/);
    expect(x.grad).toBe(undefined);
  });
  test("custom", () => {
    const make = (backward: (g: Tensor) => Tensor | readonly (Tensor | undefined)[]) =>
      Tensor.custom({ forward: (a: Tensor) => a.mul(1), backward });
    refused(
      () =>
        make((g) => g.sum())(x)
          .sum()
          .backward(),
      ShapeError,
      /a gradient has shape \[\], .*\[2\].*custom backward/,
    );
    refused(
      () =>
        make((g) => [g, g])(x)
          .sum()
          .backward(),
      ArgumentError,
      /custom: backward returned 2 gradients for 1 inputs/,
    );
    refused(
      () =>
        make(() => undefined as unknown as Tensor)(x)
          .sum()
          .backward(),
      ArgumentError,
      /custom: backward returned undefined/,
    );
    refused(
      () => make((g) => g)(3 as unknown as Tensor),
      ArgumentError,
      /custom: input 0 is number, expected a Tensor/,
    );
    const many = Tensor.custom({ forward: (a: Tensor) => [a] as unknown as Tensor, backward: (g) => g });
    refused(() => many(x), ArgumentError, /custom: forward returned an array, expected one Tensor/);
    expect(x.grad).toBe(undefined);
  });
  test("checkpoint", () => {
    const later = async () => x;
    refused(
      () => Tensor.checkpoint(later as unknown as () => Tensor, x),
      ArgumentError,
      /checkpoint: the function returned a Promise/,
    );
    refused(() => Tensor.checkpoint((a) => a, null as unknown as Tensor), ArgumentError, /input 0 is null/);
  });
});

// ---- every primitive ----

/** The ops of the lazy graph below a tensor. */
const opsOf = (t: Tensor): Set<unknown> =>
  new Set(toposort([t.lazydata.base], (b) => (b.srcs ?? []).map((s) => s.base)).map((b) => b.op));

interface Primitive {
  readonly f: (...xs: Tensor[]) => Tensor;
  readonly shapes: readonly (readonly number[])[];
  /** from (-1, 1) to where the function is smooth */
  readonly at?: (x: number) => number;
  /** how far off the differences may be; default 1e-7 */
  readonly within?: number;
}
const ONE = [[2, 5]];
const TWO = [
  [2, 5],
  [2, 5],
];
const positive = (x: number): number => x + 1.5;
const OPS: Readonly<Record<string, Primitive>> = {
  NEG: { f: (x) => x.neg(), shapes: ONE },
  EXP2: { f: (x) => x.exp2(), shapes: ONE },
  LOG2: { f: (x) => x.log2(), shapes: ONE, at: positive },
  SIN: { f: (x) => x.sin(), shapes: ONE },
  SQRT: { f: (x) => x.sqrt(), shapes: ONE, at: positive },
  RECIP: { f: (x) => x.reciprocal(), shapes: ONE, at: positive },
  ADD: { f: (x, y) => x.add(y), shapes: TWO },
  SUB: { f: (x, y) => x.sub(y), shapes: TWO },
  MUL: { f: (x, y) => x.mul(y), shapes: TWO },
  DIV: { f: (x, y) => x.div(y), shapes: TWO, at: positive },
  MOD: { f: (x, y) => x.mul(6.37).fmod(y), shapes: TWO, at: positive },
  MAX: { f: (x, y) => x.maximum(y), shapes: [[2, 5], [5]] },
  WHERE: { f: (x, y) => x.gt(0.05).where(x, y), shapes: TWO },
  MULACC: { f: (x, y, z) => x.mulacc(y, z), shapes: [...TWO, [2, 5]] },
  // the differences see the rounding of float32, divided by the step
  CAST: { f: (x) => x.cast("float32").cast("float64").mul(3), shapes: ONE, within: 0.02 },
  CONTIGUOUS: { f: (x) => x.permute(1, 0).contiguous().square(), shapes: ONE },
  SUM: { f: (x) => x.sum(1), shapes: ONE },
  REDUCE_MAX: { f: (x) => x.max(1), shapes: ONE },
};
const VIEWS: Readonly<Record<string, Primitive>> = {
  reshape: { f: (x) => x.reshape(3, 4).square(), shapes: [[2, 6]] },
  permute: { f: (x) => x.permute(2, 0, 1).square(), shapes: [[2, 3, 2]] },
  expand: { f: (x) => x.expand(2, 3, 4).square(), shapes: [[3, 1]] },
  pad: { f: (x) => x.pad([[1, 0], null, [0, 2]], 3).square(), shapes: [[2, 2, 3]] },
  shrink: { f: (x) => x.shrink([[1, 3], null]).square(), shapes: [[4, 3]] },
  flip: { f: (x) => x.flip([0, 1]).square(), shapes: [[2, 5]] },
  stride: { f: (x) => x.stride(2, -3).square(), shapes: [[3, 4]] },
  "sum of all": { f: (x) => x.sum().square(), shapes: ONE },
  "max of all": { f: (x) => x.max().square(), shapes: ONE },
  prod: { f: (x) => x.prod(1), shapes: ONE, at: positive },
  "prod of all": { f: (x) => x.prod(), shapes: [[5]] },
  "a broadcast": {
    f: (x, y) => x.mul(y).sub(y),
    shapes: [
      [2, 1, 3],
      [4, 1],
    ],
  },
};

describe("primitives against central differences", () => {
  test.each(Object.entries(OPS))("%s", (op, { f, shapes, at, within = 1e-7 }) => {
    const inputs = shapes.map((s, i) => tensor(s, i + 1, "float64"));
    expect([...opsOf(f(...inputs))], "the test is about this op").toContain(op);
    expect(gradientGap(f, shapes, at)).toBeLessThan(within);
  });
  test.each(Object.entries(VIEWS))("%s", (_, { f, shapes, at }) => {
    expect(gradientGap(f, shapes, at)).toBeLessThan(1e-7);
  });
  test("a cast passes the gradient on in the type it came from", () => {
    const x = leaf([0.5, 1.5]);
    x.cast("float32").square().cast("float16").sum().backward();
    expect([gradOf(x), x.grad?.dtype.name]).toEqual([[1, 3], x.dtype.name]);
  });
  test("equal maxima share the gradient", () => {
    const x = leaf([2, 1, 2]);
    x.max().backward();
    expect(gradOf(x)).toEqual([0.5, 0, 0.5]);
  });
  test("a zero in a product", () => {
    const x = leaf([2, 0, 3]);
    x.prod().backward();
    expect(gradOf(x)).toEqual([0, 6, 0]);
  });
});
