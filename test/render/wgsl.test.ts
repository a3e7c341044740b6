// The shape of WGSL modules: bindings, sizes, types and the spellings that differ
// from C. No WebGPU is asked here.

import { Device, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { toFastKernel } from "../../src/codegen/kernel.ts";
import { type DType, dtypes, PtrDType } from "../../src/dtype.ts";
import type { AluOp } from "../../src/ops.ts";
import { LEAST_WEBGPU, WGSLRenderer, webgpuFor } from "../../src/render/webgpu.ts";
import { renderWGSL, uopsToWGSL } from "../../src/render/wgsl.ts";
import { UOpGraph } from "../../src/uop/list.ts";
import type { UOp } from "../../src/uop/node.ts";
import { lastItem } from "../codegen/kernels.ts";
import { registerOracle } from "../devices/oracle.ts";
import { whyClosed } from "../devices/webgpu/swiftshader.ts";
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

test("threads and workgroup memory", () => {
  const text = uopsToWGSL("k", groupCase().uops);
  expect(text).toContain("@compute @workgroup_size(4, 1, 1) fn k(");
  expect(text).toContain("var<workgroup> temp: array<f32, 4>;");
  expect(text).toContain("let gidx0 = i32(gid.x); /* 2 */");
  expect(text).toContain("workgroupBarrier();");
});

test("variables are a uniform; gated loads touch no memory; vectors go lane by lane", () => {
  const text = uopsToWGSL("k", structureCase().uops);
  expect(text).toContain("struct Vars { n: i32 }\n@group(1) @binding(0) var<uniform> vars: Vars;");
  expect(text).toContain("ridx0 < vars.n;");
  expect(text).toContain("var val1: f32 = 42.0f;\n  if (alu4) {\n    val1 = data1[alu3];\n  }");
  expect(text).toContain("vec4<f32>(data1[4],data1[(4)+1],data1[(4)+2],data1[(4)+3])");
  expect(text).toMatch(/data0\[\(4\)\+3\] = lanes\d\[3\];/);
  expect(text).toContain("(-inf())");
});

test("variables are immediates where they fit", () => {
  const of = (bytes: number) => renderWGSL("k", structureCase().uops as UOpGraph, bytes);
  const fits = of(4);
  expect(fits.code).toContain("struct Vars { n: i32 }\nvar<immediate> vars: Vars;");
  expect(fits.code.split("\n")[0]).toBe("requires immediate_address_space;");
  expect(fits.binding?.immediate).toBe(true);
  const apart = {
    sameAs: fits.binding?.written.map((_, i) => i) ?? [],
    written: fits.binding?.written ?? [],
  };
  expect(fits.binding?.shared(apart)).toBe(fits.code);
  expect([of(0).code, of(0).binding?.immediate]).toEqual([uopsToWGSL("k", structureCase().uops), false]);
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
    expect(opText("RECIP", float, 1)).toContain("div(1.0f,val0)");
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
  test("bytes lie four to a word; those of other threads are not touched", () => {
    const text = opText("CMPLT", float, 2, dtypes.bool);
    expect(text).toContain("data0: array<atomic<u32>>;");
    expect(text).toContain("atomicAnd(&data0[(0)>>2u], ~(255u<<((u32(0)&3u)*8u)));");
    const both = opText("AND", dtypes.bool, 2);
    expect(both).toContain("data1: array<u32>;");
    expect(both).toContain("(extractBits(data1[(1)>>2u],(u32(1)&3u)*8u,8u)!=0u)");
    expect(opText("ADD", dtypes.int8, 2)).toContain("extractBits((val0+val1),0u,8u)");
    expect(opText("MUL", dtypes.uint16, 2)).toContain("((val0*val1)&65535u)");
  });
  test("whole words of bytes, and vectors of floats, are one store", () => {
    const words = storeText(dtypes.uint8, 8);
    expect(words).toContain("data0: array<u32>;");
    expect(words).not.toContain("atomic");
    expect(words).toMatch(/data0\[\(2\)\+1\] = \(lanes0\[4\]&255u\)\|/);
    const vector = storeText(float, 4);
    expect(vector).toContain("data0: array<vec4<f32>>;");
    expect(vector).toContain("data0[1] = vec4<f32>(");
  });
  test("64-bit integers are two words", () => {
    expect(opText("ADD", dtypes.long, 2)).toContain("add64(val0,val1)");
    expect(opText("ADD", dtypes.long, 2)).toContain("data1: array<vec2<u32>>;");
    expect(opText("CMPLT", dtypes.long, 2, dtypes.bool)).toContain("lt64(val0,val1)");
    expect(opText("IDIV", dtypes.uint64, 2)).toContain("fn udivmod64(");
  });
  test("what a compiler could fold away stays", () => {
    expect(constantText("ADD", "SUB", 1)).toContain("fma((val0+1.0f),1.0f,-(1.0f))");
    expect(constantText("ADD", "SUB", -1)).toContain("fma((val0+(-1.0f)),1.0f,-(-1.0f))");
    expect(constantText("MAX", "MUL", 0)).toContain("zero_of(nan_max(val0,0.0f))");
    expect(constantText("MAX", "ADD", 0)).toMatch(/select\((.*),0.0f,\(bitcast<u32>\(\1\)<<1u\)==0u\)/);
  });
  test("a sum of products with 0 or infinity keeps NaN", () => {
    for (const [factor, spelling] of [
      [0, "(zero_of(val0)+val1)"],
      [-Infinity, "((-mul_inf(val0))+val1)"],
      [2, "fma(val0,2.0f,val1)"],
    ] as const) {
      const g = new UOpGraph();
      const [data0, data1] = [0, 1].map((i) =>
        g.add("DEFINE_GLOBAL", PtrDType(float), [], [i, `data${i}`, i === 0]),
      );
      const [first, second] = [0, 1].map((i) => g.add("LOAD", float, [data1!, g.add("CONST", int, [], i)]));
      const sum = g.add("ALU", float, [first!, g.add("CONST", float, [], factor), second!], "MULACC");
      g.add("STORE", undefined, [data0!, g.add("CONST", int, [], 0), sum]);
      expect(uopsToWGSL("k", g)).toContain(spelling);
    }
  });
  test("buffers that are one memory are bound once, and beside a written one for writing", () => {
    const g = new UOpGraph();
    const [data0, data1, data2] = [0, 1, 2].map((i) =>
      g.add("DEFINE_GLOBAL", PtrDType(float), [], [i, `data${i}`, i === 0]),
    ) as [UOp, UOp, UOp];
    const at = g.add("CONST", int, [], 0);
    const sum = g.add(
      "ALU",
      float,
      [data1, data2].map((d) => g.add("LOAD", float, [d, at])),
      "ADD",
    );
    g.add("STORE", undefined, [data0, at, sum]);
    const text = uopsToWGSL("k", g, { sameAs: [0, 0, 2], written: [true, true, true] });
    expect(text.match(/@binding\(\d\) var<storage, read_write>/g)).toHaveLength(2);
    expect(text).not.toContain("data1");
    expect(text).toContain("let val0 = data0[0];");
  });
});

/** Stores so many lanes of a type. */
function storeText(d: DType, count: number): string {
  const g = new UOpGraph();
  const data0 = g.add("DEFINE_GLOBAL", PtrDType(d), [], [0, "data0", true]);
  const at = g.add("CONST", int, [], count);
  const one = g.add("CONST", d, [], 1);
  const lanes = g.add("VECTORIZE", d.vec(count), Array(count).fill(one));
  g.add("STORE", undefined, [data0, at, lanes]);
  return uopsToWGSL("k", g);
}
/** Two ops with the same constant, one after the other. */
function constantText(first: AluOp, second: AluOp, value: number): string {
  const g = new UOpGraph();
  const data0 = g.add("DEFINE_GLOBAL", PtrDType(float), [], [0, "data0", true]);
  const data1 = g.add("DEFINE_GLOBAL", PtrDType(float), [], [1, "data1", false]);
  const at = g.add("CONST", int, [], 0);
  const c = g.add("CONST", float, [], value);
  const inner = g.add("ALU", float, [g.add("LOAD", float, [data1, at]), c], first);
  g.add("STORE", undefined, [data0, at, g.add("ALU", float, [inner, c], second)]);
  return uopsToWGSL("k", g);
}

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
  expect(supports).toEqual(["native", "native", "native", "native", "native", "none", "bits"]);
  const half = [true, false].map((hasHalf) => webgpuFor({ ...LEAST_WEBGPU, hasHalf }).support(float16));
  expect(half).toEqual(["native", "bits"]);
  expect(WGSLRenderer.has("SIN", float)).toBe(false);
  expect(() => uopsToWGSL("k", [...new UOpGraphOfDoubles()])).toThrow(/WGSL has no dtypes.double/);
});

