// Device memory: temporaries are given back, early by dispose or late by the collector, memory that is handed
// out again reads as zeros where that is promised, and a full device says so and works
// again once tensors are dropped.

import {
  ArgumentError,
  Buffer,
  Device,
  DeviceError,
  dtypes,
  GlobalCounters,
  OutOfMemoryError,
  Tensor,
} from "gradloom";
import { describe, expect, test, vi } from "vitest";
import { collect } from "./gc.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** The size of a WASM device's memory. */
async function wasmBytes(name: string): Promise<number> {
  const { allocator } = await Device.open(name);
  return (allocator as unknown as { memory: WebAssembly.Memory }).memory.buffer.byteLength;
}
const whyNot = (device: string): Promise<string> =>
  Device.open(device).then(
    () => "",
    (e: Error) => e.message,
  );

// first: what other tests leave behind is room already
describe("a memory that grows", () => {
  test("tensors, kernels and arrays made before stay right", async () => {
    const device = "WASM:14";
    const data = Float32Array.from({ length: 1000 }, (_, i) => i);
    const a = await new Tensor(data, { device }).realize();
    const first = await a.add(1).data();
    const before = await wasmBytes(device);
    const more: Tensor[] = [];
    for (let i = 0; i < 40; i++)
      more.push(
        await Tensor.full([MIB / 4], i, { device })
          .contiguous()
          .realize(),
      );
    expect(await wasmBytes(device)).toBeGreaterThan(before + 30 * MIB);
    expect(first[999]).toBe(1000); // a copy, not a window on memory that moved
    expect(await a.add(1).data()).toEqual(first); // the kernel was compiled against the old memory
    expect(await a.data()).toEqual(data);
    expect(await Promise.all(more.map(async (t) => (await t.data())[MIB / 4 - 1]))).toEqual(
      more.map((_, i) => i),
    );
  });
});

describe("temporaries in a loop", () => {
  test("WASM: 10,000 of 16 KiB do not grow memory", async () => {
    const device = "WASM:10";
    const a = await new Tensor(new Float32Array(4096).fill(1), { device }).realize();
    const b = await new Tensor([0.5], { device }).realize();
    await collect();
    const start = GlobalCounters.memUsedOn(device);
    let peak = 0;
    let half = 0;
    for (let i = 0; i < 10_000; i++) {
      await a.add(b).realize();
      peak = Math.max(peak, GlobalCounters.memUsedOn(device) - start);
      if (i === 5000) half = await wasmBytes(device);
    }
    // 160 MiB went through; what is uncollected at any time is a fraction of it
    expect(peak).toBeLessThan(64 * MIB);
    expect(await wasmBytes(device)).toBeLessThanOrEqual(Math.max(half, 128 * MIB));
    await collect();
    expect(GlobalCounters.memUsedOn(device)).toBeLessThanOrEqual(start);
  });
  for (const device of ["JS", "CLANG"]) {
    test(`${device}: 2,500 of 4 KiB do not grow memory`, async ({ skip }) => {
      const why = await whyNot(device);
      skip(why !== "", why);
      const a = await new Tensor(new Float32Array(1024).fill(1)).to(device).realize();
      const row = a.shrink([[0, 4]]);
      await collect();
      const start = GlobalCounters.memUsedOn(device);
      let peak = 0;
      for (let i = 0; i < 2500; i++) {
        // JS interprets: it computes 4 elements and only holds the room for the rest
        await (device === "JS" ? row.add(row) : a.add(a)).realize();
        await Tensor.empty([1024], { device }).realize();
        peak = Math.max(peak, GlobalCounters.memUsedOn(device) - start);
      }
      expect(peak).toBeLessThan(12 * MIB);
      await collect();
      expect(GlobalCounters.memUsedOn(device)).toBeLessThanOrEqual(start);
    });
  }
  test("reading values does not hold them", async () => {
    const a = await new Tensor([1, 2, 3]).realize();
    await collect();
    const start = GlobalCounters.buffers;
    let peak = 0;
    for (let i = 0; i < 3000; i++) {
      expect(await a.add(a).sum().item()).toBe(12);
      peak = Math.max(peak, GlobalCounters.buffers - start);
    }
    expect(peak).toBeLessThan(4500); // of 6,000
    await collect();
    expect(GlobalCounters.buffers).toBeLessThanOrEqual(start);
  });
  test("large temporaries: 40 of 256 MiB fit into 4 GiB", async () => {
    const device = "WASM:11";
    for (let i = 0; i < 40; i++) await Tensor.empty([64 * MIB], { device }).realize();
    expect(GlobalCounters.memUsedOn(device)).toBeLessThan(4 * GIB);
    await collect();
    expect(GlobalCounters.memUsedOn(device)).toBe(0);
  });
});

