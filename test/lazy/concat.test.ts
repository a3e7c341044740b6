// Joins of very many tensors: groups are joined, so that no kernel selects from all parts.

import { createSchedule, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { toposort } from "../../src/helpers.ts";

const parts = (n: number): Tensor[] => Array.from({ length: n }, (_, i) => new Tensor([i, -i]).realizeSync());
/** How many values each kernel selects from. */
const loads = (t: Tensor): number[] =>
  createSchedule([t.lazydata]).map(
    ({ ast }) => toposort(ast, (u) => u.srcs).filter((u) => u.op === "LOAD").length,
  );

describe("concat", () => {
  test("a few parts are one kernel", () => {
    expect(loads(Tensor.stack(parts(64)))).toEqual([64]);
  });
  test("each kernel of a join of many reads few of them", () => {
    const found = loads(Tensor.stack(parts(1000)));
    expect(Math.max(...found)).toBeLessThanOrEqual(64);
    expect(found.length).toBeLessThan(50);
  });
  test("the values of a join of many, along each dim", () => {
    const expected = Array.from({ length: 130 }, (_, i) => [i, 5 - i]);
    const all = expected.map((row) => new Tensor(row).realizeSync());
    expect(Tensor.stack(all).tolistSync()).toEqual(expected);
    expect(Tensor.stack(all, 1).tolistSync()).toEqual([0, 1].map((k) => expected.map((row) => row[k])));
  });
  test("the gradient of a join of many", () => {
    const all = parts(130).map((t) => t.cast("float32"));
    for (const t of all) t.requiresGrad = true;
    Tensor.cat(all).square().sum().backward();
    expect(all.map((t) => t.grad?.tolistSync())).toEqual(all.map((_, i) => [2 * i, -2 * i]));
  });
});
