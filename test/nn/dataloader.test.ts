// DataLoader over every kind of data, its orders, its types, prefetching by counts; and the bar of progress.

import { nn, Tensor } from "gradloom";
import { describe, expect, expectTypeOf, test } from "vitest";

const { DataLoader } = nn;
/** All batches, with Tensors as lists. */
async function all(loader: AsyncIterable<unknown>): Promise<unknown[]> {
  const plain = async (x: unknown): Promise<unknown> => {
    if (x instanceof Tensor) return x.tolist();
    if (Array.isArray(x)) return Promise.all(x.map(plain));
    if (typeof x !== "object" || x === null) return x;
    const parts = Object.entries(x).map(async ([k, v]) => [k, await plain(v)] as const);
    return Object.fromEntries(await Promise.all(parts));
  };
  const found: unknown[] = [];
  for await (const batch of loader) found.push(await plain(batch));
  return found;
}
const x = () => Tensor.arange(10).reshape(5, 2);

describe("kinds of data", () => {
  test("a Tensor, arrays and objects of Tensors: by rows", async () => {
    expect(await all(new DataLoader(x(), { batchSize: 2 }))).toEqual([
      [
        [0, 1],
        [2, 3],
      ],
      [
        [4, 5],
        [6, 7],
      ],
      [[8, 9]],
    ]);
    const y = Tensor.arange(5);
    expect(await all(new DataLoader([x(), y], { batchSize: 3, dropLast: true }))).toEqual([
      [
        [
          [0, 1],
          [2, 3],
          [4, 5],
        ],
        [0, 1, 2],
      ],
    ]);
    const nested = new DataLoader({ in: { a: x() }, y }, { batchSize: 4 });
    expect((await all(nested))[1]).toEqual({ in: { a: [[8, 9]] }, y: [4] });
    for await (const batch of nested) {
      expect(batch.in.a.shape[1]).toBe(2);
      expect(batch.y.lazydata.hasMemory).toBe(true);
    }
    const half = new DataLoader(x().cast("uint8"), { batchSize: 2, device: "JS" });
    for await (const batch of half) expect([batch.dtype.name, batch.device]).toEqual(["uint8", "JS"]);
  });
  test("samples of one structure", async () => {
    const samples = [0, 1, 2].map((i) => ({
      pixels: new Uint8Array([i, 9]),
      at: [i, 0.5],
      label: i,
      name: `n${i}`,
      ok: i > 0,
    }));
    const [first] = await all(new DataLoader(samples, { batchSize: 3 }));
    expect(first).toEqual({
      pixels: [
        [0, 9],
        [1, 9],
        [2, 9],
      ],
      at: [
        [0, 0.5],
        [1, 0.5],
        [2, 0.5],
      ],
      label: [0, 1, 2],
      name: ["n0", "n1", "n2"],
      ok: [false, true, true],
    });
    for await (const b of new DataLoader(samples, { batchSize: 3 })) {
      const { pixels, at, label, ok } = b;
      expect([pixels, at, label, ok].map((t) => t.dtype.name)).toEqual(["uint8", "float32", "int32", "bool"]);
    }
    expect(
      await all(
        new DataLoader(
          [
            [[1, 2, 3], 0],
            [[4, 5, 6], 1],
          ],
          { batchSize: 2 },
        ),
      ),
    ).toEqual([
      [
        [
          [1, 2, 3],
          [4, 5, 6],
        ],
        [0, 1],
      ],
    ]);
    expect(await all(new DataLoader(new Float32Array([1, 2, 3]), { batchSize: 2 }))).toEqual([[1, 2], [3]]);
    expect(
      await all(new DataLoader([{ t: new Tensor([1.5]) }, { t: new Tensor([2.5]) }], { batchSize: 2 })),
    ).toEqual([{ t: [[1.5], [2.5]] }]);
  });
  test("length and get, also async; several at once, in order", async () => {
    let [now, most] = [0, 0];
    const data = {
      length: 7,
      async get(i: number) {
        most = Math.max(most, ++now);
        await new Promise((done) => setTimeout(done, (i * 3) % 5));
        now--;
        return i;
      },
    };
    expect(await all(new DataLoader(data, { batchSize: 3, workers: 4 }))).toEqual([
      [0, 1, 2],
      [3, 4, 5],
      [6],
    ]);
    expect(most).toBe(4);
    most = 0;
    await all(new DataLoader(data, { batchSize: 3 }));
    expect(most).toBe(1);
  });
  test("iterables, streams, and functions that open them", async () => {
    async function* numbers() {
      for (let i = 0; i < 5; i++) yield i;
    }
    expect(await all(new DataLoader(numbers(), { batchSize: 2 }))).toEqual([[0, 1], [2, 3], [4]]);
    const again = new DataLoader(numbers, { batchSize: 2, dropLast: true });
    expect(again.length).toBeUndefined();
    for (let i = 0; i < 2; i++)
      expect(await all(again)).toEqual([
        [0, 1],
        [2, 3],
      ]);
    expect(await all(new DataLoader(new Set([7, 8]), { batchSize: 2 }))).toEqual([[7, 8]]);
  });
  test("transform and collate", async () => {
    const doubled = new DataLoader([1, 2, 3], {
      batchSize: 2,
      transform: async (v: number, i: number) => [v * 2, i + 0.5],
    });
    expect(await all(doubled)).toEqual([
      [
        [2, 0.5],
        [4, 1.5],
      ],
      [[6, 2.5]],
    ]);
    const joined = new DataLoader(["a", "b", "c"], { batchSize: 2, collate: (s: string[]) => s.join("") });
    const texts: string[] = [];
    for await (const text of joined) texts.push(text);
    expect(texts).toEqual(["ab", "c"]);
  });
});

