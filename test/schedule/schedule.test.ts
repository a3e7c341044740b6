// createSchedule as a function: it changes nothing, it does not schedule again what has run, symbolic sizes
// become arguments of one compiled kernel, and bindings that contradict each other are refused.

import {
  type Buffer,
  createSchedule,
  Device,
  dtypes,
  GlobalCounters,
  LazyBuffer,
  runScheduleSync,
  type ScheduleItem,
  SymbolicError,
  Tensor,
  Variable,
} from "gradloom";
import { describe, expect, test } from "vitest";
import type { Compiled } from "../../src/runtime/device.ts";
import { astKey } from "../../src/schedule/lazyop.ts";
import { itemsOf, kernels, opsOf, ready } from "./count.ts";

/** Everything about a schedule that matters, comparable. */
const shown = (items: readonly ScheduleItem[]) =>
  items.map((si) => ({
    ast: astKey(si.ast),
    outputs: [...si.outputs],
    inputs: [...si.inputs],
    vars: [...si.varVals].map(([v, n]) => `${v.name}=${n}`),
  }));

describe("createSchedule changes nothing", () => {
  test("asked twice, the answer is the same, buffers included", () => {
    const x = ready([6, 5]);
    const t = x
      .softmax()
      .dot(ready([5, 4]))
      .add(1);
    const first = shown(itemsOf(t));
    const second = shown(itemsOf(t));
    expect(first.length).toBe(2);
    second.forEach((s, i) => {
      expect(s.ast).toBe(first[i]?.ast);
      expect(s.outputs.every((b, j) => b === first[i]?.outputs[j])).toBe(true);
      expect(s.inputs.every((b, j) => b === first[i]?.inputs[j])).toBe(true);
    });
  });
  test("nothing is allocated, run or marked", () => {
    const a = new Tensor([1, 2, 3]);
    const t = a.add(1).sum();
    const before = {
      mem: GlobalCounters.memUsed,
      buffers: GlobalCounters.buffers,
      k: GlobalCounters.kernelCount,
    };
    const items = itemsOf(t);
    expect({
      mem: GlobalCounters.memUsed,
      buffers: GlobalCounters.buffers,
      k: GlobalCounters.kernelCount,
    }).toEqual(before);
    expect(items.every((si) => si.outputs.every((b) => !b.isAllocated))).toBe(true);
    expect(t.lazydata.base.realized).toBeUndefined();
    expect(a.lazydata.base.realized).toBeUndefined();
    expect(a.lazydata.base.srcs).toHaveLength(1);
    expect(t.itemSync()).toBe(9);
  });
  test("an assign is only planned, too", () => {
    const a = ready([4]);
    const old = [...a.dataSync()];
    a.assign(a.add(1));
    expect(opsOf(a)).toEqual(["STORE"]);
    expect(opsOf(a)).toEqual(["STORE"]);
    expect(a.lazydata.base.realized).toBeUndefined();
    expect([...a.dataSync()]).toEqual(old.map((n) => Math.fround(Number(n) + 1)));
  });
  test("an empty list, and what is realised already, give an empty schedule", () => {
    expect(createSchedule([])).toEqual([]);
    expect(itemsOf(ready([3]))).toEqual([]);
  });
});

