// The code examples of the seeds 000, 001 and 002, each as a TypeScript twin that reads like it and gives
// the same output, and the facts that the text beside them states. A text in a template literal is the
// seed's own, letter by letter, unless a comment says otherwise. Seed 003 is hcq.test.ts, 004 jit.test.ts.

import {
  BinaryOps,
  Buffer,
  BufferCopy,
  CommandQueue,
  createSchedule,
  Device,
  dtypes,
  GlobalCounters,
  type LazyBuffer,
  LoadOps,
  PtrDType,
  ReduceOps,
  type Renderer,
  resetKernelNames,
  runSchedule,
  type ScheduleItem,
  ShapeError,
  Tensor,
  toKernel,
  UOpGraph,
  UOps,
  withEnv,
} from "gradloom";
import {
  ClangLanguage,
  CUDALanguage,
  HIPLanguage,
  MetalLanguage,
  MetalRenderer,
  OpenCLLanguage,
  uopsToCStyle,
} from "gradloom/render";
import { describe, expect, test } from "vitest";
import { JSRenderer } from "../../src/devices/js.ts";
import { fuse } from "../../src/schedule/fuse.ts";

const GRID = "uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]";
const METAL = "#include <metal_stdlib>\nusing namespace metal;\n";

const R_2 = `#include <metal_stdlib>
using namespace metal;
kernel void r_2(device int* data0, const device int* data1, const device int* data2, ${GRID}) {
  int acc0 = 0;
  for (int ridx0 = 0; ridx0 < 2; ridx0++) {
    int val0 = *(data1+ridx0);
    int val1 = *(data2+ridx0);
    acc0 = ((val0*val1)+acc0);
  }
  *(data0+0) = acc0;
}`;

const opsOf = (schedule: readonly ScheduleItem[]) => schedule.map((si) => si.ast[0]?.op);
const srcsOf = (lb: LazyBuffer | undefined) => (lb?.srcs ?? []) as readonly LazyBuffer[];

/** The kernels of a schedule as text, named as in a fresh process. */
function kernelTexts(schedule: readonly ScheduleItem[], renderer: Renderer): string[] {
  resetKernelNames();
  return schedule
    .filter((si) => si.ast[0]?.op === "STORE")
    .map((si) => toKernel(si.ast, [], renderer))
    .map((k) => renderer.render(k.name, k.uops).code as string);
}

describe("seed 000: the command queue", () => {
  test("the dot product is 11", async () => {
    const a = new Tensor([1, 2]);
    const b = new Tensor([3, 4]);
    const res = await a.dot(b).data();
    expect([...res]).toEqual([11]);
  });

  test("corealize: a schedule of all tensors, run as one", async () => {
    const a = new Tensor([1, 2]);
    const b = new Tensor([3, 4]);
    const lst = [a.dot(b), a.add(b)];
    const schedules = createSchedule(lst.map((x) => x.lazydata));
    // a and b are copied once for both kernels
    expect(opsOf(schedules)).toEqual(["COPY", "COPY", "STORE", "STORE"]);
    await runSchedule(schedules);
    expect(createSchedule(lst.map((x) => x.lazydata))).toEqual([]);
    expect([await lst[0]?.item(), await lst[1]?.tolist()]).toEqual([11, [4, 6]]);
  });

  test("run_schedule: the queue is made of the schedule, then called", async () => {
    const c = new Tensor([1, 2]).dot(new Tensor([3, 4]));
    const queue = new CommandQueue(createSchedule([c.lazydata]));
    await queue.run();
    expect(c.lazydata.base.realized?.dataSync()).toEqual(new Int32Array([11]));
  });
});

