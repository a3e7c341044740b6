import { Device, Tensor, TinyJit } from "gradloom";
import { expect, test } from "vitest";
import { MOCK } from "./register.ts";
test("smoke", async () => {
  await Device.open(MOCK);
  const a = new Tensor([1, 2, 3, 4], { device: MOCK } as never);
  const b = a.mul(2).add(1);
  expect(await b.tolist()).toEqual([3, 5, 7, 9]);
  expect(await b.sum().item()).toBe(24);
  const step = new TinyJit((x: Tensor) => x.add(1).realizeSync().mul(3).realizeSync().sum().realizeSync());
  for (let i = 0; i < 5; i++) expect(await (await step(new Tensor([i, 2, 3], { device: MOCK } as never).realizeSync())).item()).toBe(24 + 3 * i);
});