test("TypeScript infers samples and batches from the data and from transform and collate", async () => {
  const samples = [{ x: Tensor.ones(2), y: 1 }];
  const loader = new DataLoader(samples, { transform: (s, i) => ({ twice: s.x.mul(2), at: i + s.y }) });
  for await (const { twice, at } of loader) {
    expectTypeOf(twice).toEqualTypeOf<Tensor>();
    expectTypeOf(at).toEqualTypeOf<Tensor>();
  }
  const read = { length: 2, get: async (i: number) => ({ name: `n${i}` }) };
  for await (const { name } of new DataLoader(read)) expectTypeOf(name).toEqualTypeOf<string[]>();
  const options = { batchSize: 2, transform: async (s: { name: string }) => s.name.length };
  const joined = new DataLoader(read, { ...options, collate: (lengths) => lengths.join("+") });
  for await (const text of joined) {
    expectTypeOf(text).toEqualTypeOf<string>();
    expect(text).toBe("2+2");
  }
  for await (const [x] of new DataLoader([Tensor.ones(2, 1)] as [Tensor])) {
    expectTypeOf(x).toEqualTypeOf<Tensor>();
  }
  // @ts-expect-error: the samples have no z
  expect(() => new DataLoader(samples, { transform: (s) => s.z })).not.toThrow();
});

describe("types do not depend on the batch", () => {
  test("a fraction anywhere makes a leaf float32 in all batches", async () => {
    for await (const b of new DataLoader([{ v: 1 }, { v: 2 }, { v: 2.5 }])) {
      expect((b as { v: Tensor }).v.dtype.name).toBe("float32");
    }
  });
  test("a stream that turns out to have fractions is refused, unless the type is said", async () => {
    const open = () => [1, 2, 2.5];
    await expect(all(new DataLoader(open))).rejects.toThrow(
      /is 2\.5, after integers .* \{ dtype: "float32" \}/,
    );
    expect(await all(new DataLoader(open, { dtype: "float32", batchSize: 3 }))).toEqual([[1, 2, 2.5]]);
    const typed = new DataLoader([{ a: 1, b: [2] }], { dtype: { a: "int64", b: "float64" } });
    for await (const batch of typed) {
      const { a, b } = batch as Record<string, Tensor>;
      expect([a?.dtype.name, b?.dtype.name]).toEqual(["int64", "float64"]);
    }
  });
});

describe("orders", () => {
  const orders = async (loader: nn.DataLoader<unknown>, passes: number) => {
    const found: number[][] = [];
    for (let i = 0; i < passes; i++) found.push((await all(loader)).flat() as number[]);
    return found;
  };
  const data = Array.from({ length: 40 }, (_, i) => i);
  test("by seed and pass: each pass has all samples, in another order; the same in every run", async () => {
    const make = (seed: number) => new DataLoader(data, { batchSize: 7, shuffle: true, seed });
    const [a, b, c] = [await orders(make(1), 3), await orders(make(1), 3), await orders(make(2), 1)];
    expect(a).toEqual(b);
    for (const order of [...a, ...c]) expect(order.toSorted((p, q) => p - q)).toEqual(data);
    expect(new Set([...a, ...c].map(String)).size).toBe(4);
    // Tensors are taken in the same order as samples
    const rows = new DataLoader(Tensor.arange(40), { batchSize: 7, shuffle: true, seed: 1 });
    expect(await orders(rows as never, 3)).toEqual(a);
  });
  test("every order of three is equally likely", async () => {
    const counts = new Map<string, number>();
    const three = new DataLoader([0, 1, 2], {
      batchSize: 3,
      shuffle: true,
      seed: 5,
      collate: (s: number[]) => s.join(""),
    });
    for (let i = 0; i < 600; i++)
      for await (const order of three) counts.set(order, (counts.get(order) ?? 0) + 1);
    expect(counts.size).toBe(6);
    for (const n of counts.values()) expect(Math.abs(n - 100)).toBeLessThan(40);
  });
  test("manualSeed decides where no seed is given; nn.save keeps the pass", async () => {
    const make = () => new DataLoader(data, { shuffle: true, batchSize: 40 });
    Tensor.manualSeed(3);
    const [one, two] = [make(), make()];
    const wanted = await orders(one, 3);
    expect(await orders(two, 1)).toEqual(wanted.slice(0, 1));
    const file = await nn.save({ data: two });
    const again = make();
    await nn.load(file, { data: again });
    expect(again.epoch).toBe(1);
    expect(await orders(again, 2)).toEqual(wanted.slice(1));
    Tensor.manualSeed(4);
    expect(await orders(make(), 1)).not.toEqual(wanted.slice(0, 1));
    await expect(nn.load(file, { data: make() })).rejects.toThrow(/the saved seed is/);
  });
});

