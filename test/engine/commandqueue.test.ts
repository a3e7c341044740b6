// The command queue of seed 000: what lies in the queues, in which order it runs from every starting order,
// what waits for what, that it never gets stuck, and that a failing item leaves the graph as it was. Devices
// are several instances of JS and WASM.

import {
  ArgumentError,
  Buffer,
  CommandQueue,
  clearKernelCache,
  createSchedule,
  Device,
  dtypes,
  GlobalCounters,
  OutOfMemoryError,
  resetKernelNames,
  runSchedule,
  runScheduleSync,
  type ScheduleItem,
  type SyncItem,
  Tensor,
  type WaitItem,
  withEnv,
} from "gradloom";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { flushFreed } from "../../src/runtime/cache.ts";
import { lazyOp } from "../../src/schedule/lazyop.ts";

const DEVICES = ["JS", "JS:1", "WASM", "WASM:1"];
beforeAll(async () => {
  for (const d of DEVICES) await Device.open(d);
});
afterEach(() => vi.restoreAllMocks());

function permutations<T>(xs: readonly T[]): T[][] {
  if (xs.length <= 1) return [[...xs]];
  return xs.flatMap((x, i) => permutations(xs.toSpliced(i, 1)).map((rest) => [x, ...rest]));
}

const schedule = (...ts: readonly Tensor[]) => createSchedule(ts.map((t) => t.lazydata));

/**
 * Runs the queue and tells, for each thing executed, what it was and what lay in the queues at that moment.
 */
async function trace(queue: CommandQueue, start?: readonly string[]) {
  const events: { what: string; left: string }[] = [];
  vi.spyOn(console, "log").mockImplementation((line: string) => {
    // on a busy machine there is a line of what it waits for, too
    const [, device, name] = /^\*\*\* (\S+)\s+\d*\s+(\w+)/.exec(line) ?? [];
    if (name !== undefined) events.push({ what: `${name} on ${device}`, left: String(queue) });
  });
  try {
    await withEnv({ DEBUG: 2 }, () => queue.run(start));
  } finally {
    vi.restoreAllMocks();
  }
  return events;
}
const whatOf = (events: readonly { what: string }[]) => events.map((e) => e.what);

/**
 * The seed's METAL computes, its CLANG is the host that gets the result. Where the two wait for each other's
 * signals, the sync is a signal and no stop, and the copy goes without the host.
 */
const ROLES = [
  { metal: "JS", clang: "JS:1", sync: "synchronize", copy: "copy" },
  { metal: "WASM", clang: "CLANG", sync: "signal", copy: "xfer" },
];

