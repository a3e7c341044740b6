// The code examples of seed 004, each as a TypeScript twin that reads like it and gives the same output, and
// what the text beside them states of TinyJit, the CacheCollector and the graphs of a device. Everything else
// about TinyJit: test/engine/jit.

import {
  Buffer,
  BufferCopy,
  CacheCollector,
  CompiledRunner,
  createSchedule,
  dtypes,
  GlobalCounters,
  HCQGraph,
  type ScheduleItem,
  Tensor,
  TinyJit,
  Trace,
  Variable,
  withEnv,
} from "gradloom";
import { afterEach, describe, expect, test, vi } from "vitest";

const opsOf = (schedule: readonly ScheduleItem[]) => schedule.map((si) => si.ast[0]?.op);
afterEach(() => vi.restoreAllMocks());

describe("the three calls", () => {
  test("call 0 acts as normal, call 1 captures, later ones run from the cache", async () => {
    let fxn = 0;
    const jit = new TinyJit((x: Tensor) => {
      fxn++;
      return x.add(1); // what is returned is realised, as by corealize(get_parameters(ret))
    });
    const seen: unknown[] = [];
    for (let i = 0; i < 4; i++) {
      const ret = await jit(new Tensor([i]));
      seen.push([
        await ret.item(),
        ret.lazydata.base.realized !== undefined,
        jit.cnt,
        fxn,
        jit.jitCache.length,
      ]);
    }
    expect(seen).toEqual([
      [1, true, 1, 1, 0],
      [2, true, 2, 2, 1],
      [3, true, 3, 2, 1],
      [4, true, 4, 2, 1],
    ]);
  });

  test("run(), run(), run(): the third is not run, and the result is the same", async () => {
    const print = vi.spyOn(console, "log").mockImplementation(() => {});
    const a = new Tensor([1, 2]);
    const b = new Tensor([3, 4]);

    const run = TinyJit(async () => {
      const result = await a.dot(b).data();
      console.log("run");
      return result;
    });

    const counts: number[][] = [];
    const results: number[][] = [];
    for (let i = 0; i < 3; i++) {
      GlobalCounters.reset();
      results.push([...(await run())]);
      counts.push([GlobalCounters.kernelCount, GlobalCounters.copyCount]);
    }
    expect(results).toEqual([[11], [11], [11]]);
    expect(print).toHaveBeenCalledTimes(2);
    // the two copies in are made once; the cache holds the kernel and the copy out
    expect(counts).toEqual([
      [1, 3],
      [1, 1],
      [1, 1],
    ]);
    expect(run.jitCache.map((ji) => ji.runner.constructor)).toEqual([CompiledRunner, BufferCopy]);
    const [kernel, copy] = run.jitCache;
    // a kernel with its one output and its two inputs, then the copy of that output
    expect([kernel?.args.length, copy?.args.length]).toEqual([3, 2]);
    expect(copy?.args[1]).toEqual(kernel?.args[0]);
  });
});

