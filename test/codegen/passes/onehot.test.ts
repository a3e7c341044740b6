// A sum that picks one term by its number is that term; a number that names none gives 0,
// whatever the term makes of nothing.

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

test.for(["JS", "WASM"])("%s: a sum that is none of these stays one", (device) => {
  const x = new Tensor([10, 20, 30], { device }).realizeSync();
  const count = Tensor.arange(3).to(device);
  const one = new Tensor([1], { device }).realizeSync().reshape(1, 1);
  // every other term is 7
  expect(count.eq(one).where(x, 7).sum(1).dataSync()[0]).toBe(34);
  // the number of the term depends on the term: two of them are where it says
  const places = new Tensor([0, 2, 2], { device }).realizeSync();
  expect(count.eq(places).where(x, 0).sum().dataSync()[0]).toBe(40);
});
