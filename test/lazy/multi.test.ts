// Nodes on several devices: where the shares lie after each op, how many kernels and copies an op takes, the
// two ways to add up, and random programs that must give what one device gives.

import { createSchedule, Device, LazyBuffer, MultiLazyBuffer, Tensor, withEnv } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import { allreduce, RING_BYTES, RING_DEVICES } from "../../src/lazy/allreduce.ts";
import { shard } from "../../src/lazy/multi.ts";
import { onEach } from "../../src/lazy/placement.ts";
import { reshaped, shardingOf, spansOf, strided } from "../../src/lazy/sharding.ts";
import type { AluOp, ReduceOp } from "../../src/ops.ts";

const DEVICES = ["WASM:1", "WASM:2", "WASM:3", "WASM:4"];
beforeAll(async () => {
  for (const d of DEVICES) await Device.open(d);
});

const random = (seed: number) => () => {
  seed = (seed * 1103515245 + 12345) % 2 ** 31;
  return seed / 2 ** 31;
};
const filled = (shape: readonly number[], next = random(7)): Tensor => {
  const size = shape.reduce((a, b) => a * b, 1);
  return new Tensor(Float32Array.from({ length: size }, () => Math.round(next() * 200) / 8 - 12)).reshape(
    shape,
  );
};
/** Shares that are in memory already. */
const ready = (shape: readonly number[], axis: number | undefined, n = 2): MultiLazyBuffer => {
  const t = new Tensor(shard(filled(shape).lazydata, DEVICES.slice(0, n), axis)).realizeSync();
  return t.lazydata as MultiLazyBuffer;
};
const read = (lb: LazyBuffer) => new Tensor(lb).tolistSync();
function countOf(...nodes: readonly LazyBuffer[]): { kernels: number; copies: number } {
  const ops = createSchedule(nodes).map((si) => si.ast[0]?.op);
  const count = (op: string) => ops.filter((x) => x === op).length;
  return { kernels: count("STORE"), copies: count("COPY") };
}
const multi = (lb: LazyBuffer): MultiLazyBuffer => {
  expect(lb).toBeInstanceOf(MultiLazyBuffer);
  return lb as MultiLazyBuffer;
};

describe("shares", () => {
  test("are as equal as can be, and cover the axis", () => {
    expect(spansOf(6, 3)).toEqual([
      [0, 2],
      [2, 4],
      [4, 6],
    ]);
    expect(spansOf(7, 3)).toEqual([
      [0, 3],
      [3, 5],
      [5, 7],
    ]);
    expect(spansOf(2, 2)).toEqual([
      [0, 1],
      [1, 2],
    ]);
  });

  const spans = spansOf(8, 2);
  test.each([
    ["a dim before", [3, 8, 5], 1, [3, 1, 8, 5], { axis: 2, spans }],
    ["dims after joined", [3, 8, 2, 5], 1, [3, 8, 10], { axis: 1, spans }],
    [
      "joined with the next",
      [3, 8, 5],
      1,
      [3, 40],
      {
        axis: 1,
        spans: [
          [0, 20],
          [20, 40],
        ],
      },
    ],
    [
      "split, rows whole",
      [8, 5],
      0,
      [4, 2, 5],
      {
        axis: 0,
        spans: [
          [0, 2],
          [2, 4],
        ],
      },
    ],
    [
      "split where a device has one row",
      [8, 5],
      0,
      [2, 4, 5],
      {
        axis: 0,
        spans: [
          [0, 1],
          [1, 2],
        ],
      },
    ],
    ["ones in front", [8], 0, [1, 1, 8, 1], { axis: 2, spans }],
    ["joined with the one before", [3, 8, 5], 1, [24, 5], undefined],
    ["rows across devices", [3, 8], 1, [8, 3], undefined],
  ] as const)("reshape: %s", (_, shape, axis, wanted, expected) => {
    expect(reshaped(shape, { axis, spans }, wanted)).toEqual(expected);
  });
  test("reshape: uneven shares need cuts between rows", () => {
    const uneven = shardingOf([6], 0, 4);
    expect(uneven.spans).toEqual([
      [0, 2],
      [2, 4],
      [4, 5],
      [5, 6],
    ]);
    expect(reshaped([6], uneven, [3, 2])).toBeUndefined();
    expect(reshaped([6], shardingOf([6], 0, 3), [3, 2])?.spans).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
    ]);
  });
  test("every n-th element: what is left of a share, and where it begins", () => {
    expect(strided([0, 4], 2)).toEqual({ span: [0, 2], start: 0 });
    expect(strided([3, 8], 2)).toEqual({ span: [2, 4], start: 1 });
    expect(strided([1, 2], 4)).toEqual({ span: [1, 1], start: 3 });
  });
});

