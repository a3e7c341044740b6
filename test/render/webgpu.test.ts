// The target of WebGPU: products and convolutions go through workgroup memory in every tier, grids that are
// larger than a dimension takes are folded, and what SwiftShader computes is what JS does.

import { type Buffer, CompiledRunner, Device, dtypes, Tensor, Variable } from "gradloom";
import { describe, expect, test } from "vitest";
import { fitting, type Kernel, prepare, toFastKernel } from "../../src/codegen/kernel.ts";
import { foldedGrid } from "../../src/codegen/linear/gridlinear.ts";
import { showOpts } from "../../src/codegen/opt/opts.ts";
import { SHARED } from "../../src/codegen/opt/shared.ts";
import type { Renderer } from "../../src/codegen/target.ts";
import { LEAST_WEBGPU, webgpuFor } from "../../src/render/webgpu.ts";
import type { ScheduleItem } from "../../src/schedule/schedule.ts";
import { evaluate } from "../../src/shape/symbolic.ts";
import {
  lastItem,
  lowered,
  opsIn,
  opt,
  randomOpts,
  rendererOf,
  runKernel,
  wholeFloats,
} from "../codegen/kernels.ts";
import { count, expectValues, tensor, whyClosed } from "../device/harness.ts";
import { Random } from "../shape/random.ts";

await Device.open("JS");
/** As browsers have it: the least, with subgroups, and with all that a large GPU offers. */
const TIERS = {
  least: webgpuFor(LEAST_WEBGPU),
  subgroups: webgpuFor({ ...LEAST_WEBGPU, subgroup: 32 }),
  large: webgpuFor({
    ...LEAST_WEBGPU,
    subgroup: 32,
    threads: 1024,
    threadsByDimension: [1024, 1024, 64],
    workgroupMemory: 49152,
  }),
} as const;
const whole = (shape: readonly number[], seed: number): Tensor =>
  wholeFloats("JS", shape, new Random(seed)).contiguous();
const fast = async (t: Tensor, target: Renderer): Promise<Kernel> =>
  toFastKernel((await lastItem(t)).ast, target, false);
const sharedBytes = (k: Kernel): number =>
  opsIn(k, "DEFINE_LOCAL").reduce((n, u) => n + u.elements * u.dtype.base.itemsize, 0);

/** The workgroup memory that a text declares; of the types below every element has as many bytes. */
const TYPE_BYTES: Readonly<Record<string, number>> = { u32: 4, i32: 4, f32: 4, bool: 4, "vec4<f32>": 16 };
const declaredBytes = (code: string): number =>
  [...code.matchAll(/var<workgroup> \w+: array<(.+), (\d+)>;/g)].reduce(
    (n, [, type = "", size]) => n + (TYPE_BYTES[type] ?? Number.NaN) * Number(size),
    0,
  );

test("an element that is stored alone takes a word: what has no room is refused", async () => {
  const item = await lastItem(whole([64, 2048], 20).cast("int8").contiguous().max(1));
  const opts = [opt("UPCAST", 0, 32), opt("GROUPTOP", 1, 256)];
  const small = webgpuFor({ ...LEAST_WEBGPU, workgroupMemory: 16384 });
  const kernel = lowered(item, opts, { ...small, sharedMax: 1 << 20 });
  expect(sharedBytes(kernel)).toBeLessThan(16384);
  expect(declaredBytes(small.render(kernel.name, kernel.uops).code)).toBeGreaterThan(16384);
  expect(() => lowered(item, opts, small)).toThrow(/bytes of shared memory, WEBGPU has 16384/);
});

