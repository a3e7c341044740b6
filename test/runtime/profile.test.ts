// PROFILE=1: a trace with a track a queue, kernels by name with FLOP and bytes, copies, waits and the host's
// part, whose times are those of the signals; in a file when the process ends; and
// nothing of it without the setting.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device, profiler, resetKernelNames, type Span, Tensor, withEnv } from "gradloom";
import { beforeEach, describe, expect, test } from "vitest";
import { device, handles, ints, launch, scale, spin } from "../devices/wasm/kernels.ts";

const root = join(import.meta.dirname, "..", "..");
beforeEach(() => profiler.reset());

const profiled = async (run: () => unknown): Promise<readonly Span[]> => {
  await withEnv({ PROFILE: 1 }, async () => void (await run()));
  return profiler.spans;
};
const shown = (spans: readonly Span[]) => spans.map((s) => `${s.device}/${s.track}: ${s.kind} ${s.name}`);
const on = (spans: readonly Span[], name: string) => spans.filter((s) => s.device === name);

interface TraceEvent {
  readonly name: string;
  readonly cat?: string;
  readonly ph: string;
  readonly ts?: number;
  readonly dur?: number;
  readonly pid: number;
  readonly tid: number;
  readonly args: Record<string, string | number>;
}
const parse = (text: string) => (JSON.parse(text) as { traceEvents: TraceEvent[] }).traceEvents;

describe("the spans", () => {
  test("of the dot product", async () => {
    const name = "WASM:100";
    resetKernelNames();
    const spans = await profiled(async () => {
      const c = new Tensor([1, 2], { device: name }).dot(new Tensor([3, 4], { device: name }));
      expect(await c.item()).toBe(11);
    });
    expect(shown(spans).sort()).toEqual(
      [
        `host/copy: copy copy ${name} <- EXT`,
        `host/copy: copy copy ${name} <- EXT`,
        `host/enqueue: enqueue ${name} compute`,
        `${name}/compute: wait wait ${name}.timeline`,
        `${name}/compute: kernel r_2`,
        `host/copy: copy copy EXT <- ${name}`,
      ].sort(),
    );
    const kernel = spans.find((s) => s.kind === "kernel") as Span;
    expect(kernel.args).toEqual({ FLOP: 4, bytes: 20 });
    expect(kernel.end).toBeGreaterThanOrEqual(kernel.start);
  });

  test("of a copy between devices, from the signals of the copy queue", async () => {
    const [from, to] = ["WASM:101", "WASM:102"];
    const x = await new Tensor([1, 2, 3, 4], { device: from }).realize();
    const spans = await profiled(async () => void (await x.to(to).realize()));
    const copy = spans.find((s) => s.kind === "copy") as Span;
    expect(copy).toMatchObject({
      device: from,
      track: "copy",
      name: `${to} <- ${from}`,
      args: { bytes: 16 },
    });
    expect(on(spans, from).map((s) => s.kind)).toEqual(["wait", "wait", "copy"]);
  });

  test("of devices without HCQ, by the host's clock", async () => {
    await Device.open("JS");
    const spans = await profiled(
      async () => void (await new Tensor([1, 2, 3], { device: "JS" }).add(1).realize()),
    );
    expect(on(spans, "JS").map((s) => s.kind)).toEqual(["kernel"]);
    expect(on(spans, "JS")[0]?.args).toEqual({ FLOP: 3, bytes: 24 });
  });

  test("are as long as the work, and in order", async () => {
    const d = device("WASM:103");
    const x = ints("WASM:103", [0]);
    const [short, long] = [spin(d, "short", 100_000), spin(d, "long", 50_000_000)];
    const spans = await profiled(async () => {
      for (const program of [short, long, short]) launch(program, [x]);
      await d.synchronize();
    });
    const kernels = spans.filter((s) => s.kind === "kernel");
    expect(kernels.map((s) => s.name)).toEqual(["short", "long", "short"]);
    const took = kernels.map((s) => s.end - s.start) as [number, number, number];
    expect(took[1]).toBeGreaterThan(10_000); // 50 million in less than 10 ms are not to be had
    expect(took[1]).toBeGreaterThan(took[0]);
    for (const [i, s] of kernels.entries())
      if (i > 0) expect(s.start).toBeGreaterThanOrEqual((kernels[i - 1] as Span).end - 1);
  });

  test("of a bound queue, of every run", async () => {
    const d = device("WASM:104");
    const [x, program] = [ints("WASM:104", [0]), scale(d, "again", 1, 1)];
    const args = program.allocKernargs(handles(x, x), []);
    const spans = await profiled(async () => {
      const queue = d.computeQueue().wait(d.timelineSignal, 0).exec(program, args, [], []);
      const end = queue.length;
      queue.signal(d.timelineSignal, 0).bind(d);
      // the stamps are not commands of their own: indexes are as without them
      expect(queue.commands.map((c) => c.name)).toEqual(["wait", "exec", "signal"]);
      for (let i = 0; i < 5; i++) {
        const value = d.nextTimelineValue();
        queue
          .updateWait(0, d.timelineSignal, value - 1)
          .updateSignal(end, d.timelineSignal, value)
          .submit(d);
        await d.synchronize();
      }
    });
    expect(x.dataSync()[0]).toBe(5);
    expect(spans.filter((s) => s.name === "again")).toHaveLength(5);
    const starts = spans.filter((s) => s.name === "again").map((s) => s.start);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    expect(new Set(starts).size).toBe(5);
  });

  test("show that a device copies while another computes", async () => {
    const [a, b, c] = [device("WASM:105"), device("WASM:106"), device("WASM:107")];
    const x = ints("WASM:105", [0]);
    const size = 1 << 20;
    const [from, to] = ["WASM:106", "WASM:107"].map((name) => ints(name, new Array<number>(size).fill(7)));
    const spans = await profiled(async () => {
      launch(spin(a, "busy", 100_000_000), [x]);
      for (let i = 0; i < 500 && !a.hardware.computing; i++) await new Promise((r) => setTimeout(r, 1));
      b.allocator.transfer(to?.handle as never, from?.handle as never, size * 4);
      await Promise.all([a, b, c].map((d) => d.synchronize()));
    });
    const [busy, copy] = ["busy", "WASM:107 <- WASM:106"].map((n) => spans.find((s) => s.name === n)) as [
      Span,
      Span,
    ];
    expect(copy.start).toBeGreaterThan(busy.start);
    expect(copy.end).toBeLessThan(busy.end);
  });

  test("are not recorded without the setting, and cost no words", async () => {
    const d = device("WASM:108");
    expect(await new Tensor([1, 2], { device: "WASM:108" }).add(1).tolist()).toEqual([2, 3]);
    expect(profiler.spans).toEqual([]);
    expect(d.computeQueue().wait(d.timelineSignal, 0).q).toHaveLength(3);
    expect(withEnv({ PROFILE: 1 }, () => d.computeQueue().wait(d.timelineSignal, 0).q)).toHaveLength(7);
  });

  test("give their signals back", async () => {
    const d = device("WASM:109");
    const { signals } = d.hardware.names;
    const x = await new Tensor([1, 2], { device: "WASM:109" }).realize();
    await x.add(1).realize();
    const before = signals.size;
    await profiled(async () => {
      for (let i = 0; i < 1000; i++) await x.add(1).realize();
      await d.synchronize();
    });
    expect(signals.size).toBe(before);
  });
});

