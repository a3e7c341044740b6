// The texts of a few kernels for GPUs as the heuristics make them: a softmax that is one kernel, and a
// product of matrices by tensor cores. And nvcc takes what is rendered for
// every tensor core, layout and type.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSchedule, dtypes, resetKernelNames, Tensor } from "gradloom";
import { CUDALanguage, CUDARenderer } from "gradloom/render";
import { expect, test } from "vitest";
import { toFastKernel, toKernel } from "../../src/codegen/kernel.ts";
import { MMA } from "../../src/codegen/opt/mma.ts";
import { type OptOp, showOpts } from "../../src/codegen/opt/opts.ts";
import { withEnv } from "../../src/env.ts";
import { Device } from "../../src/runtime/registry.ts";
import { opt } from "../codegen/kernels.ts";

await Device.open("JS");
const empty = (shape: readonly number[], dtype = dtypes.float32): Tensor =>
  Tensor.empty([...shape], { device: "JS", dtype });

/** The last kernel of a tensor: by the list, or by the heuristic. */
function render(t: Tensor, opts?: readonly OptOp[]): { list: string; text: string } {
  const item = createSchedule([t.lazydata]).at(-1);
  const ast = item?.ast ?? [];
  const kernel =
    opts === undefined ? toFastKernel(ast, CUDARenderer, false) : toKernel(ast, opts, CUDARenderer);
  return { list: showOpts(kernel.opts), text: CUDARenderer.render(kernel.name, kernel.uops).code };
}

test("a softmax: a workgroup a row, which is read once", () => {
  resetKernelNames();
  const { list, text } = render(empty([4096, 256]).softmax());
  expect(list).toMatchInlineSnapshot(
    `"UNROLL(2, factor=4) GROUPTOP(2, threads=64) UNROLL(3, factor=4) GROUPTOP(3, threads=64) UPCAST(1, lanes=4) LOCAL(1, threads=64) LOCAL(0, threads=2)"`,
  );
  expect(text).toMatchInlineSnapshot(`
    "extern "C" __global__ void __launch_bounds__(128) r_2048_2_64_4_4_4(float* data0, const float* data1) {
      int gidx0 = blockIdx.x; /* 2048 */
      int lidx0 = threadIdx.x; /* 64 */
      int lidx1 = threadIdx.y; /* 2 */
      int alu0 = (((gidx0*512)+(lidx1*256))+(lidx0*4));
      float4 val0 = *((float4*)(data1+alu0));
      float alu1 = (((val0.x>val0.y)|(val0.x!=val0.x))?val0.x:val0.y);
      float alu2 = (((val0.z>val0.w)|(val0.z!=val0.z))?val0.z:val0.w);
      float alu3 = (((alu1>alu2)|(alu1!=alu1))?alu1:alu2);
      float val1 = __shfl_xor_sync(0xffffffffu,alu3,16);
      float alu4 = (((alu3>val1)|(alu3!=alu3))?alu3:val1);
      float val2 = __shfl_xor_sync(0xffffffffu,alu4,8);
      float alu5 = (((alu4>val2)|(alu4!=alu4))?alu4:val2);
      float val3 = __shfl_xor_sync(0xffffffffu,alu5,4);
      float alu6 = (((alu5>val3)|(alu5!=alu5))?alu5:val3);
      float val4 = __shfl_xor_sync(0xffffffffu,alu6,2);
      float alu7 = (((alu6>val4)|(alu6!=alu6))?alu6:val4);
      float val5 = __shfl_xor_sync(0xffffffffu,alu7,1);
      __align__(16) __shared__ float shared0[4];
      if ((lidx0%32)==0) shared0[((lidx0/32)*2)+lidx1] = (((alu7>val5)|(alu7!=alu7))?alu7:val5);
      __syncthreads();
      float val6 = shared0[((lidx0%2)*2)+lidx1];
      float val7 = __shfl_xor_sync(0xffffffffu,val6,1);
      float alu8 = (((val6>val7)|(val6!=val6))?val6:val7);
      float alu9 = exp2f(((val0.x-alu8)*1.4426950408889634f));
      float alu10 = exp2f(((val0.y-alu8)*1.4426950408889634f));
      float alu11 = exp2f(((val0.z-alu8)*1.4426950408889634f));
      float alu12 = exp2f(((val0.w-alu8)*1.4426950408889634f));
      float alu13 = (((alu9+alu10)+(alu11+alu12))+0.0f);
      float val8 = __shfl_xor_sync(0xffffffffu,alu13,16);
      float alu14 = (alu13+val8);
      float val9 = __shfl_xor_sync(0xffffffffu,alu14,8);
      float alu15 = (alu14+val9);
      float val10 = __shfl_xor_sync(0xffffffffu,alu15,4);
      float alu16 = (alu15+val10);
      float val11 = __shfl_xor_sync(0xffffffffu,alu16,2);
      float alu17 = (alu16+val11);
      float val12 = __shfl_xor_sync(0xffffffffu,alu17,1);
      __align__(16) __shared__ float shared1[4];
      if ((lidx0%32)==0) shared1[((lidx0/32)*2)+lidx1] = (alu17+val12);
      __syncthreads();
      float val13 = shared1[((lidx0%2)*2)+lidx1];
      float val14 = __shfl_xor_sync(0xffffffffu,val13,1);
      float alu18 = (1.0f/(val13+val14));
      *((float4*)(data0+alu0)) = make_float4((alu9*alu18),(alu10*alu18),(alu11*alu18),(alu12*alu18));
    }"
  `);
});

