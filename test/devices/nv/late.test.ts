// The jit on a GPU that is late: runs of a graph pile up, and none may see
// another's inputs, values or memory.

import { Device, Tensor, TinyJit, Variable } from "gradloom";
import { beforeAll, expect, test } from "vitest";
import type { NVDevice } from "../../../src/devices/nv/device.ts";
import type { Sint } from "../../../src/shape/symbolic.ts";
import { LATE } from "./register.ts";

beforeAll(async () => {
  await Device.open(LATE);
});
const on = { device: LATE } as const;

test("calls that nobody waits for, with inputs that change", async () => {
  const f = new TinyJit((x: Tensor, y: Tensor) => {
    const z = x.mul(3).contiguous().add(y).contiguous();
    return [z, z.sum()] as const;
  });
  const device = Device.get(LATE) as NVDevice;
  const results: (readonly [Tensor, Tensor])[] = [];
  let ahead = 0;
  for (let i = 0; i < 40; i++) {
    results.push(await f(new Tensor([i, 2, 3], on), new Tensor([1, i, -i], on)));
    if (!device.isIdle) ahead++;
  }
  for (const [i, [z, sum]] of results.entries()) {
    expect(await z.tolist()).toEqual([3 * i + 1, 6 + i, 9 - i]);
    expect(await sum.item()).toBe(3 * i + 16);
  }
  expect(ahead).toBeGreaterThan(30);
});

test("a state that each call changes, and a value that is bound anew", async () => {
  const state = await Tensor.zeros(4, on).contiguous().realize();
  const n = Variable("n", 1, 4);
  const f = new TinyJit((x: Tensor, k: Sint) => {
    state.assign(state.add(x.shrink([[0, k]]).sum()));
  });
  const g = new TinyJit((x: Tensor) => {
    state.assign(state.mul(0.5).add(x));
  });
  let expected = 0;
  const x = await Tensor.full([4], 2, on).contiguous().realize();
  for (let i = 0; i < 30; i++) {
    const k = 1 + (i % 4);
    await f(x, n.bind(k));
    await g(x);
    expected = Math.fround(0.5 * Math.fround(expected + 2 * k) + 2);
  }
  expect(await state.tolist()).toEqual(new Array(4).fill(expected));
});
