// What is executed by hand inside a jitted function (seed 004: `exec` tells the CacheCollector) is a part of
// the capture, with the memory of the caller.

import { Buffer, BufferCopy, CustomOp, Device, Tensor, TinyJit } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";

beforeAll(async () => {
  for (const d of ["EXT", "JS", "WASM", "WASM:1"]) await Device.open(d);
});

const of = (device: string, ...xs: number[]): Buffer => {
  const buffer = new Buffer(device, xs.length, "int").allocate();
  buffer.copyin(new Int32Array(xs));
  return buffer;
};

describe.each([
  ["JS", "JS"],
  ["EXT", "WASM"],
  ["WASM", "WASM:1"],
  ["WASM", "EXT"],
])("a copy from %s to %s", (from, to) => {
  test("is made by every call, of what is there then", async () => {
    const [src, dest] = [of(from, 0), of(to, 0)];
    const step = new TinyJit((x: Tensor) => {
      new BufferCopy().exec([dest, src]);
      return x.add(1);
    });
    for (let i = 1; i <= 5; i++) {
      src.copyin(new Int32Array([10 * i]));
      expect(await (await step(new Tensor([i]))).tolist()).toEqual([i + 1]);
      expect([...(await dest.data())]).toEqual([10 * i]);
    }
    expect(step.jitCache.map((x) => x.runner.name)).toContain("copy");
  });
  test("sync, and alone", () => {
    const [src, dest] = [of(from, 0), of(to, 0)];
    const step = new TinyJit(() => new BufferCopy().exec([dest, src]));
    for (let i = 1; i <= 4; i++) {
      src.copyin(new Int32Array([i]));
      step.sync();
      expect([...dest.dataSync()]).toEqual([i]);
    }
  });
});

test("its place is between the kernels that read and write what it copies", async () => {
  const log = await Tensor.zeros(2, { dtype: "int32" }).contiguous().realize();
  const seen = of("WASM", 0, 0);
  const step = new TinyJit(async (x: Tensor) => {
    await log.assign(log.add(x)).realize();
    new BufferCopy().exec([seen, log.lazydata.base.realized as Buffer]);
    await log.assign(log.mul(2)).realize();
    return log;
  });
  let total = 0;
  for (let i = 1; i <= 5; i++) {
    const result = await step(new Tensor([i, i]));
    total += i;
    expect([...(await seen.data())]).toEqual([total, total]);
    total *= 2;
    expect(await result.tolist()).toEqual([total, total]);
  }
});

test("a copy of an input, and of what the function computes", async () => {
  const [input, value] = [of("WASM", 0, 0), of("WASM", 0, 0)];
  const step = new TinyJit(async (x: Tensor) => {
    new BufferCopy().exec([input, x.lazydata.base.realized as Buffer]);
    const y = await x.mul(3).realize();
    new BufferCopy().exec([value, y.lazydata.base.realized as Buffer]);
    return y.add(1);
  });
  for (let i = 1; i <= 5; i++) {
    expect(await (await step(new Tensor([i, 2]))).tolist()).toEqual([3 * i + 1, 7]);
    expect([[...(await input.data())], [...(await value.data())]]).toEqual([
      [i, 2],
      [3 * i, 6],
    ]);
  }
});

test("a function", async () => {
  const [src, dest] = [of("JS", 0), of("JS", 0)];
  const twice = new CustomOp(([out, x]) => out?.copyin(new Int32Array([2 * (x?.dataSync()[0] as number)])));
  const step = new TinyJit((x: Tensor) => {
    twice.exec([dest, src]);
    return x.add(1);
  });
  for (let i = 1; i <= 5; i++) {
    src.copyin(new Int32Array([i]));
    await step(new Tensor([i]));
    expect(dest.dataSync()).toEqual(new Int32Array([2 * i]));
  }
});

test("outside of a jitted function nothing hears of it", async () => {
  const step = new TinyJit((x: Tensor) => x.add(1));
  for (let i = 0; i < 3; i++) {
    await step(new Tensor([i]));
    new BufferCopy().exec([of("JS", 1), of("JS", 2)]);
  }
  expect(step.jitCache.length).toBe(1);
});
