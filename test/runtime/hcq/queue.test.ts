// Seed 003: every command of a queue and its update twin, bind, signals with value and time, the timeline and
// its shadow. On WASM, the HCQ device that is always there.

import { type Buffer, HWComputeQueue, hcqCommand } from "gradloom";
import { describe, expect, test } from "vitest";
import type { HCQCompatAllocRes } from "../../../src/runtime/hcq/allocator.ts";
import { device, handles, ints, scale } from "../../devices/wasm/kernels.ts";

const dev = device("WASM:30");
const double = scale(dev, "double", 2, 0);
const next = scale(dev, "next", 1, 1);
const res = (b: Buffer) => b.handle as HCQCompatAllocRes;
const firstOf = (b: Buffer) => b.dataSync()[0];

describe("the seed's examples", () => {
  test("wait, execute, signal", async () => {
    const [out, x] = [ints("WASM:30", [0]), ints("WASM:30", [21])];
    const [toWait, toFire] = [dev.allocSignal(0, "gate"), dev.allocSignal(0, "done")];
    const args = double.allocKernargs(handles(out, x), []);
    dev.computeQueue().wait(toWait, 5).exec(double, args, [], []).signal(toFire, 7).submit(dev);
    expect([dev.readSignal(toFire), firstOf(out)]).toEqual([0, 0]);
    dev.setSignal(toWait, 4); // not enough
    expect(dev.readSignal(toFire)).toBe(0);
    dev.setSignal(toWait, 6); // at the value or above
    await dev.waitSignal(toFire, 7);
    expect(firstOf(out)).toBe(42);
    for (const s of [toWait, toFire]) dev.freeSignal(s);
    args.free();
  });

  test("a signal has a value and a timestamp", async () => {
    const signal = dev.allocSignal();
    const before = (performance.timeOrigin + performance.now()) * 1000;
    dev.computeQueue().timestamp(signal).signal(signal, 3).submit(dev);
    await dev.waitSignal(signal, 3);
    const time = dev.gpu2cpuTime(dev.readTimestamp(signal));
    expect(dev.readSignal(signal)).toBe(3);
    // the clocks of two threads differ by less than this, and it was not long ago
    expect(Math.abs(time - before)).toBeLessThan(5e6);
    const later = dev.allocSignal();
    dev.computeQueue().timestamp(later).signal(later, 1).submit(dev);
    await dev.waitSignal(later, 1);
    expect(dev.readTimestamp(later)).toBeGreaterThanOrEqual(dev.readTimestamp(signal));
  });

  test("work waits for timelineValue - 1 and signals timelineValue", async () => {
    const x = ints("WASM:30", [1]);
    const args = next.allocKernargs(handles(x, x), []);
    for (let i = 0; i < 5; i++) {
      dev
        .computeQueue()
        .wait(dev.timelineSignal, dev.timelineValue - 1)
        .exec(next, args, [], [])
        .signal(dev.timelineSignal, dev.timelineValue)
        .submit(dev);
      dev.timelineValue += 1;
    }
    await dev.waitSignal(dev.timelineSignal, dev.timelineValue - 1);
    expect(firstOf(x)).toBe(6);
    expect(dev.isIdle).toBe(true);
  });
});

