// grad, jacobian, hessian, vjp and vmap against derivatives by hand and by differences; one trace, however
// many rows; what is refused.

import { func, GlobalCounters, nn, Tensor } from "gradloom";
import { describe, expect, expectTypeOf, test } from "vitest";
import { expectClose } from "../nn/close.ts";

const x = () => new Tensor([1, 2.5, 3]);

describe("derivatives", () => {
  test("jacobian has the dims of the output, then those of the input", async () => {
    // y_i = x_i² Σx: 2 x_i Σx on the diagonal, x_i² everywhere
    const s = 6.5;
    const j = func.jacobian((v) => v.square().mul(v.sum()), x());
    const xs = [1, 2.5, 3];
    await expectClose(
      j,
      xs.map((a, i) => xs.map((_, k) => a * a + (i === k ? 2 * a * s : 0))),
    );
    const w = new Tensor([
      [1, 2, 3],
      [4, 5, 6.5],
    ]);
    const m = func.jacobian((v) => w.matmul(v).reshape(2, 1), x());
    expect(m.shape).toEqual([2, 1, 3]);
    await expectClose(m.reshape(2, 3), [
      [1, 2, 3],
      [4, 5, 6.5],
    ]);
    await expectClose(
      func.jacobian((v) => v.sum(), x()),
      [1, 1, 1],
    );
  });
  test("several inputs, and one that does not matter", async () => {
    const [a, b] = func.jacobian((p, q) => p.mul(3).add(q.detach()), [x(), new Tensor([0.5])]);
    await expectClose(a as Tensor, [
      [3, 0, 0],
      [0, 3, 0],
      [0, 0, 3],
    ]);
    await expectClose(b as Tensor, [[0], [0], [0]]);
    const [g, h] = func.grad((p, q) => p.mul(q).sum(), [x(), new Tensor([2.5, 0, 1])]);
    await expectClose(g as Tensor, [2.5, 0, 1]);
    await expectClose(h as Tensor, [1, 2.5, 3]);
  });
  test("hessian, of one input and of several", async () => {
    await expectClose(
      func.hessian((v) => v.pow(3).sum().add(v.prod()), x()),
      [
        [6, 3, 2.5],
        [3, 15, 1],
        [2.5, 1, 18],
      ],
    );
    const blocks = func.hessian((p, q) => p.mul(q).sum().square(), [new Tensor([1.5]), new Tensor([2.5])]);
    // f = (p q)²: 2 q², 4 p q, 2 p²
    const found = await Promise.all(blocks.flat().map((t) => t.item()));
    [12.5, 15, 15, 4.5].forEach((want, i) => void expect(found[i]).toBeCloseTo(want, 4));
    await expectClose(
      func.hessian((v) => v.square(), new Tensor(2.5)),
      2,
    );
  });
  test("of a layer, by differences", async () => {
    Tensor.manualSeed(2);
    const layer = new nn.Sequential(
      new nn.Linear(3, 4),
      new nn.Tanh(),
      new nn.Linear(4, 2),
      new nn.Softmax(-1),
    );
    const j = (await func.jacobian((v) => layer.forward(v), x()).tolist()) as number[][];
    const at = async (i: number, by: number) => {
      const v = [1, 2.5, 3].map((a, k) => a + (k === i ? by : 0));
      return (await layer.forward(new Tensor(v)).tolist()) as number[];
    };
    for (const i of [0, 1, 2]) {
      const [up, down] = [await at(i, 0.01), await at(i, -0.01)];
      for (const r of [0, 1]) {
        expect(j[r]?.[i]).toBeCloseTo(((up[r] as number) - (down[r] as number)) / 0.02, 3);
      }
    }
    expect(nn.getParameters(layer).every((p) => p.grad === undefined)).toBe(true);
  });
  test("createGraph: derivatives of derivatives", async () => {
    const g = func.grad((v) => func.jacobian((z) => z.pow(3), v, { createGraph: true }).sum(), x());
    await expectClose(g, [6, 15, 18]);
    const w = new Tensor([2.5], { requiresGrad: true });
    func
      .grad((v) => v.pow(3).sum(), w, { createGraph: true })
      .sum()
      .backward();
    await expectClose(w.grad as Tensor, [15]);
  });
  test("vjp pulls a gradient back, again and again", async () => {
    const [y, pull] = func.vjp((v) => v.square(), x());
    await expectClose(y, [1, 6.25, 9]);
    await expectClose(pull(new Tensor([1, 0, 0.5])), [2, 0, 3]);
    await expectClose(pull(new Tensor([0, 1, 0.5])), [0, 5, 3]);
  });
  test("inside noGrad they work as well", async () => {
    await expectClose(
      Tensor.noGrad(() => func.grad((v) => v.square().sum(), x())),
      [2, 5, 6],
    );
  });
  test("the backward pass is traced once, however many rows there are", () => {
    let calls = 0;
    const probe = Tensor.custom({
      forward: (a: Tensor) => a.mul(2),
      backward: (g: Tensor) => {
        calls++;
        return g.mul(2);
      },
    });
    func.jacobian((v) => probe(v), Tensor.rand(50));
    expect(calls).toBe(1);
  });
});

