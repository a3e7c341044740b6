// Tensor.fromImage and toImage: channels, types and layouts; every way that a picture comes; JPEG of all
// kinds; and what is refused.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ArgumentError, DTypeError, FileError, type ImageOptions, ShapeError, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { openJpeg } from "../../../src/host/jpeg.ts";
import { hasJpeg, jpegFile, pngFile } from "./files.ts";

const RGBA = pngFile({ rows: [[10, 20, 30, 40, 50, 60, 70, 255]], samples: 4 });
const GREY = pngFile({ rows: [[0, 100, 255]], samples: 1 });
const WIDE = pngFile({ rows: [[0, 1000, 65535]], samples: 1, depth: 16 });
const values = async (file: Uint8Array, options?: ImageOptions) =>
  (await Tensor.fromImage(file, options)).tolist();

describe("channels, types and layouts", () => {
  test("by default uint8 of three channels, first", async () => {
    const t = await Tensor.fromImage(RGBA);
    expect([t.shape, t.dtype.name]).toEqual([[3, 1, 2], "uint8"]);
    expect(await t.tolist()).toEqual([[[10, 50]], [[20, 60]], [[30, 70]]]);
    expect(await values(GREY)).toEqual([[[0, 100, 255]], [[0, 100, 255]], [[0, 100, 255]]]);
  });
  test("modes", async () => {
    expect(await values(RGBA, { mode: "rgba" })).toEqual([[[10, 50]], [[20, 60]], [[30, 70]], [[40, 255]]]);
    expect(await values(RGBA, { mode: "unchanged" })).toEqual(await values(RGBA, { mode: "rgba" }));
    // 0.299 red + 0.587 green + 0.114 blue
    expect(await values(RGBA, { mode: "grey" })).toEqual([[[18, 58]]]);
    expect(await values(GREY, { mode: "gray" })).toEqual([[[0, 100, 255]]]);
    expect(await values(GREY, { mode: "unchanged" })).toEqual([[[0, 100, 255]]]);
    expect((await Tensor.fromImage(GREY, { mode: "rgba" })).shape).toEqual([4, 1, 3]);
    const both = pngFile({ rows: [[7, 8]], samples: 2 });
    expect(await values(both, { mode: "unchanged" })).toEqual([[[7]], [[8]]]);
    expect(await values(both, { mode: "rgba" })).toEqual([[[7]], [[7]], [[7]], [[8]]]);
  });
  test("integers fill their range, floats go from 0 to 1", async () => {
    expect(await values(WIDE, { mode: "unchanged" })).toEqual([[[0, 1000, 65535]]]);
    expect((await Tensor.fromImage(WIDE, { mode: "unchanged" })).dtype.name).toBe("uint16");
    expect(await values(WIDE, { mode: "grey" })).toEqual([[[0, 4, 255]]]);
    expect(await values(GREY, { mode: "grey", dtype: "uint16" })).toEqual([[[0, 25700, 65535]]]);
    expect(await values(GREY, { mode: "grey", dtype: "float32" })).toEqual([
      [[0, Math.fround(100 / 255), 1]],
    ]);
    expect(await values(WIDE, { mode: "grey", dtype: "float64" })).toEqual([[[0, 1000 / 65535, 1]]]);
    expect((await Tensor.fromImage(GREY, { dtype: "float16" })).dtype.name).toBe("float16");
  });
  test("channels last", async () => {
    const t = await Tensor.fromImage(RGBA, { layout: "HWC" });
    expect(await t.tolist()).toEqual([
      [
        [10, 20, 30],
        [50, 60, 70],
      ],
    ]);
  });
  test("options that are not known are refused", async () => {
    const refused = (options: object) => expect(Tensor.fromImage(GREY, options as ImageOptions)).rejects;
    await refused({ mode: "hsv" }).toThrow(/mode is hsv, expected one of "rgb", "grey"/);
    await refused({ mode: "constructor" }).toThrow(ArgumentError);
    await refused({ layout: "NCHW" }).toThrow(/layout is NCHW, expected "CHW" or "HWC"/);
    await refused({ dtype: "int32" }).toThrow(DTypeError);
    await refused({ maxPixels: 2 }).toThrow(/3 × 1 = 3 pixels, the limit is 2/);
  });
});