describe("every command and its update", () => {
  test("the words and the text", async () => {
    const signal = dev.allocSignal(0, "s");
    const [a, b] = [ints("WASM:30", [0]), ints("WASM:30", [0])];
    const args = next.allocKernargs(handles(a, b), []);
    const compute = dev
      .computeQueue()
      .wait(signal, 1)
      .memoryBarrier()
      .exec(next, args, [], [])
      .exec(next, args, [8], [])
      .timestamp(signal)
      .signal(signal, 2);
    expect(compute.length).toBe(6);
    expect(compute.commands.map((c) => [c.name, c.offset, c.words])).toEqual([
      ["wait", 0, 3],
      ["memoryBarrier", 3, 1],
      ["exec", 4, 4],
      ["exec", 8, 4],
      ["timestamp", 12, 2],
      ["signal", 14, 3],
    ]);
    const at = (x: unknown) => (x as { at: number }).at;
    const [s, k, p] = [at(signal), at(next), at(args)];
    expect(compute.q).toEqual([1, s, 1, 3, 4, k, p, -1, 4, k, p, 8, 2, s, 0, s, 2]);
    expect(String(compute).split("\n")).toEqual([
      "wait s >= 1",
      "memoryBarrier",
      `exec next args 0x${p.toString(16)}`,
      `exec next args 0x${p.toString(16)} global 8`,
      "timestamp s",
      "signal s = 2",
    ]);
    const [to, from] = [Number(res(a).vaAddr), Number(res(b).vaAddr)];
    const copy = dev.copyQueue().wait(signal, 1).copy(res(a), res(b), 4).signal(signal, 9);
    expect(copy.q).toEqual([1, s, 1, 5, to, from, 4, 0, s, 9]);
  });

  test("updateWait, updateSignal, updateExec and updateCopy change their words and no others", async () => {
    const [s, t] = [dev.allocSignal(0, "s"), dev.allocSignal(0, "t")];
    const [a, b, c] = [ints("WASM:30", [0]), ints("WASM:30", [0]), ints("WASM:30", [0])];
    const args = next.allocKernargs(handles(a, b), []);
    const compute = dev.computeQueue().wait(s, 1).exec(next, args, [4], []).signal(s, 2);
    const words = [...compute.q];
    const changed = () => compute.q.flatMap((w, i) => (w === words[i] ? [] : [i]));
    compute.updateWait(0, undefined, 5);
    expect(changed()).toEqual([2]);
    compute.updateWait(0, t);
    expect(changed()).toEqual([1, 2]);
    compute.updateExec(1, [6], []);
    expect(changed()).toEqual([1, 2, 6]);
    compute.updateSignal(2, t, 7);
    expect(changed()).toEqual([1, 2, 6, 8, 9]);
    expect(String(compute).replaceAll(/0x\w+/g, "@").split("\n")).toEqual([
      "wait t >= 5",
      "exec next args @ global 6",
      "signal t = 7",
    ]);
    const copy = dev.copyQueue().copy(res(a), res(b), 4);
    copy.updateCopy(0, undefined, res(c));
    expect(copy.q.slice(1)).toEqual([res(a), res(c)].map((r) => Number(r.vaAddr)).concat(4));
    copy.updateCopy(0, res(b));
    expect(copy.q.slice(1)).toEqual([res(b), res(c)].map((r) => Number(r.vaAddr)).concat(4));
  });

  test("an update names the command it is for", async () => {
    const s = dev.allocSignal();
    const queue = dev.computeQueue().wait(s, 1).signal(s, 2);
    expect(() => queue.updateSignal(0, s)).toThrow(/update of signal 0: that is wait; take the index/);
    expect(() => queue.updateWait(2, s)).toThrow(/update of wait 2: the queue has 2 commands/);
    expect(() => queue.updateExec(1, [], [])).toThrow(/that is signal/);
  });

  test("a copy queue copies", async () => {
    const [a, b, s] = [ints("WASM:30", [1, 2, 3]), ints("WASM:30", [0, 0, 0]), dev.allocSignal()];
    dev.copyQueue().copy(res(b), res(a), 12).signal(s, 1).submit(dev);
    await dev.waitSignal(s, 1);
    expect([...b.dataSync()]).toEqual([1, 2, 3]);
  });

  test("a command of one's own has an index like the others", async () => {
    /** Waits for two signals at once. */
    class Rendezvous extends HWComputeQueue {
      both(a: Parameters<HWComputeQueue["wait"]>[0], b: typeof a, value: number): this {
        return hcqCommand(this, "both", (q) => {
          for (const signal of [a, b]) q.q.push(...q.backend.encode("wait", { signal, value }));
        });
      }
    }
    const [a, b, s] = [dev.allocSignal(0, "a"), dev.allocSignal(0, "b"), dev.allocSignal(0, "s")];
    const queue = new Rendezvous(dev.computeQueue().backend).both(a, b, 3).signal(s, 1);
    expect(queue.commands.map((c) => [c.name, c.offset, c.words])).toEqual([
      ["both", 0, 6],
      ["signal", 6, 3],
    ]);
    queue.updateSignal(1, undefined, 4).submit(dev);
    dev.setSignal(a, 3);
    expect(dev.readSignal(s)).toBe(0);
    dev.setSignal(b, 3);
    await dev.waitSignal(s, 4);
    expect(dev.readSignal(s)).toBe(4);
  });
});