describe("seed 001: schedule items and fusion", () => {
  test("the structure of c: a view over SUM over MUL over two COPYs over EMPTY on EXT", () => {
    const a = new Tensor([1, 2]);
    const b = new Tensor([3, 4]);
    const c = a.dot(b);

    const lazydata1 = c.lazydata;
    expect(lazydata1.op).toBeUndefined();
    expect([lazydata1.srcs, lazydata1.realized]).toEqual([undefined, undefined]);
    const lazydata2 = lazydata1._base as LazyBuffer;
    expect(lazydata1.base).toBe(lazydata2);
    expect([lazydata2.op, lazydata2._base]).toEqual([ReduceOps.SUM, undefined]);
    expect(lazydata2.base).toBe(lazydata2);
    // the view is there for the shape: sum leaves [1], a scalar is []
    expect([lazydata2.st.shape, lazydata1.st.shape]).toEqual([[1], []]);

    const [lazydata3, ...more] = srcsOf(lazydata2);
    expect([lazydata3?.op, more]).toEqual([BinaryOps.MUL, []]);
    const [lazydata4, lazydata5, ...others] = srcsOf(lazydata3);
    expect(lazydata4).toBe(a.lazydata);
    expect(lazydata5).toBe(b.lazydata);
    expect(others).toEqual([]);
    for (const copy of [lazydata4, lazydata5]) {
      expect([copy?.op, copy?.device, copy?.realized]).toEqual([LoadOps.COPY, Device.DEFAULT, undefined]);
      const [ext] = srcsOf(copy);
      expect([ext?.op, ext?.device, ext?.srcs]).toEqual([LoadOps.EMPTY, "EXT", undefined]);
      expect(ext?.realized).toBeInstanceOf(Buffer);
    }
    expect(srcsOf(lazydata4)[0]?.realized?.dataSync()).toEqual(new Int32Array([1, 2]));
    expect(srcsOf(lazydata5)[0]?.realized?.dataSync()).toEqual(new Int32Array([3, 4]));
  });

  test("three ScheduleItems: load data * 2, run code; reading adds one COPY", () => {
    const a = new Tensor([1, 2]);
    const b = new Tensor([3, 4]);
    const c = a.dot(b);
    const schedule = createSchedule([c.lazydata]);
    expect(opsOf(schedule)).toEqual(["COPY", "COPY", "STORE"]);
    // the inputs of the kernel are the very buffers that the copies fill
    const [copyA, copyB, kernel] = schedule as [ScheduleItem, ScheduleItem, ScheduleItem];
    expect(kernel.inputs[0]).toBe(copyA.outputs[0]);
    expect(kernel.inputs[1]).toBe(copyB.outputs[0]);
    expect(kernel.inputs[0]).toBe(a.lazydata.buffer);
    expect(kernel.outputs[0]).toBe(c.lazydata.base.buffer);
    expect(opsOf(createSchedule([c.to("EXT").lazydata]))).toEqual(["COPY", "COPY", "STORE", "COPY"]);
    // asking changes nothing
    expect(a.lazydata.buffer.isAllocated).toBe(false);
    expect(opsOf(createSchedule([c.lazydata]))).toEqual(["COPY", "COPY", "STORE"]);
  });

  test("the kernel, as Metal", () => {
    const c = new Tensor([1, 2]).dot(new Tensor([3, 4]));
    expect(kernelTexts(createSchedule([c.lazydata]), MetalRenderer)).toEqual([R_2]);
  });

  test("realizes: the top, and all that is loaded", () => {
    const a = new Tensor([1, 2]);
    const b = new Tensor([3, 4]);
    const c = a.dot(b);
    // the seed counts the two EXT buffers too, and then skips them as realised: here they never enter
    expect(fuse([c.lazydata]).realizes).toEqual(new Set([c.lazydata.base, a.lazydata, b.lazydata]));
    expect([...fuse([c.lazydata]).realizes][0]).toBe(c.lazydata.base);
  });

  test("the variance of [1,2,3,4]", async () => {
    const a = new Tensor([1, 2, 3, 4]);
    const b = a.var();
    expect(await b.item()).toBe(Math.fround(1.6666667));
    const again = new Tensor([1, 2, 3, 4]).var();
    expect(await withEnv({ FUSE: 0 }, () => again.item())).toBe(Math.fround(1.6666667));
  });

  test("FUSE=0 NOOPT=1: two kernels, r_4 and r_4n1", () => {
    const a = new Tensor([1, 2, 3, 4]);
    const b = a.var();
    const schedule = withEnv({ FUSE: 0 }, () => createSchedule([b.lazydata]));
    expect(opsOf(schedule)).toEqual(["COPY", "STORE", "STORE"]);
    expect(kernelTexts(schedule, MetalRenderer)).toEqual([
      `${METAL}kernel void r_4(device float* data0, const device int* data1, ${GRID}) {
  int acc0 = 0;
  for (int ridx0 = 0; ridx0 < 4; ridx0++) {
    int val0 = *(data1+ridx0);
    acc0 = (val0+acc0);
  }
  *(data0+0) = ((float)(acc0)*0.25f);
}`,
      `${METAL}kernel void r_4n1(device float* data0, const device int* data1, const device float* data2, ${GRID}) {
  float acc0 = 0.0f;
  float val0 = *(data2+0);
  for (int ridx0 = 0; ridx0 < 4; ridx0++) {
    int val1 = *(data1+ridx0);
    float alu0 = ((float)(val1)-val0);
    acc0 = ((alu0*alu0)+acc0);
  }
  *(data0+0) = (acc0*0.3333333333333333f);
}`,
    ]);
  });

  test("why two: the average is expanded, so it is in realizes", () => {
    const a = new Tensor([1, 2, 3, 4]);
    const mul1 = a.var().lazydata.base;
    const [lb2, const17] = srcsOf(mul1);
    const mul4 = srcsOf(lb2?._base)[0];
    const [sub5, twin] = srcsOf(mul4);
    expect([mul1.op, lb2?._base?.op, const17?.base.op, mul4?.op]).toEqual(["MUL", "SUM", "CONST", "MUL"]);
    expect(sub5?.op).toBe("SUB");
    expect(sub5).toBe(twin); // the two trees are one instance
    const [cast6, average] = srcsOf(sub5);
    expect(cast6?.op).toBe("CAST");
    expect(srcsOf(cast6)[0]).toBe(a.lazydata);
    const mul10 = average?._base;
    expect([average?.shape, mul10?.shape, mul10?.op]).toEqual([[4], [1], "MUL"]);
    const [cast11, lb15] = srcsOf(mul10);
    expect([cast11?.op, srcsOf(cast11)[0]?.op, lb15?._base?.op]).toEqual(["CAST", "SUM", "CONST"]);

    // the six of the seed, but for EXT, which is realised
    const six = [mul1, a.lazydata, const17?.base, mul10, lb15?.base];
    expect(withEnv({ FUSE: 0 }, () => fuse([mul1]).realizes)).toEqual(new Set(six));
    // and by default the average stays in the kernel
    expect(fuse([mul1]).realizes).toEqual(new Set(six.filter((x) => x !== mul10)));
  });

  test("by default one kernel", async () => {
    const a = new Tensor([1, 2, 3, 4]);
    const b = a.var();
    expect(opsOf(createSchedule([b.lazydata]))).toEqual(["COPY", "STORE"]);
    GlobalCounters.reset();
    await b.realize();
    expect([GlobalCounters.kernelCount, GlobalCounters.copyCount]).toEqual([1, 1]);
  });
});

