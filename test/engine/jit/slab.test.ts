// Small results of replays lie in shared blocks: they are apart, keep their values, can be given up and
// assigned to.

import { Tensor, TinyJit } from "gradloom";
import { expect, test } from "vitest";

test("results that are kept keep their values", async () => {
  const f = new TinyJit((x: Tensor) => [x.add(1), x.mul(2)] as [Tensor, Tensor]);
  const kept: [Tensor, Tensor][] = [];
  for (let i = 1; i <= 200; i++) kept.push(await f(await new Tensor([i, -i]).realize()));
  for (const [at, [a, b]] of kept.entries()) {
    const i = at + 1;
    expect(await a.tolist()).toEqual([i + 1, 1 - i]);
    expect(await b.tolist()).toEqual([2 * i, -2 * i]);
  }
});

test("a result that was disposed of is gone, its neighbours are not", async () => {
  const f = new TinyJit((x: Tensor) => [x.add(1), x.mul(2)] as [Tensor, Tensor]);
  for (let i = 0; i < 3; i++) await f(await new Tensor([i]).realize());
  const [a, b] = await f(await new Tensor([5]).realize());
  a.dispose();
  await expect(a.data()).rejects.toThrow("disposed of");
  expect(await b.tolist()).toEqual([10]);
});

test("one may be assigned to by a function that reads another", async () => {
  const make = new TinyJit((x: Tensor) => [x.add(1), x.mul(2)] as [Tensor, Tensor]);
  for (let i = 0; i < 3; i++) await make(await new Tensor([i, 1]).realize());
  const [a, b] = await make(await new Tensor([5, 6]).realize());
  const add = new TinyJit(async (to: Tensor, by: Tensor) => to.assign(to.add(by)).realize());
  for (let i = 1; i <= 4; i++) {
    await add(a, b);
    expect(await a.tolist()).toEqual([6 + i * 10, 7 + i * 12]);
  }
});
