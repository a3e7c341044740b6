// The meaning of every op on one value: `evaluate` against expectations written out by hand, at the edges of
// each type. Everything else (devices, folding) is compared with `evaluate`, so
// nothing here may be computed by it.

import { describe, expect, test } from "vitest";
import { JSRenderer } from "../src/devices/js.ts";
import { type DType, dtypes, type Value } from "../src/dtype.ts";
import {
  type AluOp,
  BinaryOps,
  isAluOp,
  isDefinedOn,
  isLoadOp,
  isReduceOp,
  LoadOps,
  type NativeOps,
  OPS,
  opRecord,
  REDUCE,
  ReduceOps,
  resultDType,
  TernaryOps,
  UnaryOps,
} from "../src/ops.ts";
import { HIPRenderer } from "../src/render/hip.ts";
import { ClangRenderer, CUDARenderer, clangRenderer } from "../src/render/languages.ts";
import { MetalRenderer } from "../src/render/metal.ts";
import { OpenCLRenderer } from "../src/render/opencl.ts";
import { WASMRenderer } from "../src/render/wasm/renderer.ts";
import { WGSLRenderer } from "../src/render/webgpu.ts";

const { bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64 } = dtypes;
const { float16, bfloat16, float32, float64 } = dtypes;
const [LO, HI] = [-2147483648, 2147483647];
const [LO64, HI64] = [-(2n ** 63n), 2n ** 63n - 1n];
const MAX64 = 2n ** 64n - 1n;

type Row = readonly [DType, readonly Value[], Value];

