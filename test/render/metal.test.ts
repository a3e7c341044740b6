// Kernels for Metal, chosen by the figures of an Apple GPU: what their texts have in them, and, where there
// is a compiler of C++, what they compute, beside the JS device and ops.ts.

import { createSchedule, Device, dtypes, type ScheduleItem, Tensor, toKernel, Variable } from "gradloom";
import { afterAll, beforeAll, expect, type TestContext, test } from "vitest";
import type { DType } from "../../src/dtype.ts";
import { type Koffi, openKoffi } from "../../src/host/koffi.ts";
import type { AluOp } from "../../src/ops.ts";
import { uopsToCStyle } from "../../src/render/cstyle.ts";
import { MetalLanguage, metalFor } from "../../src/render/metal.ts";
import {
  allCases,
  aluCase,
  type Case,
  castCase,
  differences,
  encode,
  groupCase,
  opsOf,
  widened,
} from "./kernels.ts";
import { cppCompiler, MetalOnCpu, type MetalRun } from "./metalcpu.ts";

const { float32, float16, int32, int64, uint64, uint8, int8, bool, bfloat16, float64 } = dtypes;
const FACTS = {
  name: "",
  isApple: true,
  threads: 1024,
  threadsByDimension: [1024, 1024, 256],
  threadgroupMemory: 16384,
};
const compiler = cppCompiler();
let cpu: MetalOnCpu | undefined;
beforeAll(async () => {
  if (compiler === undefined) return;
  const made = await MetalOnCpu.open(compiler);
  const device = await made.device("METALCPU");
  cpu = made;
  Device.register("METALCPU", () => device);
  await Device.open("METALCPU");
});
afterAll(() => cpu?.close());

function opened(ctx: TestContext): MetalOnCpu {
  ctx.skip(cpu === undefined, "neither g++ nor clang++ is installed, or this is not Linux");
  return cpu as MetalOnCpu;
}

/** Small numbers with signs, the same on every device; sums of products of them are exact in float32. */
const numbers = (shape: readonly number[], device: string, dtype: DType = float32, step = 7): Tensor => {
  const n = shape.reduce((a, b) => a * b, 1);
  const from = dtype.kind === "uint" || dtype === bool ? 0 : 4;
  const all = Array.from({ length: n }, (_, i) => ((i * step) % 9) - from);
  return new Tensor(all, { device, dtype: int32 })
    .cast(dtype)
    .reshape(...shape)
    .contiguous();
};

