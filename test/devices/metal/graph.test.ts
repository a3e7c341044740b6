import { Device, Tensor, TinyJit } from "gradloom";
import { expect, test } from "vitest";
import { installFake } from "./setup.ts";

const fake = installFake({});
test("smoke", async () => {
  await Device.open("METAL");
  const a = new Tensor([1, 2, 3], { device: "METAL" });
  expect(await a.mul(2).tolist()).toEqual([2, 4, 6]);
  const step = new TinyJit(async (x: Tensor) => {
    let y = x;
    for (let i = 0; i < 10; i++) y = y.mul(2).sub(1).contiguous();
    return y.realize();
  });
  for (let i = 0; i < 6; i++)
    expect(
      await (await step(await new Tensor([1 + i, 2, 3], { device: "METAL" }).realize())).tolist(),
    ).toEqual([1 + 1024 * i, 1025, 2049]);
  const b = await new Tensor([1, 2, 3], { device: "METAL" }).to("METAL:1").add(1).tolist();
  expect(b).toEqual([2, 3, 4]);
  const c = await new Tensor([1, 2, 3], { device: "METAL", dtype: "uint8" }).to("METAL:1").add(1).tolist();
  expect(c).toEqual([2, 3, 4]);
  console.log(fake.metal.runtime.alive);
});