describe("what an op costs on two devices", () => {
  test("elementwise: a kernel each and no copy, also with something replicated", () => {
    const [x, w] = [ready([8, 4], 0), ready([8, 4], undefined)];
    expect(countOf(x.e("ADD", x))).toEqual({ kernels: 2, copies: 0 });
    expect(countOf(x.e("ADD", w))).toEqual({ kernels: 2, copies: 0 });
    expect(countOf(w.e("ADD", x))).toEqual({ kernels: 2, copies: 0 });
    expect(multi(w.e("MUL", x)).sharding?.axis).toBe(0);
    expect(countOf(w.e("ADD", w))).toEqual({ kernels: 2, copies: 0 });
    expect(countOf(x.cast(x.const(1).e("CMPLT", x.const(2)).dtype))).toEqual({ kernels: 2, copies: 0 });
  });
  test("a reduce along another axis: a kernel each; along the axis: the parts are exchanged", () => {
    const x = ready([8, 4], 0);
    expect(countOf(x.r("SUM", [1]))).toEqual({ kernels: 2, copies: 0 });
    expect(multi(x.r("SUM", [1])).sharding?.axis).toBe(0);
    expect(countOf(x.r("SUM", [0]))).toEqual({ kernels: 4, copies: 2 });
    expect(multi(x.r("SUM", [0])).sharding).toBeUndefined();
  });
  test("movement: nothing", () => {
    const x = ready([8, 4], 0);
    const moved = x
      .reshape([8, 2, 2])
      .permute([1, 0, 2])
      .expand([2, 8, 2])
      .pad([
        [0, 0],
        [0, 0],
        [1, 1],
      ])
      .stride([-1, 1, 1]);
    expect(multi(moved).sharding).toEqual({
      axis: 1,
      spans: [
        [0, 4],
        [4, 8],
      ],
    });
    expect(countOf(moved)).toEqual({ kernels: 0, copies: 0 });
    expect(
      multi(
        x.pad([
          [1, 2],
          [0, 0],
        ]),
      ).sharding?.spans,
    ).toEqual([
      [0, 5],
      [5, 11],
    ]);
    expect(
      multi(
        x.shrink([
          [1, 7],
          [0, 4],
        ]),
      ).sharding?.spans,
    ).toEqual([
      [0, 3],
      [3, 6],
    ]);
    expect(multi(x.stride([-1, 1])).sharding?.spans).toEqual([
      [4, 8],
      [0, 4],
    ]);
    expect(multi(x.stride([3, 1])).sharding?.spans).toEqual([
      [0, 2],
      [2, 3],
    ]);
  });
  test("a part that one device has alone goes to all of them", () => {
    const row = ready([8, 4], 0).shrink([
      [5, 6],
      [0, 4],
    ]);
    expect(multi(row).sharding).toBeUndefined();
    expect(countOf(row)).toEqual({ kernels: 1, copies: 1 });
  });
  test("cut along another axis, the second operand is copied: a quarter each way", () => {
    const [a, b] = [ready([8, 4], 0), ready([8, 4], 1)];
    expect(multi(a.e("ADD", b)).sharding?.axis).toBe(0);
    expect(countOf(a.e("ADD", b))).toEqual({ kernels: 4, copies: 2 });
  });
  test("gathering: a copy from every other device, and a kernel that joins", () => {
    const x = ready([8, 4], 0, 4);
    expect(countOf(x.copyToDevice("WASM:1"))).toEqual({ kernels: 1, copies: 3 });
    expect(countOf(x.copyToDevice("WASM"))).toEqual({ kernels: 1, copies: 4 });
    const copies = ready([8, 4], undefined, 4);
    expect(copies.copyToDevice("WASM:3")).toBe(copies.parts[2]);
    expect(countOf(copies.copyToDevice("JS"))).toEqual({ kernels: 0, copies: 1 });
  });
  test("host data goes straight to the devices, a slice each", () => {
    const node = filled([8, 4]).lazydata;
    expect(countOf(shard(node, DEVICES, 0))).toEqual({ kernels: 0, copies: 4 });
    expect(countOf(shard(node, DEVICES, undefined))).toEqual({ kernels: 0, copies: 4 });
    expect(countOf(onEach(DEVICES.join(","), (d) => node.copyToDevice(d)))).toEqual({
      kernels: 0,
      copies: 5,
    });
  });
  test("a constant is made where it is needed", () => {
    const one = shard(LazyBuffer.constant("WASM", [8], ready([8], 0).dtype, 1), DEVICES, 0);
    expect(one.isUnrealizedConst).toBe(true);
    expect(countOf(one)).toEqual({ kernels: 0, copies: 0 });
    expect(countOf(one.copyToDevice("WASM:2"))).toEqual({ kernels: 1, copies: 0 });
  });
});

