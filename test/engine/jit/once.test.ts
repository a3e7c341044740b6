// What a captured function computes of weights alone is left out of its replays, and is right all the same
// when a weight changes.

import { Buffer, BufferCopy, Tensor, TinyJit } from "gradloom";
import { expect, test } from "vitest";

const half = () =>
  new Tensor(
    [
      [1, 2],
      [3, 4],
    ],
    { dtype: "float32" },
  ).realize();
/** A sum over the weights is stored, as it is read by every element. */
const make = (w: Tensor) =>
  new TinyJit((x: Tensor) => x.mul(w.exp().sum(0).contiguous()).contiguous().sum(1));
const expected = (w: readonly number[][], x: readonly number[]): number[] => {
  const sums = [0, 1].map((j) => Math.exp(w[0]?.[j] as number) + Math.exp(w[1]?.[j] as number));
  return [(x[0] as number) * (sums[0] as number) + (x[1] as number) * (sums[1] as number)];
};
const near = (got: unknown, want: readonly number[]): void =>
  (got as number[]).forEach((y, i) => {
    expect(y / (want[i] as number)).toBeCloseTo(1, 5);
  });

test("it is not executed again", async () => {
  const f = make(await half());
  for (let i = 0; i < 4; i++) {
    const y = await f(new Tensor([[i + 1, 2]], { dtype: "float32" }));
    near(
      await y.tolist(),
      expected(
        [
          [1, 2],
          [3, 4],
        ],
        [i + 1, 2],
      ),
    );
  }
  // the kernels that read x
  expect(f.jitCache.length).toBe(2);
  expect(f.jitCache.every(({ args }) => args.length > 0)).toBe(true);
});

test("it is computed again after an assign, by hand or by another jit", async () => {
  const w = await half();
  const f = make(w);
  const x = await new Tensor([[1, -2]], { dtype: "float32" }).realize();
  for (let i = 0; i < 3; i++) await f(x);
  w.assign(
    new Tensor(
      [
        [0, 1],
        [1, 0],
      ],
      { dtype: "float32" },
    ),
  );
  near(
    await (await f(x)).tolist(),
    expected(
      [
        [0, 1],
        [1, 0],
      ],
      [1, -2],
    ),
  );
  const grow = new TinyJit(async (d: Tensor) => w.assign(w.add(d)).realize());
  const one = await new Tensor([
    [0.5, 0.5],
    [0.5, 0.5],
  ]).realize();
  for (let i = 1; i <= 4; i++) {
    await grow(one);
    const now = [
      [0, 1],
      [1, 0],
    ].map((row) => row.map((v) => v + i / 2));
    near(await (await f(x)).tolist(), expected(now, [1, -2]));
  }
  const other = new Buffer(w.device, 4, "float32").allocate();
  other.copyin(new Float32Array([2, 2, 2, 2]));
  new BufferCopy().exec([w.lazydata.base.buffer, other]);
  near(
    await (await f(x)).tolist(),
    expected(
      [
        [2, 2],
        [2, 2],
      ],
      [1, -2],
    ),
  );
});

test("what is larger than the weights stays a part of the replay", async () => {
  const w = await new Tensor(new Float32Array(64)).realize();
  const f = new TinyJit((x: Tensor) =>
    x
      .add(
        w
          .reshape([64, 1])
          .add(w.reshape([1, 64]))
          .expand([8, 64, 64])
          .exp()
          .contiguous(),
      )
      .sum(),
  );
  const x = () => Tensor.ones(8, 64, 64).contiguous();
  for (let i = 0; i < 3; i++) expect(await (await f(x())).item()).toBe(2 * 8 * 64 * 64);
  const small = new TinyJit((y: Tensor) => y.add(w.exp().contiguous()).sum());
  for (let i = 0; i < 3; i++) await small(Tensor.ones(64).contiguous());
  expect(f.jitCache.length).toBeGreaterThan(small.jitCache.length);
});

test("a function without inputs computes everything again", async () => {
  const w = await half();
  const f = new TinyJit(() => w.exp().contiguous().sum().data());
  for (let i = 0; i < 3; i++) await f();
  expect(f.jitCache.length).toBe(3);
});