/** What `DEBUG=5 NOOPT=1` prints. */
const LISTING = `\
step  Op_name               type                      input                           arg
   0 UOps.DEFINE_GLOBAL  : ptr.dtypes.int            []                               (0, 'data0', True)
   1 UOps.DEFINE_GLOBAL  : ptr.dtypes.int            []                               (1, 'data1', False)
   2 UOps.DEFINE_GLOBAL  : ptr.dtypes.int            []                               (2, 'data2', False)
   3 UOps.DEFINE_ACC     : dtypes.int                []                               0
   4 UOps.CONST          : dtypes.int                []                               0
   5 UOps.CONST          : dtypes.int                []                               2
   6 UOps.LOOP           : dtypes.int                [4, 5]                           None
   7 UOps.LOAD           : dtypes.int                [1, 6]                           None
   8 UOps.LOAD           : dtypes.int                [2, 6]                           None
   9 UOps.ALU            : dtypes.int                [7, 8]                           BinaryOps.MUL
  10 UOps.ALU            : dtypes.int                [9, 3]                           BinaryOps.ADD
  11 UOps.PHI            : dtypes.int                [3, 10, 6]                       None
  12 UOps.ENDLOOP        :                           [6]                              None
  13 UOps.STORE          :                           [0, 4, 11]                       None`;

