// Floats of 8 bits on every device that is open: every bit pattern means what torch says, floats round to the
// nearest, and products of matrices are added up in float32.

import { dtypes, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import { type DType, SMALL_FLOATS, type SmallFloat, type Value } from "../../src/dtype.ts";
import { Random } from "../shape/random.ts";
import { deviceTest, tensor } from "./harness.ts";

const { float32, uint8 } = dtypes;
const bytes: Value[] = Array.from({ length: 256 }, (_, i) => i);

/** The value of each pattern, by the definition: sign, exponent, mantissa. */
function meaning(type: DType, bits: number): number {
  const { bias, mantissa } = SMALL_FLOATS.get(type) as SmallFloat;
  const [sign, magnitude] = [bits & 0x80 ? -1 : 1, bits & 0x7f];
  const [exponent, rest] = [magnitude >> mantissa, magnitude % 2 ** mantissa];
  if (type === dtypes.float8e4m3 && magnitude === 0x7f) return NaN;
  if (type === dtypes.float8e5m2 && exponent === 31) return rest === 0 ? sign * Infinity : NaN;
  const fraction = rest / 2 ** mantissa;
  return sign * (exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias));
}
/** The nearest of all values, the one with an even pattern of two. */
function nearest(type: DType, x: number): number {
  const finite = bytes.map(Number).filter((b) => b < 0x80 && Number.isFinite(meaning(type, b)));
  const top = Math.max(...finite);
  const size = Math.abs(x);
  const step = meaning(type, top) - meaning(type, top - 1);
  const isOver = size > meaning(type, top) + step / 2;
  const isTie = size === meaning(type, top) + step / 2;
  if (Number.isNaN(x)) return NaN;
  if (isOver || (isTie && top % 2 === 1))
    return type === dtypes.float8e4m3 ? NaN : x < 0 ? -Infinity : Infinity;
  const best = finite.reduce((a, b) => {
    const [da, db] = [Math.abs(meaning(type, a) - size), Math.abs(meaning(type, b) - size)];
    return db < da || (db === da && b % 2 === 0) ? b : a;
  });
  return meaning(type, best) * (x < 0 || Object.is(x, -0) ? -1 : 1);
}

describe.each([...SMALL_FLOATS.keys()].filter((d) => d.bits === 8).map((d) => [d.name, d] as const))(
  "%s",
  (_, type) => {
    deviceTest("every pattern, to float32 and back", async (device) => {
      const t = tensor(device, uint8, bytes).bitcast(type);
      const got = [...(await t.cast(float32).data())];
      expect(got).toEqual(bytes.map((b) => meaning(type, Number(b))));
      expect([...(await t.data())]).toEqual(got);
      const back = [...(await t.cast(float32).contiguous().cast(type).bitcast(uint8).data())].map(Number);
      // there is one NaN left
      expect(back).toEqual(bytes.map((b) => (Number.isNaN(meaning(type, Number(b))) ? 0x7f : b)));
    });
    deviceTest(
      "floats round to the nearest, ties to even, too large becomes what there is",
      async (device) => {
        const r = new Random(7);
        const edges = [
          0,
          -0,
          464,
          464.0001,
          448,
          480,
          61440,
          61439.99,
          57344,
          1e9,
          -1e9,
          Infinity,
          -Infinity,
          NaN,
          2 ** -10,
          2 ** -17,
        ];
        const halves = bytes.flatMap((b) => {
          const [x, y] = [meaning(type, Number(b) & 0x7f), meaning(type, (Number(b) + 1) & 0x7f)];
          return Number.isFinite(x + y) ? [(x + y) / 2, -(x + y) / 2] : [];
        });
        const random = Array.from({ length: 300 }, () => (r.int(-1000, 1000) / 997) * 2 ** r.int(-18, 16));
        const values = [...edges, ...halves, ...random].map(Math.fround);
        const got = [...(await tensor(device, float32, values).cast(type).cast(float32).data())];
        expect(got).toEqual(values.map((x) => nearest(type, x)));
      },
    );
    deviceTest("arithmetic rounds after each op, a product of matrices after the last", async (device) => {
      const [x, y] = [tensor(device, float32, [1, 2, 3, 1.5]), tensor(device, float32, [16, 0.25, 3, 1.25])];
      const sum = [...(await x.cast(type).add(y.cast(type)).data())];
      expect(sum).toEqual([17, 2.25, 6, 2.75].map((v) => nearest(type, v)));
      const a = tensor(
        device,
        float32,
        Array.from({ length: 12 }, (_, i) => i % 5),
        [3, 4],
      ).cast(type);
      const b = tensor(
        device,
        float32,
        Array.from({ length: 20 }, (_, i) => (i % 7) - 3),
        [4, 5],
      ).cast(type);
      const exact = await a.cast(float32).dot(b.cast(float32)).tolist();
      expect((await a.dot(b).tolist()) as number[][]).toEqual(
        (exact as number[][]).map((row) => row.map((v) => nearest(type, v))),
      );
    });
    test("host values are rounded once", async () => {
      const t = new Tensor([1.06, -3.3, 1e-9], { dtype: type });
      expect(await t.tolist()).toEqual([1.06, -3.3, 1e-9].map((v) => nearest(type, v)));
    });
  },
);
