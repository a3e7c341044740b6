// Kernels for the tests of the renderers, built by hand: every op on every type over edge values, every cast,
// and one kernel that uses every kind of UOp. Each comes with its inputs and the outputs
// that ops.ts and dtype.ts ask for.

import {
  bitcastValue,
  bounds,
  castValue,
  DType,
  dtypes,
  floatToIntVia,
  PtrDType,
  readValue,
  type Value,
  wrap,
  writeValue,
} from "../../src/dtype.ts";
import { type AluOp, isDefinedOn, isLibraryFunction, OPS, opRecord, resultDType } from "../../src/ops.ts";
import { Variable } from "../../src/shape/symbolic.ts";
import { UOpGraph } from "../../src/uop/list.ts";
import type { UOp } from "../../src/uop/node.ts";

export interface Output {
  readonly what: string;
  readonly dtype: DType;
  readonly values: readonly Value[];
  /** units in the last place that a device may be off; 0: to the bit, but for the sign of a zero in MAX */
  readonly ulp: number;
}
export interface Case {
  readonly name: string;
  readonly uops: UOpGraph;
  readonly outputs: readonly Output[];
  /** bound after the outputs */
  readonly inputs: readonly { readonly dtype: DType; readonly values: readonly Value[] }[];
  readonly vals: readonly number[];
  /** threads of a workgroup; 1 where the kernel has no lidx */
  readonly local: number;
}

/** The seed's own kernel: the 14 uops of the dot product, in its order. */
export function dotProduct(): UOpGraph {
  const g = new UOpGraph();
  const pointer = PtrDType(dtypes.int);
  const data0 = g.add("DEFINE_GLOBAL", pointer, [], [0, "data0", true]);
  const data1 = g.add("DEFINE_GLOBAL", pointer, [], [1, "data1", false]);
  const data2 = g.add("DEFINE_GLOBAL", pointer, [], [2, "data2", false]);
  const acc = g.add("DEFINE_ACC", dtypes.int, [], 0);
  const zero = g.add("CONST", dtypes.int, [], 0);
  const two = g.add("CONST", dtypes.int, [], 2);
  const loop = g.add("LOOP", dtypes.int, [zero, two]);
  const a = g.add("LOAD", dtypes.int, [data1, loop]);
  const b = g.add("LOAD", dtypes.int, [data2, loop]);
  const product = g.add("ALU", dtypes.int, [a, b], "MUL");
  const sum = g.add("ALU", dtypes.int, [product, acc], "ADD");
  const phi = g.add("PHI", dtypes.int, [acc, sum, loop]);
  g.add("ENDLOOP", undefined, [loop]);
  g.add("STORE", undefined, [data0, zero, phi]);
  return g;
}

// ---- values ----

const FLOATS = [
  0,
  -0,
  1,
  -1,
  0.5,
  -2.5,
  1.5,
  3,
  7.25,
  -100.125,
  1e-3,
  255.9,
  65504,
  2 ** 24 + 1,
  1e10,
  -3e9,
  1e30,
  -1e30,
  1e-40,
  2 ** -126,
  Math.PI,
  2 ** 31,
  -(2 ** 31),
  2 ** 63,
  NaN,
  Infinity,
  -Infinity,
];
export function edges(d: DType): Value[] {
  if (d.kind === "bool") return [0, 1];
  if (d.isFloat) return [...new Set(FLOATS.map((x) => wrap(d, x)))];
  const [lo, hi] = bounds(d).map(BigInt) as [bigint, bigint];
  const all = [lo, lo + 1n, -7n, -2n, -1n, 0n, 1n, 2n, 3n, 5n, 100n, hi / 2n, hi - 1n, hi];
  return [...new Set(all)].filter((x) => x >= lo).map((x) => (d.isBig ? x : Number(x)));
}

const pairs = (xs: readonly Value[]): [Value, Value][] =>
  xs.flatMap((a) => xs.map((b): [Value, Value] => [a, b]));
const num = (d: DType, x: number): Value => wrap(d, d.isBig ? BigInt(x) : x);

const NOT_BOOL: readonly AluOp[] = ["SHL", "SHR"];
export const opsOf = (d: DType): AluOp[] =>
  (Object.keys(OPS) as AluOp[]).filter(
    (op) => isDefinedOn(op, d) && !(d.kind === "bool" && NOT_BOOL.includes(op)),
  );

