// Images of OPENCL on a real driver: memory that is an image, kernels that read and write pixels, IMAGE=1 and
// IMAGE=2, in the form for a CPU and in that for a GPU. JS says what is right.

import {
  Buffer,
  BufferCopy,
  createSchedule,
  Device,
  dtypes,
  resetKernelNames,
  Tensor,
  TinyJit,
  withEnv,
} from "gradloom";
import { describe, expect, test } from "vitest";
import { toFastKernel, toKernel } from "../../../src/codegen/kernel.ts";
import type { Renderer } from "../../../src/codegen/target.ts";
import type { OpenClDevice } from "../../../src/devices/opencl/device.ts";
import { openAsGpu, openWith, whyClosed } from "./open.ts";

const closed = await whyClosed();
const GPU = "CLGPU";
const lacking = closed ?? (hasImages() ? undefined : "the driver has no images");
if (lacking === undefined) await openAsGpu(GPU);
function hasImages(): boolean {
  return Device.get("OPENCL").renderer?.images !== undefined;
}
const DEVICES = ["OPENCL", GPU];
const rendererOf = (device: string) => Device.get(device).renderer as Renderer<string>;

const logged = async (fn: () => unknown): Promise<string[]> => {
  const lines: string[] = [];
  const { log } = console;
  console.log = (line: string) => void lines.push(line);
  try {
    await fn();
  } finally {
    console.log = log;
  }
  return lines;
};

/** Eighths up to 11/8: products and short sums of them are exact, in float16 too. */
const eighths = (device: string, ...shape: number[]): Tensor =>
  Tensor.arange(
    shape.reduce((n, d) => n * d, 1),
    { device: "JS" },
  )
    .mul(7)
    .remainder(23)
    .sub(11)
    .mul(0.125)
    .reshape(shape)
    .to(device);

/** The last kernel of a tensor: as it is run, or without OptOps. */
function textOf(t: Tensor, device: string, isPlain = false): string {
  const ast = createSchedule([t.lazydata]).at(-1)?.ast ?? [];
  const renderer = rendererOf(device);
  const kernel = isPlain ? toKernel(ast, [], renderer) : toFastKernel(ast, renderer, false);
  return renderer.render(kernel.name, kernel.uops).code;
}

describe("memory", () => {
  test.for(["imageh", "imagef"] as const)(
    "an %s is written, read, copied and zeroed",
    async (kind, { skip }) => {
      skip(lacking !== undefined, lacking);
      const dtype = dtypes[kind]([3, 5, 4]);
      const values = Float32Array.from({ length: 60 }, (_, i) => i / 8);
      const bytes = kind === "imagef" ? values : await halves(values);
      const image = new Buffer("OPENCL", 60, dtype).allocate();
      expect([...(await image.data())]).toEqual(Array(60).fill(0));
      await image.copyin(bytes);
      expect([...(await image.data())]).toEqual([...values]);
      const other = new Buffer("OPENCL", 60, dtype).allocate();
      new BufferCopy().exec([other, image]);
      expect([...(await other.data())]).toEqual([...values]);
      // copies on the device: to a buffer of the same bytes, and back
      const { allocator } = Device.get("OPENCL") as unknown as OpenClDevice;
      const plain = new Buffer("OPENCL", image.nbytes, dtypes.uint8).allocate();
      const third = new Buffer("OPENCL", 60, dtype).allocate();
      const handles = [image, plain, third].map((b) => b.handle as never);
      allocator.transfer(handles[1] as never, handles[0] as never, image.nbytes);
      allocator.transfer(handles[2] as never, handles[1] as never, image.nbytes);
      expect(await plain.data()).toEqual(new Uint8Array(bytes.buffer));
      expect([...(await third.data())]).toEqual([...values]);
      allocator.transfer(handles[0] as never, new Buffer("OPENCL", 60, dtype).allocate().handle as never, 0);
      expect([...(await image.data())]).toEqual(Array(60).fill(0));
    },
  );
  test("one that is too large for the device, or not of its buffer's size, is refused", ({ skip }) => {
    skip(lacking !== undefined, lacking);
    const { width = 0 } = rendererOf("OPENCL").images ?? {};
    const wide = dtypes.imagef([1, width + 1, 4]);
    expect(() => new Buffer("OPENCL", 4 * (width + 1), wide).allocate()).toThrow(
      new RegExp(
        `^OPENCL: imagef.*: the image is ${width + 1} × 1 pixels; those of this device have at most`,
      ),
    );
    expect(() => new Buffer("OPENCL", 8, dtypes.imagef([1, 4, 4])).allocate()).toThrow(
      /^OPENCL: imagef\(\(1, 4, 4\)\) has 64 bytes, the buffer 32; expected as many elements as the image has/,
    );
  });
  test("an image that a kernel writes and reads is read from a copy", async ({ skip }) => {
    skip(lacking !== undefined, lacking);
    const x = await eighths("OPENCL", 6, 8)
      .cast(dtypes.imagef([6, 2, 4]))
      .contiguous()
      .realize();
    const before = (await x.tolist()) as number[][];
    for (let i = 0; i < 3; i++) await x.assign(x.add(1)).realize();
    expect(await x.tolist()).toEqual(before.map((row) => row.map((v) => v + 3)));
  });
});
async function halves(values: Float32Array): Promise<Uint8Array> {
  const t = await new Tensor(values, { device: "JS" }).cast("float16").realize();
  return t.lazydata.base.buffer.asBuffer();
}

