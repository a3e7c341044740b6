// Nodes: every op names its sources and arguments, and each name finds the right one.

import { describe, expect, test } from "vitest";
import { MMA } from "../../src/codegen/opt/mma.ts";
import { dtypes, PtrDType } from "../../src/dtype.ts";
import { Variable } from "../../src/shape/symbolic.ts";
import type { FragmentLoad, Tile } from "../../src/uop/matrix.ts";
import {
  copyUOp,
  isExpr,
  makeUOp,
  type UOp,
  type UOpArgs,
  type UOpName,
  UOps,
  type UType,
  valueType,
} from "../../src/uop/node.ts";

const { bool, int32, uint32, float32 } = dtypes;
const [global, shared] = [PtrDType(float32), PtrDType(float32, true)];

const zero = makeUOp("CONST", int32, [], 0);
const four = makeUOp("CONST", int32, [], 4);
const half = makeUOp("CONST", float32, [], 0.5);
const gate = makeUOp("CONST", bool, [], 1);
const data = makeUOp("DEFINE_GLOBAL", global, [], [2, "data2", true]);
const array = makeUOp("DEFINE_LOCAL", shared, [], ["temp0", 16]);
const range = makeUOp("RANGE", int32, [zero, four], { id: 7, size: 4, kind: "reduce", of: 1 });
const other = makeUOp("RANGE", int32, [zero, four], { id: 8, size: 4, kind: "output", of: 0 });
const loop = makeUOp("LOOP", int32, [zero, four], undefined);
const accumulator = makeUOp("DEFINE_ACC", float32, [], 0.25);
const vector = makeUOp("VECTORIZE", float32.vec(2), [half, half], undefined);
const store = makeUOp("STORE", undefined, [array, range, half], undefined);
const branch = makeUOp("IF", undefined, [gate], undefined);
const words = makeUOp("CONST", uint32.vec(4), [], 1);
const size = Variable("size", 1, 9);
const core = MMA[0]!;
const fragment: FragmentLoad = { core, side: "a", pitch: 24, isTransposed: false };
const tile: Tile = { dims: [], size: 16, swizzle: undefined, vector: 4, step: 4, stages: 2, coordinates: [] };