describe.each(Object.entries(TIERS))("%s", (_, target) => {
  test("operands of a product come through workgroup memory, as vectors, and are multiplied from registers", async () => {
    const kernel = await fast(whole([1024, 64], 1).dot(whole([64, 1024], 2)), target);
    const text = target.render(kernel.name, kernel.uops).code;
    expect(text).toMatch(/var<workgroup> shared0: array<vec4<f32>, \d+>;/);
    expect(text).toContain("workgroupBarrier();");
    expect(text).toContain("fma(");
    expect(sharedBytes(kernel)).toBeLessThanOrEqual(target.sharedMax);
    expect(opsIn(kernel, "DEFINE_ACC").length, "results of a thread").toBeGreaterThanOrEqual(16);
  });
  test("tiles of 16-bit elements lie packed, in the memory that is counted", async () => {
    for (const [m, k, n] of [
      [1024, 1024, 1024],
      [256, 256, 256],
    ] as const) {
      const empty = (shape: number[]): Tensor => Tensor.empty(shape, { device: "JS", dtype: "bfloat16" });
      const kernel = await fast(empty([m, k]).matmul(empty([k, n])), target);
      const { code } = target.render(kernel.name, kernel.uops);
      expect(code).toMatch(/var<workgroup> shared0: array<u32, \d+>;/);
      expect(declaredBytes(code as string)).toBe(sharedBytes(kernel));
      expect(declaredBytes(code as string)).toBeLessThanOrEqual(target.sharedMax);
    }
  });
  test("products and convolutions of many shapes are those of JS", async () => {
    for (const t of [
      whole([64, 64], 3).dot(whole([64, 64], 4)),
      whole([3, 32, 48], 5).matmul(whole([3, 48, 64], 6)),
      whole([33, 65], 7).dot(whole([65, 31], 8)),
      whole([2, 16, 12, 12], 9).conv2d(whole([16, 16, 3, 3], 10)),
      whole([128, 40], 11).sum(0),
      whole([5, 1000], 12).max(1),
    ]) {
      const item = await lastItem(t);
      const want = await runKernel(item, toFastKernel(item.ast, jsRenderer, false));
      const kernel = toFastKernel(item.ast, target, false);
      expectValues(t.dtype, await runKernel(item, kernel), want, kernel.name, { zeros: "equal" });
    }
  });
});
const jsRenderer = Device.get("JS").renderer as Renderer;

describe("a grid that is larger than a dimension takes", () => {
  const most = 16;
  const target = webgpuFor({ ...LEAST_WEBGPU, workgroupsPerDimension: most });
  /** The kernel, and what it stored on JS. */
  async function run(item: ScheduleItem): Promise<Kernel> {
    const kernel = toFastKernel(item.ast, target, false);
    expect(Math.max(...kernel.globalSize.map(Number)), `${kernel.globalSize}`).toBeLessThanOrEqual(most);
    const want = await runKernel(item, toFastKernel(item.ast, jsRenderer, false));
    expectValues((item.outputs[0] as Buffer).dtype, await runKernel(item, kernel), want, kernel.name);
    return kernel;
  }
  test("is folded into rows", async () => {
    const kernel = await run(await lastItem(whole([240, 256], 13).mul(3).add(1)));
    expect(kernel.globalSize).toHaveLength(2);
    expect(target.render(kernel.name, kernel.uops).code).not.toContain("select");
  });
  test("that no rows fill: workgroups beyond the end store nothing", async () => {
    for (const shape of [[61, 1024], [8009], [37, 1031]]) {
      const kernel = await run(await lastItem(whole(shape, 14).mul(3).add(1)));
      const stores = opsIn(kernel, "STORE");
      expect(stores.every((u) => u.gate !== undefined)).toBe(true);
    }
  });
  test("and that updates what it reads, does so once", async () => {
    const x = Tensor.arange(8009, { device: "JS" }).contiguous();
    await x.realize();
    const item = await lastItem(x.assign(x.add(1)));
    const kernel = toFastKernel(item.ast, target, false);
    const buffer = item.outputs[0] as Buffer;
    const program = await Device.get("JS").compile(kernel.name, jsRenderer.render(kernel.name, kernel.uops));
    new CompiledRunner({ ...kernel, device: "JS", program }).exec([buffer, ...item.inputs], new Map());
    expect(Array.from(await buffer.data(), Number)).toEqual(Array.from({ length: 8009 }, (_, i) => i + 1));
  });
  test("and has a symbolic size", () => {
    const n = Variable("n", 1, 200);
    const { columns, rows } = foldedGrid(n, most);
    for (const value of [1, 16, 17, 199, 200]) {
      const high = evaluate(rows, new Map([[n, value]]));
      expect(columns * high).toBeGreaterThanOrEqual(value);
      expect(Math.max(columns, high)).toBeLessThanOrEqual(most);
    }
  });
});