test("a product of bfloat16 matrices: tensor cores, operands prefetched to shared memory", () => {
  resetKernelNames();
  const { bfloat16, float32 } = dtypes;
  const [a, b] = [empty([32, 64], bfloat16), empty([64, 16], bfloat16)];
  const { list, text } = render(a.cast(float32).dot(b.cast(float32)));
  expect(list).toMatchInlineSnapshot(`"TC(2, core=0) UNROLL(2, factor=4) SHARED(2, stages=3)"`);
  expect(text).toMatchInlineSnapshot(`
    "struct __align__(2) bfloat16 {
      unsigned short bits;
      bfloat16() = default;
      __device__ explicit bfloat16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
      __device__ operator float() const { return __uint_as_float((unsigned)bits << 16); }
    };
    static __device__ __forceinline__ void copy16(void* to, const void* from) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
    }
    static __device__ __forceinline__ uint4 ldmatrix4(const void* p) {
      uint4 r;
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"((unsigned)__cvta_generic_to_shared(p)) : "memory");
      return r;
    }
    static __device__ __forceinline__ uint2 ldmatrix2t(const void* p) {
      uint2 r;
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r.x), "=r"(r.y) : "r"((unsigned)__cvta_generic_to_shared(p)) : "memory");
      return r;
    }
    static __device__ __forceinline__ float4 mma_m16n8k16_bf16(uint4 a, uint2 b, float4 c) {
      float4 d;
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d.x), "=f"(d.y), "=f"(d.z), "=f"(d.w) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y), "f"(c.x), "f"(c.y), "f"(c.z), "f"(c.w));
      return d;
    }
    extern "C" __global__ void __launch_bounds__(32) r_2_2_32_4_4(float* data0, const bfloat16* data1, const bfloat16* data2) {
      int gidx0 = blockIdx.x; /* 2 */
      int gidx1 = blockIdx.y; /* 2 */
      int lidx0 = threadIdx.x; /* 32 */
      int alu0 = (gidx1*1024);
      __align__(16) __shared__ bfloat16 shared0[1024];
      int alu1 = (lidx0*8);
      int alu2 = ((lidx0*8)+256);
      int alu3 = (lidx0*8);
      int alu4 = ((lidx0*8)+768);
      copy16(shared0+(alu1^(((alu1/64)%8)*8)), data1+alu0+(lidx0*8));
      copy16(shared0+(alu2^(((alu2/64)%8)*8)), data1+(alu0+(lidx0*8))+256);
      copy16(shared0+(alu3^(((alu3/64)%8)*8))+512, data1+(alu0+(lidx0*8))+512);
      copy16(shared0+(alu4^(((alu4/64)%8)*8)), data1+(alu0+(lidx0*8))+768);
      asm volatile("cp.async.commit_group;" ::: "memory");
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      __syncthreads();
      int alu5 = ((lidx0/16)*8);
      int alu6 = (lidx0%8);
      int alu7 = (alu6*8);
      int alu8 = ((lidx0/8)%2);
      int alu9 = ((alu6*64)+(alu8*512));
      uint4 val0 = ldmatrix4(shared0+(alu5^alu7)+alu9);
      int alu10 = (gidx0*8);
      __align__(16) __shared__ bfloat16 shared1[512];
      copy16(shared1+(lidx0*8), data2+alu10+(lidx0*16));
      copy16(shared1+(lidx0*8)+256, data2+(alu10+(lidx0*16))+512);
      asm volatile("cp.async.commit_group;" ::: "memory");
      asm volatile("cp.async.wait_group 0;" ::: "memory");
      __syncthreads();
      int alu11 = (alu8*64);
      uint2 val1 = ldmatrix2t(shared1+alu7+alu11);
      float4 val2 = mma_m16n8k16_bf16(val0,val1,make_float4(0.0f,0.0f,0.0f,0.0f));
      uint4 val3 = ldmatrix4(shared0+((16+alu5)^alu7)+alu9);
      uint2 val4 = ldmatrix2t(shared1+(128+alu7)+alu11);
      float4 val5 = mma_m16n8k16_bf16(val3,val4,make_float4(0.0f,0.0f,0.0f,0.0f));
      float4 alu12 = make_float4((val2.x+val5.x),(val2.y+val5.y),(val2.z+val5.z),(val2.w+val5.w));
      uint4 val6 = ldmatrix4(shared0+((32+alu5)^alu7)+alu9);
      uint2 val7 = ldmatrix2t(shared1+(256+alu7)+alu11);
      float4 val8 = mma_m16n8k16_bf16(val6,val7,make_float4(0.0f,0.0f,0.0f,0.0f));
      uint4 val9 = ldmatrix4(shared0+((48+alu5)^alu7)+alu9);
      uint2 val10 = ldmatrix2t(shared1+(384+alu7)+alu11);
      float4 val11 = mma_m16n8k16_bf16(val9,val10,make_float4(0.0f,0.0f,0.0f,0.0f));
      float4 alu13 = make_float4((val8.x+val11.x),(val8.y+val11.y),(val8.z+val11.z),(val8.w+val11.w));
      float4 alu14 = make_float4((alu12.x+alu13.x),(alu12.y+alu13.y),(alu12.z+alu13.z),(alu12.w+alu13.w));
      float4 alu15 = make_float4((alu14.x+0.0f),(alu14.y+0.0f),(alu14.z+0.0f),(alu14.w+0.0f));
      int alu16 = ((((gidx1*256)+alu10)+((lidx0/4)*16))+((lidx0%4)*2));
      *((float2*)(data0+alu16)) = make_float2(alu15.x,alu15.y);
      *((float2*)(data0+alu16+128)) = make_float2(alu15.z,alu15.w);
    }"
  `);
});