// biome-ignore format: a table
const MEANING: Readonly<Record<AluOp, readonly Row[]>> = {
  NEG: [
    [float32, [0], -0], [float32, [-0], 0], [float32, [NaN], NaN], [float32, [-Infinity], Infinity],
    [float16, [65504], -65504], [int32, [LO], LO], [int32, [5], -5], [int32, [0], 0], [int8, [-128], -128],
    [uint8, [1], 255], [uint8, [0], 0], [uint32, [1], 4294967295], [int64, [LO64], LO64], [uint64, [1n], MAX64],
    [bool, [1], 1], [bool, [0], 0],
  ],
  EXP2: [
    [float32, [0], 1], [float32, [3], 8], [float32, [-1], 0.5], [float32, [Infinity], Infinity],
    [float32, [-Infinity], 0], [float32, [128], Infinity], [float32, [127], 2 ** 127], [float32, [-149], 2 ** -149],
    [float32, [-151], 0], [float32, [NaN], NaN], [float16, [16], Infinity], [float64, [1023], 2 ** 1023],
    [bfloat16, [0.5], 1.4140625],
  ],
  LOG2: [
    [float32, [8], 3], [float32, [1], 0], [float32, [0], -Infinity], [float32, [-0], -Infinity],
    [float32, [-1], NaN], [float32, [Infinity], Infinity], [float32, [2 ** -149], -149], [float64, [2 ** -1074], -1074],
    [float16, [3], 1.5849609375],
  ],
  ERF: [
    [float32, [0], 0], [float32, [-0], -0], [float32, [1], 0.8427007794380188], [float32, [-0.5], -0.5204998850822449],
    [float32, [Infinity], 1], [float32, [-Infinity], -1], [float32, [NaN], NaN], [float32, [4], 1],
    [float64, [2], 0.9953222650189527], [float64, [5.5], 0.9999999999999927], [float64, [6], 1],
    [float16, [0.25], 0.2763671875], [bfloat16, [-3], -1],
  ],
  SIN: [
    [float32, [0], 0], [float32, [-0], -0], [float32, [Infinity], NaN], [float32, [NaN], NaN],
    [float32, [1], 0.8414709568023682], [float64, [1], 0.8414709848078965], [float16, [1], 0.84130859375],
  ],
  COS: [
    [float32, [0], 1], [float32, [-0], 1], [float32, [Infinity], NaN], [float32, [NaN], NaN],
    [float32, [1], 0.5403022766113281], [float64, [1], 0.5403023058681398], [float16, [1], 0.54052734375],
  ],
  POW: [
    [float32, [10, 3], 1000], [float32, [3, 5], 243], [float32, [-2, 3], -8], [float32, [-2, 0.5], NaN],
    [float32, [NaN, 0], 1], [float32, [1, NaN], 1], [float32, [-1, Infinity], 1], [float32, [0, -1], Infinity],
    [float32, [-0, -3], -Infinity], [float32, [-0, 3], -0], [float32, [-Infinity, 0.5], Infinity],
    [float32, [2, 128], Infinity], [float64, [10, 22], 1e22], [float16, [2, 0.5], 1.4140625],
  ],
  SQRT: [
    [float32, [4], 2], [float32, [-0], -0], [float32, [-1], NaN], [float32, [Infinity], Infinity],
    [float32, [2], 1.4142135381698608], [float64, [2], Math.SQRT2], [bfloat16, [2], 1.4140625],
  ],
  RECIP: [
    [float32, [0], Infinity], [float32, [-0], -Infinity], [float32, [Infinity], 0], [float32, [-Infinity], -0],
    [float32, [3], 0.3333333432674408], [float16, [3], 0.333251953125], [float32, [NaN], NaN],
  ],
  TRUNC: [
    [float32, [2.7], 2], [float32, [-2.7], -2], [float32, [-0.5], -0], [float32, [Infinity], Infinity],
    [float32, [NaN], NaN], [float32, [8388609], 8388609], [float16, [0.99951171875], 0],
  ],

  ADD: [
    [float32, [1, 2], 3], [float32, [-0, 0], 0], [float32, [-0, -0], -0], [float32, [Infinity, -Infinity], NaN],
    [float32, [16777216, 1], 16777216], [float16, [2048, 1], 2048], [float16, [65504, 32], Infinity],
    [bfloat16, [256, 1], 256], [float32, [3e38, 3e38], Infinity], [float64, [0.1, 0.2], 0.30000000000000004],
    [int32, [HI, 1], LO], [int8, [127, 1], -128], [uint8, [255, 1], 0], [uint32, [4294967295, 2], 1],
    [int64, [HI64, 1n], LO64], [uint64, [MAX64, 1n], 0n], [uint16, [65535, 65535], 65534],
    [bool, [1, 1], 1], [bool, [0, 1], 1], [bool, [0, 0], 0],
  ],
  SUB: [
    [float32, [0, 0], 0], [float32, [-0, 0], -0], [float32, [Infinity, Infinity], NaN], [int32, [LO, 1], HI],
    [uint8, [0, 1], 255], [uint64, [0n, 1n], MAX64], [int16, [-32768, 1], 32767], [bool, [1, 1], 0], [bool, [0, 1], 1],
  ],
  MUL: [
    [float32, [0, -1], -0], [float32, [0, Infinity], NaN], [float32, [-2, 3], -6], [float32, [1e30, 1e30], Infinity],
    [float32, [2 ** -100, 2 ** -100], 0], [float16, [256, 256], Infinity], [bfloat16, [1.0078125, 1.0078125], 1.015625],
    [int32, [65536, 65536], 0], [int32, [LO, -1], LO], [int32, [123456789, 987654321], -67153019],
    [uint32, [4294967295, 4294967295], 1], [int8, [100, 3], 44], [uint8, [16, 17], 16],
    [int64, [2n ** 62n, 4n], 0n], [uint64, [MAX64, MAX64], 1n], [bool, [1, 0], 0], [bool, [1, 1], 1],
  ],
  DIV: [
    [float32, [1, 3], 0.3333333432674408], [float32, [1, 0], Infinity], [float32, [1, -0], -Infinity],
    [float32, [0, 0], NaN], [float32, [Infinity, Infinity], NaN], [float32, [-1, Infinity], -0], [float16, [1, 3], 0.333251953125],
    [float64, [1, 3], 1 / 3],
  ],
  IDIV: [
    [int32, [7, 2], 3], [int32, [-7, 2], -3], [int32, [7, -2], -3], [int32, [7, 0], 0], [int32, [LO, -1], LO],
    [int32, [-1, 2], 0], [int32, [LO, HI], -1], [int8, [-128, -1], -128], [uint8, [255, 16], 15],
    [uint32, [4294967295, 2], 2147483647], [int64, [LO64, -1n], LO64], [int64, [-7n, 2n], -3n], [int64, [5n, 0n], 0n],
    [uint64, [MAX64, 2n], HI64], [uint64, [1n, 0n], 0n],
  ],
  MOD: [
    [float32, [5.5, 2], 1.5], [float32, [-5.5, 2], -1.5], [float32, [5.5, -2], 1.5], [float32, [1, 0], NaN],
    [float32, [1, Infinity], 1], [float32, [Infinity, 1], NaN], [float32, [-4, 2], -0], [float32, [-0, 3], -0],
    [float64, [1e300, 7], 1], [float16, [10, 3], 1],
    [int32, [-7, 2], -1], [int32, [7, -2], 1], [int32, [-4, 2], 0], [int32, [7, 0], 0], [int32, [LO, -1], 0],
    [uint8, [255, 16], 15], [uint32, [4294967295, 10], 5], [int64, [-7n, 2n], -1n], [int64, [LO64, -1n], 0n],
    [int64, [3n, 0n], 0n], [uint64, [MAX64, 10n], 5n],
  ],
  MAX: [
    [float32, [1, 2], 2], [float32, [NaN, 1], NaN], [float32, [1, NaN], NaN], [float32, [-Infinity, -5], -5],
    [float32, [NaN, Infinity], NaN], [int32, [LO, HI], HI], [int32, [-1, -2], -1], [uint32, [4294967295, 1], 4294967295],
    [uint8, [200, 100], 200], [int64, [LO64, HI64], HI64], [uint64, [MAX64, 0n], MAX64], [bool, [0, 1], 1], [bool, [0, 0], 0],
  ],
  CMPLT: [
    [float32, [1, 2], 1], [float32, [2, 1], 0], [float32, [NaN, 1], 0], [float32, [1, NaN], 0], [float32, [-0, 0], 0],
    [float32, [-Infinity, -1e38], 1], [int32, [LO, HI], 1], [uint32, [4294967295, 1], 0], [int64, [LO64, 0n], 1],
    [uint64, [MAX64, 0n], 0], [bool, [0, 1], 1], [bool, [1, 1], 0],
  ],
  CMPEQ: [
    [float32, [NaN, NaN], 0], [float32, [-0, 0], 1], [float32, [1, 1], 1], [int64, [HI64, HI64 - 1n], 0],
    [int64, [5n, 5n], 1], [uint8, [255, 255], 1], [bool, [0, 1], 0],
  ],
  CMPNE: [
    [float32, [NaN, NaN], 1], [float32, [-0, 0], 0], [float32, [1, 2], 1], [int64, [HI64, HI64 - 1n], 1],
    [uint64, [MAX64, MAX64], 0], [bool, [0, 1], 1],
  ],
  AND: [
    [int32, [-1, 0x55], 0x55], [uint32, [4294967295, 2147483648], 2147483648], [int8, [-128, 127], 0],
    [uint64, [MAX64, 2n ** 63n], 2n ** 63n], [int64, [-1n, LO64], LO64], [bool, [1, 1], 1], [bool, [1, 0], 0],
  ],
  OR: [
    [int32, [0x55, 0xaa], 0xff], [uint32, [2147483648, 1], 2147483649], [int8, [-128, 127], -1],
    [int64, [LO64, 1n], LO64 + 1n], [bool, [0, 0], 0], [bool, [1, 0], 1],
  ],
  XOR: [
    [int32, [-1, 0], -1], [int32, [LO, -1], HI], [uint32, [4294967295, 1], 4294967294], [uint8, [255, 15], 240],
    [uint64, [MAX64, 1n], MAX64 - 1n], [int64, [-1n, 5n], -6n], [bool, [1, 1], 0], [bool, [1, 0], 1],
  ],
  SHL: [
    [int32, [1, 31], LO], [int32, [1, 32], 1], [int32, [1, 33], 2], [int32, [3, -1], LO], [uint32, [1, 31], 2147483648],
    [int8, [1, 7], -128], [int8, [1, 8], 1], [uint8, [255, 4], 240], [uint16, [1, 16], 1], [int16, [1, 15], -32768],
    [int64, [1n, 63n], LO64], [int64, [1n, 64n], 1n], [uint64, [1n, 127n], 2n ** 63n], [int64, [1n, -1n], LO64],
  ],
  SHR: [
    [int32, [LO, 31], -1], [int32, [-8, 1], -4], [int32, [5, 32], 5], [uint32, [4294967295, 31], 1],
    [int8, [-128, 7], -1], [uint8, [255, 4], 15], [uint8, [255, 8], 255], [int16, [-2, 17], -1], [uint16, [65535, 15], 1],
    [int64, [LO64, 63n], -1n], [uint64, [MAX64, 63n], 1n], [uint64, [MAX64, 64n], MAX64],
  ],
  // halves 2 and -3 times 5 and 7; all four -32768 wrap; the low half has a sign of its own
  DOT2: [
    [int32, [(-3 << 16) | 2, (7 << 16) | 5], -11], [int32, [LO | 0x8000, LO | 0x8000], LO],
    [int32, [0xffff, 1], -1], [int32, [HI, HI], 1 + 32767 * 32767], [int32, [0, -1], 0],
  ],

  WHERE: [
    [float32, [1, -0, 5], -0], [float32, [0, 5, NaN], NaN], [int64, [1, 5n, 6n], 5n], [int64, [0, 5n, 6n], 6n],
    [bool, [0, 1, 0], 0],
  ],
  // rounds twice: the product first
  MULACC: [
    [float32, [2, 3, 4], 10], [float32, [0, Infinity, 1], NaN], [float32, [4097, 4097, -16785408], 0],
    [float16, [-2.5, -100.125, 255.875], 506], [bfloat16, [-100, 7.25, -1], -724], [int32, [65536, 65536, 7], 7],
    [int8, [100, 2, 100], 44], [int64, [HI64, 2n, 3n], 1n], [uint8, [16, 16, 5], 5], [bool, [1, 1, 0], 1], [bool, [0, 1, 0], 0],
  ],
};

