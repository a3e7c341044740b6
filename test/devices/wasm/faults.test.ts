// What goes wrong on WASM's hardware: a kernel that traps, a worker that dies, a wait that nothing meets, a
// process that ends while work is in flight. Each is said with a name, and the device works again.

import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DeviceError, Tensor, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";
import { LAYOUT } from "../../../src/devices/wasm/layout.ts";
import { device, forever, handles, ints, launch, pause, ramp, scale, spin, trap } from "./kernels.ts";

const root = join(import.meta.dirname, "..", "..", "..");

/** Where a word of an executor stands. */
const wordOf = (id: number, field: number): number => LAYOUT.executors + id * LAYOUT.executorWords + field;

/** Runs something on the workers, so that they are up. */
async function wake(name: string): Promise<void> {
  const d = device(name);
  const x = ints(name, [0]);
  const program = spin(d, "warm", 1000);
  for (let i = 0; i < 200 && !d.hardware.workers.present; i++) {
    launch(program, [x]);
    await d.synchronize();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(d.hardware.workers.present).toBe(true);
}
/** A worker, and not this thread, is inside a kernel. */
function onWorker(name: string): boolean {
  const { memory, workers } = device(name).hardware;
  const kernelOf = (id: number) => memory.words[LAYOUT.executors + id * LAYOUT.executorWords + LAYOUT.kernel];
  return workers.ids.some((id) => kernelOf(id) !== 0);
}
async function inKernel(name: string): Promise<void> {
  for (let i = 0; i < 2000 && !onWorker(name); i++) await new Promise((resolve) => setTimeout(resolve, 2));
  expect(onWorker(name)).toBe(true);
}
const works = async (name: string): Promise<void> => {
  expect(await new Tensor([1, 2, 3], { device: name }).add(1).tolist()).toEqual([2, 3, 4]);
};

describe("a kernel that traps", () => {
  test("on a worker: who waits hears its name, the device works again", async () => {
    const d = device("WASM:40");
    await wake("WASM:40");
    const x = ints("WASM:40", [1]);
    launch(spin(d, "slow", 20_000_000), [x]);
    launch(trap(d, "E_bad"), [x]);
    launch(scale(d, "after", 2, 0), [x, x]);
    const error = await Promise.resolve()
      .then(() => d.synchronize())
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(DeviceError);
    expect(String(error)).toMatch(
      /WASM:40 compute: kernel E_bad failed on (worker \d+|the host's thread): RuntimeError: unreachable; what was queued is dropped/,
    );
    await d.synchronize(); // said once
    expect(d.isIdle).toBe(true);
    expect(x.dataSync()[0]).toBe(20_000_001); // what came before it ran, what came after did not
    await works("WASM:40");
  });

  test("on the caller: the launch itself fails", async () => {
    const d = device("WASM:41");
    const x = ints("WASM:41", [1]);
    for (let i = 0; i < 100 && d.hardware.workers.active; i++)
      await new Promise((resolve) => setTimeout(resolve, 5));
    const run = () => trap(d, "E_here").run(handles(x), { globalSize: [], localSize: [], vals: [] }, false);
    expect(run).toThrow(/WASM:41 compute: kernel E_here failed on the host's thread: RuntimeError/);
    await works("WASM:41");
  });

  test("in a part that a helper took", async () => {
    const d = device("WASM:42");
    await wake("WASM:42");
    const x = ints("WASM:42", new Array<number>(64).fill(0));
    launch(trap(d, "E_parts", 3), [x], { size: 64 });
    await expect(Promise.resolve().then(() => d.synchronize())).rejects.toThrow(/kernel E_parts failed/);
    launch(ramp(d, "ramp"), [x], { size: 64 });
    await d.synchronize();
    expect([...x.dataSync()]).toEqual(Array.from({ length: 64 }, (_, i) => i + 1));
  });

  test("a device that waited for the failed one fails too, an idle one does not notice", async () => {
    const [a, b, c] = [device("WASM:43"), device("WASM:44"), device("WASM:45")];
    await wake("WASM:43");
    const [x, y] = [ints("WASM:43", [1]), ints("WASM:44", [1])];
    launch(spin(a, "slow2", 50_000_000), [x]);
    launch(trap(a, "E_source"), [x]);
    b.waitFor(a.fence());
    launch(scale(b, "user", 2, 0), [y, y]);
    await expect(Promise.resolve().then(() => b.synchronize())).rejects.toThrow(/kernel E_source failed/);
    await expect(Promise.resolve().then(() => a.synchronize())).rejects.toThrow(/kernel E_source failed/);
    await c.synchronize();
    expect(y.dataSync()[0]).toBe(1); // not computed from what was never there
    await works("WASM:43");
    await works("WASM:44");
  });
});

describe("a worker that dies", () => {
  test("in the middle of a kernel: who waits hears which, and another worker takes its place", async () => {
    const name = "WASM:46";
    const d = device(name);
    await wake(name);
    const { workers } = d.hardware;
    const x = ints(name, [0]);
    launch(forever(d, "endless"), [x]);
    await inKernel(name); // on a worker: nobody waits yet
    const waiting = Promise.resolve(d.waitSignal(d.timelineSignal, d.timelineValue - 1));
    for (const id of workers.ids) workers.terminate(id);
    await expect(waiting).rejects.toThrow(
      /WASM:46 compute: kernel endless failed on worker \d+: the worker is gone \((exit code 1|it was ended)\)/,
    );
    await works(name);
    const y = ints(name, [0]);
    launch(spin(d, "again", 1000), [y]);
    await d.synchronize();
    expect(y.dataSync()[0]).toBe(1000);
    await wake(name);
  });

  test("asleep: nothing is lost", async () => {
    const name = "WASM:47";
    const d = device(name);
    await wake(name);
    const { workers } = d.hardware;
    for (const id of workers.ids) workers.terminate(id);
    for (let i = 0; i < 200 && workers.started; i++) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(workers.started).toBe(false);
    await works(name);
    await wake(name);
  });
  test("on its way: it is replaced, since another has come up before", async () => {
    const name = "WASM:58";
    const d = device(name);
    await wake(name);
    const { workers, memory } = d.hardware;
    for (const id of workers.ids) {
      Atomics.store(memory.words, wordOf(id, LAYOUT.state), LAYOUT.absent);
      workers.terminate(id);
    }
    for (let i = 0; i < 200 && workers.started; i++) await new Promise((resolve) => setTimeout(resolve, 5));
    expect([workers.started, workers.usable]).toEqual([false, true]);
    await works(name);
    await wake(name);
  });
});

describe("a worker that dies while this thread blocks, and hears of nothing", () => {
  test("in the middle of a kernel", async () => {
    const name = "WASM:51";
    const d = device(name);
    await wake(name);
    const { workers } = d.hardware;
    const x = ints(name, [7]);
    launch(forever(d, "endless2"), [x]);
    await inKernel(name);
    for (const id of workers.ids) workers.terminate(id);
    expect(() => x.dataSync()).toThrow(
      /WASM:51 compute: kernel endless2 failed on worker \d+: the worker is gone/,
    );
    expect(x.dataSync()[0]).toBe(7);
    await works(name);
    await wake(name); // a fresh one
  });

  test("while this thread waits for its part of a kernel", async () => {
    const name = "WASM:52";
    const d = device(name);
    await wake(name);
    const { workers, memory } = d.hardware;
    const [id] = workers.ids as [number];
    for (let i = 0; i < 1000 && workers.active; i++) await new Promise((resolve) => setTimeout(resolve, 5));
    workers.terminate(id);
    const clock = new Int32Array(new SharedArrayBuffer(4));
    for (let i = 0; i < 1000 && !workers.isGone(id); i++) Atomics.wait(clock, 0, 0, 5); // no event is heard
    expect([workers.isGone(id), workers.ids.includes(id)]).toEqual([true, true]);
    const program = ramp(d, "left");
    const generation = memory.words[(program.at >>> 2) + LAYOUT.generation] as number;
    let parts = 0;
    // while this thread computes its part, the worker comes to help and dies
    d.hardware.host.adopt(program.at, generation, () => {
      if (parts++ === 0) Atomics.store(memory.words, wordOf(id, LAYOUT.helping), 1);
    });
    memory.words[LAYOUT.threads] = 2;
    memory.words[LAYOUT.pause] = 0; // what was lost before does not count
    const x = ints(name, [0]);
    const run = () => launch(program, [x], { size: 64, worth: false });
    expect(run).toThrow(/WASM:52 compute: kernel left failed on the host's thread: the worker is gone/);
    expect(parts).toBeGreaterThan(1);
    await works(name);
    await wake(name);
  });

  test("between two commands of a queue", async () => {
    const name = "WASM:53";
    const d = device(name);
    await wake(name);
    const { workers, memory } = d.hardware;
    const [id] = workers.ids as [number];
    for (let i = 0; i < 1000 && workers.active; i++) await new Promise((resolve) => setTimeout(resolve, 5));
    const x = ints(name, [3]);
    // it has taken the lock of a ring and not done anything yet
    const rings = Atomics.load(memory.words, LAYOUT.ringCount);
    const lock = LAYOUT.rings + (rings - 2) * LAYOUT.ringWords + LAYOUT.lock; // of this device's kernels
    Atomics.store(memory.words, lock, id + 1);
    workers.terminate(id);
    expect(() => {
      launch(scale(d, "after2", 2, 0), [x, x], { worth: false });
      x.dataSync();
    }).toThrow(/WASM:53 compute: a command failed on worker \d+: the worker is gone/);
    expect(x.dataSync()[0]).toBe(3);
    await works(name);
    await wake(name);
  });
});

describe("a wait that nothing meets", () => {
  test("times out with what is queued, and the device works again", async () => {
    const d = device("WASM:48");
    const [x, gate] = [ints("WASM:48", [1]), d.allocSignal(2, "gate")];
    const program = scale(d, "never", 2, 0);
    const args = program.allocKernargs(handles(x, x), []);
    const value = d.nextTimelineValue();
    d.computeQueue().wait(gate, 3).exec(program, args, [], []).signal(d.timelineSignal, value).submit(d);
    d.copyQueue().wait(d.timelineSignal, value).signal(gate, 9).submit(d);
    const start = performance.now();
    const error = await Promise.resolve()
      .then(() => d.waitSignal(d.timelineSignal, value, 300))
      .catch((e: unknown) => e);
    expect(performance.now() - start).toBeGreaterThan(290);
    expect(error).toBeInstanceOf(DeviceError);
    expect(String(error).replaceAll(/0x\w+/g, "@")).toMatch(
      /DeviceError: WASM:48: nothing moved for 0\.\d+ s while a signal was waited for; what was queued is dropped/,
    );
    const listed = String(error).replaceAll(/0x\w+/g, "@").split("\n");
    expect(listed.slice(listed.indexOf("WASM:48 compute:"))).toEqual([
      "WASM:48 compute:",
      "  > wait gate >= 3 (is 2)",
      "    exec never args @",
      "    signal WASM:48.timeline = 1",
      "WASM:48 copy:",
      "  > wait WASM:48.timeline >= 1 (is 0)",
      "    signal gate = 9",
    ]);
    await works("WASM:48");
    expect(x.dataSync()[0]).toBe(1);
  });

  test("the setting HCQ_TIMEOUT is the limit, also of the sync form", async () => {
    const d = device("WASM:49");
    const gate = d.allocSignal(0, "gate2");
    const x = ints("WASM:49", [5]);
    const value = d.nextTimelineValue();
    d.computeQueue().wait(gate, 1).signal(d.timelineSignal, value).submit(d);
    const start = performance.now();
    withEnv({ HCQ_TIMEOUT: 0.2 }, () => expect(() => x.dataSync()).toThrow(/nothing moved for 0\.[23]/));
    expect(performance.now() - start).toBeLessThan(5000);
    expect(x.dataSync()[0]).toBe(5);
  });

  test("a kernel that takes long is not taken for one", async () => {
    const d = device("WASM:50");
    await wake("WASM:50");
    const x = ints("WASM:50", [0]);
    const program = spin(d, "long", 200_000_000);
    const start = performance.now();
    launch(program, [x]);
    await d.synchronize();
    const took = performance.now() - start;
    const value = launch(program, [x]);
    // a worker that the system has not scheduled yet looks idle
    for (let i = 0; i < 500 && !d.hardware.computing && !d.isIdle; i++) await pause(2);
    await d.waitSignal(d.timelineSignal, value, took / 2); // an idle device would be given up by then
    expect(x.dataSync()[0]).toBe(400_000_000);
  });
});

describe("a process that ends while work is in flight", () => {
  const PROGRAM = `
    import { LAYOUT } from "../../../src/devices/wasm/layout.ts";
import { device, forever, ints, launch, spin } from "./test/devices/wasm/kernels.ts";
    const d = device("WASM");
    const x = ints("WASM", [0]);
    launch(spin(d, "warm", 1000), [x]);
    await d.synchronize();
    while (!d.hardware.workers.present) await new Promise((r) => setTimeout(r, 5));
    launch(forever(d, "endless"), [x]);
    for (let i = 0; i < 5000 && !d.hardware.computing; i++) await new Promise((r) => setTimeout(r, 1));
    console.log("in flight");
  `;
  const endings = [
    ["by itself", "", 0],
    ["by process.exit", "process.exit(3);", 3],
    ["by an error", 'throw new Error("over");', 1],
  ] as const;
  test.each(endings)("%s", (_, ending, status) => {
    const file = join(root, "test", `.ending-${status}-${process.pid}.mts`);
    const text = (PROGRAM + ending).replaceAll("./test/", "./");
    writeFileSync(file, text);
    try {
      const start = performance.now();
      const run = spawnSync(process.execPath, ["--import", "tsx", file], {
        cwd: root,
        encoding: "utf8",
        timeout: 25_000,
      });
      expect(run.signal).toBe(null);
      expect(run.stdout).toBe("in flight\n");
      expect(run.status).toBe(status);
      if (status !== 1) expect(run.stderr).toBe("");
      expect(performance.now() - start).toBeLessThan(20_000);
    } finally {
      rmSync(file);
    }
  });
});