describe.each(ROLES)(
  "the dot product on EXT, $metal as METAL and $clang as CLANG",
  ({ metal, clang, ...names }) => {
    const missing = Device.open(clang).then(
      () => "",
      (e: Error) => e.message,
    );
    const dot = () => {
      const a = new Tensor([1, 2], { device: metal });
      const b = new Tensor([3, 4], { device: metal });
      return a.dot(b).to(clang);
    };

    test("the queues", async ({ skip }) => {
      const why = await missing;
      skip(why !== "", why);
      const queue = new CommandQueue(schedule(dot()));
      expect([...queue.q.keys()]).toEqual([metal, "EXT", clang]); // as in the seed: METAL, EXT, CLANG
      expect(String(queue).split("\n")).toEqual([
        `${metal}: WAIT(EXT) COPY(${metal} <- EXT) COPY(${metal} <- EXT) STORE(1 out, 2 in) SYNC(${metal})`,
        "EXT: SYNC(EXT)",
        `${clang}: WAIT(${metal}) COPY(${clang} <- ${metal})`,
      ]);
      const [[wait], [sync]] = [queue.q.get(metal) ?? [], queue.q.get("EXT") ?? []];
      expect((wait as WaitItem).sync).toBe(sync);
      const [[result], done] = [queue.q.get(clang) ?? [], queue.q.get(metal)?.at(-1)];
      expect((result as WaitItem).sync).toBe(done);
      expect([(sync as SyncItem).waiters, (done as SyncItem).waiters]).toEqual([1, 1]);
    });

    test("the same order from every starting order", async ({ skip }) => {
      const why = await missing;
      skip(why !== "", why);
      const starts = permutations([metal, "EXT", clang]);
      expect(starts).toHaveLength(6);
      for (const start of starts) {
        resetKernelNames();
        clearKernelCache();
        const res = dot();
        const queue = new CommandQueue(schedule(res));
        const events = await trace(queue, start);
        expect(whatOf(events), `from ${start}`).toEqual([
          "synchronize on EXT",
          `copy on ${metal}`,
          `copy on ${metal}`,
          `r_2 on ${metal}`,
          `${names.sync} on ${metal}`,
          `${names.copy} on ${clang}`,
        ]);
        expect([...queue.q.values()]).toEqual([[], [], []]);
        expect(await res.item()).toBe(11);
      }
    });

    test("the walk through the queues: what is left whenever something runs", async ({ skip }) => {
      const why = await missing;
      skip(why !== "", why);
      const lines = (m: string, ext: string, c: string) => `${metal}: ${m}\nEXT: ${ext}\n${clang}: ${c}`;
      const copy = `COPY(${metal} <- EXT)`;
      const rest = `STORE(1 out, 2 in) SYNC(${metal})`;
      const out = `COPY(${clang} <- ${metal})`;
      for (const start of permutations([metal, "EXT", clang])) {
        const events = await trace(new CommandQueue(schedule(dot())), start);
        expect(
          events.map((e) => e.left),
          `from ${start}`,
        ).toEqual([
          // both WAITs are taken from their queues before the first SYNC is looked at in earnest
          lines(`${copy} ${copy} ${rest}`, "", out),
          lines(`${copy} ${copy} ${rest}`, "", out),
          lines(`${copy} ${rest}`, "", out),
          lines(rest, "", out),
          lines("", "", out),
          lines("", "", out),
        ]);
      }
    });
  },
);

// ---- building: syncs are shared, waits are not repeated ----

const buffer = (device: string) => new Buffer(device, 2, dtypes.int);
const item = (op: "COPY" | "EMPTY", output: Buffer, ...inputs: Buffer[]): ScheduleItem => ({
  ast: [lazyOp(op, [], undefined, dtypes.int, [2])],
  outputs: [output],
  inputs,
  varVals: new Map(),
  lazies: [],
});
const built = (...items: ScheduleItem[]) => String(new CommandQueue(items)).split("\n");

