// What only a GPU can show of both devices for it: a trace whose times add up, memory that runs out and is
// had again, a kernel that the compiler refuses; and last, since a process has one context of CUDA and
// loses it, a kernel that strays.

import {
  createSchedule,
  Device,
  OutOfMemoryError,
  profiler,
  type ScheduleItem,
  type Span,
  Tensor,
  TinyJit,
  withEnv,
} from "gradloom";
import { describe, expect, test } from "vitest";
import { toFastKernel } from "../../src/codegen/kernel.ts";
import { showOpts } from "../../src/codegen/opt/opts.ts";
import { type Renderer, sourceOf } from "../../src/codegen/target.ts";
import type { CudaDevice } from "../../src/devices/cuda/device.ts";
import { clock } from "../../src/runtime/profiling.ts";
import { strayUops } from "../runtime/hcq/kernels.ts";

const DEVICES = ["CUDA", "NV"];
const missing = new Map<string, string>();
for (const name of DEVICES) await Device.open(name).catch((e: Error) => missing.set(name, e.message));

interface Skips {
  skip(condition: boolean, reason?: string): void;
}
function onGpus(what: string, body: (device: string) => Promise<void>): void {
  for (const device of DEVICES) {
    test(`${device}: ${what}`, { timeout: 60_000 }, async ({ skip }: Skips) => {
      skip(missing.has(device), missing.get(device));
      await body(device);
    });
  }
}

describe("PROFILE=1", () => {
  const KERNELS = 20;

  onGpus("the times of a captured step add up to what the host saw", async (device) => {
    const on = { device };
    const weights = await Tensor.rand(1024, 1024, on).realize();
    const step = new TinyJit((x: Tensor) => {
      let y = x;
      for (let i = 0; i < KERNELS; i++) y = y.dot(weights).mul(1 / 512);
      return y;
    });
    await withEnv({ PROFILE: 1 }, async () => {
      const run = async (): Promise<void> => {
        (await step(weights)).dispose();
        await Device.get(device).synchronize();
      };
      // until it is captured, and the GPU at its pace
      for (let i = 0, start = clock(); i < 5 || clock() - start < 1e6; i++) await run();
      profiler.reset();
      const from = clock();
      await run();
      const to = clock();
      const spans = profiler.spans.filter((s) => s.device === device && s.kind !== "wait");
      expect(spans.map((s) => s.kind)).toEqual(spans.map(() => "kernel"));
      expect(spans.length).toBeGreaterThanOrEqual(KERNELS);
      const ordered = spans.toSorted((a, b) => a.start - b.start) as Span[];
      ordered.forEach((s, i) => {
        expect(s.end).toBeGreaterThan(s.start);
        if (i > 0) expect(s.start).toBeGreaterThanOrEqual((ordered[i - 1] as Span).end - 1);
      });
      // both clocks are the same to a tenth of a millisecond
      expect((ordered[0] as Span).start).toBeGreaterThan(from - 100);
      expect((ordered.at(-1) as Span).end).toBeLessThan(to + 100);
      const busy = spans.reduce((sum, s) => sum + s.end - s.start, 0);
      const lasted = (ordered.at(-1) as Span).end - (ordered[0] as Span).start;
      const all = ordered.map(
        (s) => `${s.name} ${(s.start - from).toFixed(1)} to ${(s.end - from).toFixed(1)}`,
      );
      expect(busy, all.join("\n")).toBeGreaterThan(0.9 * lasted);
      expect(busy, all.join("\n")).toBeGreaterThan(0.5 * (to - from));
    });
    profiler.reset();
  });

  onGpus("copies in and out have times of their own", async (device) => {
    const bytes = 32 << 20;
    await withEnv({ PROFILE: 1 }, async () => {
      profiler.reset();
      const x = new Tensor(new Float32Array(bytes / 4).fill(1), { device });
      expect((await x.add(1).data()).every((v) => v === 2)).toBe(true);
    });
    const copies = profiler.spans.filter((s) => s.device === device && s.kind === "copy");
    expect(copies.reduce((sum, s) => sum + Number(s.args.bytes), 0)).toBe(2 * bytes);
    // a link of 60 GB/s at most, and one that is no slower than 1
    for (const s of copies) {
      const rate = Number(s.args.bytes) / (s.end - s.start) / 1000;
      expect(rate).toBeGreaterThan(1);
      expect(rate).toBeLessThan(70);
    }
    profiler.reset();
  });
});