describe("kernels", () => {
  const image = dtypes.imagef([6, 10, 4]);
  const whole = dtypes.imagef([1, 60, 4]);
  const WORKS: Readonly<Record<string, (x: Tensor) => Tensor>> = {
    elementwise: (x) => x.mul(2).add(x).relu(),
    "with a number of every row": (x) => x.sub(x.cast("float32").max(1, true)).cast(image),
    "transposed into another image": (x) => x.cast("float32").transpose(0, 1).cast(image),
    "seen at an offset": (x) =>
      x
        .shrink([
          [1, 4],
          [3, 30],
        ])
        .cast("float32")
        .contiguous(),
    "padded, by the zeros around the image": (x) =>
      x
        .cast("float32")
        .pad([
          [2, 1],
          [1, 2],
        ])
        .contiguous(),
    "a sum, which is a buffer": (x) => x.sum(0),
    "all sums": (x) => x.cast("float32").softmax(1),
    "from one image to another": (x) => x.cast("float32").add(1).reshape(240).cast(whole),
  };
  for (const device of DEVICES) {
    test.for(Object.entries(WORKS))(`%s, on ${device}`, async ([, work], { skip }) => {
      skip(lacking !== undefined, lacking);
      const on = (d: string) => work(eighths(d, 6, 40).cast(image).contiguous());
      const made = await on(device).contiguous().tolist();
      expect((made as number[]).flat()).toSatisfy((xs: number[]) => xs.length > 0);
      close(made, await on("JS").contiguous().tolist());
    });
  }
  const close = (got: unknown, want: unknown): void => {
    const [a, b] = [got, want].map((x) => (x as number[]).flat());
    a?.forEach((x, i) => void expect(x).toBeCloseTo(b?.[i] as number, 5));
  };
  test("what is padded asks only for rows that the image does not tell apart", ({ skip }) => {
    skip(lacking !== undefined, lacking);
    const x = eighths(GPU, 6, 40).cast(image).contiguous();
    const one = textOf(
      x
        .cast("float32")
        .pad([
          [2, 1],
          [4, 8],
        ])
        .contiguous(),
      GPU,
      true,
    );
    expect(one).toMatch(/read_imagef\(data1, smp, \(int2\)\(\(gidx\d\+\(-1\)\),\(gidx\d\+\(-2\)\)\)\)/);
    expect(one).not.toContain("?");
    // two samples one below the other: zeros below the first are rows of the second
    const two = x
      .reshape(2, 3, 40)
      .cast("float32")
      .pad([null, [1, 1], [4, 8]])
      .contiguous();
    expect(textOf(two, GPU, true)).toMatch(/\?/);
  });
  test("the text is that of seed 002", ({ skip }) => {
    skip(lacking !== undefined, lacking);
    resetKernelNames();
    const [x, y] = [1, 2].map(() => eighths(GPU, 6, 40).reshape(6, 10, 4).cast(image).contiguous());
    const sum = (x as Tensor).add(y as Tensor).contiguous();
    const text = textOf(sum, GPU, true);
    const size = "\n  int gidx0 = get_group_id(0); /* 60 */\n  int2 vec0 = (int2)((gidx0%10),(gidx0/10));";
    const add = [0, 1, 2, 3].map((i) => `(val0.s${i}+val1.s${i})`).join(",");
    expect(text.replace(/^#pragma.*\n/, "")).toBe(
      `__kernel void E_60_4(write_only image2d_t data0, read_only image2d_t data1, read_only image2d_t data2) {
const sampler_t smp = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;${size}
  float4 val0 = read_imagef(data1, smp, vec0);
  float4 val1 = read_imagef(data2, smp, vec0);
  write_imagef(data0, vec0, (float4)(${add}));
}`,
    );
    const list = String(toKernel(createSchedule([sum.lazydata]).at(-1)?.ast ?? [], [], rendererOf(GPU)).uops);
    expect(list).toMatch(
      /UOps\.DEFINE_GLOBAL {2}: dtypes\.imagef\(\(6, 10, 4\)\) +\[\] +\(1, 'data1', False\)/,
    );
    expect(list).toMatch(/UOps\.VECTORIZE +: dtypes\.int\.vec\(2\)/);
    expect(list).toMatch(/UOps\.LOAD +: dtypes\.float\.vec\(4\)/);
  });
});

describe("nodes that cannot be an image", () => {
  test("are forced to float32, which DEBUG=1 prints", async ({ skip }) => {
    skip(lacking !== undefined, lacking);
    const lines = await logged(() =>
      withEnv({ DEBUG: 1 }, async () => {
        const odd = eighths("OPENCL", 5, 3)
          .cast(dtypes.imagef([5, 1, 4]))
          .contiguous();
        expect(await odd.sum().item()).toBe(await eighths("JS", 5, 3).sum().item());
        expect(odd.lazydata.base.buffer.dtype).toBe(dtypes.float32);
        await eighths("OPENCL", 4, 3)
          .cast(dtypes.imageh([3, 1, 4]))
          .contiguous()
          .realize();
      }),
    );
    expect(lines).toContain("forcing image dtypes.imagef((5, 1, 4)) with shape (5, 3) to float32");
    // as many elements, but no axis whose neighbours make pixels
    expect(lines).toContain("forcing image dtypes.imageh((3, 1, 4)) with shape (4, 3) to float32");
  });
  test("so is one that is larger than the device's images", async ({ skip }) => {
    skip(lacking !== undefined, lacking);
    const name = await openWith("SMALLIMAGES", (api) => ({
      clGetDeviceInfo: (...args) => {
        const status = api.clGetDeviceInfo(...args);
        if (args[1] === 0x1011 && args[3] instanceof BigUint64Array) args[3][0] = 8n;
        return status;
      },
    }));
    const lines = await logged(() =>
      withEnv({ DEBUG: 1 }, async () => {
        const x = eighths(name, 2, 36)
          .cast(dtypes.imagef([2, 9, 4]))
          .contiguous();
        expect(await x.add(1).tolist()).toEqual(await eighths("JS", 2, 36).add(1).tolist());
      }),
    );
    expect(lines).toContain("forcing image dtypes.imagef((2, 9, 4)) with shape (2, 36) to float32");
  });
  test("a device without images keeps their bytes in buffers", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const name = await openWith("NOIMAGES", (api) => ({
      clGetDeviceInfo: (...args) => {
        const status = api.clGetDeviceInfo(...args);
        if (args[1] === 0x1016 && args[3] instanceof BigUint64Array) args[3][0] = 0n;
        return status;
      },
    }));
    expect(Device.get(name).renderer?.images).toBeUndefined();
    for (const d of [name, "JS", "WASM"]) {
      const x = await eighths(d, 6, 8)
        .add(2 ** -14)
        .cast(dtypes.imageh([6, 2, 4]))
        .contiguous()
        .realize();
      expect(x.lazydata.base.buffer.nbytes).toBe(96);
      // rounded to 16 bits
      expect(await x.tolist()).toEqual(
        await eighths("JS", 6, 8)
          .add(2 ** -14)
          .cast("float16")
          .tolist(),
      );
    }
  });
});

