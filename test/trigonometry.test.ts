// Sine, cosine and tangent of float64 far from 0, on every device: against numbers to 100 bits and more, and
// of all exponents against those of JavaScript, which are right to 0.7 ulp. float32 is in
// transcendental.test.ts and, with all functions, in scripts/accuracy.test.ts.

import { Tensor } from "gradloom";
import { expect, test } from "vitest";
import { bitcastValue, castValue, type DType, dtypes, type Value } from "../src/dtype.ts";
import { type Algebra, opRecord, resultDType } from "../src/ops.ts";
import { cos, sin } from "../src/trigonometry.ts";
import { deviceTest, read } from "./device/harness.ts";

/** x, sin x, cos x; the third is the double that is nearest to a multiple of pi/2 */
const FAR: readonly (readonly [number, number, number])[] = [
  [1e9, 0.5458434494486996, 0.8378871813639024],
  [1e16, 0.7796880066069788, -0.6261681981330862],
  [6381956970095103 * 2 ** 797, 1, -4.687165924254628e-19],
  [1e22, -0.8522008497671888, 0.523214785395139],
  [Number.MAX_VALUE, 0.004961954789184062, -0.9999876894265599],
  [2 ** 26 + 1, -0.5360214061157601, -0.8442043900535482],
];

deviceTest("angles up to the largest float64", async (device) => {
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
});

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

deviceTest("infinities and NaN have no sine, zeros keep their sign", async (device) => {
  const x = new Tensor(Float64Array.of(Infinity, -Infinity, NaN, -0, 0), { device });
  expect(await read(x.sin())).toEqual([NaN, NaN, NaN, -0, 0]);
  expect(await read(x.cos())).toEqual([NaN, NaN, NaN, 1, 1]);
});