describe("after a run", () => {
  test("sources are gone, buffers are there, and the second evaluation schedules less", () => {
    const [a, b] = [new Tensor([1, 2]), new Tensor([3, 4])];
    expect(opsOf(a.dot(b).to("EXT"))).toEqual(["COPY", "COPY", "STORE", "COPY"]);
    const first = a.dot(b);
    expect(first.itemSync()).toBe(11);
    for (const t of [a, b, first]) {
      expect(t.lazydata.base.srcs).toBeUndefined();
      expect(t.lazydata.base.realized?.isAllocated).toBe(true);
    }
    expect(opsOf(a.dot(b).to("EXT"))).toEqual(["STORE", "COPY"]);
    expect(opsOf(first.to("EXT"))).toEqual(["COPY"]);
    expect(opsOf(first)).toEqual([]);
  });
  test("what was fused away is computed again when it is asked for, with the same value", () => {
    const x = ready([4, 4]);
    const inner = x.mul(3);
    const total = inner.sum();
    total.realizeSync();
    expect(inner.lazydata.base.realized).toBeUndefined();
    expect(kernels(inner)).toBe(1);
    expect([...inner.dataSync()]).toEqual([...x.dataSync()].map((n) => Math.fround(Number(n) * 3)));
  });
  test("a schedule can be run item by item by hand", () => {
    const t = ready([3], { dtype: "int32" }).mul(0).add(7).contiguous().add(1);
    const items = itemsOf(t);
    expect(items).toHaveLength(2);
    for (const si of items) runScheduleSync([si]);
    expect(t.lazydata.base.realized).toBeDefined();
    expect(t.tolistSync()).toEqual([8, 8, 8]);
  });
  test("a half-run schedule leaves the rest to be scheduled", () => {
    const inner = ready([3]).add(1).contiguous();
    const t = inner.mul(2);
    const [first] = itemsOf(t);
    runScheduleSync([first as ScheduleItem]);
    expect(inner.lazydata.base.realized).toBeDefined();
    expect(kernels(t)).toBe(1);
  });
});

/** Counts what a device compiles while `f` runs. */
async function compiles(name: string, f: () => Promise<void>): Promise<number> {
  const device = (await Device.open(name)) as { -readonly [K in keyof Compiled]: Compiled[K] };
  const original = device.compile;
  let n = 0;
  device.compile = (...args) => {
    n++;
    return original.apply(device, args);
  };
  try {
    await f();
  } finally {
    device.compile = original;
  }
  return n;
}

