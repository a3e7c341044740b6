// Memory of WEBGPU on a real implementation, Dawn on SwiftShader: copies of every length and at every offset,
// kernels on slices, the pool, and what does not fit.

import {
  Buffer,
  BufferCopy,
  Device,
  DeviceError,
  dtypes,
  GlobalCounters,
  OutOfMemoryError,
  Tensor,
} from "gradloom";
import { describe, expect, test } from "vitest";
import { whyClosed } from "./swiftshader.ts";

const closed = await whyClosed();
const on = { device: "WEBGPU" } as const;
const iota = (n: number, from = 1): Uint8Array => Uint8Array.from({ length: n }, (_, i) => (from + i) % 251);
const read = async (b: Buffer): Promise<number[]> => Array.from(await b.data(), Number);

describe("memory of WEBGPU", () => {
  test("bytes of every length go in and out, through kernels, too", async ({ skip }) => {
    skip(closed !== undefined, closed);
    for (let n = 1; n <= 9; n++) {
      const bytes = new Tensor(iota(n), on);
      expect(Array.from(await bytes.data()), `${n}`).toEqual([...iota(n)]);
      expect(Array.from(await bytes.add(1).data()), `${n} + 1`).toEqual([...iota(n, 2)]);
    }
    for (const n of [4095, 4097]) expect(await new Tensor(iota(n), on).data()).toEqual(iota(n));
  });
  test("slices at odd offsets are inputs and outputs of kernels", async ({ skip }) => {
    skip(closed !== undefined, closed);
    for (const dtype of ["uint8", "float32"] as const) {
      const x = new Tensor([...iota(40)], on).cast(dtype).contiguous();
      await x.realize();
      for (const [from, to] of [
        [1, 2],
        [3, 10],
        [5, 8],
        [7, 39],
      ] as const) {
        const want = [...iota(40)].slice(from, to);
        expect(await x.shrink([[from, to]]).tolist(), dtype).toEqual(want);
        expect(
          await x
            .shrink([[from, to]])
            .mul(1)
            .contiguous()
            .tolist(),
          dtype,
        ).toEqual(want);
        const y = new Tensor([...iota(40)], on).cast(dtype).contiguous();
        await y.realize();
        y.setitem([[from, to]], Tensor.zeros([to - from], { ...on, dtype }));
        const zeroed = [...iota(40)].map((v, i) => (i >= from && i < to ? 0 : v));
        expect(await y.tolist(), `${dtype} ${from}:${to}`).toEqual(zeroed);
      }
    }
  });
  test("a part of a buffer is written without touching its neighbours", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const base = new Buffer("WEBGPU", 16, dtypes.uint8).allocate();
    for (let offset = 0; offset < 8; offset++) {
      for (const n of [1, 2, 3, 4, 5]) {
        await base.copyin(iota(16, 100));
        await new Buffer("WEBGPU", n, dtypes.uint8, base, offset).copyin(iota(n));
        const want = [...iota(16, 100)];
        want.splice(offset, n, ...iota(n));
        expect(await read(base), `${n} at ${offset}`).toEqual(want);
        expect(await read(new Buffer("WEBGPU", n, dtypes.uint8, base, offset))).toEqual([...iota(n)]);
      }
    }
    // writes that wait for each other's word
    await base.copyin(iota(16, 100));
    const parts = [0, 1, 2, 3].map((at) => new Buffer("WEBGPU", 1, dtypes.uint8, base, at));
    await Promise.all(parts.map((part, i) => part.copyin(iota(1, 7 * i))));
    expect((await read(base)).slice(0, 5)).toEqual([0, 7, 14, 21, 104]);
    // nothing to keep behind the end: no need to read first
    const short = new Buffer("WEBGPU", 7, dtypes.uint8).allocate();
    expect(short.copyin(iota(7))).toBeUndefined();
    new BufferCopy().exec([short, new Buffer("EXT", 7, dtypes.uint8).allocate(iota(7, 9))]);
    expect(await read(short)).toEqual([...iota(7, 9)]);
  });
  test("what is written in pieces arrives", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const large = new Uint8Array((16 << 20) + 7);
    for (let i = 0; i < large.length; i += 4093) large[i] = i;
    large.fill(9, -12);
    const got = (await new Tensor(large, on).data()) as Uint8Array;
    expect(globalThis.Buffer.compare(got, large)).toBe(0);
  });
  test("what no buffer holds is refused by number", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const limit = (await Device.open("WEBGPU")) as unknown as {
      stream: { gpu: { limits: { maxBufferSize: number } } };
    };
    const n = limit.stream.gpu.limits.maxBufferSize / 4 + 1;
    const large = Tensor.ones([n], on).contiguous();
    await expect(large.realize()).rejects.toThrow(OutOfMemoryError);
    await expect(large.realize()).rejects.toThrow(
      /no room for \d+\.\d MiB in one piece: .* up to \d+\.\d MiB/,
    );
  });
  test("freed memory is counted and comes back", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const held = GlobalCounters.memUsedOn("WEBGPU");
    const x = await Tensor.ones([1000], on).contiguous().realize();
    expect(GlobalCounters.memUsedOn("WEBGPU")).toBe(held + 4000);
    x.dispose();
    expect(GlobalCounters.memUsedOn("WEBGPU")).toBe(held);
    await expect(x.data()).rejects.toThrow(DeviceError);
    expect(() => x.dispose()).not.toThrow();
  });
});