describe("bind", () => {
  test("a bound queue is submitted again and again, with words and arguments changed in place", async () => {
    const [out, x, y] = [ints("WASM:30", [0]), ints("WASM:30", [5]), ints("WASM:30", [50])];
    const args = double.allocKernargs(handles(out, x), []);
    const queue = dev.computeQueue().wait(dev.timelineSignal, 0).exec(double, args, [], []);
    const end = queue.length;
    queue.signal(dev.timelineSignal, 0).bind(dev);
    const run = async () => {
      const value = dev.nextTimelineValue();
      queue
        .updateWait(0, dev.timelineSignal, value - 1)
        .updateSignal(end, dev.timelineSignal, value)
        .submit(dev);
      await dev.synchronize();
      return firstOf(out);
    };
    expect(await run()).toBe(10);
    args.setBuffer(1, y.handle);
    expect(await run()).toBe(100);
    expect(await run()).toBe(100);
  });

  test("what is bound is not added to, and goes to its device only", async () => {
    const s = dev.allocSignal();
    const queue = dev.computeQueue().signal(s, 1).bind(dev);
    expect(() => queue.signal(s, 2)).toThrow(/signal: the queue is bound to WASM:30; it can only be updated/);
    expect(() => queue.bind(dev)).toThrow(/bind: the queue is bound/);
    expect(() => queue.submit(device("WASM:31"))).toThrow(/bound to WASM:30, not to WASM:31/);
  });
});

describe("the timeline", () => {
  test.each([1, 2, 3])(
    "with the limit at 50, 1,000 submissions on %i devices give right results",
    async (n) => {
      const names = ["WASM:32", "WASM:33", "WASM:34"].slice(0, n);
      const devs = names.map(device);
      for (const d of devs) d.timelineLimit = 50;
      const xs = names.map((name) => ints(name, [0]));
      const programs = devs.map((d) => scale(d, `next${d.name.slice(5)}`, 1, 1));
      const eras = devs.map((d) => d.era);
      for (let i = 0; i < 1000; i++) {
        const k = i % n;
        void programs[k]?.run(
          handles(xs[k] as Buffer, xs[k] as Buffer),
          { globalSize: [], localSize: [], vals: [] },
          false,
        );
        expect(devs[k]?.timelineValue).toBeLessThanOrEqual(51);
        // what the next device holds is overwritten by a transfer: both timelines move
        if (n > 1 && i % 7 === 6) {
          const to = (k + 1) % n;
          devs[to]?.allocator.transfer(
            (xs[to] as Buffer).handle as never,
            (xs[k] as Buffer).handle as never,
            4,
          );
        }
      }
      const want = names.map(() => 0);
      for (let i = 0; i < 1000; i++) {
        const k = i % n;
        want[k] = (want[k] as number) + 1;
        if (n > 1 && i % 7 === 6) want[(k + 1) % n] = want[k] as number;
      }
      expect(await Promise.all(xs.map(async (x) => (await x.data())[0]))).toEqual(want);
      devs.forEach((d, i) => {
        expect(d.era - (eras[i] as number)).toBeGreaterThanOrEqual(Math.floor(1000 / n / 51));
      });
    },
  );

  test("the signals change places, and start at 0 again", async () => {
    const d = device("WASM:35");
    d.timelineLimit = 3;
    const [first, second] = [d.timelineSignal, d.shadowTimelineSignal];
    const fence = d.fence();
    const submit = () => {
      const value = d.nextTimelineValue();
      d.computeQueue()
        .wait(d.timelineSignal, value - 1)
        .signal(d.timelineSignal, value)
        .submit(d);
    };
    for (let i = 0; i < 3; i++) submit();
    expect([d.timelineSignal, d.timelineValue, d.era]).toEqual([first, 4, 0]);
    submit();
    expect([d.timelineSignal, d.shadowTimelineSignal, d.timelineValue, d.era]).toEqual([second, first, 2, 1]);
    await d.synchronize();
    expect(d.readSignal(d.timelineSignal)).toBe(1);
    expect(d.hasPassed(fence)).toBe(true);
    for (let i = 0; i < 3; i++) submit();
    expect([d.timelineSignal, d.timelineValue, d.era]).toEqual([first, 2, 2]);
    await d.synchronize();
    expect(d.readSignal(first)).toBe(1);
  });
});