class UOpGraphOfDoubles extends UOpGraph {
  constructor() {
    super();
    this.add("DEFINE_GLOBAL", PtrDType(dtypes.float64), [], [0, "data0", true]);
  }
}

test("functions of 16-bit floats are computed in float32", async () => {
  const device = registerOracle("HALFGPU", WGSLRenderer);
  const xs = [0.25, 0.5, 1, 1.5, 3, 100];
  const x = new Tensor(xs, { device }).cast("float16").contiguous();
  for (const [got, want] of [
    [x.log2(), xs.map(Math.log2)],
    [x.erf(), [0.2763263901682369, 0.5204998778130465, 0.8427007929497149, 0.9661051464753108, 1, 1]],
    [x.sin(), xs.map(Math.sin)],
  ] as const) {
    const values = await got.tolist<number[]>();
    values.forEach((v, i) => {
      const w = want[i] as number;
      expect(Math.abs(v - w)).toBeLessThanOrEqual(2 ** -10 * Math.max(1, Math.abs(w)));
    });
  }
});

describe("indexes", () => {
  /** Vectors of four, read at `16 * gid + 4 * i` or what `at` makes of it. */
  function vectors(at: (g: UOpGraph, gid: UOp, i: number) => UOp): string {
    const g = new UOpGraph();
    const data0 = g.add("DEFINE_GLOBAL", PtrDType(float), [], [0, "data0", true]);
    const data1 = g.add("DEFINE_GLOBAL", PtrDType(float), [], [1, "data1", false]);
    const gid = g.add("SPECIAL", int, [], [0, "gidx0", 8]);
    for (let i = 0; i < 3; i++) {
      const value = g.add("LOAD", float.vec(4), [data1, at(g, gid, i)]);
      g.add("STORE", undefined, [data0, at(g, gid, i), value]);
    }
    return uopsToWGSL("k", g);
  }
  const c = (g: UOpGraph, n: number) => g.add("CONST", int, [], n);
  const alu = (g: UOpGraph, op: AluOp, ...srcs: UOp[]) => g.add("ALU", int, srcs, op);

  test("of vectors are divided term by term, and what they have in common keeps its name", () => {
    const text = vectors((g, gid, i) => {
      const row = alu(g, "ADD", alu(g, "MUL", gid, c(g, 16)), c(g, 8));
      return i === 0 ? row : alu(g, "ADD", row, c(g, 4 * i));
    });
    for (const n of [2, 3, 4]) expect(text).toContain(`= (gidx0*4)+${n};`);
    expect(text).toMatch(/= data1\[alu\d\];/);
    expect(text).not.toContain(">>2u");
  });
  test("that have another term are shifted", () => {
    const text = vectors((g, gid, i) => alu(g, "ADD", alu(g, "AND", gid, c(g, -4)), c(g, 4 * i)));
    expect(text).toMatch(/data1\[\(.*\)>>2u\]/);
  });
  test("quotients of numbers that are not negative need no signs", () => {
    const of = (op: AluOp, n: number, least: number): string =>
      vectors((g, gid, i) => {
        const x = least < 0 ? alu(g, "ADD", gid, c(g, least)) : gid;
        return alu(g, "MUL", alu(g, op, x, c(g, n)), c(g, 4 * (i + 1)));
      });
    expect(of("MOD", 8, 0)).toContain("(gidx0&7)");
    expect(of("IDIV", 8, 0)).toContain("(gidx0>>3u)");
    expect(of("MOD", 6, 0)).toContain("i32(u32(gidx0)%6u)");
    expect(of("IDIV", 6, 0)).toContain("i32(u32(gidx0)/6u)");
    expect(of("MOD", 8, -1)).toContain("%8)");
    expect(of("IDIV", 6, -1)).toContain("/6)");
  });
});

