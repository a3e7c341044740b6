// The kernels of six tensors as every language spells them, read line by line: no needless division or
// remainder, bounds checked only where something is padded. That compilers take these texts and that their
// values are right is compile.test.ts's part. After a change on purpose: `npx vitest run test/golden -u`, and
// read the difference.

import { createSchedule, type Renderer, resetKernelNames, Tensor, toKernel } from "gradloom";
import { ClangRenderer, CUDARenderer, MetalRenderer, OpenCLRenderer, WGSLRenderer } from "gradloom/render";
import { expect, test } from "vitest";
import type { OptOp } from "../../src/codegen/opt/opts.ts";
import { clangRenderer } from "../../src/render/languages.ts";
import { GOLDENS, type Golden, kernelText } from "./pipeline.ts";

const text = (renderer: Renderer, name: string): string =>
  kernelText(renderer, GOLDENS.find((g) => g.name === name) as Golden);

// [4,4] in order is one loop of 16; NaN goes through, as in torch
test("relu(a*b+c)", () => {
  expect(text(ClangRenderer, "relu(a*b+c)")).toMatchInlineSnapshot(`
    "void E_16(float* data0, const float* data1, const float* data2, const float* data3) {
      for (int ridx0 = 0; ridx0 < 16; ridx0++) {
        float val0 = data1[ridx0];
        float val1 = data2[ridx0];
        float val2 = data3[ridx0];
        float alu0 = ((val0*val1)+val2);
        data0[ridx0] = (((alu0>0.0f)|(alu0!=alu0))?alu0:0.0f);
      }
    }"
  `);
  expect(text(MetalRenderer, "relu(a*b+c)")).toMatchInlineSnapshot(`
    "#include <metal_stdlib>
    using namespace metal;
    kernel void E_16(device float* data0, const device float* data1, const device float* data2, const device float* data3, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
      int gidx0 = gid.x; /* 16 */
      float val0 = *(data1+gidx0);
      float val1 = *(data2+gidx0);
      float val2 = *(data3+gidx0);
      float alu0 = ((val0*val1)+val2);
      *(data0+gidx0) = (((alu0>0.0f)|(alu0!=alu0))?alu0:0.0f);
    }"
  `);
  expect(text(CUDARenderer, "relu(a*b+c)")).toMatchInlineSnapshot(`
    "extern "C" __global__ void E_16(float* data0, const float* data1, const float* data2, const float* data3) {
      int gidx0 = blockIdx.x; /* 16 */
      float val0 = data1[gidx0];
      float val1 = data2[gidx0];
      float val2 = data3[gidx0];
      float alu0 = ((val0*val1)+val2);
      data0[gidx0] = (((alu0>0.0f)|(alu0!=alu0))?alu0:0.0f);
    }"
  `);
  expect(text(OpenCLRenderer, "relu(a*b+c)")).toMatchInlineSnapshot(`
    "#pragma OPENCL FP_CONTRACT OFF
    __kernel void E_16(__global float* data0, const __global float* data1, const __global float* data2, const __global float* data3) {
      int gidx0 = get_group_id(0); /* 16 */
      float val0 = data1[gidx0];
      float val1 = data2[gidx0];
      float val2 = data3[gidx0];
      float alu0 = ((val0*val1)+val2);
      data0[gidx0] = (((alu0>0.0f)|(alu0!=alu0))?alu0:0.0f);
    }"
  `);
  expect(text(WGSLRenderer, "relu(a*b+c)")).toMatchInlineSnapshot(`
    "@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
    @group(0) @binding(1) var<storage, read> data1: array<f32>;
    @group(0) @binding(2) var<storage, read> data2: array<f32>;
    @group(0) @binding(3) var<storage, read> data3: array<f32>;
    fn is_nan(x: f32) -> bool {
      return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    }
    fn nan_max(a: f32, b: f32) -> f32 {
      if (is_nan(a)) { return a; }
      if (is_nan(b)) { return b; }
      return max(a, b);
    }
    @compute @workgroup_size(1, 1, 1) fn E_16(@builtin(workgroup_id) gid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>) {
      let gidx0 = i32(gid.x); /* 16 */
      let val0 = data1[gidx0];
      let val1 = data2[gidx0];
      let val2 = data3[gidx0];
      let alu0 = ((val0*val1)+val2);
      data0[gidx0] = nan_max(alu0,0.0f);
    }"
  `);
});