// ---- one kernel of all ops on one type ----

/**
 * Buffers in their order, a loop over `n` elements; `body` gets the loads of the
 * inputs and returns the stores.
 */
function loopKernel(
  n: number,
  outs: readonly DType[],
  ins: readonly DType[],
  body: (g: UOpGraph, xs: UOp[]) => UOp[],
) {
  const g = new UOpGraph();
  const define = (d: DType, i: number) =>
    g.add("DEFINE_GLOBAL", PtrDType(d), [], [i, `data${i}`, i < outs.length]);
  const buffers = [...outs, ...ins].map(define);
  const start = g.add("CONST", dtypes.int, [], 0);
  const loop = g.add("LOOP", dtypes.int, [start, g.add("CONST", dtypes.int, [], n)]);
  const loads = ins.map((d, i) => g.add("LOAD", d, [buffers[outs.length + i] as UOp, loop]));
  for (const [i, value] of body(g, loads).entries())
    g.add("STORE", undefined, [buffers[i] as UOp, loop, value]);
  g.add("ENDLOOP", undefined, [loop]);
  return g;
}

/** Inputs: a, b, a divisor that C may divide by, a shift count, a condition. */
export function aluCase(d: DType, ops: readonly AluOp[] = opsOf(d), xs: readonly Value[] = edges(d)): Case {
  const ab = pairs(xs);
  const smallest = bounds(d)[0];
  const isTrap = ([a, b]: [Value, Value]) =>
    !d.isFloat && (Number(b) === 0 || (a === smallest && Number(b) === -1));
  const counts = [0, 1, 5, 7, 8, 31, 32, 33, 63, 64, d.kind === "uint" ? 6 : -1];
  const columns = {
    a: ab.map(([a]) => a),
    b: ab.map(([, b]) => b),
    divisor: ab.map((p) => (isTrap(p) ? num(d, 1) : p[1])),
    count: ab.map((_, i) => num(d, counts[i % counts.length] as number)),
    cond: ab.map((_, i) => i & 1),
  };
  const second = (op: AluOp): "b" | "divisor" | "count" =>
    op === "IDIV" || op === "MOD" ? "divisor" : op === "SHL" || op === "SHR" ? "count" : "b";
  const sourcesOf = (op: AluOp): (keyof typeof columns)[] => {
    const { arity } = opRecord(op);
    if (op === "WHERE") return ["cond", "a", "b"];
    return (["a", second(op), "a"] as const).slice(0, arity);
  };
  const outs = ops.map((op) => resultDType(op, d));
  const ins = [d, d, d, d, dtypes.bool];
  const order = ["a", "b", "divisor", "count", "cond"] as const;
  const uops = loopKernel(ab.length, outs, ins, (g, loads) =>
    ops.map((op, i) =>
      g.add(
        "ALU",
        outs[i],
        sourcesOf(op).map((s) => loads[order.indexOf(s)] as UOp),
        op,
      ),
    ),
  );
  const outputs = ops.map((op, i): Output => {
    const srcs = sourcesOf(op).map((s) => columns[s]);
    const values = ab.map((_, j) => opRecord(op).evaluate(d, ...srcs.map((s) => s[j] as Value)));
    return {
      what: `${op} of ${d.name}`,
      dtype: outs[i] as DType,
      values,
      ulp: isLibraryFunction(op) ? 4 : 0,
    };
  });
  const inputs = order.map((name, i) => ({ dtype: ins[i] as DType, values: columns[name] }));
  return { name: `alu_${d.name}`, uops, outputs, inputs, vals: [], local: 1 };
}

/**
 * From one type to all others. A float out of range of the target is codegen's to
 * clamp, so it is left out here.
 */
