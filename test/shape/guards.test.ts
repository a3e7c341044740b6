// Decisions about symbolic sizes are told, and can be asked again for other values.

import { Tensor, Variable } from "gradloom";
import { expect, test } from "vitest";
import { decided, type Guard, isMet, plainSize, watchSizes } from "../../src/shape/guards.ts";
import { lt, unbind } from "../../src/shape/symbolic.ts";
import { sameSize } from "../../src/shape/view.ts";

const n = Variable("n", 1, 9);
const m = Variable("m", 1, 9);
function told(run: () => void): Guard[] {
  const guards: Guard[] = [];
  const stop = watchSizes((g) => guards.push(g));
  try {
    run();
  } finally {
    stop();
  }
  return guards.map((g) => ({ ...g, x: unbind(g.x)[0] }));
}

test("what holds for the bound values alone is told", () => {
  const [equal] = told(() => expect(sameSize(n.bind(4), m.bind(4))).toBe(true)) as [Guard];
  expect(
    isMet(
      equal,
      new Map([
        [n, 3],
        [m, 3],
      ]),
    ),
  ).toBe(true);
  expect(
    isMet(
      equal,
      new Map([
        [n, 3],
        [m, 5],
      ]),
    ),
  ).toBe(false);
  const [less] = told(() => expect(decided(lt(n.bind(4), 5))).toBe(1)) as [Guard];
  expect(isMet(less, new Map([[n, 2]]))).toBe(true);
  expect(isMet(less, new Map([[n, 5]]))).toBe(false);
  expect([equal.isNumber, less.isNumber]).toEqual([false, false]);
  const x = Tensor.ones(2, 9);
  const [shrunk] = told(() => void x.shrink([null, [0, n.bind(4)]]).shrink([null, [0, 3]])) as [Guard];
  expect([3, 2].map((k) => isMet(shrunk, new Map([[n, k]])))).toEqual([true, false]);
});

test("a size that is read as a number is told, and a plain one is not", () => {
  const x = Tensor.ones(2, 9).shrink([null, [0, n.bind(4)]]);
  const guards = told(() => expect(x.shape).toEqual([2, 4]));
  expect(guards.map((g) => [g.x, g.value, g.isNumber])).toEqual([[n, 4, true]]);
  expect(
    told(() => void [plainSize(3), decided(1), sameSize(2, 2), sameSize(n, n), x.lazydata.shape]),
  ).toEqual([]);
  expect(plainSize(n)).toBeNaN();
});