// a row of a, a column of b, one accumulator; no division and no remainder in any address
test("matmul", () => {
  expect(text(ClangRenderer, "matmul")).toMatchInlineSnapshot(`
    "void r_4_4_4(float* data0, const float* data1, const float* data2) {
      for (int ridx0 = 0; ridx0 < 4; ridx0++) {
        int alu0 = (ridx0*4);
        for (int ridx1 = 0; ridx1 < 4; ridx1++) {
          float acc0 = 0.0f;
          for (int ridx2 = 0; ridx2 < 4; ridx2++) {
            float val0 = data1[alu0+ridx2];
            float val1 = data2[ridx1+(ridx2*4)];
            acc0 = ((val0*val1)+acc0);
          }
          data0[alu0+ridx1] = acc0;
        }
      }
    }"
  `);
  expect(text(MetalRenderer, "matmul")).toMatchInlineSnapshot(`
    "#include <metal_stdlib>
    using namespace metal;
    kernel void r_4_4_4(device float* data0, const device float* data1, const device float* data2, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
      int gidx0 = gid.x; /* 4 */
      int gidx1 = gid.y; /* 4 */
      float acc0 = 0.0f;
      int alu0 = (gidx1*4);
      for (int ridx0 = 0; ridx0 < 4; ridx0++) {
        float val0 = *(data1+alu0+ridx0);
        float val1 = *(data2+gidx0+(ridx0*4));
        acc0 = ((val0*val1)+acc0);
      }
      *(data0+alu0+gidx0) = acc0;
    }"
  `);
  expect(text(CUDARenderer, "matmul")).toMatchInlineSnapshot(`
    "extern "C" __global__ void r_4_4_4(float* data0, const float* data1, const float* data2) {
      int gidx0 = blockIdx.x; /* 4 */
      int gidx1 = blockIdx.y; /* 4 */
      float acc0 = 0.0f;
      int alu0 = (gidx1*4);
      for (int ridx0 = 0; ridx0 < 4; ridx0++) {
        float val0 = data1[alu0+ridx0];
        float val1 = data2[gidx0+(ridx0*4)];
        acc0 = fmaf(val0,val1,acc0);
      }
      data0[alu0+gidx0] = acc0;
    }"
  `);
  expect(text(OpenCLRenderer, "matmul")).toMatchInlineSnapshot(`
    "#pragma OPENCL FP_CONTRACT OFF
    __kernel void r_4_4_4(__global float* data0, const __global float* data1, const __global float* data2) {
      int gidx0 = get_group_id(0); /* 4 */
      int gidx1 = get_group_id(1); /* 4 */
      float acc0 = 0.0f;
      int alu0 = (gidx1*4);
      for (int ridx0 = 0; ridx0 < 4; ridx0++) {
        float val0 = data1[alu0+ridx0];
        float val1 = data2[gidx0+(ridx0*4)];
        acc0 = ((val0*val1)+acc0);
      }
      data0[alu0+gidx0] = acc0;
    }"
  `);
  expect(text(WGSLRenderer, "matmul")).toMatchInlineSnapshot(`
    "@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
    @group(0) @binding(1) var<storage, read> data1: array<f32>;
    @group(0) @binding(2) var<storage, read> data2: array<f32>;
    @compute @workgroup_size(1, 1, 1) fn r_4_4_4(@builtin(workgroup_id) gid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>) {
      let gidx0 = i32(gid.x); /* 4 */
      let gidx1 = i32(gid.y); /* 4 */
      var acc0: f32 = 0.0f;
      let alu0 = (gidx1*4);
      for (var ridx0: i32 = 0; ridx0 < 4; ridx0++) {
        let val0 = data1[alu0+ridx0];
        let val1 = data2[gidx0+(ridx0*4)];
        acc0 = fma(val0,val1,acc0);
      }
      data0[alu0+gidx0] = acc0;
    }"
  `);
});