describe("waits and syncs", () => {
  const [ext, js, js1] = [buffer("EXT"), buffer("JS"), buffer("JS:1")];

  test("copies that follow one another share the sync and the wait", () => {
    const twice = [item("COPY", js, ext), item("COPY", buffer("JS"), ext)];
    expect(built(...twice)).toEqual(["JS: WAIT(EXT) COPY(JS <- EXT) COPY(JS <- EXT)", "EXT: SYNC(EXT)"]);
  });

  test("two devices wait for one sync", () => {
    const queue = new CommandQueue([item("COPY", js, ext), item("COPY", js1, ext)]);
    expect(String(queue).split("\n")).toEqual([
      "JS: WAIT(EXT) COPY(JS <- EXT)",
      "EXT: SYNC(EXT)",
      "JS:1: WAIT(EXT) COPY(JS:1 <- EXT)",
    ]);
    expect(queue.q.get("EXT")?.[0]).toMatchObject({ kind: "sync", waiters: 2 });
  });

  test("after new work there is a new sync, and a wait for it", () => {
    const more = buffer("JS");
    expect(
      built(
        item("EMPTY", js),
        item("COPY", js1, js),
        item("EMPTY", more),
        item("COPY", buffer("JS:1"), more),
      ),
    ).toEqual([
      "JS: EMPTY(1 out, 0 in) SYNC(JS) EMPTY(1 out, 0 in) SYNC(JS)",
      "JS:1: WAIT(JS) COPY(JS:1 <- JS) WAIT(JS) COPY(JS:1 <- JS)",
    ]);
  });

  test("without new work the old sync serves a later copy too", () => {
    const other = buffer("JS:1");
    expect(
      built(item("EMPTY", js), item("COPY", js1, js), item("EMPTY", other), item("COPY", buffer("JS:1"), js)),
    ).toEqual([
      "JS: EMPTY(1 out, 0 in) SYNC(JS)",
      "JS:1: WAIT(JS) COPY(JS:1 <- JS) EMPTY(1 out, 0 in) COPY(JS:1 <- JS)",
    ]);
  });

  test("overwriting what another device copies from waits for the copy; once it has, no more", () => {
    expect(built(item("COPY", js1, js), item("EMPTY", js), item("EMPTY", js))).toEqual([
      "JS:1: WAIT(JS) COPY(JS:1 <- JS) SYNC(JS:1)",
      "JS: SYNC(JS) WAIT(JS:1) EMPTY(1 out, 0 in) EMPTY(1 out, 0 in)",
    ]);
  });

  test("copied by two devices: a wait for each", () => {
    const wasm = buffer("WASM");
    expect(built(item("COPY", js1, js), item("COPY", wasm, js), item("EMPTY", js))).toEqual([
      "JS:1: WAIT(JS) COPY(JS:1 <- JS) SYNC(JS:1)",
      "JS: SYNC(JS) WAIT(JS:1) WAIT(WASM) EMPTY(1 out, 0 in)",
      "WASM: WAIT(JS) COPY(WASM <- JS) SYNC(WASM)",
    ]);
  });

  test("a copy into a buffer that its own source still copies from: one wait covers both", () => {
    // JS:1 reads js, then js is filled from JS:1 again
    const back = buffer("JS:1");
    expect(built(item("COPY", js1, js), item("COPY", js, back))).toEqual([
      "JS:1: WAIT(JS) COPY(JS:1 <- JS) SYNC(JS:1)",
      "JS: SYNC(JS) WAIT(JS:1) COPY(JS <- JS:1)",
    ]);
  });

  test("a kernel on two devices is our own bug", () => {
    expect(() => built(item("EMPTY", js, js1))).toThrow(/internal: one kernel on several devices: JS, JS:1/);
  });
});

test("devices that do not depend on each other get an item each, whichever is looked at first", async () => {
  const devices = ["JS", "JS:1", "WASM"];
  for (const start of permutations(devices)) {
    const ran: string[] = [];
    const log = (name: string, device: string, inputs: Tensor[]) =>
      Tensor.customOp(() => void ran.push(name), [1], inputs, { device });
    const ends = devices.map((d) => log(`${d} second`, d, [log(`${d} first`, d, [])]));
    await new CommandQueue(schedule(...ends)).run(start);
    expect(ran, `from ${start}`).toEqual(["first", "second"].flatMap((x) => devices.map((d) => `${d} ${x}`)));
  }
});