describe("IMAGE", () => {
  const conv = (d: string, x: number[], w: number[], options: object) =>
    eighths(d, ...x).conv2d(eighths(d, ...w), eighths(d, w[0] as number), options);
  const WORKS: Readonly<Record<string, (device: string) => Tensor>> = {
    "a product": (d) => eighths(d, 8, 12).matmul(eighths(d, 12, 16)),
    "a product of odd sides": (d) => eighths(d, 7, 5).matmul(eighths(d, 5, 3)),
    "a batch of products": (d) => eighths(d, 3, 7, 5).matmul(eighths(d, 1, 5, 4)),
    "a padded convolution": (d) => conv(d, [2, 4, 6, 6], [8, 4, 3, 3], { padding: 1 }),
    "odd channels and a stride": (d) => conv(d, [2, 3, 9, 8], [5, 3, 3, 3], { padding: 1, stride: 2 }),
    "groups and a dilation": (d) =>
      conv(d, [1, 8, 7, 6], [8, 4, 3, 3], { groups: 2, dilation: 2, padding: 2 }),
    "a group a channel": (d) => conv(d, [2, 8, 7, 6], [8, 1, 3, 3], { padding: 1, groups: 8 }),
    "a kernel of one": (d) => conv(d, [1, 8, 4, 4], [4, 8, 1, 1], {}),
  };
  // as many kernels are compiled as there are forms: each has one of the two settings
  for (const [device, IMAGE] of [
    ["OPENCL", 1],
    [GPU, 2],
  ] as const) {
    test.for(Object.entries(WORKS))(`=${IMAGE}: %s, on ${device}`, async ([, work], { skip }) => {
      skip(lacking !== undefined, lacking);
      expect(await withEnv({ IMAGE }, () => work(device).tolist())).toEqual(await work("JS").tolist());
    });
  }
  test("what stands between two convolutions goes from image to image", async ({ skip }) => {
    skip(lacking !== undefined, lacking);
    const net = (d: string) =>
      conv(d, [2, 4, 6, 6], [8, 4, 3, 3], { padding: 1 })
        .relu()
        .conv2d(eighths(d, 4, 8, 3, 3), eighths(d, 4), { padding: 1 });
    const want = (await net("JS").data()) as Float32Array;
    for (const [IMAGE, most] of [
      [1, 2 ** -6],
      [2, 0],
    ] as const) {
      const types: string[] = [];
      const got = await withEnv({ IMAGE }, async () => {
        const items = createSchedule([net("OPENCL").lazydata]).filter((i) => i.ast[0]?.op === "STORE");
        for (const i of items) types.push(...i.outputs.map((b) => b.dtype.name));
        return net("OPENCL").data();
      });
      const kind = IMAGE === 1 ? "imageh" : "imagef";
      // both inputs and weights, both results; the last kernel leaves the images
      expect(types.filter((t) => t.startsWith(kind)).length).toBe(6);
      expect(types.at(-1)).toBe("float32");
      const errors = [...got].map((x, i) => Math.abs(x - (want[i] as number)));
      expect(Math.max(...errors)).toBeLessThanOrEqual(most);
    }
  });
  test("gradients flow through it, in float32", async ({ skip }) => {
    skip(lacking !== undefined, lacking);
    const grads = async (d: string): Promise<unknown[]> => {
      const x = eighths(d, 2, 4, 5, 5).detach();
      const w = eighths(d, 8, 4, 3, 3).detach();
      const v = eighths(d, 8, 3).detach();
      for (const t of [x, w, v]) t.requiresGrad = true;
      x.conv2d(w, null, { padding: 1 }).mean([2, 3]).matmul(v).sum().backward();
      return Promise.all([x, w, v].map((t) => (t.grad as Tensor).data()));
    };
    const [want, got] = [await grads("JS"), await withEnv({ IMAGE: 2 }, () => grads("OPENCL"))];
    got.forEach((g, i) => {
      const other = want[i] as Float32Array;
      (g as Float32Array).forEach((x, j) => void expect(x).toBeCloseTo(other[j] as number, 4));
    });
  });
  test("a captured step has its images", async ({ skip }) => {
    skip(lacking !== undefined, lacking);
    const w = await eighths("OPENCL", 8, 4, 3, 3).contiguous().realize();
    const step = new TinyJit((x: Tensor) =>
      x.conv2d(w, null, { padding: 1 }).relu().conv2d(w.transpose(0, 1)).realize(),
    );
    for (let i = 0; i < 4; i++) {
      const x = eighths("OPENCL", 1, 4, 8, 8).add(i);
      const got = await withEnv({ IMAGE: 2 }, async () =>
        (await step(await x.contiguous().realize())).tolist(),
      );
      const v = eighths("JS", 8, 4, 3, 3);
      const want = eighths("JS", 1, 4, 8, 8)
        .add(i)
        .conv2d(v, null, { padding: 1 })
        .relu()
        .conv2d(v.transpose(0, 1));
      expect(got).toEqual(await want.tolist());
    }
  });
  test("another number is refused", ({ skip }) => {
    skip(lacking !== undefined, lacking);
    expect(() => withEnv({ IMAGE: 3 }, () => WORKS["a product"]?.("JS"))).toThrow(
      /^IMAGE=3: expected 0 \(buffers\), 1 \(images of 16-bit floats\) or 2 \(images of float32\)$/,
    );
  });
});
