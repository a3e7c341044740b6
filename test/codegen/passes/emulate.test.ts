// float16 and bfloat16 on targets that lack them, wholly (bits) or but for loads, stores and casts (storage):
// kernels are lowered for such a target, interpreted by JS and compared to the bit with JS's own types.

import { dtypes, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";
import type { Kernel } from "../../../src/codegen/kernel.ts";
import {
  bfloat16ToNumber,
  castValue,
  type DType,
  float16ToNumber,
  Pointer,
  readValue,
  type Value,
} from "../../../src/dtype.ts";
import { Device } from "../../../src/runtime/registry.ts";
import type { UOp } from "../../../src/uop/node.ts";
import { alu, edges, expectValues, tensor } from "../../device/harness.ts";
import { Random } from "../../shape/random.ts";
import { lastItem, lowered, narrowTarget, opsIn, runKernel } from "../kernels.ts";

const { float16, bfloat16, float32, float64, uint16, int16, int32, bool } = dtypes;
const NARROW = [float16, bfloat16] as const;
const WIDEN = { float16: float16ToNumber, bfloat16: bfloat16ToNumber } as const;
await Device.open("JS");

const typeOf = (u: UOp): DType | undefined => (u.dtype instanceof Pointer ? u.dtype.base : u.dtype);
const narrowOps = (kernel: Kernel): string[] =>
  kernel.uops.uops.filter((u) => NARROW.includes(typeOf(u) as typeof float16)).map((u) => u.op);

/** The kernel for each target against the same kernel with the types as they are. */
async function check(t: Tensor, what: string, zeros?: "equal"): Promise<void> {
  const item = await lastItem(t);
  const type = item.outputs[0]?.dtype as DType;
  const want = await runKernel(item, lowered(item));
  for (const support of ["bits", "storage"] as const) {
    const kernel = lowered(item, [], narrowTarget(support));
    expectValues(type, await runKernel(item, kernel), want, `${what}, ${support}`, zeros ? { zeros } : {});
    const left = new Set(narrowOps(kernel));
    const allowed = support === "bits" ? [] : ["DEFINE_GLOBAL", "LOAD", "CAST", "BITCAST", "CONST"];
    expect(
      [...left].filter((op) => !allowed.includes(op)),
      `${what}: left in ${support}`,
    ).toEqual([]);
  }
}

const pattern = (d: DType, n: number, seed: number): Value[] => {
  const random = new Random(seed);
  return Array.from({ length: n }, () => WIDEN[d.name as "float16"](random.int(0, 65535)));
};

describe.each(NARROW.map((d) => [d.name, d] as const))("%s", (name, d) => {
  const all = () =>
    new Tensor(
      Uint16Array.from({ length: 65536 }, (_, i) => i),
      { device: "JS" },
    );

  test("every bit pattern widens to what it means", async () => {
    const item = await lastItem(all().bitcast(d).cast(float32));
    const got = await runKernel(item, lowered(item, [], narrowTarget("bits")));
    const want = Array.from({ length: 65536 }, (_, i) => WIDEN[name as "float16"](i));
    expectValues(float32, got, want, (i) => `0x${i.toString(16)}`);
  });
  test("floats round to the nearest, ties to even", async () => {
    const random = new Random(3);
    const view = new DataView(new ArrayBuffer(4));
    const bits = Array.from({ length: 6000 }, () => {
      for (let i = 0; i < 4; i++) view.setUint8(i, random.int(0, 255));
      return Number(readValue(view, 0, float32));
    });
    // exactly between two neighbours, and one step to either side
    const ties = Array.from({ length: 6000 }, () => {
      const at = random.int(0, 0x7fff);
      const middle = (WIDEN[name as "float16"](at) + WIDEN[name as "float16"](at + 1)) / 2;
      return Math.fround(middle * random.pick([1, -1, 1 + 2 ** -23, 1 - 2 ** -24]));
    });
    const xs = [...bits, ...ties];
    const item = await lastItem(tensor("JS", float32, xs).cast(d));
    const want = xs.map((x) => castValue(d, x, float32));
    for (const support of ["bits", "storage"] as const) {
      const got = await runKernel(item, lowered(item, [], narrowTarget(support)));
      expectValues(d, got, want, (i) => `${xs[i]} by ${support}`);
    }
  });
  test("a NaN keeps being one, and is written as a quiet one", async () => {
    const item = await lastItem(tensor("JS", float32, [NaN, -NaN]).cast(d).bitcast(uint16));
    const got = await runKernel(item, lowered(item, [], narrowTarget("bits")));
    const infinity = d === float16 ? 0x7c00 : 0x7f80;
    for (const bits of got) expect(Number(bits) & 0x7fff).toBeGreaterThan(infinity);
  });

  const xs = [...edges(d), ...pattern(d, 300, 1)];
  const columns = () => {
    const n = xs.length;
    const turned = (by: number) => xs.map((_, i) => xs[(i * by + 3) % n] as Value);
    return [xs, turned(7), turned(11)].map((values) => tensor("JS", d, values)) as [Tensor, Tensor, Tensor];
  };
  test("arithmetic rounds after each op", async () => {
    const [a, b, c] = columns();
    await check(a.add(b), "ADD");
    await check(a.sub(b), "SUB");
    await check(a.mul(b), "MUL");
    await check(a.div(b), "DIV");
    await check(a.fmod(b), "MOD");
    await check(a.sqrt(), "SQRT");
    await check(a.neg(), "NEG");
    await check(a.trunc(), "TRUNC");
    await check(alu("MULACC", a, b, c), "MULACC");
    await check(
      a
        .mul(b)
        .add(c)
        .mul(1 / 3)
        .sub(0.1),
      "a chain with constants",
    );
    await check(a.exp2(), "EXP2");
  });
  test("comparing and choosing make no new values", async () => {
    const [a, b, c] = columns();
    await check(a.lt(b), "CMPLT");
    await check(a.eq(b), "CMPEQ");
    await check(a.ne(a), "CMPNE");
    await check(a.maximum(b), "MAX", "equal");
    await check(a.lt(b).where(a, c), "WHERE");
    await check(
      tensor(
        "JS",
        bool,
        xs.map((_, i) => i & 1),
      ).where(a, 1.1),
      "WHERE of a constant",
    );
  });
  test("casts from and to every type", async () => {
    const [a] = columns();
    for (const to of dtypes.all) if (to !== d) await check(a.cast(to), `to ${to.name}`);
    for (const from of dtypes.all) {
      if (from !== d) await check(tensor("JS", from, edges(from)).cast(d), `from ${from.name}`);
    }
  });
  test("bitcasts", async () => {
    const finite = tensor(
      "JS",
      d,
      xs.filter((x) => !Number.isNaN(x)),
    );
    await check(finite.bitcast(uint16), "to uint16");
    await check(finite.bitcast(int16), "to int16");
    await check(tensor("JS", int16, [0, 1, -1, 15360, 31743, -32768]).bitcast(d), "from int16");
    await check(tensor("JS", int16, [5, 6, 7]).bitcast(d).add(1).bitcast(int16), "there and back");
  });
  test("padding, reduces and constants", async () => {
    const t = tensor(
      "JS",
      d,
      pattern(d, 24, 5).map((x) => castValue(d, Number(x) % 8 || 1, float64)),
      [4, 6],
    );
    await check(t.pad([[1, 1], null]).mul(2), "a gated load");
    await check(t.max(1), "REDUCE_MAX", "equal");
    await check(t.sum(0), "SUM");
    await check(Tensor.full([3], 0.1, { dtype: d, device: "JS" }).contiguous(), "a constant");
  });
  test("a sum in the type itself is kept in float32 and rounds at the end", async () => {
    const values = Array.from({ length: 40 }, (_, i) => castValue(d, 1 + i / 99, float64) as number);
    const total = values.reduce((a, b) => Math.fround(a + b), 0);
    const rounded = castValue(d, total, float32);
    expect(rounded).not.toBe(total);
    const t = new Tensor(tensor("JS", d, values).lazydata.r("SUM", [0])).cast(float32);
    for (const support of ["bits", "storage"] as const) {
      const item = await lastItem(t);
      expect(await runKernel(item, lowered(item, [], narrowTarget(support))), support).toEqual([rounded]);
    }
  });
});

describe("what is not narrow", () => {
  test("is left as it is", async () => {
    const item = await lastItem(tensor("JS", float32, [1, 2]).add(tensor("JS", int32, [3, 4])));
    const [plain, bits] = [lowered(item), lowered(item, [], narrowTarget("bits"))];
    expect(String(bits.uops)).toBe(String(plain.uops));
  });
  test("one kernel may mix both", async () => {
    const a = tensor("JS", float16, [1.5, 2.25, -3]);
    const b = tensor("JS", bfloat16, [0.1, 100, 7]);
    await check(a.add(b).cast(bfloat16), "float16 and bfloat16");
    const item = await lastItem(a.add(b));
    const loads = opsIn(lowered(item, [], narrowTarget("bits")), "LOAD");
    expect(loads.map((u) => u.dtype)).toEqual([uint16, uint16]);
  });
});
