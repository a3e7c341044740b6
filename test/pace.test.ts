// Slices of time: how often a task passes while a Step runs, by a clock that only the test moves.

import { Tensor } from "gradloom";
import { ClangRenderer } from "gradloom/render";
import { afterEach, describe, expect, test } from "vitest";
import { fastKernelSteps, PASSES } from "../src/codegen/kernel.ts";
import { runAsync, runSync, type Step } from "../src/helpers.ts";
import type { LazyBuffer } from "../src/lazy/lazybuffer.ts";
import { addLeftover, isSpent, nextTask, PAUSE, setSlice, sliceLeft } from "../src/pace.ts";
import { orderSteps, planSteps } from "../src/schedule/memory.ts";
import { clearSchedules } from "../src/schedule/reuse.ts";
import { createSchedule, scheduleSteps } from "../src/schedule/schedule.ts";

/** What Node has set, before the tests change it. */
const ofNode = sliceLeft();
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

test("Node lets tasks pass while a graph is scheduled and compiled", async () => {
  expect(ofNode).toBeLessThanOrEqual(5);
  setSlice(5, () => ++time); // each look takes a millisecond
  let tasks = 0;
  const count = (): void => {
    tasks++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const before = time;
  let x = Tensor.rand(8, 8);
  for (let i = 0; i < 30; i++) x = x.dot(x).softmax(1).contiguous();
  await x.realize();
  clearImmediate(next);
  // a task passes for every five looks, but for the ends of slices that lie in other work
  expect(tasks).toBeGreaterThan((time - before) / 20);
  expect(time - before).toBeGreaterThan(100);
});

test("tasks that are waited for together each come", async () => {
  await Promise.all([nextTask(), nextTask(), nextTask()]);
});

test("a kernel is compiled in parts: it could stop after every pass that concerns it", async () => {
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
    expect(stops).toBeGreaterThanOrEqual(PASSES.filter((p) => p.applies === undefined).length);
    expect(String(state.value.uops)).not.toBe("");
  }
});

/** Runs a Step to its end; how often it could stop, and the most of `counted` between two such places. */
function portions<T>(step: Step<T>, counted: () => number): { value: T; stops: number; most: number } {
  let [stops, most, before] = [0, 0, counted()];
  const look = (): void => {
    most = Math.max(most, counted() - before);
    before = counted();
  };
  let state = step.next();
  for (; !state.done; state = step.next()) {
    expect(state.value).toBe(PAUSE);
    look();
    stops++;
  }
  look();
  return { value: state.value, stops, most };
}

describe("scheduling in parts", () => {
  /** An unrolled recurrent network with its gradients, and an update of the weights. */
  function training(steps: number): LazyBuffer[] {
    const ready = (...shape: number[]): Tensor => Tensor.ones(shape).contiguous().realizeSync();
    const [w, v] = [ready(8, 8), ready(8)];
    w.requiresGrad = true;
    v.requiresGrad = true;
    let h = ready(4, 8);
    for (let t = 0; t < steps; t++) h = h.dot(w).add(v).tanh().add(h.mean(1, true)).softmax(1);
    h.square().mean().backward();
    return [w, v].map((p) => p.assign(p.sub((p.grad as Tensor).mul(0.1))).lazydata);
  }
  /** Counts how often the sources of its unrealised nodes are looked at. */
  function watched(outs: readonly LazyBuffer[]): { nodes: number; looks: () => number } {
    let looks = 0;
    const nodes = new Set(outs.map((o) => o.base));
    for (const b of nodes) for (const s of b.srcs ?? []) nodes.add(s.base);
    for (const b of nodes) {
      const { srcs } = b;
      if (srcs === undefined) continue;
      const get = (): typeof srcs => {
        looks++;
        return srcs;
      };
      Object.defineProperty(b, "srcs", { get });
    }
    return { nodes: nodes.size, looks: () => looks };
  }
  const scheduled = (steps: number) => {
    clearSchedules();
    const outs = training(steps);
    const { nodes, looks } = watched(outs);
    const made = portions(scheduleSteps(outs), looks);
    const known = portions(scheduleSteps(outs), looks);
    expect(known.value.length).toBe(made.value.length);
    return { nodes, looks: looks(), made, known };
  };
  test("little is done between two places to stop, in a large graph too", () => {
    const { nodes, looks, made, known } = scheduled(20);
    expect(nodes).toBeGreaterThan(2000);
    expect(looks).toBeGreaterThan(100_000);
    // without places to stop all of it would be one piece
    for (const { most, stops } of [made, known]) {
      expect(most).toBeLessThan(1500);
      expect(stops).toBeGreaterThan(nodes / 64);
    }
  });
});

test("a captured step is planned in parts", () => {
  const lives = Array.from({ length: 1000 }, (_, i) => ({ nbytes: 64 + (i % 7), first: i, last: i + 20 }));
  expect(portions(planSteps(lives), () => 0).stops).toBeGreaterThan(12);
  const steps = lives.map((_, i) => ({ reads: i === 0 ? [] : [i - 1], writes: [i] }));
  const order = portions(
    orderSteps(
      steps,
      lives.map((l) => l.nbytes),
    ),
    () => 0,
  );
  expect(order.stops).toBeGreaterThan(12);
  expect(order.value.length).toBe(1000);
});