test("a picture comes by path, URL, bytes, Blob, Response or as ImageData", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gradloom-image-"));
  const server = createServer((request, answer) => {
    answer.statusCode = request.url === "/x.png" ? 200 : 404;
    answer.end(RGBA);
  }).listen(0);
  try {
    const path = join(folder, "a picture.png");
    writeFileSync(path, RGBA);
    const { port } = server.address() as AddressInfo;
    const address = `http://localhost:${port}/x.png`;
    const buffer = RGBA.buffer.slice(RGBA.byteOffset, RGBA.byteOffset + RGBA.byteLength) as ArrayBuffer;
    const data = new Uint8ClampedArray([10, 20, 30, 40, 50, 60, 70, 255]);
    const sources = [
      path,
      pathToFileURL(path),
      pathToFileURL(path).href,
      address,
      new URL(address),
      `data:image/png;base64,${Buffer.from(RGBA).toString("base64")}`,
      RGBA,
      Buffer.from(RGBA),
      buffer,
      new Blob([RGBA as Uint8Array<ArrayBuffer>]),
      await fetch(address),
      { width: 2, height: 1, data },
    ];
    for (const source of sources) {
      const t = await Tensor.fromImage(source, { mode: "rgba" });
      expect(await t.tolist(), String(source)).toEqual([[[10, 50]], [[20, 60]], [[30, 70]], [[40, 255]]]);
    }
    await expect(Tensor.fromImage(`${folder}/none.png`)).rejects.toThrow(/cannot read .*none\.png/);
    await expect(Tensor.fromImage(`http://localhost:${port}/none`)).rejects.toThrow(/answered 404/);
    await expect(Tensor.fromImage(await fetch(`${address}none`))).rejects.toThrow(/answered 404/);
    await expect(Tensor.fromImage({ width: 3, height: 1, data })).rejects.toThrow(/are 12, data has 8/);
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  }
});
test("Tensor.from reads a Blob of a picture as rows of four bytes", async () => {
  const t = await Tensor.from(new Blob([GREY as Uint8Array<ArrayBuffer>], { type: "image/png" }));
  expect(await t.tolist()).toEqual([
    [
      [0, 0, 0, 255],
      [100, 100, 100, 255],
      [255, 255, 255, 255],
    ],
  ]);
});
test.each([
  ["GIF89a", /a GIF file; Node reads PNG and JPEG/],
  ["RIFF....WEBPVP8 ", /a WebP file/],
  ["....ftypavif", /a AVIF or HEIC file/],
  ["hello", /neither a PNG nor a JPEG file/],
  ["", /neither a PNG nor a JPEG file/],
])("other formats are refused by name: %s", async (text, message) => {
  await expect(Tensor.fromImage(new TextEncoder().encode(text))).rejects.toThrow(FileError);
  await expect(Tensor.fromImage(new TextEncoder().encode(text))).rejects.toThrow(message);
});