// the row above, zeros above the first: only that load is gated, and only below
test("padded shift", () => {
  expect(text(ClangRenderer, "padded shift")).toMatchInlineSnapshot(`
    "void E_4_4(float* data0, const float* data1, const float* data2) {
      for (int ridx0 = 0; ridx0 < 4; ridx0++) {
        for (int ridx1 = 0; ridx1 < 4; ridx1++) {
          int alu0 = ((ridx0*4)+ridx1);
          float val0 = ((0<ridx0)?data1[alu0+(-4)]:0.0f);
          float val1 = data2[alu0];
          data0[alu0] = (val0+val1);
        }
      }
    }"
  `);
  expect(text(MetalRenderer, "padded shift")).toMatchInlineSnapshot(`
    "#include <metal_stdlib>
    using namespace metal;
    kernel void E_4_4(device float* data0, const device float* data1, const device float* data2, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
      int gidx0 = gid.x; /* 4 */
      int gidx1 = gid.y; /* 4 */
      int alu0 = ((gidx1*4)+gidx0);
      float val0 = ((0<gidx1)?*(data1+alu0+(-4)):0.0f);
      float val1 = *(data2+alu0);
      *(data0+alu0) = (val0+val1);
    }"
  `);
  expect(text(CUDARenderer, "padded shift")).toMatchInlineSnapshot(`
    "extern "C" __global__ void E_4_4(float* data0, const float* data1, const float* data2) {
      int gidx0 = blockIdx.x; /* 4 */
      int gidx1 = blockIdx.y; /* 4 */
      int alu0 = ((gidx1*4)+gidx0);
      float val0 = ((0<gidx1)?data1[alu0+(-4)]:0.0f);
      float val1 = data2[alu0];
      data0[alu0] = (val0+val1);
    }"
  `);
  expect(text(OpenCLRenderer, "padded shift")).toMatchInlineSnapshot(`
    "#pragma OPENCL FP_CONTRACT OFF
    __kernel void E_4_4(__global float* data0, const __global float* data1, const __global float* data2) {
      int gidx0 = get_group_id(0); /* 4 */
      int gidx1 = get_group_id(1); /* 4 */
      int alu0 = ((gidx1*4)+gidx0);
      float val0 = ((0<gidx1)?data1[alu0+(-4)]:0.0f);
      float val1 = data2[alu0];
      data0[alu0] = (val0+val1);
    }"
  `);
  expect(text(WGSLRenderer, "padded shift")).toMatchInlineSnapshot(`
    "@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
    @group(0) @binding(1) var<storage, read> data1: array<f32>;
    @group(0) @binding(2) var<storage, read> data2: array<f32>;
    @compute @workgroup_size(1, 1, 1) fn E_4_4(@builtin(workgroup_id) gid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>) {
      let gidx0 = i32(gid.x); /* 4 */
      let gidx1 = i32(gid.y); /* 4 */
      let alu0 = ((gidx1*4)+gidx0);
      var val0: f32 = 0.0f;
      if (0<gidx1) {
        val0 = data1[alu0+(-4)];
      }
      let val1 = data2[alu0];
      data0[alu0] = (val0+val1);
    }"
  `);
});