describe("adding up", () => {
  const parts = (n: number, size: number): LazyBuffer[] => {
    const next = random(n * 31 + size);
    return DEVICES.slice(0, n).map((device) => {
      const data = Float32Array.from({ length: size }, () => next() * 2 - 1);
      return new Tensor(data, { device }).realizeSync().lazydata;
    });
  };

  test.each([2, 3, 4])("naive on %i devices: n(n-1) copies", (n) => {
    const made = withEnv({ RING: 0 }, () => allreduce("SUM", parts(n, 100)));
    expect(countOf(...made)).toEqual({ kernels: n, copies: n * (n - 1) });
  });
  test.each([2, 3, 4])("a ring of %i devices: 2n(n-1) copies of an n-th", (n) => {
    const made = withEnv({ RING: 2 }, () => allreduce("SUM", parts(n, 101)));
    // n first chunks, n(n-1) additions, n that join the chunks
    expect(countOf(...made)).toEqual({ kernels: n + n * (n - 1) + n, copies: 2 * n * (n - 1) });
    const sizes = createSchedule(made)
      .filter((si) => si.ast[0]?.op === "COPY")
      .map((si) => si.outputs[0]?.size as number);
    expect(Math.max(...sizes)).toBe(Math.ceil(101 / n));
  });
  test("the ring is for large tensors on many devices", () => {
    const { dtype } = ready([2], 0);
    const copies = (n: number, size: number) => {
      const devices = Array.from({ length: n }, (_, i) => `WASM:${i + 1}`);
      const parts = devices.map((d) => LazyBuffer.loadop("EMPTY", [size], dtype, d));
      return countOf(...allreduce("SUM", parts)).copies;
    };
    const [n, large] = [RING_DEVICES, RING_BYTES / dtype.itemsize];
    expect(copies(n, large - 1)).toBe(n * (n - 1));
    expect(copies(n, large)).toBe(2 * n * (n - 1));
    expect(copies(n - 1, large)).toBe((n - 1) * (n - 2));
    expect(withEnv({ RING: 0 }, () => copies(n, large))).toBe(n * (n - 1));
    expect(withEnv({ RING: 2 }, () => copies(4, 3))).toBe(12); // not one element a device: no chunks
  });
  test.each([0, 2])(
    "RING=%i: all devices get the same bits, those of a sum in float64 but for rounding",
    async (RING) => {
      for (const [n, op] of [
        [2, "SUM"],
        [3, "SUM"],
        [4, "SUM"],
        [4, "REDUCE_MAX"],
        [3, "PROD"],
      ] as const) {
        const given = parts(n, 57);
        const made = withEnv({ RING }, () => allreduce(op, given));
        const results = await Promise.all(made.map((m) => new Tensor(m).data()));
        for (const r of results) expect(r).toEqual(results[0]);
        const inputs = await Promise.all(given.map((g) => new Tensor(g).data()));
        const combine = {
          SUM: (a: number, b: number) => a + b,
          REDUCE_MAX: (a: number, b: number) => Math.max(a, b),
          PROD: (a: number, b: number) => a * b,
        }[op];
        results[0]?.forEach((x, i) => {
          const want = inputs.map((d) => Number(d[i])).reduce(combine);
          expect(Number(x)).toBeCloseTo(want, 5);
        });
        expect(made.map((m) => m.device)).toEqual(DEVICES.slice(0, n));
      }
    },
  );
});