/** The names of an op, as its interface has them, on a node of these parts. */
interface Case<K extends UOpName> {
  readonly dtype: UType;
  readonly srcs: readonly UOp[];
  readonly arg: UOpArgs[K];
  readonly names: (u: UOp<K>) => Readonly<Record<string, unknown>>;
  readonly are: Readonly<Record<string, unknown>>;
}
const none = undefined;
/** Exhaustive: a new op must say what its names are. */
const CASES: { readonly [K in UOpName]: readonly Case<K>[] } = {
  DEFINE_GLOBAL: [
    {
      dtype: global,
      srcs: [],
      arg: [2, "data2", true],
      names: ({ position, name, isWritten }) => ({ position, name, isWritten }),
      are: { position: 2, name: "data2", isWritten: true },
    },
  ],
  DEFINE_LOCAL: [
    {
      dtype: shared,
      srcs: [],
      arg: ["temp0", 16],
      names: ({ name, elements }) => ({ name, elements }),
      are: { name: "temp0", elements: 16 },
    },
  ],
  DEFINE_ACC: [
    { dtype: float32, srcs: [], arg: 0.25, names: ({ initial }) => ({ initial }), are: { initial: 0.25 } },
  ],
  DEFINE_VAR: [
    { dtype: int32, srcs: [], arg: size, names: ({ variable }) => ({ variable }), are: { variable: size } },
  ],
  SPECIAL: [
    {
      dtype: int32,
      srcs: [],
      arg: [1, "gidx1", 12],
      names: (u) => ({ dimension: u.dimension, name: u.name, size: u.size }),
      are: { dimension: 1, name: "gidx1", size: 12 },
    },
  ],
  CONST: [{ dtype: float32, srcs: [], arg: 0.5, names: ({ value }) => ({ value }), are: { value: 0.5 } }],
  LOOP: [
    {
      dtype: int32,
      srcs: [zero, four],
      arg: none,
      names: ({ start, end }) => ({ start, end }),
      are: { start: zero, end: four },
    },
  ],
  ENDLOOP: [{ dtype: none, srcs: [loop], arg: none, names: (u) => ({ loop: u.loop }), are: { loop } }],
  IF: [
    {
      dtype: none,
      srcs: [gate],
      arg: none,
      names: ({ condition }) => ({ condition }),
      are: { condition: gate },
    },
  ],
  ENDIF: [{ dtype: none, srcs: [branch], arg: none, names: (u) => ({ branch: u.branch }), are: { branch } }],
  LOAD: [
    {
      dtype: float32,
      srcs: [data, range],
      arg: none,
      names: (u) => ({ buffer: u.buffer, index: u.index, gate: u.gate, otherwise: u.otherwise }),
      are: { buffer: data, index: range, gate: none, otherwise: none },
    },
    {
      dtype: float32,
      srcs: [data, range, gate, half],
      arg: none,
      names: (u) => ({ buffer: u.buffer, index: u.index, gate: u.gate, otherwise: u.otherwise }),
      are: { buffer: data, index: range, gate, otherwise: half },
    },
  ],
  STORE: [
    {
      dtype: none,
      srcs: [data, range, half],
      arg: none,
      names: (u) => ({ buffer: u.buffer, index: u.index, value: u.value, gate: u.gate }),
      are: { buffer: data, index: range, value: half, gate: none },
    },
    {
      dtype: none,
      srcs: [data, range, half, gate],
      arg: none,
      names: (u) => ({ value: u.value, gate: u.gate }),
      are: { value: half, gate },
    },
  ],
  ALU: [
    {
      dtype: bool,
      srcs: [range, four],
      arg: "CMPLT",
      names: (u) => ({ fn: u.fn, operands: u.operands, operandType: u.operandType }),
      are: { fn: "CMPLT", operands: [range, four], operandType: int32 },
    },
    {
      dtype: float32,
      srcs: [gate, half, half],
      arg: "WHERE",
      names: (u) => ({ operandType: u.operandType }),
      are: { operandType: float32 },
    },
  ],
  CAST: [
    {
      dtype: float32,
      srcs: [range],
      arg: none,
      names: ({ operand }) => ({ operand }),
      are: { operand: range },
    },
  ],
  BITCAST: [
    { dtype: int32, srcs: [half], arg: none, names: ({ operand }) => ({ operand }), are: { operand: half } },
  ],
  PHI: [
    {
      dtype: float32,
      srcs: [accumulator, half, loop, loop],
      arg: none,
      names: (u) => ({ accumulator: u.accumulator, value: u.value, loops: u.loops }),
      are: { accumulator, value: half, loops: [loop, loop] },
    },
  ],
  BARRIER: [{ dtype: none, srcs: [], arg: none, names: () => ({}), are: {} }],
  SHFL: [
    {
      dtype: float32,
      srcs: [half],
      arg: 16,
      names: ({ operand, mask }) => ({ operand, mask }),
      are: { operand: half, mask: 16 },
    },
  ],
  ASYNC: [
    {
      dtype: none,
      srcs: [array, range, data, four, gate],
      arg: 4,
      names: (u) => ({
        to: u.to,
        toIndex: u.toIndex,
        from: u.from,
        fromIndex: u.fromIndex,
        gate: u.gate,
        elements: u.elements,
      }),
      are: { to: array, toIndex: range, from: data, fromIndex: four, gate, elements: 4 },
    },
  ],
  COMMIT: [{ dtype: none, srcs: [], arg: none, names: () => ({}), are: {} }],
  WAIT: [{ dtype: none, srcs: [], arg: 2, names: ({ pending }) => ({ pending }), are: { pending: 2 } }],
  LDMATRIX: [
    {
      dtype: uint32.vec(4),
      srcs: [array, range],
      arg: true,
      names: (u) => ({ buffer: u.buffer, index: u.index, isTransposed: u.isTransposed }),
      are: { buffer: array, index: range, isTransposed: true },
    },
  ],
  LDFRAGMENT: [
    {
      dtype: uint32.vec(4),
      srcs: [array, range],
      arg: fragment,
      names: (u) => ({ buffer: u.buffer, index: u.index, operandLoad: u.operandLoad }),
      are: { buffer: array, index: range, operandLoad: fragment },
    },
  ],
  WMMA: [
    {
      dtype: float32.vec(4),
      srcs: [words, vector],
      arg: core,
      names: ({ a, b, c, core }) => ({ a, b, c, core }),
      are: { a: words, b: vector, c: none, core },
    },
    {
      dtype: float32.vec(4),
      srcs: [words, vector, half],
      arg: core,
      names: ({ c }) => ({ c }),
      are: { c: half },
    },
  ],
  GEP: [
    {
      dtype: float32,
      srcs: [vector],
      arg: 1,
      names: (u) => ({ vector: u.vector, lane: u.lane }),
      are: { vector, lane: 1 },
    },
  ],
  VECTORIZE: [
    {
      dtype: float32.vec(2),
      srcs: [half, half],
      arg: none,
      names: ({ lanes }) => ({ lanes }),
      are: { lanes: [half, half] },
    },
  ],
  RANGE: [
    {
      dtype: int32,
      srcs: [zero, four],
      arg: range.axis,
      names: ({ start, end, axis }) => ({ start, end, axis }),
      are: { start: zero, end: four, axis: { id: 7, size: 4, kind: "reduce", of: 1 } },
    },
  ],
  REDUCE: [
    {
      dtype: float32,
      srcs: [half, range, other],
      arg: "SUM",
      names: ({ fn, body, ranges }) => ({ fn, body, ranges }),
      are: { fn: "SUM", body: half, ranges: [range, other] },
    },
  ],
  STAGE: [
    {
      dtype: shared,
      srcs: [array, store, range, other],
      arg: none,
      names: (u) => ({ array: u.array, stores: u.stores, ranges: u.ranges }),
      are: { array, stores: [store], ranges: [range, other] },
    },
  ],
  TILE: [
    {
      dtype: shared,
      srcs: [data, four],
      arg: tile,
      names: (u) => ({ buffer: u.buffer, base: u.base, loop: u.loop, tile: u.tile }),
      are: { buffer: data, base: four, loop: none, tile },
    },
    {
      dtype: shared,
      srcs: [data, four, range],
      arg: tile,
      names: (u) => ({ loop: u.loop }),
      are: { loop: range },
    },
  ],
  ELEMENT: [
    {
      dtype: float32,
      srcs: [vector, other],
      arg: none,
      names: (u) => ({ vector: u.vector, index: u.index }),
      are: { vector, index: other },
    },
  ],
  SINK: [
    {
      dtype: none,
      srcs: [store, store],
      arg: none,
      names: ({ stores }) => ({ stores }),
      are: { stores: [store, store] },
    },
  ],
};

