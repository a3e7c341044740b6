// Buffers made by hand, as seed 002 makes them: which arrays and types they take, and what they refuse.

import { ArgumentError, Buffer, BufferCopy, Device, DTypeError, type DTypeLike, dtypes } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";

beforeAll(async () => {
  for (const d of ["EXT", "JS", "WASM"]) await Device.open(d);
});

describe("a host array is the memory of a buffer on EXT", () => {
  const whole = new Int32Array([7, 1, 2, 8]);
  test.each<[string, ArrayBufferView]>([
    ["Int32Array", new Int32Array([1, 2])],
    ["part of an Int32Array", whole.subarray(1, 3)],
    ["Uint8Array", new Uint8Array(new Int32Array([1, 2]).buffer)],
    ["bytes that start at an odd place", new Uint8Array([0, 1, 0, 0, 0, 2, 0, 0, 0]).subarray(1)],
    ["DataView", new DataView(whole.buffer, 4, 8)],
    ["BigInt64Array", new BigInt64Array([1n + (2n << 32n)])],
  ])("%s", (_, data) => {
    const from = new Buffer("EXT", 2, dtypes.int).allocate(data);
    expect([...from.dataSync()]).toEqual([1, 2]);
    for (const device of ["WASM", "JS"]) {
      const to = new Buffer(device, 2, dtypes.int).allocate();
      new BufferCopy().exec([to, from]);
      expect([...to.dataSync()]).toEqual([1, 2]);
      to.copyin(new Int32Array(2));
      to.copyin(data);
      expect([...to.dataSync()]).toEqual([1, 2]);
    }
  });
  test("it is not copied: both see what is written", () => {
    const data = new Int32Array([1, 2]);
    const buffer = new Buffer("EXT", 2, dtypes.int).allocate(data);
    data[0] = 5;
    expect([...buffer.dataSync()]).toEqual([5, 2]);
    buffer.copyin(new Int32Array([3, 4]));
    expect([...data]).toEqual([3, 4]);
  });
  test.each<[string, unknown, RegExp]>([
    ["too short", new Int32Array(1), /^allocate: got 4 bytes, expected .* 8 bytes of <buf EXT size:2/],
    ["too long", new Float64Array(2), /^allocate: got 16 bytes/],
    ["a plain array", [1, 2], /^allocate: got object, expected a typed array/],
    ["an ArrayBuffer", new ArrayBuffer(8), /^allocate: got object/],
    ["a number", 1, /^allocate: got number/],
  ])("%s is refused", (_, data, message) => {
    const buffer = new Buffer("EXT", 2, dtypes.int);
    expect(() => buffer.allocate(data as ArrayBufferView)).toThrow(ArgumentError);
    expect(() => buffer.allocate(data as ArrayBufferView)).toThrow(message);
    expect(buffer.isAllocated).toBe(false);
    expect(() => buffer.allocate().copyin(data as ArrayBufferView)).toThrow(/^copyin: got/);
  });
  test("a device with memory of its own does not take it", () => {
    const buffer = new Buffer("WASM", 2, dtypes.int);
    expect(() => buffer.allocate(new Int32Array([1, 2]))).toThrow(
      /^allocate: WASM takes no array; call allocate\(\), then copyin\(\)/,
    );
    expect([...buffer.allocate().dataSync()]).toEqual([0, 0]);
  });
});

test.each([-4, 12, Number.NaN])("a part from byte %s on lies outside of its base", (offset) => {
  const base = new Buffer("WASM", 4, dtypes.int);
  const part = () => new Buffer("WASM", 2, dtypes.int, base, offset);
  expect(part).toThrow(ArgumentError);
  expect(part).toThrow(`Buffer: 8 bytes from ${offset} on do not fit into <buf WASM size:4`);
});

describe("the type of a buffer", () => {
  test.each<[DTypeLike, unknown]>([
    ["int", dtypes.int32],
    ["float32", dtypes.float32],
    [dtypes.half, dtypes.float16],
  ])("%s", (given, dtype) => {
    const buffer = new Buffer("WASM", 2, given).allocate();
    expect(buffer.dtype).toBe(dtype);
    expect([...buffer.dataSync()]).toEqual([0, 0]);
  });
  test.each(["int31", "all", undefined, 7])("%s is refused by name", (given) => {
    const make = () => new Buffer("WASM", 2, given as DTypeLike);
    expect(make).toThrow(DTypeError);
    expect(make).toThrow(`dtype: unknown name "${given}"; expected one of bool, int8`);
  });
});
