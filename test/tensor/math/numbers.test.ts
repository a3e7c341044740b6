// Functions of whole numbers at the ends of their types.

import { Tensor } from "gradloom";
import { expect, test } from "vitest";

test("gcd of the smallest integer is positive where a positive one exists", async () => {
  const smallest = -(2 ** 31);
  const a = new Tensor([smallest, smallest, smallest + 1, smallest, 12, -12], { dtype: "int32" });
  const b = new Tensor([smallest + 1, 6, smallest, 0, -18, 0], { dtype: "int32" });
  expect(await a.gcd(b).tolist()).toEqual([1, 2, 1, smallest, 6, 12]);
});
