// What awaiting values leaves to the rest of a program.

import { Tensor } from "gradloom";
import { expect, test } from "vitest";

test("a program that only awaits tensors lets tasks pass, and with them its old nodes go", async () => {
  const x = await Tensor.ones(4).contiguous().realize();
  const step = (): Promise<Tensor> => {
    let y = x;
    for (let i = 0; i < 100; i++) y = y.add(i);
    return y.realize();
  };
  await step();
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  for (let i = 0; i < 50; i++) await step();
  isDone = true;
  // 100 nodes a step and more, and a task after each 500
  expect(turns).toBeGreaterThanOrEqual(9);
});