describe("the CacheCollector", () => {
  test("start, exec, finish: whatever is executed in between is in the cache, with its buffers", async () => {
    const cpu = new Buffer("EXT", 2, dtypes.int).allocate(new Int32Array([1, 2]));
    const gpu = new Buffer("WASM", 2, dtypes.int).allocate();
    const trace = new Trace();
    CacheCollector.start(trace);
    CacheCollector.within(trace, () => new BufferCopy().exec([gpu, cpu]));
    const cache = CacheCollector.finish(trace);
    expect(cache.map((ji) => [ji.runner?.constructor, ji.item.outputs, ji.item.inputs])).toEqual([
      [BufferCopy, [gpu], [cpu]],
    ]);
    // afterwards nobody listens
    new BufferCopy().exec([gpu, cpu]);
    expect(trace.items.length).toBe(1);
  });

  test("exec inside a jitted function is captured as what a schedule runs is", async () => {
    const cpu = new Buffer("EXT", 2, dtypes.int).allocate();
    const gpu = new Buffer("WASM", 2, dtypes.int).allocate();
    const run = new TinyJit(() => new BufferCopy().exec([gpu, cpu]));
    const seen: unknown[] = [];
    for (let i = 1; i <= 4; i++) {
      cpu.copyin(new Int32Array([i, -i]));
      await run();
      seen.push([...gpu.dataSync()]);
    }
    expect(seen).toEqual([1, 2, 3, 4].map((i) => [i, -i]));
    expect(run.jitCache.map((ji) => ji.runner.name)).toEqual(["copy"]);
  });

  test("didn't JIT anything!", async () => {
    const run = new TinyJit(() => 1);
    await run();
    await expect(run()).rejects.toThrow(/didn't JIT anything!/);
  });
});

describe("what a replay asks of its inputs", () => {
  test("buffers are replaced by those of the call", async () => {
    const f = new TinyJit((x: Tensor, y: Tensor) => x.sub(y));
    const out: unknown[] = [];
    for (const [x, y] of [
      [1, 2],
      [3, 4],
      [9, 5],
      [20, 1],
    ] as const)
      out.push(await (await f(new Tensor([x]), new Tensor([y]))).item());
    expect(out).toEqual([-1, -1, 4, 19]);
  });

  test("a mismatch of input tensors says what was expected and what came", async () => {
    const f = new TinyJit((x: Tensor) => x.add(1));
    for (let i = 0; i < 2; i++) await f(new Tensor([1, 2]));
    for (const [other, message] of [
      [new Tensor([1, 2, 3]), "input 0: expected shape [2], got shape [3]"],
      [new Tensor([1.5, 2]), "input 0: expected dtype int32, got dtype float32"],
      [new Tensor([1, 2], { device: "JS" }), "input 0: expected device WASM, got device JS"],
    ] as const)
      await expect(f(other)).rejects.toThrow(`TinyJit: mismatch of inputs: ${message}`);
    expect(await (await f(new Tensor([5, 6]))).tolist()).toEqual([6, 7]);
  });

  test("values of variables are those of the call; a variable that is missing is a mismatch", async () => {
    const f = new TinyJit((x: Tensor) => x.sum());
    const x = await Tensor.arange(10).contiguous().realize();
    const first = (k: number) => x.shrink([[0, Variable("k", 1, 10).bind(k)]]);
    const out: unknown[] = [];
    for (const k of [2, 3, 4, 10]) out.push(await (await f(first(k))).item());
    expect(out).toEqual([1, 3, 6, 45]);
    await expect(f(x)).rejects.toThrow(/mismatch of inputs/);
  });
});

describe("the graph of a device", () => {
  const replayed = async (JIT: number) => {
    const run = vi.spyOn(HCQGraph.prototype, "run");
    const f = new TinyJit((x: Tensor) => x.add(1).sum().add(x));
    const values = await withEnv({ JIT }, async () => {
      const all: unknown[] = [];
      for (let i = 0; i < 4; i++) all.push(await (await f(await new Tensor([i, 1]).realize())).tolist());
      return all;
    });
    return [values, run.mock.calls.length];
  };
  const values = [0, 1, 2, 3].map((i) => [2 * i + 3, i + 4]);

  test("the items are condensed into a graph executor", async () => {
    expect(await replayed(1)).toEqual([values, 2]);
  });
  test("JIT=2: they are executed one by one", async () => {
    expect(await replayed(2)).toEqual([values, 0]);
  });
  test("DEBUG=1: what was captured", async () => {
    const print = vi.spyOn(console, "log").mockImplementation(() => {});
    const f = new TinyJit((x: Tensor) => x.add(1));
    await withEnv({ DEBUG: 1 }, async () => {
      for (let i = 0; i < 2; i++) await f(new Tensor([i]));
    });
    const lines = print.mock.calls.map(([line]) => String(line)).filter((line) => line.startsWith("JIT"));
    expect(lines).toEqual([expect.stringMatching(/^JIT captured 1 kernels with 1 inputs/)]);
  });
});

describe("what is spared without a jit", () => {
  test("three runs: first everything, then only the kernel and the copy out", async () => {
    const a = new Tensor([1, 2]);
    const b = new Tensor([3, 4]);

    const scheduled: (string | undefined)[][] = [];
    const run = async () => {
      const result = a.dot(b);
      scheduled.push(opsOf(createSchedule([result.to("EXT").lazydata])));
      GlobalCounters.reset();
      const value = await result.item();
      return [value, GlobalCounters.kernelCount, GlobalCounters.copyCount];
    };

    expect(await run()).toEqual([11, 1, 3]);
    expect(await run()).toEqual([11, 1, 1]);
    expect(await run()).toEqual([11, 1, 1]);
    const later = ["STORE", "COPY"];
    expect(scheduled).toEqual([["COPY", "COPY", "STORE", "COPY"], later, later]);
  });

  test("the COPY before and after: srcs go, the buffer is allocated, realized is the buffer", async () => {
    const a = new Tensor([1, 2]);
    const b = new Tensor([3, 4]);
    const c = a.dot(b);
    const nodes = [a.lazydata, b.lazydata, c.lazydata.base];
    for (const lb of nodes) {
      expect(lb.srcs).not.toBeUndefined();
      expect([lb.realized, lb.buffer.isAllocated]).toEqual([undefined, false]);
    }
    const buffers = nodes.map((lb) => lb.buffer);
    await c.realize();
    for (const [i, lb] of nodes.entries()) {
      expect([lb.srcs, lb.buffer.isAllocated]).toEqual([undefined, true]);
      expect(lb.realized).toBe(buffers[i]); // the buffer that the schedule spoke of
    }
    // the view over SUM: not realised itself, its base is
    expect(c.lazydata.realized).toBeUndefined();
    expect(c.lazydata.base.realized).toBe(buffers[2]);
    expect(createSchedule([c.lazydata])).toEqual([]);
  });
});