describe("what is computed on several devices", () => {
  const [a, b, c] = [buffer("JS"), buffer("JS:1"), buffer("WASM")];

  test("products are synced before their device waits for others", () => {
    expect(
      built(
        item("EMPTY", a),
        item("EMPTY", b),
        item("COPY", buffer("JS"), b),
        item("EMPTY", buffer("JS")), // what JS computes from the copy: JS:1 does not wait for it
        item("COPY", buffer("JS:1"), a),
      ),
    ).toEqual([
      "JS: EMPTY(1 out, 0 in) SYNC(JS) WAIT(JS:1) COPY(JS <- JS:1) EMPTY(1 out, 0 in)",
      "JS:1: EMPTY(1 out, 0 in) SYNC(JS:1) WAIT(JS) COPY(JS:1 <- JS)",
    ]);
  });
  test("one sync for all that was computed up to a wait", () => {
    const more = buffer("JS");
    expect(
      built(
        item("EMPTY", a),
        item("EMPTY", more),
        item("COPY", buffer("JS"), c),
        item("COPY", buffer("JS:1"), a),
        item("COPY", buffer("JS:1"), more),
      ),
    ).toEqual([
      "JS: EMPTY(1 out, 0 in) EMPTY(1 out, 0 in) SYNC(JS) WAIT(WASM) COPY(JS <- WASM)",
      "WASM: SYNC(WASM)",
      "JS:1: WAIT(JS) COPY(JS:1 <- JS) COPY(JS:1 <- JS)",
    ]);
  });
  test("a wait for a later point covers an earlier product", () => {
    const late = buffer("JS");
    expect(
      built(
        item("EMPTY", a),
        item("COPY", buffer("JS"), c),
        item("EMPTY", late),
        item("COPY", buffer("JS:1"), late),
        item("COPY", buffer("JS:1"), a),
      ),
    ).toEqual([
      "JS: EMPTY(1 out, 0 in) WAIT(WASM) COPY(JS <- WASM) EMPTY(1 out, 0 in) SYNC(JS)",
      "WASM: SYNC(WASM)",
      "JS:1: WAIT(JS) COPY(JS:1 <- JS) COPY(JS:1 <- JS)",
    ]);
  });
  test("what is overwritten after its sync is synced again", () => {
    expect(
      built(
        item("EMPTY", a),
        item("COPY", buffer("JS"), c),
        item("EMPTY", a),
        item("COPY", buffer("JS:1"), a),
      ),
    ).toEqual([
      "JS: EMPTY(1 out, 0 in) WAIT(WASM) COPY(JS <- WASM) EMPTY(1 out, 0 in) SYNC(JS)",
      "WASM: SYNC(WASM)",
      "JS:1: WAIT(JS) COPY(JS:1 <- JS)",
    ]);
  });

  /** A step of data-parallel training: what is asked for, and the loss. */
  async function shardedStep(devices: readonly string[]) {
    const on = (t: Tensor, dim?: number) => t.shard(devices, dim).realize();
    const x = await on(Tensor.arange(32).reshape(8, 4).sin(), 0);
    const weights = await Promise.all([on(Tensor.ones(4, 6)), on(Tensor.ones(6, 2))]);
    for (const w of weights) w.requiresGrad = true;
    const [first, second] = weights as [Tensor, Tensor];
    const loss = x.matmul(first).relu().matmul(second).square().mean();
    loss.backward();
    const updates = weights.map((w) => w.assign(w.detach().sub((w.grad as Tensor).mul(0.1))));
    return [loss, ...updates];
  }

  test("a step of training: both devices have the same queue, and neither waits before its product is enqueued", async () => {
    const devices = ["WASM", "WASM:1"];
    const queue = new CommandQueue(schedule(...(await shardedStep(devices))));
    const [one, two] = String(queue).split("\n") as [string, string];
    const names: Readonly<Record<string, string>> = { WASM: "WASM:1", "WASM:1": "WASM" };
    expect(two).toBe(one.replace(/WASM(:1)?(?=[:)]| <-)/g, (d) => names[d] as string));
    const meeting = (d: string) => `SYNC(${d}) WAIT(${names[d]}) COPY(${d} <- ${names[d]})`;
    const kernels = (line: string) => line.replace(/\([^)]*\)/g, "").replace(/^\S+: /, "");
    for (const line of [one, two]) {
      expect(kernels(line)).toBe(
        "STORE STORE STORE SYNC WAIT COPY STORE STORE STORE STORE STORE SYNC WAIT COPY STORE STORE SYNC WAIT COPY STORE",
      );
      expect(line.split(meeting(line === one ? "WASM" : "WASM:1"))).toHaveLength(4);
    }
    // each point on one timeline comes before any copy that waits for the other
    const order = whatOf(await trace(queue)).map((what) => what.replace(/^[rE]_\w+/, "kernel"));
    const meet = ["signal", "signal", "xfer", "xfer"];
    expect(order.map((what) => what.split(" ")[0]).join(" ")).toBe(
      [
        ...Array(6).fill("kernel"),
        ...meet,
        ...Array(10).fill("kernel"),
        ...meet,
        ...Array(4).fill("kernel"),
        ...meet,
        ...Array(2).fill("kernel"),
      ].join(" "),
    );
    expect(order.filter((_, i) => i % 2 === 0)).toEqual(
      order.filter((_, i) => i % 2 === 1).map((what) => what.replace("WASM:1", "WASM")),
    );
  });
  test("the values are those of one device, whichever is looked at first", async () => {
    const values = async (devices: readonly string[], start?: readonly string[]) => {
      const step = await shardedStep(devices);
      await new CommandQueue(schedule(...step)).run(start);
      return Promise.all(
        step.map(async (t) => (await t.to("JS").data()).map((x: number) => Math.round(x * 1e4))),
      );
    };
    const expected = await values(["JS"]);
    for (const start of permutations(["WASM", "WASM:1", "JS"]))
      expect(await values(["WASM", "WASM:1", "JS"], start)).toEqual(expected);
  });
});