test("nvcc compiles them all", { timeout: 240_000 }, ({ skip }) => {
  skip(spawnSync("nvcc", ["--version"]).status !== 0, "nvcc is not installed");
  const products = MMA.flatMap(({ from }, i) =>
    [false, true].flatMap((turned) => {
      const t = empty([128, 128], from).dot(turned ? empty([128, 128], from).T : empty([128, 128], from));
      const shared = [opt("UPCAST", 0, 2), opt("LOCAL", 1, 2), opt("SHARED", 2, 2)];
      const lists = [[opt("TC", 2, i)], [opt("TC", 2, i), ...shared]];
      return withEnv({ ALLOW_TF32: 1 }, () => lists.map((list) => render(t, list)));
    }),
  );
  const others = [
    empty([1 << 20]).add(1),
    empty([1000003]).mul(2),
    empty([512, 512]).T.add(1),
    empty([256, 1001]).softmax(),
    empty([1 << 22]).sum(),
    empty([512, 512]).dot(empty([512, 512])),
    empty([64, 32, 28, 28]).conv2d(empty([32, 32, 3, 3]), undefined, { padding: 1 }),
    empty([512, 512], dtypes.float16).softmax(),
    empty([512, 512], dtypes.bfloat16).add(1),
    empty([512], dtypes.float8e4m3).mul(2),
  ].map((t) => render(t));
  const tf32 = withEnv({ ALLOW_TF32: 1 }, () => render(empty([256, 256]).dot(empty([256, 256]))));
  expect(tf32.list).toContain("TC");
  const texts = [...products, ...others, tf32].map(({ text }) => text);
  const heads = new Set(texts.flatMap((t) => t.match(/^#include.*$/gm) ?? []));
  const bodies = texts.map((t, i) => `namespace n${i} {\n${t.replaceAll(/^#include.*$/gm, "")}\n}`);
  const folder = mkdtempSync(join(tmpdir(), "gradloom-gpu-"));
  try {
    writeFileSync(join(folder, "kernels.cu"), [...heads, ...bodies].join("\n"));
    const args = ["-cubin", "-arch=sm_90", ...CUDALanguage.flags, "-o", "out.cubin", "kernels.cu"];
    const { stderr, stdout, status } = spawnSync("nvcc", args, { encoding: "utf8", cwd: folder });
    expect(`${stdout}${stderr}`).toBe("");
    expect(status).toBe(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