interface Program {
  readonly run: (device: string) => Tensor;
  /** what the texts must have: the case is of no use without it */
  readonly has?: RegExp;
  /** the largest difference that rounding explains */
  readonly within?: number;
}
const elementwise = (dtype: DType): Program => ({
  run: (d) =>
    numbers([5000], d, dtype)
      .mul(numbers([5000], d, dtype, 5))
      .add(3),
});
const PROGRAMS: Readonly<Record<string, Program>> = {
  "elementwise float32, four at a time": { ...elementwise(float32), has: /device float4\*/ },
  // eight halves are four words
  "elementwise float16, eight at a time": { ...elementwise(float16), has: /as_type<half2>\(val\d\.w\)\.y/ },
  "elementwise uint8, eight at a time": { ...elementwise(uint8), has: /as_type<uchar4>\(val\d\.y\)\.w/ },
  "elementwise int8": elementwise(int8),
  "elementwise int32": elementwise(int32),
  "elementwise int64, two at a time": { ...elementwise(int64), has: /long2/ },
  "elementwise uint64": elementwise(uint64),
  "elementwise bfloat16": elementwise(bfloat16),
  bools: {
    run: (d) =>
      numbers([5000], d)
        .gt(0)
        .logicalAnd(numbers([5000], d, float32, 5).lt(2)),
  },
  "exponents and sines": {
    run: (d) =>
      numbers([300], d)
        .mul(0.3)
        .exp()
        .add(numbers([300], d).sin())
        .add(numbers([300], d).abs().sqrt()),
    within: 1e-5,
  },
  "a transposed copy": { run: (d) => numbers([64, 96], d).transpose(0, 1).contiguous() },
  "padding and strides": {
    run: (d) =>
      numbers([33, 20], d)
        .pad([
          [1, 2],
          [3, 4],
        ])
        .flip(1)
        .contiguous(),
  },
  "a sum of all": { run: (d) => numbers([70000], d).sum(), has: /lane_xor\(/ },
  "a sum of rows": { run: (d) => numbers([40, 2048], d).sum(1), has: /threadgroup float/ },
  "a sum of short rows": { run: (d) => numbers([3000, 12], d).sum(1) },
  "a sum of columns": { run: (d) => numbers([500, 60], d).sum(0) },
  "the largest of int64, by words": { run: (d) => numbers([4, 5000], d, int64).max(1), has: /long lane_xor/ },
  "whether any, by words": { run: (d) => numbers([4, 5000], d).gt(3).any(1), has: /bool val\d+ = lane_xor/ },
  softmax: { run: (d) => numbers([24, 512], d).softmax(-1), within: 1e-6 },
  "the variance in one kernel": { run: (d) => numbers([30, 640], d).var(1), within: 1e-4 },
  "a matrix product of float32": {
    run: (d) => numbers([64, 96], d).matmul(numbers([96, 64], d, float32, 5)),
    has: /multiply_float_8x8x8/,
  },
  "a matrix product of float16": {
    run: (d) => numbers([128, 64], d, float16).matmul(numbers([64, 128], d, float16, 5)),
    has: /multiply_half_8x8x8/,
  },
  "a transposed factor": {
    run: (d) => numbers([64, 64], d, float16).matmul(numbers([64, 64], d, float16, 5).transpose(0, 1)),
    has: /multiply_half_8x8x8/,
  },
  "a matrix product whose sides no core divides": {
    run: (d) => numbers([63, 50], d).matmul(numbers([50, 65], d, float32, 5)),
    has: /multiply_float_8x8x8/,
  },
  "a matrix product that no core fits": {
    run: (d) => numbers([6, 50], d).matmul(numbers([50, 7], d, float32, 5)),
    has: /fma\(/,
  },
  "products of integers in tiles": {
    run: (d) => numbers([128, 32], d, int32).matmul(numbers([32, 128], d, int32, 5)),
    has: /threadgroup int/,
  },
  "a convolution": {
    run: (d) => numbers([2, 4, 18, 18], d).conv2d(numbers([8, 4, 3, 3], d, float32, 5)),
  },
  "a variable size": {
    run: (d) =>
      numbers([64, 32], d)
        .shrink([
          [0, Variable("n", 1, 64).bind(50)],
          [0, 32],
        ])
        .sum(0),
    has: /constant int& n/,
  },
};

test.for(Object.keys(PROGRAMS))("%s", async (name, ctx) => {
  const { texts } = opened(ctx);
  const { run, has, within = 0 } = PROGRAMS[name] as Program;
  texts.clear();
  const [got, want] = await Promise.all([run("METALCPU").data(), run("JS").data()]);
  if (has !== undefined) expect([...texts.values()].join("\n")).toMatch(has);
  expect(got).toHaveLength(want.length);
  const off = Array.from(got, (x, i) => (x === want[i] ? 0 : Math.abs(Number(x) - Number(want[i]))));
  expect(Math.max(...off)).toBeLessThanOrEqual(within);
});

/** Runs a case with every buffer in memory of C. */
function runCase(koffi: Koffi, run: MetalRun, c: Case): Uint8Array[] {
  const room = (bytes: number): bigint => koffi.alloc("uint8_t", Math.ceil(bytes / 64) * 64 + 64);
  const outs = c.outputs.map((o) => room(o.values.length * o.dtype.itemsize));
  const ins = c.inputs.map(({ dtype, values }) => {
    const bytes = encode(dtype, values);
    const address = room(bytes.length);
    new Uint8Array(koffi.view(address, bytes.length)).set(bytes);
    return address;
  });
  const local = Uint32Array.of(c.local, 1, 1);
  const groups = c.local === 1 ? 1 : (c.outputs[0]?.values.length ?? 0) / c.local;
  run(BigUint64Array.from([...outs, ...ins]), Int32Array.from(c.vals), Uint32Array.of(groups, 1, 1), local);
  const results = c.outputs.map((o, i) =>
    new Uint8Array(koffi.view(outs[i] as bigint, o.values.length * o.dtype.itemsize)).slice(),
  );
  for (const address of [...outs, ...ins]) koffi.free(address);
  return results;
}

test("every op and cast on every type, one at a time and on vectors, agrees with ops.ts", async (ctx) => {
  const metal = opened(ctx);
  const types = dtypes.all.filter((d) => metalFor().support(d) === "native");
  const has = (op: AluOp): boolean => MetalLanguage.codeForOp[op] !== undefined;
  const cases = [
    ...allCases(types, types, has),
    groupCase(),
    ...types.flatMap((d) => [aluCase(d, opsOf(d).filter(has)), castCase(d, types)].map((c) => widened(c, 4))),
  ];
  const texts = cases.map((c) => ({ name: c.name, text: uopsToCStyle(MetalLanguage, c.name, c.uops) }));
  const koffi = await openKoffi("METAL");
  const wrong = metal
    .compile(texts)
    .flatMap((run, i) => differences(cases[i] as Case, runCase(koffi, run, cases[i] as Case)));
  expect(wrong).toEqual([]);
});

test("the cores of a GPU by its name, its limits by what it says", () => {
  const of = (name: string) => metalFor({ ...FACTS, name }).gpu?.computeUnits;
  expect(["Apple M1", "Apple M2 Pro", "Apple M4 Max", "Apple M3 Ultra"].map(of)).toEqual([8, 14, 24, 48]);
  const amd = metalFor({ ...FACTS, name: "AMD Radeon Pro 5500M", isApple: false, threads: 512 });
  expect(amd.gpu).toMatchObject({ warp: 1, tensorCores: [], arch: "AMD Radeon Pro 5500M" });
  expect([amd.localMax, amd.sharedMax, amd.maxBuffers]).toEqual([[512, 512, 256], 16384, 26]);
});
test("float64 is refused by name", () => {
  const t = new Tensor([1], { device: "JS" }).cast(float64);
  const [item] = createSchedule([t.lazydata]).slice(-1) as [ScheduleItem];
  expect(() => toKernel(item.ast, [], metalFor())).toThrow(/METAL has no float64/);
});
