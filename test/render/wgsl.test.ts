// The shape of WGSL modules: bindings, sizes, types and the spellings that differ
// from C. No WebGPU is asked here.

import { describe, expect, test } from "vitest";
import { type DType, dtypes, PtrDType } from "../../src/dtype.ts";
import type { AluOp } from "../../src/ops.ts";
import { makeWGSLRenderer, uopsToWGSL, WGSLRenderer } from "../../src/render/wgsl.ts";
import { UOpGraph } from "../../src/uop/list.ts";
import { dotProduct, groupCase, structureCase } from "./kernels.ts";

const ARGS = "@builtin(workgroup_id) gid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>";
const { int, float } = dtypes;

test("r_2", () => {
  expect(
    uopsToWGSL("r_2", dotProduct()),
  ).toBe(`@group(0) @binding(0) var<storage, read_write> data0: array<i32>;
@group(0) @binding(1) var<storage, read> data1: array<i32>;
@group(0) @binding(2) var<storage, read> data2: array<i32>;
@compute @workgroup_size(1, 1, 1) fn r_2(${ARGS}) {
  var acc0: i32 = 0;
  for (var ridx0: i32 = 0; ridx0 < 2; ridx0++) {
    let val0 = data1[ridx0];
    let val1 = data2[ridx0];
    acc0 = ((val0*val1)+acc0);
  }
  data0[0] = acc0;
}`);
});

test("work items and workgroup memory", () => {
  const text = uopsToWGSL("k", groupCase().uops);
  expect(text).toContain("@compute @workgroup_size(4, 1, 1) fn k(");
  expect(text).toContain("var<workgroup> temp: array<f32, 4>;");
  expect(text).toContain("let gidx0 = i32(gid.x); /* 2 */");
  expect(text).toContain("workgroupBarrier();");
});

test("variables are a uniform; gated loads touch no memory; vectors go lane by lane", () => {
  const text = uopsToWGSL("k", structureCase().uops);
  expect(text).toContain("struct Vars { n: i32 }\n@group(0) @binding(2) var<uniform> vars: Vars;");
  expect(text).toContain("ridx0 < vars.n;");
  expect(text).toContain("var val1: f32 = 42.0f;\n  if (alu4) { val1 = data1[alu3]; }");
  expect(text).toContain("vec4<f32>(data1[4],data1[4+1],data1[4+2],data1[4+3])");
  expect(text).toMatch(/data0\[4\+3\] = vec\d\[3\];/);
  expect(text).toContain("(-inf())");
});

function opText(op: AluOp, d: DType, arity: number, out = d): string {
  const g = new UOpGraph();
  const data0 = g.add("DEFINE_GLOBAL", PtrDType(out), [], [0, "data0", true]);
  const data1 = g.add("DEFINE_GLOBAL", PtrDType(d), [], [1, "data1", false]);
  const at = (i: number) => g.add("CONST", int, [], i);
  const srcs = Array.from({ length: arity }, (_, i) => g.add("LOAD", d, [data1, at(i)]));
  g.add("STORE", undefined, [data0, at(0), g.add("ALU", out, srcs, op)]);
  return uopsToWGSL("k", g);
}

describe("ops", () => {
  test("nothing is converted by itself", () => {
    expect(opText("SHL", int, 2)).toContain("(val0<<(u32(val1)&31u))");
    expect(opText("ADD", dtypes.uint, 2)).toContain("(val0+val1)");
    expect(opText("RECIP", float, 1)).toContain("(1.0f/val0)");
  });
  test("NaN", () => {
    expect(opText("MAX", float, 2)).toContain("nan_max(val0,val1)");
    expect(opText("MAX", float, 2)).toContain("fn is_nan(x: f32) -> bool");
    expect(opText("MAX", int, 2)).toContain("max(val0,val1)");
    expect(opText("CMPNE", float, 2, dtypes.bool)).toContain("(!(val0==val1))");
    expect(opText("MOD", float, 2)).toContain("fmod(val0,val1)");
  });
  test("f16 is enabled where it is used", () => {
    expect(opText("ADD", dtypes.half, 2)).toMatch(/^enable f16;\n/);
    expect(opText("ADD", float, 2)).not.toContain("enable");
  });
  test("bool buffers hold bytes, four to a word, and are written atomically", () => {
    const text = opText("CMPLT", float, 2, dtypes.bool);
    expect(text).toContain("data0: array<atomic<u32>>;");
    expect(text).toContain("atomicAnd(&data0[(0)>>2u], ~(255u<<(u32((0)&3)*8u)));");
    const both = opText("AND", dtypes.bool, 2);
    expect(both).toContain("data1: array<u32>;");
    expect(both).toContain("(((data1[(1)>>2u]>>(u32((1)&3)*8u))&255u)!=0u)");
  });
});

test("casts and constants", () => {
  const g = new UOpGraph();
  const out = (i: number, d: DType) => g.add("DEFINE_GLOBAL", PtrDType(d), [], [i, `data${i}`, true]);
  const [data0, data1, data2] = [out(0, int), out(1, dtypes.uint), out(2, float)];
  const zero = g.add("CONST", int, [], 0);
  const x = g.add("LOAD", float, [data2, zero]);
  g.add("STORE", undefined, [data0, zero, g.add("CAST", int, [x])]);
  g.add("STORE", undefined, [data1, zero, g.add("CAST", dtypes.uint, [x])]);
  g.add("STORE", undefined, [data1, zero, g.add("BITCAST", dtypes.uint, [x])]);
  g.add("STORE", undefined, [data2, zero, g.add("CAST", float, [g.add("CAST", dtypes.bool, [x])])]);
  g.add("STORE", undefined, [data0, zero, g.add("CONST", int, [], -2147483648)]);
  g.add("STORE", undefined, [data2, zero, g.add("CONST", float, [], NaN)]);
  const text = uopsToWGSL("k", g);
  for (const part of ["to_i32(val0)", "to_u32(val0)", "bitcast<u32>(val0)", "f32((!(val0==0.0f)))"]) {
    expect(text).toContain(part);
  }
  expect(text).toContain("= i32(-2147483648);");
  expect(text).toContain("= nan();");
});

test("the renderer says what WebGPU lacks", () => {
  expect(WGSLRenderer.name).toBe("WEBGPU");
  const { bool, int8, int64, float64, float16, bfloat16 } = dtypes;
  const supports = [bool, int, float, int8, int64, float64, bfloat16].map((d) => WGSLRenderer.support(d));
  expect(supports).toEqual(["native", "native", "native", "none", "none", "none", "none"]);
  expect([true, false].map((f16) => makeWGSLRenderer(f16).support(float16))).toEqual(["native", "none"]);
  expect(WGSLRenderer.has("SIN", float)).toBe(false);
  expect(() => uopsToWGSL("k", [...new UOpGraphOf64()])).toThrow(/WGSL has no dtypes.long/);
});

class UOpGraphOf64 extends UOpGraph {
  constructor() {
    super();
    this.add("DEFINE_GLOBAL", PtrDType(dtypes.long), [], [0, "data0", true]);
  }
}