onGpus("tensor cores multiply every type that they know as WASM does, where sums are exact", async (name) => {
  const side = 256;
  const values = (seed: number) => Float32Array.from({ length: side ** 2 }, (_, i) => ((i * seed) % 11) % 3);
  for (const dtype of ["float16", "bfloat16", "float32", "float8e4m3", "float8e5m2"] as const) {
    const product = (device: string): Tensor => {
      const [a, b] = [7, 5].map((seed) =>
        new Tensor(values(seed), { device }).sub(1).cast(dtype).reshape(side, side),
      );
      return (a as Tensor).dot((b as Tensor).T);
    };
    await withEnv({ ALLOW_TF32: 1 }, async () => {
      const { ast } = createSchedule([product(name).lazydata]).at(-1) as ScheduleItem;
      expect(showOpts(toFastKernel(ast, Device.get(name).renderer as Renderer, false).opts), dtype).toContain(
        "TC(",
      );
      expect(await product(name).data(), dtype).toEqual(await product("WASM").data());
    });
  }
});

onGpus("memory that runs out is an error with figures, and can be had again", async (device) => {
  const held: Tensor[] = [];
  const fill = async (): Promise<void> => {
    for (let i = 0; i < 64; i++) held.push(await Tensor.empty([2 ** 30], { device }).realize());
  };
  const error: unknown = await fill().then(
    () => undefined,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(OutOfMemoryError);
  expect((error as Error).message).toMatch(/no room for 4.* of .* are free on th(is|e) GPU.*split this one/);
  for (const t of held.splice(0)) t.dispose();
  const again = await Tensor.full([2 ** 30], 3, { device })
    .contiguous()
    .realize();
  expect(await again.max().item()).toBe(3);
  again.dispose();
  // what is kept for later is given up before that is said
  expect(() => Device.get(device).allocator.alloc(2 ** 40, false)).toThrow(OutOfMemoryError);
});

onGpus("a kernel that the compiler refuses is named, with its source", async (name) => {
  const device = Device.get(name);
  const source = 'extern "C" __global__ void wrong_kernel(float* data0) { data0[0] = nothing; }';
  const compile = async () => device.compile("wrong_kernel", sourceOf(source));
  await expect(compile).rejects.toThrow(/refused the kernel wrong_kernel:.*"nothing" is undefined/s);
  await expect(compile).rejects.toThrow(source);
  expect(await new Tensor([1, 2], { device: name }).sum().item()).toBe(3);
});

test("CUDA: a kernel that strays is named, with its source, and the process goes on", async ({ skip }) => {
  skip(missing.has("CUDA"), missing.get("CUDA"));
  const device = Device.get("CUDA") as CudaDevice;
  const name = "stray";
  const program = device.compile(name, device.renderer.render(name, strayUops()));
  const block = device.allocator.alloc(64, true);
  await device.synchronize();
  program.run([block, block], { globalSize: [1], localSize: [1], vals: [] }, false);
  const told = /a kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS.*It was stray\..*source:\n.*void stray\(/s;
  await expect(async () => device.synchronize()).rejects.toThrow(told);
  // there is no other context to be had; other devices know nothing of it
  await expect(new Tensor([1, 2], { device: "CUDA" }).sum().item()).rejects.toThrow(told);
  expect(await new Tensor([1, 2], { device: "WASM" }).sum().item()).toBe(3);
});
