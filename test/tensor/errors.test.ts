// Bad input. Every mistake gives an error of a class that a program can tell apart, with a text that names
// the op, what came, what was expected and what to do; and the next, correct call works.
// failures.test.ts has what fails while it runs.

import {
  ArgumentError,
  Buffer,
  BufferCopy,
  Device,
  DeviceError,
  DTypeError,
  dtypes,
  GradloomError,
  LazyBuffer,
  ShapeError,
  Tensor,
  withEnv,
} from "gradloom";
import { afterEach, describe, expect, test } from "vitest";

const x = new Tensor([
  [1, 2, 3],
  [4, 5, 6],
]);
const v = new Tensor([1, 2, 3]);
const f = new Tensor([1.5, 2.5]);
const b = x.gt(2);
/** What a JavaScript caller can pass that the types forbid. */
const any = (value: unknown): never => value as never;

afterEach(async () => {
  expect(await new Tensor([1, 2]).dot(new Tensor([3, 4])).item()).toBe(11);
});

type Case = readonly [string, () => unknown, new (m: string) => Error, RegExp];
const CASES: readonly Case[] = [
  [
    "add of shapes that do not broadcast",
    () => x.add(new Tensor([1, 2])),
    ShapeError,
    /^add: shapes \[2, 3\] and \[2\] do not broadcast; dim -1 has sizes 3 and 2, expected equal or 1/,
  ],
  [
    "maximum of shapes that do not broadcast",
    () => x.maximum(new Tensor([[1], [2], [3]])),
    ShapeError,
    /^maximum: .*dim -2 has sizes 2 and 3/,
  ],
  [
    "where of shapes that do not broadcast",
    () => b.where(new Tensor([1, 2]), 0),
    ShapeError,
    /^where: shapes/,
  ],
  [
    "operands on two devices",
    () => x.mul(x.to("JS")),
    DeviceError,
    /^MUL: the operands are on WASM and JS; move one of them: t\.to\("WASM"\)/,
  ],
  [
    "dot of sizes that differ",
    () => x.dot(new Tensor([1, 2])),
    ShapeError,
    /^dot: cannot multiply \[2, 3\] by \[2\]; .* is 3, .* is 2, expected equal/,
  ],
  ["dot of a scalar", () => x.dot(new Tensor(2)), ShapeError, /^dot: got \[2, 3\] and \[\]; .*mul/],

  [
    "sum over an axis that is not there",
    () => x.sum(2),
    ShapeError,
    /^sum: dim 2 is out of range for shape \[2, 3\]; expected -2 to 1/,
  ],
  ["sum over an axis counted too far back", () => x.sum(-3), ShapeError, /^sum: dim -3 .*expected -2 to 1/],
  ["sum over half an axis", () => x.sum(0.5), ShapeError, /^sum: dim 0\.5/],
  ["sum over NaN", () => x.sum(NaN), ArgumentError, /^sum: dim is NaN, expected/],
  [
    "sum over one axis twice",
    () => x.sum([0, -2]),
    ShapeError,
    /^sum: a dim is named twice in \[0,-2\] for shape \[2, 3\]/,
  ],
  ["softmax over an axis that is not there", () => x.softmax(7), ShapeError, /^softmax: dim 7/],
  ["logSoftmax over an axis that is not there", () => x.logSoftmax(7), ShapeError, /^logSoftmax: dim 7/],
  ["var over an axis that is not there", () => x.var(7), ShapeError, /^var: dim 7/],
  ["max of nothing", () => new Tensor([]).max(), ShapeError, /^max: shape \[0\] has no elements/],
  [
    "min of nothing",
    () => Tensor.zeros(2, 0).min(1),
    ShapeError,
    /^min: shape \[2, 0\] has no elements along dim 1/,
  ],

  [
    "reshape to another count",
    () => x.reshape(4),
    ShapeError,
    /^reshape: .*\[2,3\] \(6 elements\) as \[4\] \(4 elements\)/,
  ],
  [
    "reshape with two open sizes",
    () => x.reshape(-1, -1),
    ShapeError,
    /^reshape: cannot infer the -1 in \[-1, -1\] from shape \[2, 3\]/,
  ],
  [
    "reshape with an open size that does not divide",
    () => x.reshape(4, -1),
    ShapeError,
    /^reshape: cannot infer/,
  ],
  [
    "reshape to negative sizes",
    () => x.reshape(-2, -3),
    ShapeError,
    /^reshape: got shape \[-2,-3\]; each size must be/,
  ],
  ["reshape to a fraction", () => x.reshape(1.5, 4), ShapeError, /^reshape: got shape \[1\.5,4\]/],
  [
    "permute with a dim missing",
    () => x.permute(0),
    ShapeError,
    /^permute: got 1 dims for shape \[2, 3\]; name each of its 2 dims once/,
  ],
  ["permute with a dim twice", () => x.permute(0, 0), ShapeError, /^permute: a dim is named twice/],
  ["permute with a dim too many", () => x.permute(0, 1, 2), ShapeError, /^permute: dim 2 is out of range/],
  [
    "transpose of a vector",
    () => v.transpose(),
    ShapeError,
    /^transpose: dim -2 is out of range for shape \[3\]/,
  ],
  [
    "expand of a size that is not 1",
    () => x.expand(2, 6),
    ShapeError,
    /^expand: dim 1 of shape \[2, 3\] has size 3 and cannot become 6; only size 1 expands/,
  ],
  ["expand to fewer dims", () => x.expand(3), ShapeError, /^expand: shape \[2, 3\] has more dims than \[3\]/],
  [
    "expand to a negative size",
    () => new Tensor([[1]]).expand(-5, 2),
    ShapeError,
    /^expand: got shape \[-5,2\]/,
  ],
  [
    "pad with a pair missing",
    () => x.pad([[1, 1]]),
    ShapeError,
    /^pad: got 1 pairs for shape \[2, 3\]; give \[before, after\] or null/,
  ],
  [
    "pad that cuts off more than there is",
    () => x.pad([[-3, 0], null]),
    ShapeError,
    /^pad: .*cuts more than/,
  ],
  [
    "sum over null",
    () => x.sum(null as unknown as number),
    ArgumentError,
    /^sum: dim is null, expected an array of numbers or a number/,
  ],
  ["pad by a fraction", () => x.pad([[0.5, 0], null]), ShapeError, /^pad: got \[\[0\.5,0\]/],
  [
    "shrink with a range missing",
    () => x.shrink([[0, 1]]),
    ShapeError,
    /^shrink: got 1 ranges for shape \[2, 3\]/,
  ],
  [
    "shrink past the end",
    () => x.shrink([[0, 3], null]),
    ShapeError,
    /^shrink: got \[\[0,3\],\[0,3\]\] for shape \[2,3\].*0 <= from <= to <= size/,
  ],
  ["shrink from before the start", () => x.shrink([[-1, 1], null]), ShapeError, /^shrink: got/],
  ["shrink backwards", () => x.shrink([[1, 0], null]), ShapeError, /^shrink: got/],
  ["shrink to a fraction", () => x.shrink([[0, 1.5], null]), ShapeError, /^shrink: got/],
  ["flip of an axis that is not there", () => x.flip(2), ShapeError, /^flip: dim 2 is out of range/],
  [
    "a step of zero",
    () => x.stride(0, 1),
    ShapeError,
    /^stride: got steps \[0,1\] for shape \[2,3\]; give one nonzero integer per axis/,
  ],
  ["a step missing", () => x.stride(1), ShapeError, /^stride: got steps \[1\]/],
  ["flatten from the back", () => x.flatten(1, 0), ShapeError, /^flatten: start 1 comes after end 0/],
  ["squeeze of an axis that is not there", () => x.squeeze(4), ShapeError, /^squeeze: dim 4/],
  ["unsqueeze too far", () => x.unsqueeze(4), ShapeError, /^unsqueeze: dim 4 .*expected -3 to 2/],
  [
    "zeros of a negative size",
    () => Tensor.zeros(-1),
    ShapeError,
    /^zeros: \[-1\] is not a shape; sizes are integers from 0 up/,
  ],
  ["ones of a fraction", () => Tensor.ones([2, 1.5]), ShapeError, /^ones: \[2, 1\.5\] is not a shape/],
  [
    "full of a size that is not a number",
    () => Tensor.full([NaN], 1),
    ArgumentError,
    /^full: an element of shape is NaN, expected an array of numbers/,
  ],
  [
    "empty of a size beyond all integers",
    () => Tensor.empty([1e300]),
    ShapeError,
    /^empty: \[1e\+300\] is not a shape/,
  ],

  [
    "where on numbers",
    () => x.where(1, 2),
    DTypeError,
    /^where: the condition is int32, expected bool; compare first/,
  ],
  [
    "sub of bools",
    () => b.sub(true),
    DTypeError,
    /^sub: bool has no such operation; use logicalNot or bitwiseXor/,
  ],
  ["neg of bools", () => b.neg(), DTypeError, /^neg: bool/],
  ["idiv of floats", () => f.idiv(2), DTypeError, /^idiv: takes integers, got float32; cast first/],
  ["lshift of floats", () => f.lshift(2), DTypeError, /^lshift: takes integers/],
  [
    "bitwiseAnd of floats",
    () => f.bitwiseAnd(1),
    DTypeError,
    /^bitwiseAnd: takes integers or bools, got float32/,
  ],
  [
    "bitcast to another size",
    () => x.bitcast("float64"),
    DTypeError,
    /^bitcast: int32 has 32 bits, float64 has 64/,
  ],
  [
    "cast to a type that is not there",
    () => x.cast(any("float13")),
    DTypeError,
    /unknown name "float13"; expected one of bool, int8/,
  ],
  [
    "a dtype option that is not there",
    () => new Tensor([1], { dtype: any("int13") }),
    DTypeError,
    /unknown name "int13"/,
  ],
  [
    "a DataView",
    () => new Tensor(new DataView(new ArrayBuffer(8))),
    DTypeError,
    /^Tensor: DataView is not an array of numbers; give a typed array/,
  ],

  [
    "a row too short",
    () => new Tensor([[1, 2], [3]]),
    ShapeError,
    /^Tensor: the array is ragged: \[1\] has 1 elements, expected 2/,
  ],
  [
    "a number among rows",
    () => new Tensor([[1, 2], any(3)]),
    ShapeError,
    /^Tensor: the array is ragged: \[1\] has number, expected 2/,
  ],
  [
    "a deep row too long",
    () =>
      new Tensor([
        [[1], [2]],
        [[3], [4, 5]],
      ]),
    ShapeError,
    /^Tensor: the array is ragged: \[1\]\[1\] has 2 elements, expected 1/,
  ],
  [
    "a row among numbers",
    () => new Tensor([1, any([2])]),
    ArgumentError,
    /^Tensor: \[1\] is an array, expected a number/,
  ],
  [
    "a hole in an array",
    () => new Tensor(Object.assign(new Array<number>(3), { 0: 1, 2: 3 })),
    ArgumentError,
    /^Tensor: \[1\] is undefined, expected a number/,
  ],
  [
    "a string in an array",
    () => new Tensor([any("1")]),
    ArgumentError,
    /^Tensor: \[0\] is string, expected a number, bigint or boolean/,
  ],
  [
    "null",
    () => new Tensor(any(null)),
    ArgumentError,
    /^Tensor: the data is object, expected a number.*typed array/,
  ],
  ["undefined", () => new Tensor(any(undefined)), ArgumentError, /^Tensor: data is missing/],
  ["a Map", () => new Tensor(any(new Map())), ArgumentError, /^Tensor: the data is object/],
  [
    "bytes that are not whole elements",
    () => new Tensor(new ArrayBuffer(6), { dtype: "float32" }),
    ShapeError,
    /^Tensor: 6 bytes are not a whole number of float32/,
  ],
  [
    "a string as operand",
    () => x.mul(any("2")),
    ArgumentError,
    /^mul: x is the string "2", expected a number or a Tensor; write mul\(x\)/,
  ],
  [
    "undefined as operand",
    () => x.add(any(undefined)),
    ArgumentError,
    /^add: x is missing, expected a number or a Tensor; write add\(x, \{ alpha \}\)/,
  ],
  ["an array that does not fit", () => x.add(any([1, 2])), ShapeError, /^add: shapes \[2, 3\] and \[2\]/],

  [
    "item of many",
    () => x.itemSync(),
    ShapeError,
    /^item: shape \[2, 3\] has 6 elements, item\(\) reads exactly one; use data\(\) or tolist\(\)/,
  ],
  ["item of none", () => new Tensor([]).itemSync(), ShapeError, /^item: shape \[0\] has 0 elements/],
  [
    "a device that is not there",
    () => new Tensor([1], { device: "NOPE" }).dataSync(),
    DeviceError,
    /^device NOPE does not exist; this build has WASM, JS.*set DEV or Device\.DEFAULT/,
  ],
  [
    "to a device that is not there",
    () => x.to("NOPE:3").dataSync(),
    DeviceError,
    /^device NOPE:3 does not exist/,
  ],
  [
    "a default device that is not there",
    () => Object.assign(Device, { DEFAULT: "NOPE" }),
    DeviceError,
    /^device NOPE does not exist/,
  ],
  [
    "a device named like a property of objects",
    () => x.to("__proto__").dataSync(),
    DeviceError,
    /does not exist/,
  ],
  ["DISK without a file", () => x.to("DISK").dataSync(), DeviceError, /DISK/],
  [
    "a default device that only holds data",
    () => Object.assign(Device, { DEFAULT: "ext" }),
    DeviceError,
    /^device EXT holds data and cannot compute, .*such as WASM, JS or CLANG/,
  ],
  [
    "a file as the default device",
    () => Object.assign(Device, { DEFAULT: "DISK:x" }),
    DeviceError,
    /^device DISK:x holds data/,
  ],
  ["DEV=EXT", () => withEnv({ DEV: "EXT" }, () => new Tensor([1])), DeviceError, /^device EXT holds data/],
  [
    "a buffer of less than nothing",
    () => new Buffer("WASM", -1, dtypes.int32),
    ArgumentError,
    /^Buffer: size is -1/,
  ],
  [
    "a buffer of half an element",
    () => new Buffer("WASM", 0.5, dtypes.int32),
    ArgumentError,
    /^Buffer: size/,
  ],
  [
    "assign of a number",
    () => new Tensor([1]).assign(any(5)),
    ArgumentError,
    /^assign: x is 5, expected a Tensor/,
  ],
  ["assign of an array", () => f.assign(any([5])), ShapeError, /^assign: cannot put \[1\] int32/],
  [
    "assign of another shape",
    () => new Tensor([1]).assign(v),
    ShapeError,
    /^assign: cannot put \[3\] int32 on WASM into \[1\] int32 on WASM/,
  ],
  [
    "assign of another dtype",
    () => new Tensor([1, 2]).assign(f),
    DTypeError,
    /^assign: .*x\.cast\("int32"\)/,
  ],
  [
    "assign from another device",
    () => new Tensor([1, 2, 3]).assign(v.to("JS")),
    DeviceError,
    /^assign: .*x\.to\("WASM"\)/,
  ],
  [
    "sum over a string",
    () => x.sum(any("0")),
    ArgumentError,
    /^sum: dim is the string "0", expected an array of numbers or a number/,
  ],
  ["sum over strings", () => x.sum(any(["0"])), ArgumentError, /^sum: an element of dim is the string "0"/],
  ["flip of null", () => x.flip(any(null)), ArgumentError, /^flip: dims is null/],
  [
    "full of a string",
    () => Tensor.full(any("3"), 1),
    ArgumentError,
    /^full: shape is the string "3", expected/,
  ],
  [
    "zeros of a string",
    () => Tensor.zeros(any("2")),
    ArgumentError,
    /^zeros: argument 1 is the string "2", expected a number/,
  ],
  ["ones of null", () => Tensor.ones(any(null)), ArgumentError, /^ones: argument 1 is null, expected/],
  ["pad by a number", () => x.pad(any(1)), ArgumentError, /^pad: amounts is 1, expected an array/],
  ["pad by a number and a pair", () => x.pad(any([1, [1, 1]])), ArgumentError, /^pad: got 1, expected/],
  ["shrink to a number", () => x.shrink(any(1)), ArgumentError, /^shrink: cuts is 1, expected an array/],
  [
    "a tensor of a tensor",
    () => new Tensor(any(x)),
    ArgumentError,
    /^Tensor: the data is a Tensor already; use t\.detach/,
  ],
  [
    "a tensor of tensors",
    () => new Tensor(any([x])),
    ArgumentError,
    /^Tensor: \[0\] is a Tensor \(see Tensor\.stack\)/,
  ],
  [
    "a typed row too short",
    () => new Tensor([new Float32Array(2), new Float32Array(1)]),
    ShapeError,
    /^Tensor: the array is ragged: \[1\] has 1 elements, expected 2/,
  ],
  [
    "copying between buffers of two sizes",
    () =>
      new BufferCopy().exec([
        new Buffer("WASM", 2, dtypes.int32).allocate(),
        new Buffer("WASM", 3, dtypes.int32).allocate(),
      ]),
    ShapeError,
    /^copy: cannot copy 3 × int32 into 2 × int32; size and dtype of both buffers must be equal/,
  ],
];

describe("a mistake is told by class and by words", () => {
  for (const [name, f, type, text] of CASES) {
    test(name, () => {
      let error: unknown;
      try {
        f();
      } catch (e) {
        error = e;
      }
      expect(error).toBeInstanceOf(type);
      expect(error).toBeInstanceOf(GradloomError);
      expect((error as Error).name).toBe(type.name);
      expect((error as Error).message).toMatch(text);
    });
  }
  test("the async forms fail the same way, as a rejected promise", async () => {
    await expect(x.item()).rejects.toThrow(ShapeError);
    await expect(x.to("NOPE").data()).rejects.toThrow(/device NOPE does not exist/);
    await expect(new Tensor([1], { device: "NOPE" }).realize()).rejects.toThrow(DeviceError);
    await expect(Device.open("NOPE")).rejects.toThrow(DeviceError);
  });
  test("ops on LazyBuffers check their sources too", () => {
    const one = LazyBuffer.constant("WASM", [2], dtypes.int32, 1);
    expect(() => one.e("ADD", LazyBuffer.constant("WASM", [3], dtypes.int32, 1))).toThrow(ShapeError);
    expect(() => one.e("ADD", LazyBuffer.constant("WASM", [2], dtypes.float32, 1))).toThrow(DTypeError);
    expect(() => one.r("SUM", [1])).toThrow(/SUM: axis 1 is not one of the 1 axes of \[2\]/);
  });
});
