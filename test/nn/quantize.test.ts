// Dequantising blocks of packed elements, against plain arithmetic on the bytes, on every device that is
// open.

import { type DType, DTypeError, dtypes, nn, ShapeError, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { float16ToNumber, wrap } from "../../src/dtype.ts";
import { deviceTest, read } from "../device/harness.ts";
import { Random } from "../shape/random.ts";

const { int4, uint4, float4e2m1, float16, float32, float8e4m3, uint8, uint16 } = dtypes;
const E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6];
const element = (d: DType, bits: number): number => {
  if (d === float4e2m1) return (E2M1[bits & 7] as number) * (bits & 8 ? -1 : 1);
  return d === int4 ? (bits << 28) >> 28 : bits;
};

/** Formats that models are published in: Q4_0 and Q4_1 of llama.cpp, NVFP4. */
const FORMATS = [
  ["int4, a scale a block", { values: "int4", block: 32, scale: "float16" }],
  [
    "uint4, a scale and a zero point a block",
    { values: "uint4", block: 32, scale: "float16", zero: "float16" },
  ],
  ["float4e2m1, a scale of 8 bits a block", { values: "float4e2m1", block: 16, scale: "float8e4m3" }],
] as const satisfies readonly (readonly [string, nn.BlockFormat])[];

describe.each(FORMATS)("%s", (_, format: nn.BlockFormat) => {
  const [rows, columns] = [6, 96];
  const type = dtypes[format.values as "int4"];
  const r = new Random(17);
  const bytes = Uint8Array.from({ length: (rows * columns) / 2 }, () => r.int(0, 255));
  const blocks = (rows * columns) / format.block;
  const small = format.scale === "float8e4m3";
  /** exact in both types of scales */
  const scales = Array.from({ length: blocks }, () => 2 ** r.int(-4, 3) * (1 + r.int(0, 7) / 8));
  const zeros = Array.from({ length: blocks }, () => r.int(-64, 64) / 8);
  const want = Array.from({ length: rows * columns }, (_, i) => {
    const bits = ((bytes[i >> 1] as number) >> (i % 2 ? 4 : 0)) & 15;
    const at = Math.floor(i / format.block);
    const zero = format.zero === undefined ? 0 : (zeros[at] as number);
    return Math.fround(element(type, bits) * (scales[at] as number)) + zero;
  });
  const given = (device: string): [Tensor, Tensor, Tensor?] => {
    const perBlock = (values: number[]): Tensor =>
      new Tensor(values, { device, dtype: small ? float8e4m3 : float16 }).reshape([
        rows,
        columns / format.block,
      ]);
    const packed = new Tensor(bytes, { device }).reshape([rows, columns / 2]);
    return [packed, perBlock(scales), format.zero === undefined ? undefined : perBlock(zeros)];
  };

  deviceTest("bytes and scales become numbers", async (device) => {
    expect((await read(nn.dequantize(format, ...given(device)))).map((x) => Number(x) + 0)).toEqual(
      want.map((x) => x + 0),
    );
  });
  deviceTest("stored as elements of 4 bits, and read by a product in the same kernel", async (device) => {
    const [packed, scale, zero] = given(device);
    const elements = packed.bitcast(type).contiguous();
    await elements.realize();
    expect(elements.lazydata.base.realized?.nbytes).toBe(bytes.byteLength);
    const x = new Tensor(
      Array.from({ length: columns }, (_, i) => (i % 7) - 3),
      { device, dtype: float32 },
    );
    const got = await read(nn.dequantize(format, elements, scale, zero).mul(x).sum(1));
    const product = Array.from({ length: rows }, (_, i) =>
      want.slice(i * columns, (i + 1) * columns).reduce((s, w, j) => s + w * ((j % 7) - 3), 0),
    );
    got.forEach((v, i) => void expect(Number(v)).toBeCloseTo(product[i] as number, 2));
  });
});

test("blocks as llama.cpp interleaves them: two bytes of a scale, then 16 bytes of elements", async () => {
  const r = new Random(19);
  const raw = Uint8Array.from({ length: 3 * 18 }, (_, i) =>
    i % 18 === 1 ? r.int(0x20, 0x40) : r.int(0, 255),
  );
  const rows = new Tensor(raw).reshape([3, 18]);
  const head = rows.shrink([
    [0, 3],
    [0, 2],
  ]);
  const weights = new Tensor([1, 256]);
  const scale = head.cast("int32").mul(weights).sum(1, true).cast(uint16).bitcast(float16);
  const tail = rows.shrink([
    [0, 3],
    [2, 18],
  ]);
  // there the low halves of the bytes come first, and 8 is zero
  const halves = tail.bitcast(uint4).reshape([3, 16, 2]).permute([0, 2, 1]).reshape([3, 32]);
  const format = { values: "int4", block: 32, scale: "float16" } as const;
  const got = await nn.dequantize(format, halves.cast("int8").sub(8).cast(int4), scale).data();
  const want = Array.from({ length: 96 }, (_, i) => {
    const [b, j] = [Math.floor(i / 32), i % 32];
    const byte = raw[18 * b + 2 + (j % 16)] as number;
    const scaled = float16ToNumber((raw[18 * b] as number) + 256 * (raw[18 * b + 1] as number));
    return Number(wrap(float32, ((j < 16 ? byte & 15 : byte >> 4) - 8) * scaled));
  });
  expect([...got].map((x) => Number(x) + 0)).toEqual(want.map((x) => x + 0));
});
test("what does not fit the format is refused by name", () => {
  const format = { values: "int4", block: 4, scale: "float32" } as const;
  const elements = new Tensor([1, 2, 3, 4], { dtype: int4 });
  const scale = new Tensor([0.5]);
  expect(() => nn.dequantize(format, elements.cast(uint8).cast("int8"), scale)).toThrow(
    /packed is int8, the format says int4/,
  );
  expect(() => nn.dequantize(format, elements, new Tensor([1, 2], { dtype: float32 }))).toThrow(ShapeError);
  expect(() => nn.dequantize(format, elements, scale.cast(float16))).toThrow(DTypeError);
  expect(() => nn.dequantize(format, elements, scale, scale)).toThrow(/the format has none/);
});
