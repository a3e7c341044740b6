// Transforms of images: sizes and places by hand, choices by seed, bytes that stay bytes, bad arguments.

import { nn, Tensor } from "gradloom";
import { expect, test } from "vitest";

const { transforms: T } = nn;
const image = (h: number, w: number) => Tensor.arange(h * w).reshape(1, h, w);

test("resize: one length is for the shorter side; bytes stay bytes", async () => {
  expect(T.resize(Tensor.rand(3, 10, 25), 4).shape).toEqual([3, 4, 10]);
  expect(T.resize(Tensor.rand(2, 3, 25, 10), 4).shape).toEqual([2, 3, 10, 4]);
  const bytes = T.resize(new Tensor(new Uint8Array([0, 100, 50, 255])).reshape(1, 2, 2), [1, 1]);
  expect([bytes.dtype.name, await bytes.tolist()]).toEqual(["uint8", [[[101]]]]);
  const same = image(2, 2);
  expect(T.resize(same, 2)).toBe(same);
});
test("crop, centerCrop with zeros and Python's rounding, flips", async () => {
  expect(await T.crop(image(3, 3), 0, 1, 2, 2).tolist()).toEqual([
    [
      [1, 2],
      [4, 5],
    ],
  ]);
  // (5 - 2) / 2 = 1.5 rounds to 2, (3 - 2) / 2 = 0.5 to 0
  expect(await T.centerCrop(image(5, 3), 2).tolist()).toEqual([
    [
      [6, 7],
      [9, 10],
    ],
  ]);
  expect(await T.centerCrop(image(1, 2), [3, 2]).tolist()).toEqual([
    [
      [0, 0],
      [0, 1],
      [0, 0],
    ],
  ]);
  expect(await T.hflip(image(2, 2)).tolist()).toEqual([
    [
      [1, 0],
      [3, 2],
    ],
  ]);
  expect(await T.vflip(image(2, 2)).tolist()).toEqual([
    [
      [2, 3],
      [0, 1],
    ],
  ]);
});
test("normalize by channel; bytes are divided by 255", async () => {
  const two = new Tensor([[[1.5]], [[3]]]);
  expect(await T.normalize(two, [0.5, 1], [2, 4]).tolist()).toEqual([[[0.5]], [[0.5]]]);
  const bytes = new Tensor(new Uint8Array([255, 0])).reshape(1, 1, 2);
  expect(await new T.Normalize([0.5], [0.5]).forward(bytes).tolist()).toEqual([[[1, -1]]]);
});
test("random crops reach every place, by seed", async () => {
  const places = async (seed: number) => {
    const crop = new T.RandomCrop(1, { seed });
    const found: number[] = [];
    for (let i = 0; i < 40; i++) found.push(await crop.forward(image(2, 2)).item());
    return found;
  };
  const [a, b, c] = [await places(1), await places(1), await places(2)];
  expect(a).toEqual(b);
  expect(a).not.toEqual(c);
  expect(new Set(a).size).toBe(4);
  const around = await new T.RandomCrop(4, { padding: 1 }).forward(image(2, 2)).tolist();
  expect(around).toEqual([
    [
      [0, 0, 0, 0],
      [0, 0, 1, 0],
      [0, 2, 3, 0],
      [0, 0, 0, 0],
    ],
  ]);
});
test("random flips happen as often as they should", () => {
  for (const [make, p] of [
    [new T.RandomHorizontalFlip({ seed: 3 }), 0.5],
    [new T.RandomVerticalFlip({ p: 0.2, seed: 3 }), 0.2],
    [new T.RandomHorizontalFlip({ p: 0 }), 0],
  ] as const) {
    const x = image(1, 2);
    const flips = Array.from({ length: 400 }, () => make.forward(x) !== x).filter(Boolean).length;
    expect(Math.abs(flips / 400 - p)).toBeLessThan(0.06);
  }
});
test("Compose in a DataLoader", async () => {
  const prepare = new T.Compose([new T.Resize(6), new T.CenterCrop([4, 5]), (x) => x.mul(2)]);
  const samples = [1, 2, 3].map((v) => ({ x: Tensor.full([1, 12, 16], v, { dtype: "float32" }), y: v }));
  const transform = ({ x, y }: { x: Tensor; y: number }) => ({ x: prepare.forward(x), y });
  for await (const batch of new nn.DataLoader(samples, { batchSize: 3, transform })) {
    expect(batch.x.shape).toEqual([3, 1, 4, 5]);
    const middle = (await batch.x.mean([1, 2, 3]).tolist()) as number[];
    middle.forEach((v, i) => void expect(v).toBeCloseTo(2 * (i + 1), 4));
  }
});
test.each<[() => unknown, RegExp]>([
  [() => T.resize(Tensor.ones(3, 3), 2), /resize: shape \[3, 3\], expected \[channels, height, width\]/],
  [() => new T.Resize(0), /size is 0, expected an integer above 0/],
  [() => T.crop(image(2, 2), 1, 0, 2, 2), /2 × 2 at row 1, column 0 is not inside an image of 2 × 2/],
  [() => T.normalize(Tensor.rand(3, 2, 2), [1, 2], [1]), /mean is \[1,2\], expected one number, or 3/],
  [() => T.normalize(Tensor.rand(3, 2, 2), [1], [0]), /std has a 0/],
  [
    () => new T.RandomHorizontalFlip(0.5 as never),
    /options is 0.5, expected options .*; write new RandomHorizontalFlip/,
  ],
  [() => new T.RandomHorizontalFlip({ p: 2 }), /p is 2, expected a probability/],
  [() => new T.RandomCrop(4).forward(image(2, 2)), /4 × 4 .* is not inside an image of 2 × 2/],
  [() => new T.Compose(new T.Resize(2) as never), /transforms is of type Resize, expected an array/],
])("refused: %s", (make, message) => expect(make).toThrow(message));
