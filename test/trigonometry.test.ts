// Sine, cosine and tangent of float64 far from 0, on every device: against numbers to 100 bits and more, and
// of all exponents against those of JavaScript, which are right to 0.7 ulp. float32 is in
// transcendental.test.ts and, with all functions, in scripts/accuracy.test.ts.

import { Tensor } from "gradloom";
import { expect, test } from "vitest";
import { bitcastValue, castValue, type DType, dtypes, type Value } from "../src/dtype.ts";
import { cos, sin } from "../src/functions.ts";
import { type Algebra, opRecord, resultDType } from "../src/ops.ts";
import { deviceTest, expectValues, read, tensor, typesOn } from "./device/harness.ts";

/** x, sin x, cos x; the third is the double that is nearest to a multiple of pi/2 */
const FAR: readonly (readonly [number, number, number])[] = [
  [1e9, 0.5458434494486996, 0.8378871813639024],
  [1e16, 0.7796880066069788, -0.6261681981330862],
  [6381956970095103 * 2 ** 797, 1, -4.687165924254628e-19],
  [1e22, -0.8522008497671888, 0.523214785395139],
  [Number.MAX_VALUE, 0.004961954789184062, -0.9999876894265599],
  [2 ** 26 + 1, -0.5360214061157601, -0.8442043900535482],
];

const farAngles = async (device: string): Promise<void> => {
  const signed = FAR.flatMap(([x, s, c]) => [[x, s, c] as const, [-x, -s, c] as const]);
  const x = new Tensor(
    Float64Array.from(signed, ([v]) => v),
    { device },
  );
  const near = (got: readonly Value[], want: readonly number[]) =>
    want.forEach((w, i) => {
      const off = Math.abs(Number(got[i]) - w);
      expect(off, `${signed[i]}: ${got[i]}`).toBeLessThanOrEqual(2 ** -49 * Math.abs(w));
    });
  near(
    await read(x.sin()),
    signed.map(([, s]) => s),
  );
  near(
    await read(x.cos()),
    signed.map(([, , c]) => c),
  );
  near(
    await read(x.tan()),
    signed.map(([, s, c]) => s / c),
  );
};
deviceTest("angles up to the largest float64", farAngles, dtypes.float64);

interface Typed {
  readonly d: DType;
  readonly v: Value;
}
const VALUES: Algebra<Typed> = {
  alu: (op, ...xs) => {
    const d = (xs.at(-1) as Typed).d;
    return { d: resultDType(op, d), v: opRecord(op).evaluate(d, ...xs.map((x) => x.v)) };
  },
  constant: (d, v) => ({ d, v: d.isBig ? BigInt.asUintN(64, BigInt(v)) : v }),
  cast: (x, d) => ({ d, v: castValue(d, x.v, x.d) }),
  bitcast: (x, d) => ({ d, v: bitcastValue(d, x.v, x.d) }),
  dtypeOf: (x) => x.d,
};

test("every exponent, within 2 ulp of what JavaScript says", () => {
  for (let e = 20; e < 1024; e += 3) {
    for (const mantissa of [1, 1.2345678901234567, 1.9999999999999998]) {
      const v = mantissa * 2 ** e;
      for (const [f, truth] of [
        [sin, Math.sin(v)],
        [cos, Math.cos(v)],
      ] as const) {
        const got = Number(f(VALUES, { d: dtypes.float64, v }).v);
        expect(Math.abs(got - truth), `${f.name}(${v})`).toBeLessThanOrEqual(2 ** -51.5 * Math.abs(truth));
      }
    }
  }
});

test("without float64: every exponent of float32, within 1.5 ulp", () => {
  const words: Algebra<Typed> = { ...VALUES, hasDouble: false };
  for (let e = -30; e < 128; e++) {
    for (let k = 0; k < 12; k++) {
      const v = Math.fround((1 + ((k * 7919 + e * 104729) % 4096) / 4096) * 2 ** e * (k % 2 === 0 ? 1 : -1));
      for (const [f, truth] of [
        [sin, Math.sin(v)],
        [cos, Math.cos(v)],
      ] as const) {
        const got = Number(f(words, { d: dtypes.float32, v }).v);
        const ulp = 2 ** (Math.floor(Math.log2(Math.abs(truth))) - 23);
        expect(Math.abs(got - truth) / ulp, `${f.name}(${v})`).toBeLessThanOrEqual(1.5);
      }
    }
  }
  for (const v of [NaN, Infinity, -Infinity]) expect(sin(words, { d: dtypes.float32, v }).v).toBeNaN();
  expect(sin(words, { d: dtypes.float32, v: -0 }).v).toBe(-0);
});

deviceTest("infinities and NaN have no sine, zeros keep their sign", async (device) => {
  for (const d of typesOn(device, [dtypes.float32, dtypes.float64])) {
    const x = tensor(device, d, [Infinity, -Infinity, NaN, -0, 0]);
    expectValues(d, await read(x.sin()), [NaN, NaN, NaN, -0, 0], "sin");
    expectValues(d, await read(x.cos()), [NaN, NaN, NaN, 1, 1], "cos");
  }
});