// ---- hazards ----

describe("an assign waits for copies of the old value", () => {
  test.each(permutations(["JS", "JS:1"]))("starting with %s", async (...start) => {
    const first = await new Tensor([1, 2], { device: "JS" }).realize();
    const t = await new Tensor([3, 4], { device: "JS" }).realize();
    // two copies, so that JS would be free to go on after the first
    const copies = [first.to("JS:1"), t.to("JS:1")] as const;
    t.assign(t.add(10));
    const queue = new CommandQueue(schedule(...copies, t));
    expect(String(queue).split("\n")).toEqual([
      "JS:1: WAIT(JS) COPY(JS:1 <- JS) COPY(JS:1 <- JS) SYNC(JS:1)",
      "JS: SYNC(JS) WAIT(JS:1) STORE(1 out, 1 in)",
    ]);
    await queue.run(start);
    expect(await copies[1].tolist()).toEqual([3, 4]);
    expect(await t.tolist()).toEqual([13, 14]);
  });

  test("the copy comes first whatever is asked for first, and what is read later is new", async () => {
    const t = await new Tensor([3, 4], { device: "JS" }).realize();
    const old = t.to("JS:1");
    t.assign(t.mul(2));
    const fresh = t.to("WASM");
    await Tensor.realize(fresh, t, old);
    expect([await old.tolist(), await fresh.tolist()]).toEqual([
      [3, 4],
      [6, 8],
    ]);
  });

  test("a copy that nobody asked for yet is made before its source is overwritten", async () => {
    const t = await new Tensor([3, 4], { device: "JS" }).realize();
    const old = t.to("JS:1");
    await t.assign(t.mul(2)).realize();
    expect(await old.tolist()).toEqual([3, 4]);
  });

  test("a copy of a part is a copy too", async () => {
    for (const device of ["JS", "WASM"]) {
      const t = await new Tensor([1, 2, 3, 4], { device }).realize();
      const part = t.shrink([[1, 3]]).to("EXT");
      await t.assign(t.add(10)).realize();
      expect(await part.tolist()).toEqual([2, 3]);
      const again = t.shrink([[1, 3]]).to("JS:1");
      t.assign(t.add(10));
      await Tensor.realize(t, again);
      expect(await again.tolist()).toEqual([12, 13]);
    }
  });
});

// ---- failures ----