// one kernel: two accumulators a row, then the row once more
test("softmax of rows", () => {
  expect(text(ClangRenderer, "softmax of rows")).toMatchInlineSnapshot(`
    "#include <math.h>
    void r_4_4_4_4(float* data0, const float* data1) {
      for (int ridx0 = 0; ridx0 < 4; ridx0++) {
        int alu0 = (ridx0*4);
        float acc0 = (-INFINITY);
        for (int ridx1 = 0; ridx1 < 4; ridx1++) {
          float val0 = data1[alu0+ridx1];
          acc0 = (((val0>acc0)|(val0!=val0))?val0:acc0);
        }
        float acc1 = 0.0f;
        for (int ridx2 = 0; ridx2 < 4; ridx2++) {
          float val1 = data1[alu0+ridx2];
          acc1 = (exp2f(((val1-acc0)*1.4426950408889634f))+acc1);
        }
        float alu1 = (1.0f/acc1);
        for (int ridx3 = 0; ridx3 < 4; ridx3++) {
          int alu2 = (alu0+ridx3);
          float val2 = data1[alu2];
          data0[alu2] = (exp2f(((val2-acc0)*1.4426950408889634f))*alu1);
        }
      }
    }"
  `);
  expect(text(MetalRenderer, "softmax of rows")).toMatchInlineSnapshot(`
    "#include <metal_stdlib>
    using namespace metal;
    kernel void r_4_4_4_4(device float* data0, const device float* data1, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
      int gidx0 = gid.x; /* 4 */
      int alu0 = (gidx0*4);
      float acc0 = (-INFINITY);
      for (int ridx0 = 0; ridx0 < 4; ridx0++) {
        float val0 = *(data1+alu0+ridx0);
        acc0 = (((val0>acc0)|(val0!=val0))?val0:acc0);
      }
      float acc1 = 0.0f;
      for (int ridx1 = 0; ridx1 < 4; ridx1++) {
        float val1 = *(data1+alu0+ridx1);
        acc1 = (precise::exp2(((val1-acc0)*1.4426950408889634f))+acc1);
      }
      float alu1 = (1.0f/acc1);
      for (int ridx2 = 0; ridx2 < 4; ridx2++) {
        int alu2 = (alu0+ridx2);
        float val2 = *(data1+alu2);
        *(data0+alu2) = (precise::exp2(((val2-acc0)*1.4426950408889634f))*alu1);
      }
    }"
  `);
  expect(text(CUDARenderer, "softmax of rows")).toMatchInlineSnapshot(`
    "extern "C" __global__ void r_4_4_4_4(float* data0, const float* data1) {
      int gidx0 = blockIdx.x; /* 4 */
      int alu0 = (gidx0*4);
      float acc0 = (-__int_as_float(0x7f800000));
      for (int ridx0 = 0; ridx0 < 4; ridx0++) {
        float val0 = data1[alu0+ridx0];
        acc0 = (((val0>acc0)|(val0!=val0))?val0:acc0);
      }
      float acc1 = 0.0f;
      for (int ridx1 = 0; ridx1 < 4; ridx1++) {
        float val1 = data1[alu0+ridx1];
        acc1 = (exp2f(((val1-acc0)*1.4426950408889634f))+acc1);
      }
      float alu1 = (1.0f/acc1);
      for (int ridx2 = 0; ridx2 < 4; ridx2++) {
        int alu2 = (alu0+ridx2);
        float val2 = data1[alu2];
        data0[alu2] = (exp2f(((val2-acc0)*1.4426950408889634f))*alu1);
      }
    }"
  `);
  expect(text(OpenCLRenderer, "softmax of rows")).toMatchInlineSnapshot(`
    "#pragma OPENCL FP_CONTRACT OFF
    __kernel void r_4_4_4_4(__global float* data0, const __global float* data1) {
      int gidx0 = get_group_id(0); /* 4 */
      int alu0 = (gidx0*4);
      float acc0 = (-INFINITY);
      for (int ridx0 = 0; ridx0 < 4; ridx0++) {
        float val0 = data1[alu0+ridx0];
        acc0 = (((val0>acc0)|(val0!=val0))?val0:acc0);
      }
      float acc1 = 0.0f;
      for (int ridx1 = 0; ridx1 < 4; ridx1++) {
        float val1 = data1[alu0+ridx1];
        acc1 = (exp2(((val1-acc0)*1.4426950408889634f))+acc1);
      }
      float alu1 = (1.0f/acc1);
      for (int ridx2 = 0; ridx2 < 4; ridx2++) {
        int alu2 = (alu0+ridx2);
        float val2 = data1[alu2];
        data0[alu2] = (exp2(((val2-acc0)*1.4426950408889634f))*alu1);
      }
    }"
  `);
  expect(text(WGSLRenderer, "softmax of rows")).toMatchInlineSnapshot(`
    "@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
    @group(0) @binding(1) var<storage, read> data1: array<f32>;
    fn inf() -> f32 {
      var bits = 0x7f800000u;
      return bitcast<f32>(bits);
    }
    fn is_nan(x: f32) -> bool {
      return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    }
    fn nan_max(a: f32, b: f32) -> f32 {
      if (is_nan(a)) { return a; }
      if (is_nan(b)) { return b; }
      return max(a, b);
    }
    fn nan_exp2(x: f32) -> f32 {
      if (is_nan(x)) { return x; }
      return exp2(x);
    }
    fn div(a: f32, b: f32) -> f32 {
      let scale = select(1.0f, 0.25f, abs(b) > 8.507059e37f);
      return (a * scale) / (b * scale);
    }
    @compute @workgroup_size(1, 1, 1) fn r_4_4_4_4(@builtin(workgroup_id) gid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>) {
      let gidx0 = i32(gid.x); /* 4 */
      let alu0 = (gidx0*4);
      var acc0: f32 = (-inf());
      for (var ridx0: i32 = 0; ridx0 < 4; ridx0++) {
        let val0 = data1[alu0+ridx0];
        acc0 = nan_max(val0,acc0);
      }
      var acc1: f32 = 0.0f;
      for (var ridx1: i32 = 0; ridx1 < 4; ridx1++) {
        let val1 = data1[alu0+ridx1];
        acc1 = (nan_exp2(((val1-acc0)*1.4426950408889634f))+acc1);
      }
      let alu1 = div(1.0f,acc1);
      for (var ridx2: i32 = 0; ridx2 < 4; ridx2++) {
        let alu2 = (alu0+ridx2);
        let val2 = data1[alu2];
        data0[alu2] = (nan_exp2(((val2-acc0)*1.4426950408889634f))*alu1);
      }
    }"
  `);
});