describe("evaluate", () => {
  test("every op has a row here", () => {
    expect(Object.keys(MEANING).sort()).toEqual(Object.keys(OPS).sort());
  });
  for (const [op, rows] of Object.entries(MEANING) as [AluOp, readonly Row[]][]) {
    test(op, () => {
      for (const [d, xs, want] of rows) {
        const shown = xs.map((x) => (Object.is(x, -0) ? "-0" : x)).join(", ");
        expect(opRecord(op).evaluate(d, ...xs), `${op}(${shown}) of ${d.name}`).toBe(want);
      }
    });
  }
});

describe("the records", () => {
  test("arity follows from the group", () => {
    const arity = { UnaryOps: 1, BinaryOps: 2, TernaryOps: 3 };
    for (const [name, record] of Object.entries(OPS)) expect(record.arity, name).toBe(arity[record.group]);
  });
  // one value of each pair of operands and types, both ways around
  test("commutative ops do not care for the order, the others do", () => {
    const pairs: [DType, Value, Value][] = [
      [int32, 6, 4],
      [float32, 2.5, -7],
      [uint8, 200, 3],
      [int64, -9n, 4n],
    ];
    for (const [name, record] of Object.entries(OPS)) {
      if (record.arity !== 2) continue;
      const symmetric = pairs
        .filter(([d]) => isDefinedOn(name as AluOp, d))
        .every(([d, a, b]) => record.evaluate(d, a, b) === record.evaluate(d, b, a));
      expect(record.commutative === true, name).toBe(symmetric);
    }
  });
  test("padSafe says what an op makes of zeros", () => {
    for (const [name, record] of Object.entries(OPS)) {
      const types = [float32, int32].filter((d) => isDefinedOn(name as AluOp, d));
      const zeros = Array.from({ length: record.arity }, () => 0);
      const safe = types.every((d) => record.evaluate(d, ...zeros) === 0);
      expect(record.padSafe, name).toBe(safe);
    }
  });
  test("comparisons give bool, in as many lanes", () => {
    expect(resultDType("CMPLT", float32)).toBe(bool);
    expect(resultDType("CMPEQ", float32.vec(4))).toBe(bool.vec(4));
    expect(resultDType("ADD", int8)).toBe(int8);
    expect(resultDType("WHERE", float64)).toBe(float64);
    const comparing = Object.entries(OPS).filter(([, r]) => r.result === "bool");
    expect(comparing.map(([name]) => name)).toEqual(["CMPLT", "CMPEQ", "CMPNE"]);
  });
});