describe("symbolic sizes", () => {
  const n = Variable("n", 1, 10);
  const data = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
  const x = new Tensor(data).realizeSync();

  test("the shape shows the bound value, the item carries it", () => {
    const t = x.shrink([[0, n.bind(5)]]);
    expect(t.shape).toEqual([5]);
    expect(t.size).toBe(5);
    const [item] = itemsOf(t.mul(2));
    expect([...(item?.varVals ?? [])].map(([v, k]) => [v.name, k])).toEqual([["n", 5]]);
  });

  for (const device of ["WASM", "JS", "CLANG"]) {
    test(`${device}: one compiled kernel serves every binding`, async ({ skip }) => {
      const why = await Device.open(device).then(
        () => "",
        (e: Error) => e.message,
      );
      skip(why !== "", why);
      const t = await x.to(device).realize();
      const table = await t.reshape(10, 1).mul(t.reshape(1, 10)).realize();
      const made = await compiles(device, async () => {
        for (const k of [5, 1, 10, 3, 7]) {
          const b = n.bind(k);
          const part = t.shrink([[0, b]]);
          const own = data.slice(0, k);
          const sum = own.reduce((p, q) => p + q, 0);
          expect(await part.mul(2).tolist()).toEqual(own.map((d) => d * 2));
          expect(await part.mul(2).sum().item()).toBe(2 * sum);
          expect(await part.flip(0).tolist()).toEqual(own.toReversed());
          expect(await part.max().item()).toBe(k);
          const rows = table.shrink([[0, b], null]);
          expect(await rows.sum(1).tolist()).toEqual(own.map((d) => d * 55));
          expect(await rows.sum(0).tolist()).toEqual(data.map((d) => d * sum));
          expect(await rows.reshape(b, 2, 5).permute(2, 0, 1).tolist()).toEqual(
            [0, 1, 2, 3, 4].map((c) => own.map((d) => [d * (c + 1), d * (c + 6)])),
          );
          const flat = own.flatMap((d) => data.map((e) => -d * e));
          expect(await rows.flatten().neg().tolist()).toEqual(flat);
          expect(await rows.reshape(-1, 5).neg().reshape(-1).tolist()).toEqual(flat);
        }
      });
      expect(made).toBe(9);
    });
  }

  test("a symbolic offset moves a window over a buffer", async () => {
    const at = Variable("at", 0, 7);
    const made = await compiles("WASM", async () => {
      for (const k of [0, 3, 7]) {
        const from = at.bind(k);
        const window = x.shrink([[from, from.add(3)]]);
        expect(window.shape).toEqual([3]);
        expect(await window.mul(10).tolist()).toEqual(data.slice(k, k + 3).map((d) => d * 10));
      }
    });
    expect(made).toBe(1);
  });
  test("the mean and the variance over a symbolic size count it in the kernel: one each serves every binding", async () => {
    const data = [3, 1, 4, 1, 5, 9, 2, 6];
    const all = new Tensor(data, { dtype: "float32" });
    const wide = all.reshape(8, 1).expand(8, 2).contiguous();
    await Tensor.realize(all, wide);
    const n = Variable("length", 2, 8);
    const made = await compiles("WASM", async () => {
      for (const k of [2, 5, 8]) {
        const own = data.slice(0, k);
        const mean = own.reduce((p, q) => p + q, 0) / k;
        const squares = own.reduce((s, d) => s + (d - mean) ** 2, 0);
        const part = all.shrink([[0, n.bind(k)]]);
        expect(await part.mean().item()).toBeCloseTo(mean, 5);
        expect(await part.var().item()).toBeCloseTo(squares / (k - 1), 5);
        const rows = wide.shrink([[0, n.bind(k)], null]);
        for (const m of (await rows.mean(0, true).tolist()) as number[][]) expect(m[1]).toBeCloseTo(mean, 5);
      }
    });
    expect(made).toBe(3);
  });
  test("two bindings of one variable in one kernel are refused, and named", () => {
    const at = Variable("at", 0, 7);
    const window = (k: number) => {
      const from = at.bind(k);
      return x.shrink([[from, from.add(3)]]);
    };
    const clash = window(1).add(window(2));
    expect(() => clash.realizeSync()).toThrow(SymbolicError);
    expect(() => clash.realizeSync()).toThrow(/at is bound to [12] and to [12] in one kernel/);
    // the program goes on, and two kernels may have different bindings
    expect(window(1).add(window(1)).tolistSync()).toEqual([4, 6, 8]);
    expect(window(1).sum().add(window(2).sum().contiguous()).itemSync()).toBe(9 + 12);
  });
  test("shapes that are bound differently do not broadcast", () => {
    expect(() => x.shrink([[0, n.bind(3)]]).add(x.shrink([[0, n.bind(4)]]))).toThrow(
      /add: shapes .*n.*do not broadcast/,
    );
  });
  test("a variable without a value is refused, and named", () => {
    const open = x.shrink([[0, n]]).sum();
    expect(() => open.realizeSync()).toThrow(SymbolicError);
    expect(() => open.realizeSync()).toThrow(/\bn\b.*bind/);
    expect(x.sum().itemSync()).toBe(55);
  });
  test("a value outside the range is refused", () => {
    expect(() => n.bind(0)).toThrow(SymbolicError);
    expect(() => n.bind(11)).toThrow(/n cannot be 11.*1 to 10/);
  });
});

describe("what a CUSTOM reads is computed before it, and lies in one buffer in order", () => {
  const ones = (): Tensor =>
    new Tensor(
      [
        [1, 2],
        [3, 4],
      ],
      { device: "JS" },
    );
  test.each<[string, () => Tensor, number[]]>([
    ["a value that has to be computed", () => ones().add(1), [2, 3, 4, 5]],
    ["a view of such a value", () => ones().add(1).transpose(), [2, 4, 3, 5]],
    ["a view of memory", () => ones().transpose(), [1, 3, 2, 4]],
    [
      "a part of memory",
      () =>
        Tensor.cat([ones(), ones()]).shrink([
          [1, 3],
          [0, 2],
        ]),
      [3, 4, 1, 2],
    ],
    ["a constant", () => Tensor.full([2, 2], 7, { device: "JS", dtype: "int32" }), [7, 7, 7, 7]],
  ])("%s", async (_, make, values) => {
    const copy = ([out, src]: readonly Buffer[]): void => void out?.copyin((src as Buffer).asBuffer());
    const node = LazyBuffer.loadop("CUSTOM", [4], dtypes.int32, "JS", copy, [make().lazydata]);
    expect(createSchedule([node]).at(-1)?.ast[0]?.op).toBe("CUSTOM");
    expect(await new Tensor(node).tolist()).toEqual(values);
    expect(await Tensor.customOp(copy, [4], [make()]).tolist()).toEqual(values);
  });
});
