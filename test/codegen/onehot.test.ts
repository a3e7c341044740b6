// A sum that picks one term by its number is that term; a number that names none gives 0, whatever the term makes of nothing.

import { Device, Tensor } from "gradloom";
import { expect, test } from "vitest";

await Device.open("JS");

test.for(["JS", "WASM"])("%s: numbers before the first and after the last term", (device) => {
  const at = new Tensor([-1, 0, 4, 5, 100], { device }).realizeSync().reshape(5, 1);
  const x = new Tensor([10, 20, 30, 40, 50], { device }).realizeSync();
  const rows = new Tensor([1, 2, 3, 4, 5], { device }).realizeSync().reshape(5, 1);
  const picked = Tensor.arange(5).to(device).eq(at).where(x.add(rows), 0).sum(1);
  expect([...(picked.dataSync() as Int32Array)]).toEqual([0, 12, 53, 0, 0]);
});