test("the collector is pushed when dropped tensors hold more than a device can spare", async () => {
  const device = "WASM:16";
  const { allocator } = await Device.open(device);
  const tasks = vi.spyOn(globalThis, "setTimeout");
  const pushes = async (slack: number): Promise<number> => {
    Object.assign(allocator, { slack });
    for (let i = 0; i < 2; i++) await Tensor.empty([2 * MIB], { device }).realize();
    tasks.mockClear();
    for (let i = 0; i < 4; i++) await Tensor.empty([2 * MIB], { device }).realize();
    return tasks.mock.calls.length;
  };
  expect(await pushes(MIB)).toBeGreaterThan(0);
  expect(await pushes(GIB)).toBe(0);
  tasks.mockRestore();
  await collect();
});

describe("giving back", () => {
  test("a collected tensor frees its buffer", async () => {
    await collect();
    const start = GlobalCounters.memUsed;
    let t: Tensor | undefined = await new Tensor(new Float32Array(1000)).add(1).realize();
    expect(GlobalCounters.memUsed).toBeGreaterThanOrEqual(start + 4000);
    await collect();
    expect(GlobalCounters.memUsed).toBeGreaterThanOrEqual(start + 4000); // still held
    expect(t.size).toBe(1000);
    t = undefined;
    await collect();
    expect(GlobalCounters.memUsed).toBe(start);
  });
  test("a view keeps the memory it looks at", async () => {
    let whole: Tensor | undefined = await new Tensor([1, 2, 3, 4]).add(0).realize();
    const view = whole.shrink([[1, 3]]);
    whole = undefined;
    await collect();
    expect(await view.tolist()).toEqual([2, 3]);
  });
  test("an unrealised graph keeps its inputs and nothing else", async () => {
    await collect();
    const start = GlobalCounters.memUsed;
    const t = (await new Tensor([1, 2, 3, 4]).add(0).realize()).mul(2);
    await collect();
    expect(GlobalCounters.memUsed).toBe(start + 16);
    expect(await t.tolist()).toEqual([2, 4, 6, 8]);
  });
  test("dispose frees at once, twice is once, and reading afterwards is an error", async () => {
    const start = GlobalCounters.memUsed;
    const t = new Tensor(new Float32Array(1000)).realizeSync();
    const had = GlobalCounters.memUsed;
    t.dispose();
    expect(GlobalCounters.memUsed).toBe(had - 4000);
    t.dispose();
    expect(GlobalCounters.memUsed).toBe(had - 4000);
    expect(() => t.dataSync()).toThrow(DeviceError);
    expect(() => t.add(1).realizeSync()).toThrow(/disposed of/);
    await expect(t.data()).rejects.toThrow(DeviceError);
    expect(GlobalCounters.memUsed).toBeGreaterThanOrEqual(start);
    expect(new Tensor([1, 2]).add(1).tolistSync()).toEqual([2, 3]);
  });
  test("a disposed tensor cannot be assigned from itself: its value is gone", () => {
    const t = new Tensor([1, 2, 3]).realizeSync();
    const view = t.reshape(3, 1);
    t.assign(t.add(1));
    view.dispose();
    expect(() => t.dataSync()).toThrow(/disposed of/);
    const u = new Tensor([1, 2, 3]).realizeSync();
    u.dispose();
    u.assign(u.add(1));
    expect(() => u.dataSync()).toThrow(/disposed of/);
  });
  test("disposing of what was never computed does nothing", () => {
    const t = new Tensor([1, 2, 3]).add(1);
    t.dispose();
    expect(t.tolistSync()).toEqual([2, 3, 4]);
  });
  test("`using` disposes at the end of the block", () => {
    const made: Tensor[] = [];
    const before = GlobalCounters.buffers;
    {
      using t = new Tensor([1, 2, 3]).add(1).realizeSync();
      made.push(t);
      expect(t.tolistSync()).toEqual([2, 3, 4]);
      expect(GlobalCounters.buffers).toBeGreaterThan(before);
    }
    expect(() => made[0]?.dataSync()).toThrow(DeviceError);
  });
  test("a long synchronous loop stays small with dispose", () => {
    const device = "WASM:12";
    const a = new Tensor(new Float32Array(1024), { device }).realizeSync();
    const start = GlobalCounters.memUsedOn(device);
    for (let i = 0; i < 2000; i++) {
      using t = a.add(a).realizeSync();
      expect(t.size).toBe(1024);
    }
    expect(GlobalCounters.memUsedOn(device)).toBe(start);
  });
});