export function castCase(from: DType, targets: readonly DType[], xs: readonly Value[] = edges(from)): Case {
  const fits = (to: DType, x: Value): boolean => {
    if (!from.isFloat || !to.isInt) return true;
    const [lo, hi] = bounds(floatToIntVia(to));
    return Math.trunc(Number(x)) >= Number(lo) && Math.trunc(Number(x)) < Number(hi);
  };
  const tos = targets.filter((to) => to !== from);
  const columns = tos.map((to) => xs.map((x) => (fits(to, x) ? x : 0)));
  const bits = targets.filter((to) => to !== from && to.itemsize === from.itemsize && to.kind !== "bool");
  const bitTargets = from.kind === "bool" ? [] : bits;
  const ins = [...tos.map(() => from), from];
  const uops = loopKernel(xs.length, [...tos, ...bitTargets], ins, (g, loads) => [
    ...tos.map((to, i) => g.add("CAST", to, [loads[i] as UOp])),
    ...bitTargets.map((to) => g.add("BITCAST", to, [loads[tos.length] as UOp])),
  ]);
  const casts = tos.map((to, i): Output => {
    const values = (columns[i] as Value[]).map((x) => castValue(to, x, from));
    return { what: `${from.name} as ${to.name}`, dtype: to, values, ulp: 0 };
  });
  const bitcasts = bitTargets.map((to): Output => {
    const values = xs.map((x) => bitcastValue(to, x, from));
    return { what: `bits of ${from.name} as ${to.name}`, dtype: to, values, ulp: 0 };
  });
  const inputs = [...columns, xs].map((values) => ({ dtype: from, values }));
  return { name: `cast_${from.name}`, uops, outputs: [...casts, ...bitcasts], inputs, vals: [], local: 1 };
}

/** Signed overflow where it shows: compilers that take it for impossible get these wrong. */
export function overflowCase(d: DType): Case {
  const xs = edges(d);
  const [one, four] = [num(d, 1), num(d, 4)];
  const [least, most] = bounds(d);
  const outs = [dtypes.bool, d, d, dtypes.float64, d, d, d];
  const uops = loopKernel(xs.length, outs, [d], (g, [x]) => {
    const alu = (op: AluOp, ...srcs: UOp[]) =>
      g.add("ALU", resultDType(op, srcs.at(-1)?.dtype as DType), srcs, op);
    const [a, c1, c4] = [x as UOp, g.add("CONST", d, [], one), g.add("CONST", d, [], four)];
    const next = alu("ADD", a, c1);
    return [
      alu("CMPLT", next, a),
      alu("IDIV", alu("MUL", a, c4), c4),
      alu("SHR", alu("SHL", a, c1), c1),
      g.add("CAST", dtypes.float64, [alu("NEG", a)]),
      alu("MAX", alu("SUB", a, c1), a),
      alu("ADD", a, g.add("CONST", d, [], least)),
      alu("AND", alu("ADD", alu("MAX", a, c1), alu("MAX", a, c4)), g.add("CONST", d, [], most)),
    ];
  });
  const run = (op: AluOp, ...args: Value[]): Value => opRecord(op).evaluate(d, ...args);
  const values = [
    xs.map((x) => run("CMPLT", run("ADD", x, one), x)),
    xs.map((x) => run("IDIV", run("MUL", x, four), four)),
    xs.map((x) => run("SHR", run("SHL", x, one), one)),
    xs.map((x) => castValue(dtypes.float64, run("NEG", x), d)),
    xs.map((x) => run("MAX", run("SUB", x, one), x)),
    xs.map((x) => run("ADD", x, least)),
    xs.map((x) => run("AND", run("ADD", run("MAX", x, one), run("MAX", x, four)), most)),
  ];
  const outputs = values.map((v, i): Output => {
    return { what: `overflow ${i} of ${d.name}`, dtype: outs[i] as DType, values: v, ulp: 0 };
  });
  return {
    name: `overflow_${d.name}`,
    uops,
    outputs,
    inputs: [{ dtype: d, values: xs }],
    vals: [],
    local: 1,
  };
}

/**
 * The same kernel on `width` elements at a time; the last of them is repeated until they fill the vectors.
 */
export function widened(c: Case, width: number): Case {
  const n = c.outputs[0]?.values.length ?? 0;
  const more = Math.ceil(n / width) * width - n;
  const filled = <T extends { readonly values: readonly Value[] }>(x: T): T => ({
    ...x,
    values: [...x.values, ...new Array<Value>(more).fill(x.values.at(-1) ?? 0)],
  });
  const g = new UOpGraph();
  const int = (x: number) => g.add("CONST", dtypes.int32, [], x);
  const made = new Map<UOp, UOp>();
  for (const u of c.uops) {
    const srcs = u.srcs.map((s) => made.get(s) as UOp);
    if (u.op === "LOOP") {
      const loop = g.add("LOOP", dtypes.int32, [int(0), int((n + more) / width)]);
      made.set(u, g.add("ALU", dtypes.int32, [loop, int(width)], "MUL"));
    } else if (u.op === "ENDLOOP") {
      g.add("ENDLOOP", undefined, (srcs[0] as UOp).srcs.slice(0, 1));
    } else if (u.dtype instanceof DType) {
      made.set(u, g.add(u.op, u.dtype.vec(width), srcs, u.arg as never));
    } else made.set(u, g.add(u.op, u.dtype, srcs, u.arg as never));
  }
  const [outputs, inputs] = [c.outputs.map(filled), c.inputs.map(filled)];
  return { ...c, name: `${c.name}_by_${width}`, uops: g, outputs, inputs };
}