function check<K extends UOpName>(op: K): void {
  const cases: readonly Case<K>[] = CASES[op];
  for (const { dtype, srcs, arg, names, are } of cases) {
    expect(names(makeUOp(op, dtype, srcs, arg)), `${op} of ${srcs.length} sources`).toEqual(are);
  }
}
describe("the names of", () => {
  test.each(Object.values(UOps))("%s", check);
});

test("every node has an id of its own, also where all else is the same", () => {
  const [x, y] = [makeUOp("CONST", int32, [], 1), makeUOp("CONST", int32, [], 1)];
  expect(x).not.toBe(y);
  expect(y.id).toBe(x.id + 1);
});

test("a copy has the op, type and argument of the original, and other sources", () => {
  const copy = copyUOp(makeUOp("ALU", int32, [zero, zero], "ADD"), [four, range]);
  expect([copy.op, copy.dtype, copy.arg, copy.srcs]).toEqual(["ALU", int32, "ADD", [four, range]]);
});

test("values have a value type; pointers and effects have none", () => {
  expect([half, data, store].map(isExpr)).toEqual([true, false, false]);
  expect(valueType(half)).toBe(float32);
  expect(() => valueType(data)).toThrow(/DEFINE_GLOBAL has no value type/);
  expect(() => valueType(store)).toThrow(/STORE has no value type.*an effect/);
});