describe("on SwiftShader", () => {
  /** Kernels as a GPU gets them: a software driver is given none with workgroup memory. */
  const target = webgpuFor(LEAST_WEBGPU);
  test("kernels with workgroup memory are those of JS", async ({ skip }) => {
    const why = await Device.open("WEBGPU").then(
      () => undefined,
      (e: Error) => e.message,
    );
    skip(why !== undefined, why);
    const works: readonly ((device: string) => Tensor)[] = [
      (d) => on(d, [64, 32], 1).dot(on(d, [32, 64], 2)),
      (d) => on(d, [3, 32, 48], 3).matmul(on(d, [3, 48, 64], 4)),
      (d) => on(d, [2, 16, 12, 12], 5).conv2d(on(d, [16, 16, 3, 3], 6)),
      (d) => on(d, [3, 1000], 8).max(1),
    ];
    for (const work of works) {
      const item = await lastItem(work("WEBGPU"));
      const kernel = toFastKernel(item.ast, target, false);
      expect(opsIn(kernel, "BARRIER"), kernel.name).not.toEqual([]);
      const want = Array.from(await work("JS").data(), Number);
      expect(await runKernel(item, kernel), kernel.name).toEqual(want);
    }
  });
});
const on = (device: string, shape: readonly number[], seed: number): Tensor =>
  wholeFloats(device, shape, new Random(seed)).contiguous();

test("a software driver gets no tiles in workgroup memory", async () => {
  const software = webgpuFor({ ...LEAST_WEBGPU, isSoftware: true });
  for (const t of [
    whole([1024, 64], 1).dot(whole([64, 1024], 2)),
    whole([2, 16, 12, 12], 9).conv2d(whole([16, 16, 3, 3], 10)),
  ]) {
    const kernel = await fast(t, software);
    expect(opsIn(kernel, "BARRIER"), kernel.name).toEqual([]);
  }
});

const { float32, int8, int32, int64, bool, bfloat16, float16 } = dtypes;

/** A kernel with a reduction, of small whole numbers, so that any order gives the same. */
function randomReduction(r: Random, device: string): Tensor {
  const d = r.pick([float32, float32, int8, int32, int64, bool, bfloat16, float16]);
  const of = (...shape: number[]): Tensor =>
    tensor(
      device,
      float32,
      Array.from({ length: count(shape) }, () => r.int(-2, 2)),
      shape,
    )
      .cast(d)
      .contiguous();
  const size = (): number => r.pick([3, 8, 12, 16, 32, 33]);
  const [m, k, n] = [size(), size(), size()];
  const [x, y] = [of(m, k), of(k, n)];
  const product = (): Tensor => x.unsqueeze(2).mul(y.unsqueeze(0)).cast(d);
  const made = [
    () => (d === bool ? product().any(1) : x.matmul(y)),
    () => (d === bool ? x.any(0) : x.transpose(0, 1).matmul(of(m, n))),
    () => (d === bool ? x.all(1) : x.max(r.int(0, 1))),
    () =>
      x
        .flip(1)
        .pad([
          [1, 2],
          [0, 3],
        ])
        .cast(int32)
        .sum(0),
    () =>
      of(1, 4, 6, 6)
        .cast(float32)
        .conv2d(of(4, 4, 3, 3).cast(float32)),
  ];
  return r.pick(made)();
}
test("WEBGPU: random lists of OptOps give what the plain kernel gives", { timeout: 120_000 }, async ({
  skip,
}) => {
  const device = "WEBGPU";
  const closed = await whyClosed(device);
  skip(closed !== undefined, closed);
  const target = rendererOf(device);
  let ran = 0;
  for (let seed = 1; seed <= 40; seed++) {
    const r = new Random(seed);
    const item = await lastItem(randomReduction(r, device));
    const want = await runKernel(item, lowered(item));
    const plain = prepare(item.ast, [], target);
    const shares = SHARED.candidates(plain, { target, inPlace: false });
    for (let i = 0; i < 6; i++) {
      const opts = [...randomOpts(r, plain, target), ...(i < 2 && shares.length > 0 ? [r.pick(shares)] : [])];
      const kernel = fitting(item.ast, opts, target);
      if (kernel === undefined) continue;
      const what = `seed ${seed}: ${kernel.name} with ${showOpts(opts)}`;
      const { dtype } = item.outputs[0] as Buffer;
      expectValues(dtype, await runKernel(item, kernel), want, what, { zeros: "equal" });
      ran++;
    }
  }
  expect(ran).toBeGreaterThan(40);
});