// ---- constants ----

export function constantCase(d: DType): Case {
  const xs = edges(d);
  const g = new UOpGraph();
  const out = g.add("DEFINE_GLOBAL", PtrDType(d), [], [0, "data0", true]);
  for (const [i, x] of xs.entries()) {
    g.add("STORE", undefined, [out, g.add("CONST", dtypes.int, [], i), g.add("CONST", d, [], x)]);
  }
  const output: Output = { what: `constants of ${d.name}`, dtype: d, values: xs, ulp: 0 };
  return { name: `const_${d.name}`, uops: g, outputs: [output], inputs: [], vals: [], local: 1 };
}

// ---- structure ----

/** Two accumulators that read each other, a variable as a bound, gates, vectors of four, an IF. */
export function structureCase(): Case {
  const g = new UOpGraph();
  const [f, i32] = [dtypes.float32, dtypes.int32];
  const int = (x: number) => g.add("CONST", i32, [], x);
  const out = g.add("DEFINE_GLOBAL", PtrDType(f), [], [0, "data0", true]);
  const input = g.add("DEFINE_GLOBAL", PtrDType(f), [], [1, "data1", false]);
  const n = g.add("DEFINE_VAR", i32, [], Variable("n", 1, 8));
  // largest so far, and the sum of the distances to the largest before
  const top = g.add("DEFINE_ACC", f, [], -Infinity);
  const moved = g.add("DEFINE_ACC", f, [], 0);
  const loop = g.add("LOOP", i32, [int(0), n]);
  const x = g.add("LOAD", f, [input, loop]);
  const best = g.add("ALU", f, [top, g.add("ALU", f, [x, x], "MUL")], "MAX");
  const before = g.add("ALU", f, [top, g.add("CONST", f, [], -1)], "MAX");
  const topNow = g.add("PHI", f, [top, best, loop]);
  const movedNow = g.add("PHI", f, [moved, g.add("ALU", f, [moved, before], "ADD"), loop]);
  g.add("ENDLOOP", undefined, [loop]);
  g.add("STORE", undefined, [out, int(0), topNow]);
  g.add("STORE", undefined, [out, int(1), movedNow]);
  // gates: element 100 does not exist
  const isSmall = g.add("ALU", dtypes.bool, [n, int(8)], "CMPLT");
  const far = g.add("ALU", i32, [n, int(100_000_000)], "MUL");
  const isFar = g.add("ALU", dtypes.bool, [int(8), n], "CMPLT");
  const gated = g.add("LOAD", f, [input, far, isFar, g.add("CONST", f, [], 42)]);
  g.add("STORE", undefined, [out, int(2), gated, isSmall]);
  g.add("STORE", undefined, [out, far, gated, isFar]);
  const guard = g.add("IF", undefined, [isSmall]);
  g.add("STORE", undefined, [out, int(3), g.add("CONST", f, [], 0.25)]);
  g.add("ENDIF", undefined, [guard]);
  // vectors: (x + x*2) with the lanes turned
  const f4 = f.vec(4);
  const v = g.add("LOAD", f4, [input, int(4)]);
  const twice = g.add("ALU", f4, [v, g.add("CONST", f4, [], 2)], "MUL");
  const sum = g.add("ALU", f4, [v, twice], "ADD");
  const turned = g.add(
    "VECTORIZE",
    f4,
    [3, 2, 1, 0].map((lane) => g.add("GEP", f, [sum], lane)),
  );
  g.add("STORE", undefined, [out, int(4), turned]);
  const whole = g.add("CAST", i32.vec(4), [sum]);
  g.add("STORE", undefined, [out, int(8), g.add("CAST", f4, [whole])]);
  const values = [1, -3, 2, 0.5, 1.25, -2, 4, 8];
  const tripled = values.slice(4).map((x) => x * 3);
  const expected = [9, -1 + 1 + 9, 42, 0.25, ...tripled.toReversed(), ...tripled.map(Math.trunc)];
  return {
    name: "structure",
    uops: g,
    outputs: [{ what: "structure", dtype: f, values: expected, ulp: 0 }],
    inputs: [{ dtype: f, values }],
    vals: [3],
    local: 1,
  };
}