describe("memory that is handed out again", () => {
  for (const device of ["WASM", "JS", "CLANG"]) {
    test(`${device}: allocate() reads as zeros after the memory held something else`, async ({ skip }) => {
      const why = await whyNot(device);
      skip(why !== "", why);
      for (const size of [1, 17, 1000]) {
        for (let round = 0; round < 3; round++) {
          const dirty = new Buffer(device, size, dtypes.int32).allocate();
          dirty.copyin(new Uint8Array(size * 4).fill(0xab));
          dirty.dispose();
          const clean = new Buffer(device, size, dtypes.int32).allocate();
          expect([...clean.dataSync()].every((x) => x === 0)).toBe(true);
          clean.dispose();
        }
      }
    });
  }
  test("WASM: the same addresses are used again", async () => {
    const device = "WASM:13";
    await Device.open(device);
    const keep = new Buffer(device, 1000, dtypes.uint8).allocate();
    const size = await wasmBytes(device);
    for (let i = 0; i < 500; i++) new Buffer(device, 20_000, dtypes.uint8).allocate().dispose();
    expect(await wasmBytes(device)).toBe(size);
    expect(keep.dataSync().length).toBe(1000);
  });
  test("allocating twice is refused", () => {
    const b = new Buffer("WASM", 4, dtypes.int32).allocate();
    expect(() => b.allocate()).toThrow(ArgumentError);
    expect(() => b.allocate()).toThrow(/^allocate: .* is allocated already; fill it with copyin\(\)/);
  });
});

describe("a full device", () => {
  test("WASM: 8 GiB are refused with a typed error, and the program goes on", async () => {
    const t = Tensor.empty([2 ** 31]); // float32
    await expect(t.realize()).rejects.toThrow(OutOfMemoryError);
    await expect(t.realize()).rejects.toThrow(/WASM: no room for 8589934592 bytes.*4294967296.*split/);
    const kernel = Tensor.full([2 ** 31 - 1], 1, { dtype: "float32" }).contiguous();
    await expect(kernel.data()).rejects.toThrow(OutOfMemoryError);
    expect(() => t.realizeSync()).toThrow(OutOfMemoryError);
    expect(await new Tensor([1, 2]).dot(new Tensor([3, 4])).item()).toBe(11);
  });
  test("WASM: filled to the brim, it works at high addresses, refuses more, and recovers when tensors go", async () => {
    const device = "WASM:15";
    const held: Tensor[] = [];
    const gib = () => Tensor.empty([GIB], { dtype: "uint8", device });
    for (let i = 0; i < 3; i++) held.push(await gib().realize());
    await expect(gib().realize()).rejects.toThrow(OutOfMemoryError);
    // above 2 and 3 GiB addresses are negative as signed numbers
    const data = Float32Array.from({ length: 1000 }, (_, i) => i % 17);
    const high = await new Tensor(data, { device }).realize();
    expect(Number(await high.mul(2).sum().item())).toBe(data.reduce((s, x) => s + 2 * x, 0));
    expect(await high.softmax().to("JS").to(device).sum().item()).toBeCloseTo(1, 5);
    expect((await high.reshape(10, 100).T.data())[1]).toBe(data[100]);
    expect(GlobalCounters.memUsedOn(device)).toBeGreaterThan(3 * GIB);
    // nobody calls the collector here: running out of memory does
    held.length = 0;
    held.push(await gib().realize(), await gib().realize());
    expect(await high.data()).toEqual(data);
    held[0]?.dispose();
    held[1]?.dispose();
    held.push(gib().realizeSync());
    held[2]?.dispose();
  });
  for (const device of ["JS", "CLANG", "EXT"]) {
    test(`${device}: an impossible size is refused with a typed error`, async ({ skip }) => {
      const why = await whyNot(device);
      skip(why !== "", why);
      await collect();
      const start = GlobalCounters.memUsedOn(device);
      await expect(Tensor.empty([2 ** 45], { device }).realize()).rejects.toThrow(OutOfMemoryError);
      expect(GlobalCounters.memUsedOn(device)).toBe(start);
      expect(await new Tensor([1, 2]).to(device).tolist()).toEqual([1, 2]);
    });
  }
  test("what failed for want of memory can be asked for again", async () => {
    const device = "WASM:16";
    const big = await Tensor.empty([3 * GIB], { dtype: "uint8", device }).realize();
    const sum = new Tensor([1, 2, 3], { device }).sum();
    const wanted = Tensor.empty([2 * GIB], { dtype: "uint8", device });
    await expect(Tensor.realize(sum, wanted)).rejects.toThrow(OutOfMemoryError);
    big.dispose();
    await Tensor.realize(sum, wanted);
    expect(await sum.item()).toBe(6);
    wanted.dispose();
  });
});