/** The 14 uops, built by hand. */
function dotProduct(): UOpGraph {
  const uops = new UOpGraph();
  const data0 = uops.add(UOps.DEFINE_GLOBAL, PtrDType(dtypes.int), [], [0, "data0", true]);
  const data1 = uops.add(UOps.DEFINE_GLOBAL, PtrDType(dtypes.int), [], [1, "data1", false]);
  const data2 = uops.add(UOps.DEFINE_GLOBAL, PtrDType(dtypes.int), [], [2, "data2", false]);
  const acc = uops.add(UOps.DEFINE_ACC, dtypes.int, [], 0);
  const zero = uops.add(UOps.CONST, dtypes.int, [], 0);
  const two = uops.add(UOps.CONST, dtypes.int, [], 2);
  const loop = uops.add(UOps.LOOP, dtypes.int, [zero, two]);
  const val0 = uops.add(UOps.LOAD, dtypes.int, [data1, loop]);
  const val1 = uops.add(UOps.LOAD, dtypes.int, [data2, loop]);
  const mul = uops.add(UOps.ALU, dtypes.int, [val0, val1], BinaryOps.MUL);
  const add = uops.add(UOps.ALU, dtypes.int, [mul, acc], BinaryOps.ADD);
  const phi = uops.add(UOps.PHI, dtypes.int, [acc, add, loop]);
  uops.add(UOps.ENDLOOP, undefined, [loop]);
  uops.add(UOps.STORE, undefined, [data0, zero, phi]);
  return uops;
}

describe("seed 002: uops and the languages", () => {
  test("the 14 uops of r_2, from the pipeline and by hand", () => {
    const a = new Tensor([1, 2]);
    const b = new Tensor([3, 4]);
    const kernel = createSchedule([a.dot(b).lazydata])[2] as ScheduleItem;
    resetKernelNames();
    const k = toKernel(kernel.ast, [], MetalRenderer);
    expect([k.name, k.opts]).toEqual(["r_2", []]);
    expect(String(k.uops)).toBe(LISTING);
    expect(String(toKernel(kernel.ast, [], JSRenderer).uops)).toBe(LISTING);
    expect(String(dotProduct())).toBe(LISTING);
    // two multiplications and two additions; three buffers of 8, 8 and 4 bytes
    expect([k.ops, k.bytes, k.globalSize, k.localSize]).toEqual([4, 20, [], []]);
  });

  test("MetalLanguage, CUDALanguage and HIPLanguage are the tables of the seed", () => {
    expect(MetalLanguage).toMatchObject({
      kernelPrefix: "kernel ",
      bufferPrefix: "device ",
      smemPrefix: "threadgroup ",
      argIntPrefix: "constant int&",
      barrier: "threadgroup_barrier(mem_flags::mem_threadgroup);",
      float4: "float4",
      usesPtrArithmetic: true,
    });
    expect(CUDALanguage).toMatchObject({
      kernelPrefix: 'extern "C" __global__ ',
      smemPrefix: "__shared__ ",
      prefixForCast: false,
      barrier: "__syncthreads();",
      float4: "make_float4",
    });
    expect(HIPLanguage.kernelPrefix).toBe(HIP_PREFIX);
    expect(HIPLanguage.codeForWorkitem?.g(1)).toBe("__ockl_get_group_id(1)");
    expect(HIPLanguage.codeForWorkitem?.l(2)).toBe("__ockl_get_local_id(2)");
  });

  const BODY = `{
  int acc0 = 0;
  for (int ridx0 = 0; ridx0 < 2; ridx0++) {
    int val0 = data1[ridx0];
    int val1 = data2[ridx0];
    acc0 = ((val0*val1)+acc0);
  }
  data0[0] = acc0;
}`;

  test("the same kernel in every language", () => {
    expect(uopsToCStyle(MetalLanguage, "r_2", dotProduct())).toBe(R_2);
    expect(uopsToCStyle(CUDALanguage, "r_2", dotProduct())).toBe(
      `extern "C" __global__ void r_2(int* data0, const int* data1, const int* data2) ${BODY}`,
    );
    // the seed's prefix ends at the bracket, so nothing stands between it and void
    expect(uopsToCStyle(HIPLanguage, "r_2", dotProduct())).toBe(
      `${HIP_PREFIX}void r_2(int* data0, const int* data1, const int* data2) ${BODY}`,
    );
    expect(uopsToCStyle(OpenCLLanguage, "r_2", dotProduct())).toBe(
      `__kernel void r_2(__global int* data0, const __global int* data1, const __global int* data2) ${BODY}`,
    );
    expect(uopsToCStyle(ClangLanguage, "r_2", dotProduct())).toBe(
      `void r_2(int* data0, const int* data1, const int* data2) ${BODY}`,
    );
  });
});