/** Threads, workgroup memory and a barrier: a workgroup reverses its four elements. */
export function groupCase(): Case {
  const g = new UOpGraph();
  const [f, i32] = [dtypes.float32, dtypes.int32];
  const int = (x: number) => g.add("CONST", i32, [], x);
  const out = g.add("DEFINE_GLOBAL", PtrDType(f), [], [0, "data0", true]);
  const input = g.add("DEFINE_GLOBAL", PtrDType(f), [], [1, "data1", false]);
  const gidx = g.add("SPECIAL", i32, [], [0, "gidx0", 2]);
  const lidx = g.add("SPECIAL", i32, [], [0, "lidx0", 4]);
  const temp = g.add("DEFINE_LOCAL", PtrDType(f, true), [], ["temp", 4]);
  const at = g.add("ALU", i32, [g.add("ALU", i32, [gidx, int(4)], "MUL"), lidx], "ADD");
  g.add("STORE", undefined, [temp, lidx, g.add("LOAD", f, [input, at])]);
  g.add("BARRIER", undefined);
  const turned = g.add("LOAD", f, [temp, g.add("ALU", i32, [int(3), lidx], "SUB")]);
  g.add("STORE", undefined, [out, at, turned]);
  const values = [1, 2, 3, 4, 5, 6, 7, 8];
  return {
    name: "group",
    uops: g,
    outputs: [{ what: "group", dtype: f, values: [4, 3, 2, 1, 8, 7, 6, 5], ulp: 0 }],
    inputs: [{ dtype: f, values }],
    vals: [],
    local: 4,
  };
}

// ---- comparison ----

export function encode(d: DType, values: readonly Value[]): Uint8Array {
  const bytes = new Uint8Array(values.length * d.itemsize);
  const view = new DataView(bytes.buffer);
  for (const [i, x] of values.entries()) writeValue(view, i * d.itemsize, d, x);
  return bytes;
}

const MANTISSA: Readonly<Record<string, number>> = { float16: 10, bfloat16: 7, float32: 23, float64: 52 };
const SMALLEST: Readonly<Record<string, number>> = { float32: 2 ** -149, float64: 2 ** -1074 };

function agrees(o: Output, got: Value, want: Value): boolean {
  if (got === want) return got !== 0 || Object.is(got, want) || o.what.startsWith("MAX") || o.ulp > 0;
  if (Number.isNaN(got) && Number.isNaN(want)) return true;
  if (o.ulp === 0 || typeof got === "bigint" || typeof want === "bigint") return false;
  const unit = Math.max(Math.abs(want) * 2 ** -(MANTISSA[o.dtype.name] ?? 23), SMALLEST[o.dtype.name] ?? 0);
  return Math.abs(got - want) <= o.ulp * unit;
}

/** What is wrong, in words; empty when nothing is. */
export function differences(c: Case, results: readonly Uint8Array[]): string[] {
  const wrong: string[] = [];
  for (const [i, o] of c.outputs.entries()) {
    const bytes = results[i] as Uint8Array;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (const [j, want] of o.values.entries()) {
      const got = readValue(view, j * o.dtype.itemsize, o.dtype);
      if (agrees(o, got, want)) continue;
      const from = c.inputs.map((x) => String(x.values[j])).join(" ");
      wrong.push(`${o.what} [${j}]: got ${got}, want ${want} (inputs there: ${from})`);
    }
  }
  return wrong;
}

/** All cases of a language, by the types and ops that it has. */
export function allCases(
  native: readonly DType[],
  movable: readonly DType[],
  has: (op: AluOp) => boolean,
): Case[] {
  return [
    ...native.map((d) => aluCase(d, opsOf(d).filter(has))),
    ...movable.map((d) => castCase(d, movable)),
    ...movable.map((d) => constantCase(d)),
    structureCase(),
    ...(native.includes(dtypes.float64) ? [overflowCase(dtypes.int32), overflowCase(dtypes.int64)] : []),
  ];
}