describe("random programs give what one device gives", () => {
  const AXES = [0, 1, 2, undefined];
  /** One random step, done to both. */
  function step(next: () => number, x: LazyBuffer): ((y: LazyBuffer) => LazyBuffer) | undefined {
    const pick = <T>(xs: readonly T[]): T => xs[Math.floor(next() * xs.length)] as T;
    const shape = x.shape as readonly number[];
    const axis = Math.floor(next() * shape.length);
    const n = shape[axis] as number;
    const along = <T>(value: T, rest: (d: number) => T): T[] =>
      shape.map((d, i) => (i === axis ? value : rest(d)));
    switch (Math.floor(next() * 9)) {
      case 0: {
        const op = pick<AluOp>(["ADD", "MAX", "SUB"]);
        const turned = next() < 0.3;
        return (y) => y.e(op, turned ? y.stride(y.shape.map((_, i) => (i === axis ? -1 : 1))) : y.const(3));
      }
      case 1: {
        const op = pick<ReduceOp>(["SUM", "REDUCE_MAX"]);
        return (y) => y.r(op, [axis]).expand(shape);
      }
      case 2: {
        const order = shape.map((_, i) => i).sort(() => next() - 0.5);
        return (y) => y.permute(order);
      }
      case 3: {
        const [a, b] = [Math.floor(next() * 3), Math.floor(next() * 3)];
        return (y) => y.pad(along<[number, number]>([a, b], () => [0, 0]));
      }
      case 4: {
        const lo = Math.floor(next() * n);
        const hi = lo + 1 + Math.floor(next() * (n - lo));
        return (y) => y.shrink(along<[number, number]>([lo, hi], (d) => [0, d]));
      }
      case 5: {
        const by = pick([-2, -1, 2, 3]);
        return (y) => y.stride(along(by, () => 1));
      }
      case 6:
        return (y) => y.contiguous();
      case 7:
        return axis + 1 < shape.length
          ? (y) => y.reshape(shape.toSpliced(axis, 2, n * (shape[axis + 1] as number), 1))
          : undefined;
      default:
        return n % 2 === 0
          ? (y) =>
              y
                .reshape(shape.toSpliced(axis, 1, 2, n / 2))
                .r("SUM", [axis])
                .reshape(shape.with(axis, n / 2))
          : undefined;
    }
  }

  test.each([0, 1, 2, 3, 4, 5])("seed %i", (seed) => {
    const next = random(seed * 7919 + 13);
    let refused = 0;
    for (let program = 0; program < 40; program++) {
      const n = 2 + Math.floor(next() * 3);
      const axis = AXES[Math.floor(next() * AXES.length)];
      let plain = filled([5, 6, 4], next).lazydata;
      let spread: LazyBuffer = shard(plain, DEVICES.slice(0, n), axis);
      for (let i = 0; i < 8 && (plain.size as number) < 5000; i++) {
        const apply = step(next, plain);
        if (apply === undefined) continue;
        const one = apply(plain);
        let many: LazyBuffer;
        try {
          many = withEnv({ RING: program % 2 === 0 ? 2 : 1 }, () => apply(spread));
        } catch (e) {
          expect(String(e)).toMatch(/^ShapeError: reshape: .* is sharded along dim/);
          refused++;
          continue;
        }
        [plain, spread] = [one, many];
        expect(spread.shape).toEqual(plain.shape);
      }
      expect(read(spread), `${spread}`).toEqual(read(plain));
    }
    expect(refused).toBeLessThan(60);
  });
});

test("devices of different kinds share a tensor", () => {
  return Device.open("JS").then(() => {
    const x = new Tensor([
      [1, 2],
      [3, 4],
      [5, 6],
    ]).shard(["WASM", "JS"], 0);
    expect(x.device).toBe("WASM,JS");
    expect(x.mul(2).sum(0).tolistSync()).toEqual([18, 24]);
  });
});

describe("what is not there", () => {
  test("memory of its own", () => {
    const x = ready([4], 0);
    for (const ask of [() => x.base, () => x.buffer, () => x.realized])
      expect(ask).toThrow(/^internal: .*ask its parts/);
    expect(String(x)).toBe("<MLB WASM:1,WASM:2 [4] float32 sharded along 0>");
    expect(String(ready([4], undefined))).toBe("<MLB WASM:1,WASM:2 [4] float32 replicated>");
  });
  test("operands elsewhere, or in another order", () => {
    const x = ready([4], 0);
    const turned = shard(x.gathered, ["WASM:2", "WASM:1"], 0);
    for (const other of [x.gathered, turned, ready([4], 0, 3)]) {
      expect(() => x.e("ADD", other)).toThrow(
        /ADD: the operands are on WASM:1,WASM:2 and .*same devices, in the same order/,
      );
    }
    expect(() => x.gathered.e("ADD", x)).toThrow(/operands are on WASM:1 and WASM:1,WASM:2; move one/);
    expect(() => x.e("ADD", ready([6], 0))).toThrow("ADD: shapes [4] and [6] differ");
  });
});
