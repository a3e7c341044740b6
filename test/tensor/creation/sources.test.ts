// Tensors out of what programs have: buffers, ImageData, half floats, Blobs. Pictures that must be drawn or
// decoded are in test/browser/pictures.test.ts.

import { ArgumentError, ShapeError, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";

/** What Float16Array is, where this version of Node has none. */
class Halves extends Uint16Array {
  override get [Symbol.toStringTag](): never {
    return "Float16Array" as never;
  }
}

describe("new Tensor", () => {
  test("an ArrayBuffer is bytes, or elements of the type", async () => {
    const { buffer } = new Float32Array([1.5, -2]);
    expect(await new Tensor(buffer, { dtype: "float32" }).tolist()).toEqual([1.5, -2]);
    const bytes = new Tensor(buffer);
    expect([bytes.dtype.name, bytes.shape]).toEqual(["uint8", [8]]);
    expect(await bytes.tolist()).toEqual([...new Uint8Array(buffer)]);
    const shared = new SharedArrayBuffer(4);
    new Int32Array(shared)[0] = 7;
    expect(await new Tensor(shared, { dtype: "int32" }).tolist()).toEqual([7]);
  });
  test("it is copied", async () => {
    const buffer = new ArrayBuffer(2);
    const t = new Tensor(buffer);
    new Uint8Array(buffer).fill(9);
    expect(await t.tolist()).toEqual([0, 0]);
  });
  test("bytes that are not whole elements are refused", () => {
    const make = () => new Tensor(new ArrayBuffer(7), { dtype: "float32" });
    expect(make).toThrow(ShapeError);
    expect(make).toThrow(/7 bytes are not a whole number of float32/);
  });
  test("a Float16Array is float16", async () => {
    const t = new Tensor(Halves.of(0x3e00, 0xc000));
    expect(t.dtype.name).toBe("float16");
    expect(await t.tolist()).toEqual([1.5, -2]);
  });
  test("ImageData is rows of pixels", async () => {
    const data = Uint8ClampedArray.from({ length: 24 }, (_, i) => i);
    const t = new Tensor({ width: 3, height: 2, data });
    expect([t.dtype.name, t.shape]).toEqual(["uint8", [2, 3, 4]]);
    expect(await t.sum().item()).toBe(276);
    expect(new Tensor({ width: 3, height: 2, data }, { dtype: "float32" }).dtype.name).toBe("float32");
  });
  test("what is read asynchronously is refused with the way to do it", () => {
    const blob = new Blob(["x"]) as unknown as number;
    expect(() => new Tensor(blob)).toThrow(/await Tensor\.from/);
  });
});

describe("Tensor.from", () => {
  test("data as it is", async () => {
    expect(await (await Tensor.from([[1], [2]])).tolist()).toEqual([[1], [2]]);
    expect(await (await Tensor.from(3)).item()).toBe(3);
    const half = await Tensor.from(new Int8Array([1, -1]), { requiresGrad: false });
    expect(half.dtype.name).toBe("int8");
    expect(await (await Tensor.from(new ArrayBuffer(3))).tolist()).toEqual([0, 0, 0]);
  });
  test("a Blob and a Response are bytes", async () => {
    const blob = new Blob([new Int16Array([5, -6])]);
    expect(await (await Tensor.from(blob, { dtype: "int16" })).tolist()).toEqual([5, -6]);
    expect(await (await Tensor.from(new Response("AB"))).tolist()).toEqual([65, 66]);
  });
  test("what cannot be read here is refused", async () => {
    const picture = new Blob([new Uint8Array(4)], { type: "image/png" });
    await expect(Tensor.from(picture)).rejects.toThrow(
      /image\/png cannot be decoded.*neither a PNG nor a JPEG/,
    );
    const canvas = { width: 2, height: 2 };
    await expect(Tensor.from(canvas)).rejects.toThrow(/nothing can be drawn here.*give ImageData/);
    await expect(Tensor.from({ width: 0, height: 0 })).rejects.toThrow(/wait until it is loaded/);
    const wrong = Tensor.from({ a: 1 } as never);
    await expect(wrong).rejects.toThrow(ArgumentError);
    await expect(wrong).rejects.toThrow(/got Object, expected data, a picture/);
    await expect(Tensor.from(null as never)).rejects.toThrow(ArgumentError);
  });
});