const HIP_PREFIX = `extern "C" __attribute__((device)) __attribute__((const)) size_t __ockl_get_local_id(unsigned int);
extern "C" __attribute__((device)) __attribute__((const)) size_t __ockl_get_group_id(unsigned int);
extern "C" __attribute__((device)) __attribute__((const)) size_t __ockl_get_local_size(unsigned int);
extern "C" {\n${[["float", 32] as const, ["double", 64] as const, ["_Float16", 16] as const]
  .map(
    ([dt, n]) => `  __attribute__((device)) __attribute__((const)) ${dt} __ocml_fmax_f${n}(${dt}, ${dt});
  __attribute__((device)) __attribute__((pure)) ${dt} __ocml_exp2_f${n}(${dt});
  __attribute__((device)) __attribute__((pure)) ${dt} __ocml_log2_f${n}(${dt});
  __attribute__((device)) __attribute__((const)) ${dt} __ocml_sqrt_f${n}(${dt});
  __attribute__((device)) ${dt} __ocml_sin_f${n}(${dt});\n`,
  )
  .join("")}}\nextern "C" __attribute__((global))`;

describe("seed 002: kernels by hand", () => {
  test("1. if you don't pass anything to it", () => {
    const output = uopsToCStyle(MetalLanguage, "test", []);
    expect(output).toBe(`#include <metal_stdlib>
using namespace metal;
kernel void test(${GRID}) {

}`);
  });

  test("1. some data to pass into it", () => {
    const uops = new UOpGraph();
    uops.add(UOps.DEFINE_GLOBAL, PtrDType(dtypes.float16), [], [0, "data0", true]);
    const output = uopsToCStyle(MetalLanguage, "test", uops);
    // the seed prints `device int*` here, a slip: its pointer is to float16, and ours prints that
    expect(output).toBe(`#include <metal_stdlib>
using namespace metal;
kernel void test(device half* data0, ${GRID}) {

}`);
  });

  test("2. return some value", () => {
    const uops = new UOpGraph();
    const _global = uops.add(UOps.DEFINE_GLOBAL, PtrDType(dtypes.int), [], [0, "data0", true]);
    const _value = uops.add(UOps.CONST, dtypes.int, [], 199);
    const _zero = uops.add(UOps.CONST, dtypes.int, [], 0);
    uops.add(UOps.STORE, dtypes.float, [_global, _zero, _value], undefined);
    const output = uopsToCStyle(MetalLanguage, "test", uops);
    expect(output).toBe(`#include <metal_stdlib>
using namespace metal;
kernel void test(device int* data0, ${GRID}) {
  *(data0+0) = 199;
}`);
  });

  test("3. render an ALU: 199 + 200 is folded as it is added", () => {
    const uops = new UOpGraph();
    const _global = uops.add(UOps.DEFINE_GLOBAL, PtrDType(dtypes.int), [], [0, "data0", true]);
    const _value = uops.add(UOps.CONST, dtypes.int, [], 199);
    const _value_2 = uops.add(UOps.CONST, dtypes.int, [], 200);
    const _added = uops.add(UOps.ALU, dtypes.int, [_value, _value_2], BinaryOps.ADD);
    const _zero = uops.add(UOps.CONST, dtypes.int, [], 0);
    uops.add(UOps.STORE, dtypes.float, [_global, _zero, _added], undefined);
    const output = uopsToCStyle(MetalLanguage, "test", uops);
    expect([_added.op, _added.arg]).toEqual(["CONST", 399]);
    expect(output).toBe(`#include <metal_stdlib>
using namespace metal;
kernel void test(device int* data0, ${GRID}) {
  *(data0+0) = 399;
}`);
  });
});