describe("toImage", () => {
  const back = async (t: Tensor, options?: ImageOptions) =>
    (await Tensor.fromImage(await t.toImage(), { mode: "unchanged", ...options })).tolist();
  test("bytes, floats, bool and 16 bits", async () => {
    expect(
      await back(
        new Tensor(
          [
            [0, 7],
            [200, 255],
          ],
          { dtype: "uint8" },
        ),
      ),
    ).toEqual([
      [
        [0, 7],
        [200, 255],
      ],
    ]);
    const floats = new Tensor([[-1, 0, 0.5, 0.999, 1, 3, Number.NaN]]);
    expect(await back(floats)).toEqual([[[0, 0, 128, 255, 255, 255, 0]]]);
    expect(await back(floats.cast("float16"))).toEqual([[[0, 0, 128, 255, 255, 255, 0]]]);
    expect(await back(new Tensor([[true, false]]))).toEqual([[[255, 0]]]);
    expect(await back(new Tensor([[300, 65535]], { dtype: "uint16" }))).toEqual([[[300, 65535]]]);
  });
  test.each([1, 2, 3, 4])("%i channels, first and last", async (c) => {
    const t = new Tensor(Uint8Array.from({ length: c * 6 }, (_, i) => i * 9)).reshape(c, 2, 3);
    expect(await back(t)).toEqual(await t.tolist());
    const last = await t.permute(1, 2, 0).toImage("png", { layout: "HWC" });
    expect(await (await Tensor.fromImage(last, { mode: "unchanged" })).tolist()).toEqual(await t.tolist());
  });
  test("a gradient is not in the way", async () => {
    const t = new Tensor([[0.25]], { requiresGrad: true }).mul(2);
    expect(await back(t)).toEqual([[[128]]]);
  });
  test("a path is written", async () => {
    const folder = mkdtempSync(join(tmpdir(), "gradloom-image-"));
    try {
      const path = join(folder, "x.PNG");
      const file = await new Tensor([[1, 0.5]]).toImage(path);
      expect(new Uint8Array(readFileSync(path))).toEqual(file);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
  test("what cannot be a picture says what to write", async () => {
    const refused = (t: Tensor, target?: string, options?: object) =>
      expect(t.toImage(target, options)).rejects;
    await refused(Tensor.zeros(5, 2, 2)).toThrow(/shape \[5, 2, 2\], expected \[channels, height, width\]/);
    await refused(Tensor.zeros(28, 28, 3)).toThrow(/channels in the other place\? { layout: "HWC" }/);
    await refused(Tensor.zeros(2, 3, 4, 4)).toThrow(/take one picture of the batch/);
    await refused(Tensor.zeros(3, 0, 4)).toThrow(ShapeError);
    await refused(Tensor.zeros(3)).toThrow(ShapeError);
    await refused(new Tensor([[1, 2]])).toThrow(/the type is int32, expected uint8.*cast\("uint8"\)/);
    await refused(Tensor.zeros(4, 2, 2), "jpeg").toThrow(/JPEG has no alpha.*t\.narrow\(0, 0, 3\)/);
    await refused(new Tensor([[1]], { dtype: "uint16" }), "jpeg").toThrow(DTypeError);
    await refused(Tensor.zeros(2, 2), "webp").toThrow(/got "webp", expected "png", "jpeg", "imagedata"/);
    await refused(Tensor.zeros(2, 2), "constructor").toThrow(ArgumentError);
    await refused(Tensor.zeros(2, 2), "jpeg", { quality: 0 }).toThrow(/quality is 0/);
    await refused(Tensor.zeros(2, 2), "imagedata").toThrow(/ImageData exists in a page only/);
  });
});

describe.skipIf(!hasJpeg)("JPEG, by the optional package jpeg-js", () => {
  /** The top left values of the blocks of each channel. */
  const corners = async (file: Uint8Array, options?: ImageOptions) => {
    const each = <T>(xs: readonly T[]): T[] => xs.filter((_, i) => i % 8 === 0);
    const planes = await (await Tensor.fromImage(file, options)).tolist<number[][][]>();
    return planes.map((rows) => each(rows).map(each));
  };

  test.each([false, true])("grey, progressive: %s", async (isProgressive) => {
    const blocks = [
      [
        [0, 77, 255],
        [128, 129, 5],
      ],
    ];
    const file = jpegFile({ blocks, isProgressive, hasJfif: true });
    expect(await corners(file, { mode: "unchanged" })).toEqual(blocks);
    expect(await corners(file)).toEqual([blocks[0], blocks[0], blocks[0]]);
    const cut = jpegFile({ blocks, isProgressive, size: [19, 13] });
    expect((await Tensor.fromImage(cut)).shape).toEqual([3, 13, 19]);
  });
  test("any size: the limit of the decoder is not rounded below it", async () => {
    const blocks = [[[0, 77, 255, 9, 9, 9, 9, 9]]];
    for (const height of [1, 3, 5, 7]) {
      for (let width = 1; width <= 64; width++) {
        const file = jpegFile({ blocks, size: [width, height], hasJfif: true });
        expect((await Tensor.fromImage(file)).shape).toEqual([3, height, width]);
      }
    }
    const cut = await Tensor.fromImage(await Tensor.ones(43, 60).toImage("jpeg")); // is rounded down
    expect(cut.shape).toEqual([3, 43, 60]);
  });
  // brightness and differences of red, green, blue and grey
  const YCC = [[[76, 150, 29, 100]], [[85, 44, 255, 128]], [[255, 21, 107, 128]]];
  const RGB = [
    [254, 0, 0, 100],
    [0, 255, 0, 100],
    [0, 1, 254, 100],
  ];
  test.each([false, true])("colours, progressive: %s", async (isProgressive) => {
    for (const kind of [{ hasJfif: true }, { adobe: 1 }, {}]) {
      const found = (await corners(jpegFile({ blocks: YCC, isProgressive, ...kind }))) as number[][][];
      const off = found.flat(2).map((x, i) => Math.abs(x - (RGB.flat()[i] as number)));
      expect(Math.max(...off)).toBeLessThanOrEqual(1);
    }
  });
  test("red, green and blue as they are, by Adobe's marker or by their names", async () => {
    const blocks = [[[10, 250]], [[20, 30]], [[0, 90]]];
    expect(await corners(jpegFile({ blocks, adobe: 0 }))).toEqual(blocks);
    expect(await corners(jpegFile({ blocks, ids: [82, 71, 66] }))).toEqual(blocks);
    expect(await corners(jpegFile({ blocks, adobe: 0, hasJfif: true }))).not.toEqual(blocks);
  });
  test("four inks, inverted as Adobe does, with and without its marker", async () => {
    const blocks = [[[255, 100]], [[128, 255]], [[0, 255]], [[255, 51]]];
    const expected = [[[255, 20]], [[128, 51]], [[0, 51]]];
    expect(await corners(jpegFile({ blocks, adobe: 0 }))).toEqual(expected);
    expect(await corners(jpegFile({ blocks, isProgressive: true }), { mode: "unchanged" })).toEqual(expected);
    // brightness and differences of the inks: paper white and a red
    const ycck = jpegFile({ blocks: [[[0, 179]], [[128, 170]], [[128, 0]], [[255, 255]]], adobe: 2 });
    const [[[white, red]], [[, green]]] = (await corners(ycck)) as [[[number, number]], [[number, number]]];
    expect([white, Math.abs((red as number) - 255) <= 1, (green as number) < 10]).toEqual([255, true, true]);
  });
  test("EXIF's orientation is applied unless it is not wanted", async () => {
    const blocks = [
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
    ];
    const turned: Readonly<Record<number, number[][]>> = {
      1: [
        [1, 2, 3],
        [4, 5, 6],
      ],
      2: [
        [3, 2, 1],
        [6, 5, 4],
      ],
      3: [
        [6, 5, 4],
        [3, 2, 1],
      ],
      4: [
        [4, 5, 6],
        [1, 2, 3],
      ],
      5: [
        [1, 4],
        [2, 5],
        [3, 6],
      ],
      6: [
        [4, 1],
        [5, 2],
        [6, 3],
      ],
      7: [
        [6, 3],
        [5, 2],
        [4, 1],
      ],
      8: [
        [3, 6],
        [2, 5],
        [1, 4],
      ],
    };
    for (const [o, expected] of Object.entries(turned)) {
      for (const isLittle of [true, false]) {
        const file = jpegFile({ blocks, orientation: Number(o), isLittle });
        expect(await corners(file, { mode: "grey" }), o).toEqual([expected]);
        const stored = await corners(file, { mode: "grey", applyExifOrientation: false });
        expect(stored).toEqual(blocks);
      }
    }
    expect(await corners(jpegFile({ blocks, orientation: 9 }), { mode: "grey" })).toEqual(blocks);
  });
  test("what is written is close to what it was", async () => {
    const t = Tensor.linspace(0, 1, 3 * 16 * 24).reshape(3, 16, 24);
    const file = await t.toImage("jpeg", { quality: 95 });
    const off = (await Tensor.fromImage(file, { dtype: "float32" })).sub(t).abs().max();
    expect(Number(await off.item())).toBeLessThan(0.03);
    const small = await t.toImage("jpg", { quality: 5 });
    expect(small.length).toBeLessThan(file.length);
    const grey = await Tensor.fromImage(await Tensor.full([8, 8], 0.5).toImage("jpeg"), { mode: "grey" });
    expect(Math.abs(Number(await grey.get(0, 0, 0).item()) - 128)).toBeLessThanOrEqual(1);
  });

  const good = jpegFile({ blocks: [[[1, 2]]] });
  const at = (marker: number): number => good.findIndex((b, i) => b === 255 && good[i + 1] === marker);
  const changed = (place: number, ...bytes: number[]): Uint8Array => {
    const file = good.slice();
    file.set(bytes, place);
    return file;
  };
  const scans = (n: number) => {
    const scan = good.subarray(at(0xda), good.length - 2);
    return Uint8Array.from([
      ...good.subarray(0, good.length - 2),
      ...Array(n)
        .fill([...scan])
        .flat(),
      255,
      0xd9,
    ]);
  };
  test.each<[string, Uint8Array, RegExp]>([
    ["cut off in its header", good.subarray(0, at(0xc0) + 5), /cut off|ends before/],
    ["cut off in its data", good.subarray(0, good.length - 3), /cannot be decoded/],
    ["a bomb", changed(at(0xc0) + 5, 255, 255, 255, 255), /65535 × 65535 = 4294836225 pixels, the limit is/],
    ["no height", changed(at(0xc0) + 5, 0, 0), /its size is 16 × 0/],
    ["12 bits", changed(at(0xc0) + 4, 12), /its samples have 12 bits/],
    ["arithmetic coding", changed(at(0xc0) + 1, 0xc9), /it uses arithmetic coding/],
    ["lossless", changed(at(0xc0) + 1, 0xc3), /it uses lossless coding/],
    ["two components", changed(at(0xc0) + 9, 2), /it has 2 components/],
    ["no frame", changed(at(0xc0) + 1, 0xfe), /a scan before its frame/],
    ["too many scans", scans(201), /more than 200 scans/],
    ["not a marker", changed(at(0xc0), 1), /expected a marker/],
  ])("refused: %s", async (_, file, message) => {
    await expect(Tensor.fromImage(file)).rejects.toThrow(FileError);
    await expect(Tensor.fromImage(file)).rejects.toThrow(message);
  });
});
test("without jpeg-js the error says what to install", () => {
  const failing = (): never => {
    throw new Error("Cannot find module 'jpeg-js'\nmore");
  };
  const open = () => openJpeg(Object.assign(failing, { resolve: failing as never }));
  expect(open).toThrow(FileError);
  expect(open).toThrow(/Cannot find module 'jpeg-js'\); run: npm install jpeg-js$/);
});
