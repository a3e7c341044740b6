// Reduces of one kernel over the same elements: one loop where none waits for another, one each where they
// do. Values are those of a kernel each.

import { createSchedule, dtypes, runSchedule, type Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { type Kernel, toFastKernel } from "../../../src/codegen/kernel.ts";
import { Device } from "../../../src/runtime/registry.ts";
import type { ScheduleItem } from "../../../src/schedule/schedule.ts";
import { expectValues } from "../../device/harness.ts";
import { Random } from "../../shape/random.ts";
import { gpuTarget, lowered, opsIn, runKernel, trips, wholeFloats } from "../kernels.ts";

await Promise.all(["JS", "WASM"].map((d) => Device.open(d)));

/** The one kernel that computes all of these, with what comes before it computed. */
async function joined(...ts: readonly Tensor[]): Promise<ScheduleItem> {
  const schedule = createSchedule(ts.map((t) => t.lazydata));
  const item = schedule.at(-1) as ScheduleItem;
  expect(item.outputs).toHaveLength(ts.length);
  await runSchedule(schedule.slice(0, -1));
  return item;
}
const floats = (shape: readonly number[], seed: number, device = "JS"): Tensor =>
  wholeFloats(device, shape, new Random(seed)).realizeSync();
const loads = (kernel: Kernel): number => opsIn(kernel, "LOAD").length;

describe("one loop", () => {
  test("for a sum, a largest and a sum of squares: each element is read once", async () => {
    const x = floats([3, 40], 1);
    const kernel = lowered(await joined(x.sum(1), x.max(1), x.mul(x).sum(1)));
    expect([trips(kernel), loads(kernel)]).toEqual([[3, 40], 1]);
  });
  test("over several dims that are no one loop", async () => {
    const x = floats([4, 3, 5], 2);
    const kernel = lowered(await joined(x.sum([0, 2]), x.max([0, 2])));
    expect([trips(kernel), loads(kernel)]).toEqual([[3, 4, 5], 1]);
  });
  test("for what waits for the same reduce", async () => {
    const x = floats([3, 40], 3);
    const mean = x.mean(1, true);
    const away = x.sub(mean);
    const kernel = lowered(await joined(mean, away.mul(away).sum(1), away.abs().max(1)));
    expect(trips(kernel)).toEqual([3, 40, 40]);
  });
});

describe("a loop each", () => {
  test("where one waits for the other", async () => {
    const x = floats([3, 40], 4);
    const item = createSchedule([x.var(1).lazydata]).at(-1) as ScheduleItem;
    expect(trips(lowered(item))).toEqual([3, 40, 40]);
  });
  test("where one waits for what the other waits for, and for the other", async () => {
    const x = floats([2, 24], 5);
    const top = x.max(1, true);
    const item = createSchedule([x.sub(top).exp().sum(1).log().add(x.max(1)).lazydata]).at(
      -1,
    ) as ScheduleItem;
    expect(trips(lowered(item))).toEqual([2, 24, 24]);
  });
});

test("random pairs and triples have the values that each has alone, whoever runs them", async () => {
  const r = new Random(6);
  let several = 0;
  for (let i = 0; i < 40; i++) {
    const shape = Array.from({ length: r.int(1, 3) }, () => r.pick([1, 2, 5, 8, 33]));
    const axes = shape.map((_, d) => d).filter(() => r.chance(60));
    const make = (device: string): Tensor[] => {
      const [x, y] = [floats(shape, 100 + i, device), floats(shape, 200 + i, device)];
      const away = x.sub(x.max(axes, true));
      return [x.sum(axes), x.max(axes), x.mul(y).sum(axes), away.mul(y).sum(axes)];
    };
    const apart = await Promise.all(
      make("JS").map(async (t) => Array.from((await t.data()) as Float32Array)),
    );
    const schedule = createSchedule(make("JS").map((t) => t.lazydata));
    for (const [k, item] of schedule.entries()) {
      if (item.ast[0]?.op !== "STORE") continue;
      if (item.outputs.length > 1) several++;
      await runSchedule(schedule.slice(0, k));
      const want = await runKernel(item, lowered(item));
      for (const target of [gpuTarget(32), gpuTarget(1)]) {
        const kernel = toFastKernel(item.ast, target, false);
        const what = `${i}: ${kernel.name}`;
        expectValues(dtypes.float32, await runKernel(item, kernel), want, what, { zeros: "equal" });
      }
    }
    for (const device of ["JS", "WASM"]) {
      const together = make(device);
      await runSchedule(createSchedule(together.map((t) => t.lazydata)));
      const got = await Promise.all(together.map(async (t) => Array.from((await t.data()) as Float32Array)));
      expect(got).toEqual(apart);
    }
  }
  expect(several).toBeGreaterThan(20);
});