describe("a failing item leaves the graph as it was", () => {
  test("a function that throws once", async () => {
    let calls = 0;
    const a = new Tensor([1, 2], { device: "JS" });
    const flaky = Tensor.customOp(
      ([out, x]) => {
        if (calls++ === 0) throw new RangeError("not today");
        const doubled = ((x as Buffer).dataSync() as Int32Array).map((v) => v * 2);
        void (out as Buffer).copyin(new Uint8Array(doubled.buffer));
      },
      [2],
      [a],
    );
    const res = flaky.add(1).to("JS:1");
    await expect(res.realize()).rejects.toThrow(RangeError);
    // the copy before it is done and stays done, the rest waits
    expect(a.lazydata.realized).toBeDefined();
    expect([flaky.lazydata.realized, res.lazydata.realized]).toEqual([undefined, undefined]);
    GlobalCounters.reset();
    expect(await res.tolist()).toEqual([3, 5]);
    expect([calls, GlobalCounters.kernelCount]).toEqual([2, 2]);
  });

  test("out of memory once, then there is room", async () => {
    const { allocator } = Device.get("WASM");
    const [a, b] = [new Tensor([1, 2]), new Tensor([3, 4])];
    const sum = a.add(b);
    for (const d of DEVICES) flushFreed(Device.get(d));
    const real = allocator.alloc.bind(allocator);
    vi.spyOn(allocator, "alloc")
      .mockImplementationOnce(real)
      .mockImplementationOnce(() => {
        throw new OutOfMemoryError("WASM: no room");
      });
    // the queue itself: realize would collect garbage and try again
    await expect(new CommandQueue(schedule(sum)).run()).rejects.toThrow(OutOfMemoryError);
    expect([a, b].map((t) => t.lazydata.realized?.isAllocated)).toEqual([true, undefined]);
    expect(await sum.tolist()).toEqual([4, 6]);
  });

  test("8 GiB, then something smaller from the same tensors", async () => {
    const one = new Tensor([1.5]);
    const huge = one.expand(2 ** 31).contiguous();
    await expect(huge.realize()).rejects.toThrow(OutOfMemoryError);
    expect(await one.expand(3).contiguous().tolist()).toEqual([1.5, 1.5, 1.5]);
    await expect(huge.realize()).rejects.toThrow(OutOfMemoryError); // again, and not something else
  });

  test("a compiler that fails once, a copy that fails once", async () => {
    const device = Device.get("JS:1");
    const sum = new Tensor([1, 2], { device: "JS:1" }).add(new Tensor([3, 4], { device: "JS:1" }));
    vi.spyOn(device, "compile").mockImplementationOnce(() => {
      throw new Error("no compiler");
    });
    clearKernelCache();
    await expect(sum.realize()).rejects.toThrow("no compiler");
    const res = sum.to("JS");
    vi.spyOn(Device.get("JS").allocator, "copyin").mockImplementationOnce(() => {
      throw new Error("bus error");
    });
    await expect(res.realize()).rejects.toThrow("bus error");
    expect(await res.tolist()).toEqual([4, 6]);
  });

  test("an assign that fails is not half done, and is not done twice", async () => {
    const t = await new Tensor([1, 2], { device: "JS" }).realize();
    const memory = t.lazydata.realized as Buffer;
    t.assign(t.add(1));
    vi.spyOn(Device.get("JS"), "compile").mockImplementationOnce(() => {
      throw new Error("no compiler");
    });
    clearKernelCache();
    await expect(t.realize()).rejects.toThrow("no compiler");
    expect(memory.dataSync()).toEqual(new Int32Array([1, 2]));
    expect(await t.tolist()).toEqual([2, 3]);
    expect(await t.realize().then(() => t.tolist())).toEqual([2, 3]);
    expect(memory.dataSync()).toEqual(new Int32Array([2, 3]));
  });

  test("the sync form leaves it the same way", () => {
    const res = new Tensor([1, 2], { device: "JS" }).mul(3);
    vi.spyOn(Device.get("JS").allocator, "alloc").mockImplementationOnce(() => {
      throw new OutOfMemoryError("JS: no room");
    });
    expect(() => res.realizeSync()).toThrow(OutOfMemoryError);
    expect(res.tolistSync()).toEqual([3, 6]);
  });
});

describe("what ran already is refused by name, and changes nothing", () => {
  const message =
    /^runSchedule: <LB JS \[2\] int32 .* realized> was computed before; call createSchedule\(\) again/;
  const make = () => new Tensor([1, 2], { device: "JS" }).add(1);

  test("a schedule", async () => {
    const t = make();
    const items = schedule(t);
    await runSchedule(items);
    await expect(runSchedule(items)).rejects.toThrow(ArgumentError);
    expect(() => runScheduleSync(items)).toThrow(message);
    await expect(new CommandQueue(items).run()).rejects.toThrow(message);
    await runSchedule(schedule(t)); // there is nothing left to do
    expect(await t.tolist()).toEqual([2, 3]);
  });
  test("an assign is not made twice", async () => {
    const t = await make().realize();
    const items = schedule(t.assign(t.add(1)));
    await runSchedule(items);
    await expect(runSchedule(items)).rejects.toThrow(message);
    expect(await t.tolist()).toEqual([3, 4]);
  });
  test("the second of two schedules of one graph", async () => {
    const t = make();
    const [first, second] = [schedule(t), schedule(t.mul(2))];
    await runSchedule(first);
    await expect(runSchedule(second)).rejects.toThrow(message);
    expect(await t.mul(2).tolist()).toEqual([4, 6]);
  });
});