describe("prefetch", () => {
  const watched = () => {
    const read: number[] = [];
    const get = (i: number) => {
      read.push(i);
      return i;
    };
    return { read, data: { length: 10, get } };
  };
  test("so many batches ahead, and no more after the loop is left", async () => {
    for (const prefetch of [0, 1, 3]) {
      const { read, data } = watched();
      for await (const _ of new DataLoader(data, { batchSize: 1, prefetch })) {
        for (let i = 0; i < 200; i++) await Promise.resolve();
        await new Promise((done) => setTimeout(done, 30));
        break;
      }
      expect(read.length).toBeGreaterThanOrEqual(1);
      // one sample is read when the one before it is given away
      expect(read.length).toBeLessThanOrEqual(prefetch + 2);
    }
  });
  test("an error comes where its batch would have come", async () => {
    const data = { length: 4, get: (i: number) => (i === 2 ? Promise.reject(new Error("lost")) : i) };
    const seen: unknown[] = [];
    const run = async () => {
      for await (const b of new DataLoader(data, { prefetch: 3, workers: 4 }))
        seen.push(await (b as Tensor).tolist());
    };
    await expect(run()).rejects.toThrow("lost");
    expect(seen).toEqual([[0], [1]]);
  });
});

describe("progress", () => {
  test("a bar with time and figures", () => {
    const lines: string[] = [];
    const bar = new nn.ProgressBar({ total: 2, label: "fit", show: (l) => void lines.push(l) });
    bar.step({ loss: 0.123456, step: 1 });
    bar.set({ done: "yes" });
    bar.step();
    bar.end();
    expect(bar.done).toBe(2);
    expect(lines[0]).toMatch(/^fit \[={12} {12}\] 1\/2 0:00<0:00, loss 0\.1235, step 1$/);
    expect(lines.slice(1)).toEqual([expect.stringMatching(/^fit \[={24}\] 2\/2 .*, done yes$/), ""]);
    expect(new nn.ProgressBar().line(3_725_000)).toBe("0, 1:02:05");
  });
  test("around iterables of any kind; quiet where no terminal is", async () => {
    const lines: string[] = [];
    const loader = new DataLoader([1, 2, 3], { collate: (s: number[]) => s, progress: "pass" });
    const seen: unknown[] = [];
    for await (const b of nn.progress(loader, { show: (l) => void lines.push(l) })) seen.push(b);
    expect(seen).toEqual([[1], [2], [3]]);
    expect(lines.at(-2)).toMatch(/3\/3/);
    expect(lines.at(-1)).toBe("");
    let sum = 0;
    for await (const v of nn.progress(new Set([1, 2]))) sum += v;
    expect(sum).toBe(3);
  });
});

test.each<[string, () => unknown, RegExp]>([
  [
    "unknown options",
    () => new DataLoader([1], { batchsize: 2 } as never),
    /unknown option batchsize; did you mean batchSize/,
  ],
  [
    "a size by position",
    () => new DataLoader([1], 2 as never),
    /argument 2 is 2, expected options \{ batchSize/,
  ],
  [
    "no samples at a time",
    () => new DataLoader([1], { batchSize: 0 }),
    /batchSize is 0, expected an integer >= 1/,
  ],
  ["a number", () => new DataLoader(5 as never), /the data is number; expected Tensors such as \{ x, y \}/],
  [
    "uneven columns",
    () => new DataLoader([x(), Tensor.ones(4)]),
    /shapes \[5, 2\], \[4\]; expected the same first dim/,
  ],
  ["a shuffled stream", () => new DataLoader(() => [1], { shuffle: true }), /an iterable cannot be shuffled/],
  [
    "collate for Tensors",
    () => new DataLoader(x(), { collate: (s: unknown[]) => s } as never),
    /taken by rows/,
  ],
])("refused: %s", (_, make, message) => expect(make).toThrow(message));
test.each<[string, readonly unknown[], RegExp]>([
  [
    "uneven features",
    [
      [1, 2],
      [1, 2, 3],
    ],
    /sample has shape \[2\] .* and \[3\] in number 1; make them equal/,
  ],
  ["a missing key", [{ a: 1 }, { b: 1 }], /number 1 of a batch is not an object with a/],
  ["uneven Tensors", [{ t: Tensor.ones(1) }, { t: Tensor.ones(2) }], /sample\.t has shape \[1\] .* \[2\]/],
  ["uneven arrays", [new Float32Array(1), new Float32Array(2)], /\[1\] .* \[2\]/],
])("refused when they come: %s", async (_, samples, message) => {
  await expect(all(new DataLoader(samples as never, { batchSize: 2 }))).rejects.toThrow(message);
});