// float to int stops at the ends and NaN is 0, on every target
test("cast chain", () => {
  expect(text(ClangRenderer, "cast chain")).toMatchInlineSnapshot(`
    "void E_8(float* data0, const float* data1) {
      for (int ridx0 = 0; ridx0 < 8; ridx0++) {
        float val0 = data1[ridx0];
        unsigned char alu0 = (-2147483648.0f<val0);
        unsigned char alu1 = (val0<2147483647.0f);
        data0[ridx0] = (float)((((val0!=val0)?0:(alu0?(alu1?(int)(((alu0&alu1)?val0:0.0f)):2147483647):(-2147483647-1)))!=0));
      }
    }"
  `);
  expect(text(MetalRenderer, "cast chain")).toMatchInlineSnapshot(`
    "#include <metal_stdlib>
    using namespace metal;
    kernel void E_8(device float* data0, const device float* data1, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
      int gidx0 = gid.x; /* 8 */
      float val0 = *(data1+gidx0);
      bool alu0 = (-2147483648.0f<val0);
      bool alu1 = (val0<2147483647.0f);
      *(data0+gidx0) = (float)((((val0!=val0)?0:(alu0?(alu1?(int)(((alu0&alu1)?val0:0.0f)):2147483647):(-2147483647-1)))!=0));
    }"
  `);
  expect(text(CUDARenderer, "cast chain")).toMatchInlineSnapshot(`
    "extern "C" __global__ void E_8(float* data0, const float* data1) {
      int gidx0 = blockIdx.x; /* 8 */
      float val0 = data1[gidx0];
      bool alu0 = (-2147483648.0f<val0);
      bool alu1 = (val0<2147483647.0f);
      data0[gidx0] = (float)((((val0!=val0)?0:(alu0?(alu1?(int)(((alu0&alu1)?val0:0.0f)):2147483647):(-2147483647-1)))!=0));
    }"
  `);
  expect(text(OpenCLRenderer, "cast chain")).toMatchInlineSnapshot(`
    "#pragma OPENCL FP_CONTRACT OFF
    __kernel void E_8(__global float* data0, const __global float* data1) {
      int gidx0 = get_group_id(0); /* 8 */
      float val0 = data1[gidx0];
      uchar alu0 = (-2147483648.0f<val0);
      uchar alu1 = (val0<2147483647.0f);
      data0[gidx0] = (float)((((val0!=val0)?0:(alu0?(alu1?(int)(((alu0&alu1)?val0:0.0f)):2147483647):(-2147483647-1)))!=0));
    }"
  `);
  expect(text(WGSLRenderer, "cast chain")).toMatchInlineSnapshot(`
    "@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
    @group(0) @binding(1) var<storage, read> data1: array<f32>;
    fn is_nan(x: f32) -> bool {
      return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
    }
    fn to_i32(x: f32) -> i32 {
      if (is_nan(x)) { return 0; }
      if (x >= 2147483648.0f) { return 2147483647; }
      if (x <= -2147483648.0f) { return i32(-2147483648); }
      return i32(x);
    }
    @compute @workgroup_size(1, 1, 1) fn E_8(@builtin(workgroup_id) gid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>) {
      let gidx0 = i32(gid.x); /* 8 */
      let val0 = data1[gidx0];
      data0[gidx0] = f32((to_i32(val0)!=0));
    }"
  `);
});

