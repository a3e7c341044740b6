// Memory of symbolic sizes is as large as present values need, and grows in replays; tiles fit all values.

import { Device, GlobalCounters, Tensor, TinyJit } from "gradloom";
import { expect, test } from "vitest";
import { markExact, ownVariable } from "../../../src/shape/symbolic.ts";

const list = (n: number, f: (i: number) => number): Float32Array =>
  Float32Array.from({ length: n }, (_, i) => f(i));

test.each(["WASM", "CLANG", "JS"])("%s: rows of a product, softmax of its squares", async (name) => {
  if ((await Device.open(name).catch(() => undefined)) === undefined) return;
  const device = Device.get(name);
  const [n, b] = [ownVariable("grown", 16, 1 << 12), ownVariable("batch", 2, 1 << 6)];
  markExact(n);
  markExact(b);
  const w = await new Tensor(
    list(24 * 20, (i) => Math.sin(i)),
    { device: name },
  )
    .reshape(24, 20)
    .realize();
  const f = (x: Tensor): Tensor[] => {
    const y = x.matmul(w);
    const scores = y.matmul(y.transpose(-1, -2)).div(40);
    return [scores.softmax(-1).matmul(y).add(1), y.sum(-1)];
  };
  const step = new TinyJit(f);
  const compile = device.compile.bind(device);
  let compiled = 0;
  for (const [call, [k, rows]] of [
    [2, 16],
    [3, 19],
    [2, 17],
    [5, 33],
    [4, 64],
    [9, 100],
    [2, 16],
    [3, 101],
  ].entries()) {
    const data = list((k as number) * (rows as number) * 24, (i) => Math.cos(i * 0.7 + call));
    const x = await new Tensor(data, { device: name }).realize();
    device.compile = (...args) => {
      compiled++;
      return compile(...args);
    };
    compiled = 0;
    const [got, sums] = (await step(x.reshape(b.bind(k as number), n.bind(rows as number), 24))) as [
      Tensor,
      Tensor,
    ];
    device.compile = compile;
    if (call > 1) expect(compiled).toBe(0);
    const want = f(x.reshape(k as number, rows as number, 24)) as [Tensor, Tensor];
    for (const [a, e] of [
      [got, want[0]],
      [sums, want[1]],
    ] as const) {
      const [p, q] = [await a.data(), await e.data()];
      expect(p.length).toBe(q.length);
      const worst = Math.max(...Array.from(p, (v, i) => Math.abs(Number(v) - Number(q[i]))));
      expect(worst).toBeLessThan(1e-4);
    }
    // room for a value of each variable at its most would be gigabytes
    expect(step.memory?.totalApart ?? 0).toBeLessThan(1 << 24);
  }
  expect(GlobalCounters.memUsed).toBeLessThan(1 << 30);
});
