// Small kernels that a page interprets: bit for bit what the compiled kernels give, and only those that are
// small and exact.

import { createSchedule, Tensor, Variable, withEnv } from "gradloom";
import { expect, test } from "vitest";
import type { TypedArray } from "../../src/dtype.ts";
import { interpret, isSmall } from "../../src/engine/interpret.ts";
import type { Buffer } from "../../src/runtime/buffer.ts";

const SPECIAL = [0, -0, 1, -1.5, 3.25, 1e-40, 1e30, -2.7, 0.1, 7, -3, 1 / 3];
const floats = (seed: number): Tensor =>
  new Tensor([0, 1, 2].map((r) => [0, 1, 2, 3].map((c) => SPECIAL[(r * 5 + c * 7 + seed) % 12]!)));
const inputs = () => ({
  a: floats(0),
  b: floats(5),
  odd: new Tensor([NaN, Infinity, -Infinity, 3e9, -3e9, -0.9], { dtype: "float32" }),
  i: new Tensor(
    [
      [1, -7, 2 ** 31 - 1],
      [-(2 ** 31), 0, 13],
    ],
    { dtype: "int32" },
  ),
  j: new Tensor(
    [
      [3, 2, 0],
      [-1, 5, -4],
    ],
    { dtype: "int32" },
  ),
});
type Inputs = ReturnType<typeof inputs>;

const PROGRAMS: Readonly<Record<string, (x: Inputs) => Tensor>> = {
  arithmetic: ({ a, b }) => a.mul(b).add(a).sub(0.1).div(b),
  "maximum, comparisons, where": ({ a, b }) => a.lt(b).where(a.maximum(b).neg(), b.sqrt()),
  "a sum of all": ({ a, b }) => a.mul(b).sum(),
  "sums along each dim": ({ a, b }) => a.sum(1).mul(2).add(b.sum(0).sum()),
  "maxima and products": ({ a, b }) => a.max(0).add(b.prod(0)),
  "a reduction of a reduction": ({ a }) => a.sub(a.mean(1, true)).square().sum(0),
  variance: ({ a }) => a.get(0).var(),
  matmul: ({ a, b }) => a.get(0).matmul(b.get(0)),
  "padding, flips and strides": ({ a }) =>
    a
      .flip(1)
      .pad([
        [1, 2],
        [0, 1],
      ])
      .permute(1, 0)
      .add(1),
  "views of views": ({ a, b }) => a.permute(1, 0).reshape(2, 6).add(b.reshape(6, 2).permute(1, 0)),
  "parts and repetitions": ({ a, b }) =>
    a
      .shrink([
        [0, 2],
        [1, 3],
      ])
      .add(
        b.shrink([
          [2, 3],
          [0, 2],
        ]),
      ),
  integers: ({ i, j }) => i.mul(j).add(i.idiv(j)).sub(j),
  "bits of integers": ({ i, j }) => i.bitwiseAnd(j).bitwiseXor(i),
  "casts to int32": ({ odd }) => odd.cast("int32"),
  "casts to float32 and bool": ({ i }) => i.cast("float32").mul(0.3).add(i.cast("bool").cast("float32")),
  "special floats": ({ odd }) => odd.sub(odd).maximum(odd).reciprocal(),
};

/** What interpreting gives. */
async function interpreted(program: (x: Inputs) => Tensor, given: Inputs): Promise<TypedArray> {
  const known = new Map<Buffer, TypedArray>();
  let last: TypedArray | undefined;
  for (const item of createSchedule([program(given).lazydata])) {
    expect(isSmall(item)).toBe(true);
    for (const b of item.outputs) known.set(b, new b.dtype.storage(b.size));
    for (const b of item.inputs) if (!known.has(b)) known.set(b, await b.data<TypedArray>());
    const arrays = [...item.outputs, ...item.inputs].map((b) => known.get(b)!);
    interpret(item.ast, arrays);
    last = arrays[0];
  }
  return last!;
}

test.each(Object.entries(PROGRAMS))("%s", async (_, program) => {
  const given = inputs();
  await Tensor.realize(...Object.values(given));
  // kernels of a few elements have no OptOps in a page
  await withEnv({ NOOPT: 1 }, async () => {
    const compiled = await program(given).data();
    expect([...(await interpreted(program, given))]).toEqual([...compiled]);
  });
});

test("an output may lie where an input does", async () => {
  const x = await new Tensor([1, 2, 3]).realize();
  const [item] = createSchedule([x.add(x.flip(0).mul(10)).lazydata]);
  const memory = new Float32Array([1, 2, 3]);
  interpret(item!.ast, [memory, memory]);
  expect([...memory]).toEqual([31, 22, 13]);
});

test("what is large, symbolic, of another type or not exact is compiled", async () => {
  const x = await floats(0).realize();
  const n = Variable("n", 1, 3).bind(2);
  const isSmallKernel = (t: Tensor): boolean => createSchedule([t.lazydata]).every(isSmall);
  expect(isSmallKernel(x.add(1))).toBe(true);
  const others = [
    Tensor.ones(20, 20).add(x.sum()),
    x
      .shrink([
        [0, n],
        [0, 4],
      ])
      .sum(),
    x.exp(),
    x.sin(),
    x.pow(1.5),
    x.fmod(0.3),
    x.cast("float64"),
    x.cast("float16"),
    x.cast("int64").sum(),
    x.bitcast("int32"),
    Tensor.arange(4).add(1),
  ];
  expect(others.map(isSmallKernel)).toEqual(others.map(() => false));
});