test("the trace: processes and tracks have names, times start at 0", async () => {
  await profiled(async () => {
    const x = await new Tensor([1, 2, 3, 4], { device: "WASM:110" }).realize();
    expect(await x.add(1).to("WASM:111").mul(2).tolist()).toEqual([4, 6, 8, 10]);
  });
  const events = parse(profiler.trace());
  const names = events.filter((e) => e.ph === "M").map((e) => `${e.pid}.${e.tid} ${e.name} ${e.args.name}`);
  expect(names).toContain("1.0 process_name host");
  for (const device of ["WASM:110", "WASM:111"]) {
    const process = events.find((e) => e.name === "process_name" && e.args.name === device) as TraceEvent;
    const tracks = events
      .filter((e) => e.name === "thread_name" && e.pid === process.pid)
      .map((e) => e.args.name);
    expect(tracks).toContain("compute");
    if (device === "WASM:110") expect(tracks).toContain("copy");
  }
  const spans = events.filter((e) => e.ph === "X");
  expect(Math.min(...spans.map((e) => e.ts as number))).toBe(0);
  expect(spans.every((e) => (e.dur as number) >= 0 && e.pid > 0 && e.tid > 0)).toBe(true);
  expect(new Set(spans.map((e) => e.cat))).toEqual(new Set(["copy", "enqueue", "wait", "kernel"]));
});

test("the trace: what runs at the same time on one track lies on tracks beside each other", () => {
  const span = (name: string, start: number, end: number, device = "GPU") =>
    profiler.add({ device, track: "compute", name, kind: "kernel", start, end, args: {} });
  span("c", 15, 30);
  span("a", 0, 10);
  span("b", 10, 20);
  span("d", 16, 18);
  span("e", 20, 25);
  span("other", 5, 40, "GPU:1");
  const events = parse(profiler.trace());
  const tracks = new Map(events.filter((e) => e.name === "thread_name").map((e) => [e.tid, e.args.name]));
  const where = (name: string) => tracks.get(events.find((e) => e.name === name)?.tid as number);
  expect(["a", "b", "e"].map(where)).toEqual(["compute", "compute", "compute"]);
  expect(["c", "d", "other"].map(where)).toEqual(["compute 2", "compute 3", "compute"]);
});

test("PROFILE=1 writes a file when the process ends, also by an error, and says where it cannot", () => {
  const dir = mkdtempSync(join(tmpdir(), "gradloom-profile-"));
  try {
    for (const [i, ending] of ["", "process.exit(0);", 'throw new Error("over");'].entries()) {
      const [file, trace] = [join(dir, `program${i}.mts`), join(dir, `trace${i}.json`)];
      writeFileSync(
        file,
        `import { Tensor } from "${join(root, "src", "index.ts")}";
        await new Tensor([1, 2]).dot(new Tensor([3, 4])).item();
        ${ending}`,
      );
      const { DEV: _, ...rest } = process.env;
      const env = { ...rest, PROFILE: "1", PROFILEPATH: trace };
      spawnSync(process.execPath, ["--import", "tsx", file], { cwd: root, env });
      const events = parse(readFileSync(trace, "utf8"));
      expect(events.map((e) => e.name)).toContain("r_2");
      rmSync(trace);
    }
    const { DEV: _, ...rest } = process.env;
    const env = { ...rest, PROFILE: "1", PROFILEPATH: join(dir, "nowhere", "trace.json") };
    const ended = spawnSync(process.execPath, ["--import", "tsx", join(dir, "program0.mts")], {
      cwd: root,
      env,
    });
    expect(ended.status, "what was to be computed was").toBe(0);
    expect(String(ended.stderr)).toMatch(/PROFILE=1: cannot write .*trace.json.*set PROFILEPATH to a file/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
