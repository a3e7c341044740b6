// float16 and bfloat16 on every device: all 65536 bit patterns there and back, rounding of values that lie
// between, and random arithmetic, which rounds after every op. The reference is castValue and evaluate.

import { type DType, dtypes, Tensor } from "gradloom";
import { describe, expect } from "vitest";
import { bfloat16ToNumber, castValue, float16ToNumber, readValue, type Value } from "../../src/dtype.ts";
import { type AluOp, opRecord } from "../../src/ops.ts";
import { Random } from "../shape/random.ts";
import { alu, deviceTest, expectValues, inRange, read, rows, tensor } from "./harness.ts";

const { float16, bfloat16, float32, float64, uint16 } = dtypes;
const FORMATS = [
  { d: float16, widen: float16ToNumber, infinity: 0x7c00 },
  { d: bfloat16, widen: bfloat16ToNumber, infinity: 0x7f80 },
] as const;
const PATTERNS = Uint16Array.from({ length: 65536 }, (_, i) => i);

/** Random float32 bits around the range of the narrow type, and the ties between its neighbours. */
function between(d: DType, widen: (bits: number) => number, n: number): number[] {
  const random = new Random(n);
  const view = new DataView(new ArrayBuffer(4));
  const any = Array.from({ length: n }, () => {
    for (let i = 0; i < 4; i++) view.setUint8(i, random.int(0, 255));
    return Number(readValue(view, 0, float32));
  });
  const ties = Array.from({ length: n }, () => {
    const bits = random.int(0, 0x7fff);
    const [low, high] = [widen(bits), widen(bits + 1)];
    const middle = Math.fround((low + high) / 2);
    const step = 2 ** (Math.floor(Math.log2(middle)) - 23);
    return random.pick([middle, -middle, middle + step, middle - step, -middle - step]);
  });
  const narrow = d === float16 ? any.map((x) => Math.fround(x * 2 ** -random.int(0, 100))) : [];
  return inRange([...any, ...ties, ...narrow].map(Math.fround));
}

describe("every bit pattern", () => {
  for (const { d, widen, infinity } of FORMATS) {
    deviceTest(`${d.name} to float32 and back`, async (device) => {
      const bits = new Tensor(PATTERNS, { device });
      const wide = await bits.bitcast(d).cast(float32).realize();
      const want = Array.from(PATTERNS, widen);
      expectValues(float32, await read(wide), want, (i) => `0x${i.toString(16)}`);
      const back = await read(wide.cast(d).bitcast(uint16));
      // a NaN comes back as some NaN, everything else as it was
      const wrong = back.flatMap((got, i) => {
        const isNan = (Number(got) & 0x7fff) > infinity;
        return (i & 0x7fff) > infinity ? (isNan ? [] : [i]) : got === i ? [] : [i];
      });
      expect(wrong, `${wrong.length} patterns changed`).toEqual([]);
    });
    const widened = async (device: string): Promise<void> => {
      const t = new Tensor(PATTERNS, { device }).bitcast(d);
      const flipped = Array.from(PATTERNS, (b) => -widen(b));
      expectValues(float64, await read(t.cast(float64).neg()), flipped, (i) => `0x${i.toString(16)}`);
      expectValues(d, await read(t.neg()), flipped, (i) => `neg of 0x${i.toString(16)}`);
    };
    deviceTest(`${d.name} to float64, and its sign bit`, widened, float64);
  }
});

describe("rounding", () => {
  for (const { d, widen } of FORMATS) {
    deviceTest(`float32 to ${d.name}`, async (device) => {
      const xs = between(d, widen, 6000);
      const got = await read(tensor(device, float32, xs).cast(d));
      const want = xs.map((x) => castValue(d, x, float32));
      expectValues(d, got, want, (i) => `${xs[i]}`);
    });
    const narrowed = async (device: string): Promise<void> => {
      const xs = [...between(d, widen, 300), 1 + 2 ** -11 + 2 ** -40, 65519.999, 65520, 2049, 2051, 4097];
      const doubles = xs.map((x) => x * (1 + 2 ** -30));
      const got = await read(tensor(device, float64, doubles).cast(d));
      expectValues(
        d,
        got,
        doubles.map((x) => castValue(d, x, float64)),
        (i) => `${doubles[i]}`,
      );
      const integers = [
        0, 1, -1, 255, 257, 258, 2047, 2049, 2051, 65504, 65519, 65520, 65535, 131072, -70000,
      ];
      const whole = await read(tensor(device, dtypes.int32, integers).cast(d));
      expectValues(
        d,
        whole,
        integers.map((x) => castValue(d, x, dtypes.int32)),
        (i) => `${integers[i]}`,
      );
    };
    deviceTest(`float64 and integers to ${d.name}`, narrowed, float64);
  }
});

describe("arithmetic", () => {
  const OPS: readonly AluOp[] = [
    "ADD",
    "SUB",
    "MUL",
    "DIV",
    "MOD",
    "MAX",
    "SQRT",
    "RECIP",
    "TRUNC",
    "MULACC",
  ];
  for (const { d, widen } of FORMATS) {
    deviceTest(`random values of ${d.name}`, async (device) => {
      const random = new Random(17);
      const column = (): Value[] =>
        inRange(Array.from({ length: 2200 }, () => widen(random.int(0, 65535)))).slice(0, 2000);
      const columns = [column(), column(), column()];
      // neighbours of one another meet more often than random values do
      columns[1]?.splice(0, 1000, ...(columns[0] ?? []).slice(0, 1000).map((x) => Number(x) * 0.75));
      const inputs = columns.map((values) => ({
        dtype: d,
        values: values.map((x) => castValue(d, x, float64)),
      }));
      const got = await rows(
        device,
        inputs,
        OPS.map((op) => (a, b, c) => alu(op, ...[a, b, c].slice(0, opRecord(op).arity))),
      );
      OPS.forEach((op, k) => {
        const args = inputs.slice(0, opRecord(op).arity);
        const want = (inputs[0]?.values ?? []).map((_, i) =>
          opRecord(op).evaluate(d, ...args.map((c) => c.values[i] as Value)),
        );
        const what = (i: number) => `${op}(${args.map((c) => c.values[i]).join(", ")})`;
        expectValues(d, got[k] as Value[], want, what, op === "MAX" ? { zeros: "equal" } : {});
      });
    });
    deviceTest(`each op of a fused chain of ${d.name} rounds`, async (device) => {
      const t = tensor(device, d, [1, 1.5, 3, 100, 255]);
      const third = castValue(d, 1 / 3, float64);
      const chain = t.mul(Number(third)).add(1).mul(Number(third)).sub(t);
      const step = (op: AluOp, a: Value, b: Value) => opRecord(op).evaluate(d, a, b);
      const want = [1, 1.5, 3, 100, 255].map((x) =>
        step("SUB", step("MUL", step("ADD", step("MUL", x, third), 1), third), x),
      );
      expectValues(d, await read(chain), want, "chain");
    });
    deviceTest(`a sum of ${d.name} is kept in float32 and rounds once`, async (device) => {
      const xs = Array.from({ length: 3000 }, (_, i) => (i % 3) + 1);
      expect(await tensor(device, d, xs).sum().item()).toBe(castValue(d, 6000, float64));
    });
  }
});