// the size is an argument, so that one kernel serves every n
test("sum of a symbolic size", () => {
  expect(text(ClangRenderer, "sum of a symbolic size")).toMatchInlineSnapshot(`
    "void r_4_n(float* data0, const float* data1, const int n) {
      for (int ridx0 = 0; ridx0 < 4; ridx0++) {
        float acc0 = 0.0f;
        for (int ridx1 = 0; ridx1 < n; ridx1++) {
          float val0 = data1[ridx0+(ridx1*4)];
          acc0 = (val0+acc0);
        }
        data0[ridx0] = acc0;
      }
    }"
  `);
  expect(text(MetalRenderer, "sum of a symbolic size")).toMatchInlineSnapshot(`
    "#include <metal_stdlib>
    using namespace metal;
    kernel void r_4_n(device float* data0, const device float* data1, constant int& n, uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
      int gidx0 = gid.x; /* 4 */
      float acc0 = 0.0f;
      for (int ridx0 = 0; ridx0 < n; ridx0++) {
        float val0 = *(data1+gidx0+(ridx0*4));
        acc0 = (val0+acc0);
      }
      *(data0+gidx0) = acc0;
    }"
  `);
  expect(text(CUDARenderer, "sum of a symbolic size")).toMatchInlineSnapshot(`
    "extern "C" __global__ void r_4_n(float* data0, const float* data1, const int n) {
      int gidx0 = blockIdx.x; /* 4 */
      float acc0 = 0.0f;
      for (int ridx0 = 0; ridx0 < n; ridx0++) {
        float val0 = data1[gidx0+(ridx0*4)];
        acc0 = (val0+acc0);
      }
      data0[gidx0] = acc0;
    }"
  `);
  expect(text(OpenCLRenderer, "sum of a symbolic size")).toMatchInlineSnapshot(`
    "#pragma OPENCL FP_CONTRACT OFF
    __kernel void r_4_n(__global float* data0, const __global float* data1, const int n) {
      int gidx0 = get_group_id(0); /* 4 */
      float acc0 = 0.0f;
      for (int ridx0 = 0; ridx0 < n; ridx0++) {
        float val0 = data1[gidx0+(ridx0*4)];
        acc0 = (val0+acc0);
      }
      data0[gidx0] = acc0;
    }"
  `);
  expect(text(WGSLRenderer, "sum of a symbolic size")).toMatchInlineSnapshot(`
    "@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
    @group(0) @binding(1) var<storage, read> data1: array<f32>;
    struct Vars { n: i32 }
    @group(1) @binding(0) var<uniform> vars: Vars;
    @compute @workgroup_size(1, 1, 1) fn r_4_n(@builtin(workgroup_id) gid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>) {
      let gidx0 = i32(gid.x); /* 4 */
      var acc0: f32 = 0.0f;
      for (var ridx0: i32 = 0; ridx0 < vars.n; ridx0++) {
        let val0 = data1[gidx0+(ridx0*4)];
        acc0 = (val0+acc0);
      }
      data0[gidx0] = acc0;
    }"
  `);
});

