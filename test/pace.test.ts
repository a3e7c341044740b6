// Slices of time: how often a task passes while a Step runs, by a clock that only the test moves.

import { Tensor } from "gradloom";
import { ClangRenderer } from "gradloom/render";
import { afterEach, describe, expect, test } from "vitest";
import { fastKernelSteps, PASSES } from "../src/codegen/kernel.ts";
import { runAsync, runSync, type Step } from "../src/helpers.ts";
import { addLeftover, isSpent, nextTask, PAUSE, setSlice } from "../src/pace.ts";
import { createSchedule } from "../src/schedule/schedule.ts";

let time = 0;
const clock = (): number => time;
afterEach(() => setSlice(Infinity, () => performance.now()));

/** Work of `count` parts that take 3 ms each. */
function* work(count: number): Step<number> {
  for (let i = 0; i < count; i++) {
    yield PAUSE;
    time += 3;
  }
  return count;
}
describe("a Step that could stop", () => {
  test("lets a task pass for each slice that is spent", async () => {
    setSlice(10, clock);
    let tasks = 0;
    addLeftover(() => {
      tasks++;
      return false;
    });
    // looks at 0, 3, 6, 9, 12: the fifth look comes in the next slice, and begins another
    expect(await runAsync(work(41))).toBe(41);
    expect(tasks).toBe(10);
  });
  test("without an end of slices none passes", async () => {
    expect(isSpent()).toBe(false);
    let tasks = 0;
    addLeftover(() => {
      tasks++;
      return false;
    });
    expect(await runAsync(work(41))).toBe(41);
    expect(tasks).toBe(0);
  });
  test("a sync caller goes on at once", () => {
    setSlice(10, clock);
    expect(runSync(work(41), "work")).toBe(41);
  });
});

describe("what a device left", () => {
  test("is done before the Step goes on, a slice at a time", async () => {
    setSlice(10, clock);
    let left = 0;
    addLeftover(() => {
      if (left === 0) return false;
      left--;
      time += 11;
      return left > 0;
    });
    function* step(): Step<number> {
      left = 5;
      time += 20;
      yield PAUSE;
      return left;
    }
    expect(await runAsync(step())).toBe(0);
  });
});

test("tasks that are waited for together each come", async () => {
  await Promise.all([nextTask(), nextTask(), nextTask()]);
});

test("a kernel is compiled in parts: it could stop after every pass", async () => {
  const y = Tensor.rand(64, 64).matmul(Tensor.rand(64, 64)).softmax(1);
  const items = createSchedule([y.lazydata]).filter((si) => si.ast[0]?.op === "STORE");
  for (const { ast } of items) {
    const step = fastKernelSteps(ast, ClangRenderer, false);
    let stops = 0;
    let state = step.next();
    for (; !state.done; state = step.next()) {
      expect(state.value).toBe(PAUSE);
      stops++;
    }
    expect(stops).toBeGreaterThanOrEqual(PASSES.length);
    expect(String(state.value.uops)).not.toBe("");
  }
});