describe("names", () => {
  test("groups hold their ops under their own names", () => {
    expect(UnaryOps).toMatchObject({ NEG: "NEG", SQRT: "SQRT", CAST: "CAST", BITCAST: "BITCAST" });
    expect(BinaryOps.ADD).toBe("ADD");
    expect(Object.keys(TernaryOps)).toEqual(["WHERE", "MULACC"]);
    expect(isAluOp("ADD") && isAluOp("WHERE")).toBe(true);
    expect(isAluOp("toString") || isAluOp("LOAD") || isAluOp("CAST")).toBe(false);
    expect(isReduceOp("SUM") && isReduceOp("REDUCE_MAX")).toBe(true);
    expect(isReduceOp("MAX")).toBe(false);
    expect(isLoadOp("COPY") && !isLoadOp("ADD")).toBe(true);
    expect(Object.keys(LoadOps)).toHaveLength(8);
  });
  test("reduces start from what changes nothing", () => {
    for (const d of dtypes.all) {
      for (const op of Object.values(ReduceOps)) {
        const { combine, identity } = REDUCE[op];
        const one: Value = d.isBig ? 1n : 1;
        for (const x of [one, identity(d)]) {
          expect(opRecord(combine).evaluate(d, identity(d), x), `${op} of ${d.name}`).toBe(x);
        }
      }
    }
    expect(REDUCE.REDUCE_MAX.identity(float32)).toBe(-Infinity);
    expect(REDUCE.REDUCE_MAX.identity(uint16)).toBe(0);
    expect(REDUCE.SUM.identity(uint64)).toBe(0n);
  });
});