// how C spells OptOps: lanes that lie side by side are one vector, threads share a loop
const inVectors = (t: Tensor, opts: readonly OptOp[]): string => {
  const renderer = clangRenderer({ widths: [4], accumulators: 12, registers: 16, fused: true });
  resetKernelNames();
  const { name, uops } = toKernel(createSchedule([t.lazydata]).at(-1)?.ast ?? [], opts, renderer);
  return renderer.render(name, uops).code;
};
test("a matmul in vectors", () => {
  const product = Tensor.empty([16, 64]).matmul(Tensor.empty([64, 8]));
  const opts: OptOp[] = [
    { op: "UPCAST", axis: 1, lanes: 4 },
    { op: "UPCAST", axis: 0, lanes: 2 },
    { op: "UNROLL", axis: 2, factor: 2 },
  ];
  expect(inVectors(product, opts)).toMatchInlineSnapshot(`
    "typedef float float4 __attribute__((vector_size(16), aligned(4)));
    static inline __attribute__((always_inline)) float4 float4_all(float x) { return (float4){x,x,x,x}; }
    static inline __attribute__((always_inline)) float4 float4_fma(float4 a, float4 b, float4 c) {
    #if __clang__
      _Pragma("clang fp contract(fast)") return a*b+c;
    #elif __FMA__
      return __builtin_ia32_vfmaddps(a,b,c);
    #else
      return a*b+c;
    #endif
    }
    void r_8_2_32_2_4_2(float* data0, const float* data1, const float* data2) {
      for (int ridx0 = 0; ridx0 < 8; ridx0++) {
        int alu0 = (ridx0*16);
        int alu1 = (ridx0*128);
        for (int ridx1 = 0; ridx1 < 2; ridx1++) {
          float4 acc0 = float4_all(0.0f);
          float4 acc1 = float4_all(0.0f);
          int alu2 = (ridx1*4);
          for (int ridx2 = 0; ridx2 < 32; ridx2++) {
            int alu3 = (ridx2*2);
            int alu4 = (alu1+alu3);
            float val0 = data1[alu4];
            int alu5 = (alu2+(ridx2*16));
            float4 val1 = *((float4*)(data2+alu5));
            float val2 = data1[alu4+1];
            float4 val3 = *((float4*)(data2+alu5+8));
            acc0 = float4_fma(float4_all(val2),val3,float4_fma(float4_all(val0),val1,acc0));
            int alu6 = ((alu1+64)+alu3);
            float val4 = data1[alu6];
            float val5 = data1[alu6+1];
            acc1 = float4_fma(float4_all(val5),val3,float4_fma(float4_all(val4),val1,acc1));
          }
          *((float4*)(data0+alu0+alu2)) = acc0;
          *((float4*)(data0+(alu0+8)+alu2)) = acc1;
        }
      }
    }"
  `);
});
test("a part of a loop, and a mask", () => {
  const opts: OptOp[] = [
    { op: "UPCAST", axis: 0, lanes: 4 },
    { op: "THREAD", axis: 0 },
  ];
  expect(inVectors(Tensor.empty([256]).lt(2), opts)).toMatchInlineSnapshot(`
    "typedef float float4 __attribute__((vector_size(16), aligned(4)));
    typedef unsigned char uchar4 __attribute__((vector_size(4), aligned(1)));
    void E_64_4(unsigned char* data0, const float* data1, const int begin, const int end) {
      for (int gidx0 = begin; gidx0 < end; gidx0++) { /* 64 */
        int alu0 = (gidx0*4);
        float4 val0 = *((float4*)(data1+alu0));
        *((uchar4*)(data0+alu0)) = __builtin_convertvector(((val0<2.0f)&1),uchar4);
      }
    }"
  `);
});
