// The types of images: what they are called, what they take, and values in them on the host.

import { Buffer, type DType, dtypes, type ImageDType, PtrDType, promote, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { toDType } from "../src/dtype.ts";

const half = dtypes.imageh([9, 27, 4]) as ImageDType;
const full = dtypes.imagef([9, 27, 4]) as ImageDType;

describe("dtypes.imageh and dtypes.imagef", () => {
  test("are one object for each shape, with float32 values", () => {
    expect(dtypes.imagef([9, 27, 4])).toBe(full);
    expect(dtypes.imagef([27, 9, 4])).not.toBe(full);
    expect([full.base, full.memory, full.shape]).toEqual([dtypes.float32, dtypes.float32, [9, 27, 4]]);
    expect([half.base, half.memory, half.itemsize]).toEqual([dtypes.float32, dtypes.float16, 2]);
  });
  test("print as the seeds have them", () => {
    expect(String(full)).toBe("dtypes.imagef((9, 27, 4))");
    expect(half.name).toBe("imageh((9, 27, 4))");
    // a kernel is given the image itself, no pointer to it
    expect(String(PtrDType(full))).toBe("dtypes.imagef((9, 27, 4))");
    expect(PtrDType(full).base).toBe(dtypes.float32);
  });
  test.each([[[3, 4]], [[3, 4, 3]], [[3, 0, 4]], [[3, 1.5, 4]], [[1, 3, 4, 4]], ["3,4,4"]])(
    "take no shape like %j",
    (shape) => {
      expect(() => dtypes.imagef(shape as number[])).toThrow(
        /^imagef: got the shape .*, expected \[height, width, 4\]/,
      );
    },
  );
  test("have no names", () => {
    expect(() => toDType("imagef" as never)).toThrow(/^dtype: unknown name "imagef"; expected one of bool, /);
  });
});

test("operands in different images, or in one and an array, meet in float32 or in the wider image", () => {
  expect(promote(full, full)).toBe(full);
  for (const d of [dtypes.imagef([27, 9, 4]), dtypes.float32] as DType[])
    expect(promote(full, d)).toBe(dtypes.float32);
  for (const d of [half, dtypes.float16, dtypes.int64] as DType[]) expect(promote(full, d)).toBe(full);
  expect(promote(half, dtypes.float16)).toBe(dtypes.float32);
});

test("host data goes into an image, 16 bits round", async () => {
  const data = [1, 2.5, -3, 1 / 3];
  const read = async (dtype: DType) => new Tensor(data, { dtype, device: "JS" }).tolist();
  expect(await read(dtypes.imagef([1, 1, 4]))).toEqual([1, 2.5, -3, Math.fround(1 / 3)]);
  expect(await read(dtypes.imageh([1, 1, 4]))).toEqual([1, 2.5, -3, 0.333251953125]);
  expect(new Buffer("JS", 4, dtypes.imageh([1, 1, 4])).nbytes).toBe(8);
});

test("constants, gathers and bits", async () => {
  const image = dtypes.imagef([2, 1, 4]);
  const on = { device: "JS" };
  const x = Tensor.full([2, 4], 0.5, on).cast(image);
  expect(await x.add(1).tolist()).toEqual([Array(4).fill(1.5), Array(4).fill(1.5)]);
  expect(await x.cast("int32").sum().item()).toBe(0);
  const stored = x.contiguous();
  await expect(stored.bitcast("int32").add(1).tolist()).rejects.toThrow(
    /^bitcast: from imagef\(\(2, 1, 4\)\) to int32: the bits of an image are not to be had; cast it/,
  );
});