describe("what a target has to spell", () => {
  const vectors = clangRenderer({ widths: [8, 4], accumulators: 12, registers: 16, fused: true });
  const targets = [
    ...[JSRenderer, WASMRenderer, ClangRenderer, vectors, CUDARenderer, HIPRenderer, MetalRenderer],
    ...[OpenCLRenderer, WGSLRenderer],
  ];

  test("every op without a decomposition, by every target", () => {
    const ops = (Object.keys(OPS) as AluOp[]).filter((op) => opRecord(op).decompose === undefined);
    expect(ops).toContain("ADD");
    expect(ops).not.toContain("SIN");
    for (const op of ops) {
      for (const t of targets)
        expect(t.has(op, isDefinedOn(op, int32) ? int32 : float32), `${op} on ${t.name}`).toBe(true);
    }
  });
  test("a table without a required op does not pass the type check, one without a decomposed op does", () => {
    const full = Object.fromEntries(Object.keys(OPS).map((op) => [op, op])) as Record<AluOp, string>;
    const { SIN: _, ...withoutSin } = full;
    const { ADD: __, ...withoutAdd } = full;
    const good: NativeOps<string> = withoutSin;
    // @ts-expect-error ADD is missing
    const bad: NativeOps<string> = withoutAdd;
    expect([good.SIN, bad.ADD]).toEqual([undefined, undefined]);
  });
});