/** The seed's METAL is played by each device that has memory of its own. */
describe.each(["WASM", "JS", "CLANG"])("seed 002: buffers and copies, on %s", (GPU) => {
  const isThere = () =>
    Device.open(GPU).then(
      () => "",
      (e: Error) => e.message,
    );

  test("BufferCopy().exec([gpu, cpu]) moves [1,2]; without it the memory reads [0,0]", async ({ skip }) => {
    const missing = await isThere();
    skip(missing !== "", missing);
    for (const execute of [true, false]) {
      const cpuData = new Int32Array([1, 2]);
      const cpuDataMemory = new Uint8Array(cpuData.buffer);
      const cpuBuffer = new Buffer("EXT", 2, dtypes.int);
      cpuBuffer.allocate(cpuDataMemory);

      const gpuBuffer = new Buffer(GPU, 2, dtypes.int);
      gpuBuffer.allocate();

      const bufferOp = new BufferCopy();
      if (execute) bufferOp.exec([gpuBuffer, cpuBuffer]);

      expect(new Int32Array(gpuBuffer.asBuffer().buffer)).toEqual(new Int32Array(execute ? [1, 2] : [0, 0]));
      expect(await gpuBuffer.data()).toEqual(gpuBuffer.dataSync());
      gpuBuffer.dispose();
    }
  });

  test("zeros also where the memory was used before", async ({ skip }) => {
    const missing = await isThere();
    skip(missing !== "", missing);
    const full = new Buffer("EXT", 1000, dtypes.int).allocate(new Uint8Array(4000).fill(255));
    const first = new Buffer(GPU, 1000, dtypes.int).allocate();
    const before = GlobalCounters.memUsedOn(GPU);
    new BufferCopy().exec([first, full]);
    const used = first.handle;
    expect(first.dataSync()[999]).toBe(-1);
    first.dispose();
    expect(GlobalCounters.memUsedOn(GPU)).toBe(before - 4000);
    const second = new Buffer(GPU, 1000, dtypes.int).allocate();
    if (GPU === "WASM") expect(second.handle).toEqual(used); // the very same place
    expect(second.dataSync()).toEqual(new Int32Array(1000));
  });

  test("a copy between buffers that differ is refused", async ({ skip }) => {
    const missing = await isThere();
    skip(missing !== "", missing);
    const two = new Buffer(GPU, 2, dtypes.int).allocate();
    const three = new Buffer("EXT", 3, dtypes.int).allocate();
    const floats = new Buffer("EXT", 2, dtypes.float).allocate();
    expect(() => new BufferCopy().exec([two, three])).toThrow(ShapeError);
    expect(() => new BufferCopy().exec([two, floats])).toThrow(/2 × float32 into 2 × int32/);
    expect(two.dataSync()).toEqual(new Int32Array(2));
  });
});