describe("floats that a compiler may take for others", () => {
  type Op = (x: Tensor, y: Tensor) => Tensor;
  const { fround } = Math;
  const CASES: readonly (readonly [string, Op, (x: number, y: number) => number, RegExp])[] = [
    ["x - x", (x) => x.sub(x), (x) => x - x, /zero_of\(/],
    ["x / x", (x) => x.div(x), (x) => x / x, /div_same\(/],
    ["x * inf", (x) => x.mul(Infinity), (x) => x * Infinity, /mul_inf\(/],
    ["x * -inf", (x) => x.mul(-Infinity), (x) => x * -Infinity, /\(-mul_inf\(/],
    ["x * 0", (x) => x.mul(0), (x) => x * 0, /zero_of\(/],
    ["x / y", (x, y) => x.div(y), (x, y) => fround(x / y), /div\(/],
    ["1 / x", (x) => x.reciprocal(), (x) => fround(1 / x), /div\(1\.0f,/],
    ["x + y + 0", (x, y) => x.add(y).add(0), (x, y) => fround(x + y) + 0, /bitcast<u32>\(.*<<1u\)==0u/],
    ["min(x, -1)", (x) => x.minimum(-1), (x) => Math.min(x, -1), /is_nan\(/],
    ["min(x, y)", (x, y) => x.minimum(y), (x, y) => Math.min(x, y), /is_nan\(/],
  ];
  // -0 may lose its sign, so there is none
  const edges = [Infinity, -Infinity, NaN, 0, 1, -3, fround(3e38), fround(-2e38), 0.5];
  const pairs = edges.flatMap((x) => edges.map((y) => [x, y] as const));

  test.each(CASES)("%s", async (_, op, want, spelling) => {
    const of = (device: string) =>
      [0, 1].map((k) => new Tensor(Float32Array.from(pairs.map((p) => p[k] as number)), { device })) as [
        Tensor,
        Tensor,
      ];
    await Device.open("JS");
    const kernel = toFastKernel((await lastItem(op(...of("JS")))).ast, webgpuFor(LEAST_WEBGPU), false);
    expect(uopsToWGSL(kernel.name, kernel.uops)).toMatch(spelling);
    if ((await whyClosed()) !== undefined) return;
    await Device.open("WEBGPU");
    // numbers below 2^-126 may count as 0
    const normal = (x: number): number => (Math.abs(x) < 2 ** -126 ? 0 : x);
    const got = [...(await op(...of("WEBGPU")).data())].map((x) => normal(Number(x)));
    expect(got).toEqual(pairs.map(([x, y]) => normal(want(x, y))));
  });
});