describe("who reads whom is forgotten with the reader", () => {
  test("a tensor with 100,000 readers that were dropped keeps a handful on its books", async () => {
    const w = await new Tensor([1, 2, 3]).realize();
    let most = 0;
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 5000; i++) w.add(1);
      most = Math.max(most, w.lazydata.readersKept);
      // what was made in this turn is kept until its end
      await new Promise((resolve) => setImmediate(resolve));
      globalThis.gc?.();
    }
    expect(most).toBeLessThan(20_000);
    await collect();
    expect(w.lazydata.pendingReaders()).toEqual([]);
  });
  test("readers that have run are struck off even while they are held", async () => {
    const w = await new Tensor([1, 2, 3]).realize();
    const held: Tensor[] = [];
    for (let i = 0; i < 1000; i++) held.push(w.add(w).realizeSync());
    expect(w.lazydata.readersKept).toBeLessThan(100);
    expect(held).toHaveLength(1000);
  });
  test("an assign with many dropped readers computes none of them", async () => {
    const w = await new Tensor([1, 2, 3]).realize();
    for (let i = 0; i < 20_000; i++) w.add(i);
    await collect();
    const before = GlobalCounters.kernelCount;
    w.assign(w.add(1));
    await w.realize();
    expect(GlobalCounters.kernelCount - before).toBe(1);
  });
});

test("what is held is a reason to ask for a collection, what is disposed of is not", async () => {
  let asked = 0;
  const Real = ArrayBuffer;
  const construct = (_: typeof ArrayBuffer, [nbytes]: [number]): ArrayBuffer => {
    if (nbytes === 128 * MIB) asked++;
    return new Real(nbytes);
  };
  const sixteen = (n: number): Promise<Tensor> =>
    Tensor.full([4 * MIB], n)
      .contiguous()
      .realize();
  (await sixteen(0)).dispose(); // the look that finds what came before
  vi.stubGlobal("ArrayBuffer", new Proxy(Real, { construct }));
  try {
    for (let i = 0; i < 12; i++) (await sixteen(i)).dispose();
    expect(asked).toBe(0);
    const held: Tensor[] = [];
    while (asked === 0 && held.length < 64) held.push(await sixteen(held.length));
    expect(asked).toBeGreaterThan(0);
    for (const t of held) t.dispose();
  } finally {
    vi.unstubAllGlobals();
  }
});

test("one realize may store more than the memory holds: what nobody needs any more is freed", async () => {
  let x = Tensor.full([64 * MIB], 1, { device: "WASM" }).contiguous();
  for (let i = 0; i < 20; i++) x = x.add(1).contiguous();
  expect(await x.shrink([[64 * MIB - 1, 64 * MIB]]).tolist()).toEqual([21]);
});