describe("vmap", () => {
  test("as a loop over the dim that is mapped", async () => {
    const a = Tensor.arange(12).reshape(3, 2, 2);
    const b = new Tensor([
      [1, 2],
      [0, 1],
    ]);
    const product = func.vmap((p, q) => p.matmul(q), { inDims: [0, null] });
    await expectClose(product(a, b), (await a.matmul(b).tolist()) as number[][][]);
    const sums = func.vmap((p) => p.sum(), { inDims: 2 });
    await expectClose(sums(a), (await a.sum([0, 1]).tolist()) as number[]);
    const last = func.vmap((p) => p.mul(2), { inDims: 1, outDims: -1 })(a);
    expect(last.shape).toEqual([3, 2, 2]);
    await expectClose(last, (await a.mul(2).permute(0, 2, 1).tolist()) as number[][][]);
  });
  test("results of any structure; nested; with gradients inside and through it", async () => {
    const both = func.vmap((p) => ({ twice: p.mul(2), parts: [p.max()] }));
    const { twice, parts } = both(
      new Tensor([
        [1, 2],
        [5, 4],
      ]),
    );
    await expectClose(twice, [
      [2, 4],
      [10, 8],
    ]);
    await expectClose(parts[0] as Tensor, [2, 5]);
    const each = func.vmap((p) => func.grad((q) => q.square().sum().mul(q.sum()), p));
    await expectClose(
      each(
        new Tensor([
          [1, 2],
          [3, 4.5],
        ]),
      ),
      [
        [11, 17],
        [74.25, 96.75],
      ],
    );
    const pairs = func.vmap((p) => func.vmap((q) => p.sub(q))(new Tensor([1, 10.5])));
    await expectClose(pairs(new Tensor([0, 1.5])), [
      [-1, -10.5],
      [0.5, -9],
    ]);
    const w = new Tensor([1.5, 2], { requiresGrad: true });
    func
      .vmap((p) => p.mul(w).sum())(
        new Tensor([
          [1, 2],
          [3, 4.5],
        ]),
      )
      .sum()
      .backward();
    await expectClose(w.grad as Tensor, [4, 6.5]);
  });
  test("the function is called once", async () => {
    let calls = 0;
    const before = GlobalCounters.kernelCount;
    const f = func.vmap((p) => {
      calls++;
      return p.add(1);
    });
    expect(f(Tensor.zeros(100, 3)).shape).toEqual([100, 3]);
    expect([calls, GlobalCounters.kernelCount]).toEqual([1, before]);
  });
});

test.each<[string, () => unknown, RegExp]>([
  [
    "swapped",
    () => func.grad(x() as never, ((v: Tensor) => v) as never),
    /grad: f is of type Tensor, expected a function/,
  ],
  [
    "integers",
    () => func.jacobian((v) => v, new Tensor([1, 2])),
    /input 0 is an int32 Tensor, expected a Tensor of floats/,
  ],
  ["not a scalar", () => func.grad((v) => v, x()), /gives shape \[3\], expected a scalar; use jacobian/],
  [
    "async",
    () => func.jacobian((async (v: Tensor) => v) as never, x()),
    /returned a Promise, expected one Tensor/,
  ],
  ["another shape", () => func.vjp((v) => v, x())[1](new Tensor([1.5])), /output's shape \[3\], got \[1\]/],
  ["nothing mapped", () => func.vmap((v) => v, { inDims: null })(x()), /no argument is mapped/],
  ["uneven", () => func.vmap((a, b) => a.add(b))(x(), Tensor.ones(2)), /sizes 3, 2; they must be equal/],
  [
    "too few dims",
    () => func.vmap((a, b) => a.add(b), { inDims: [0] })(x(), x()),
    /1 inDims for 2 arguments/,
  ],
  ["a number", () => func.vmap((a) => a)(3 as never), /argument 0 is number, expected a Tensor/],
  ["a scalar", () => func.vmap((a) => a)(new Tensor(1.5)), /argument 0 has no dims/],
])("refused: %s", (_, make, message) => expect(make).toThrow(message));

test("TypeScript knows how many derivatives a list of inputs has", () => {
  const x = new Tensor([1.5]);
  const [a, b] = func.grad((u, v) => u.mul(v).sum(), [x, x]);
  expectTypeOf(a).toEqualTypeOf<Tensor>();
  expect([a.shape, b.shape]).toEqual([[1], [1]]);
});
