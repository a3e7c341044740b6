// Worker threads that read samples: the order stays, errors come with their stack, memory is bounded by
// prefetch, and threads end with the loop.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ArgumentError, FileError, nn, Tensor } from "gradloom";
import { describe, expect, test } from "vitest";

const module = (name: string): URL => pathToFileURL(join(import.meta.dirname, name));
const SAMPLES = module("samples.mjs");
interface Batch {
  readonly i: Tensor;
  readonly x: Tensor;
  readonly b: Tensor;
  readonly name: string[];
  readonly threadId: Tensor;
}
const loader = (options: nn.DataLoaderOptions) =>
  new nn.DataLoader(SAMPLES, options) as unknown as AsyncIterable<Batch> & nn.DataLoader;
async function read(source: AsyncIterable<Batch>): Promise<unknown[][]> {
  const seen: unknown[][] = [];
  for await (const { i } of source) seen.push((await i.tolist()) as unknown[]);
  return seen;
}

describe("samples of a module", () => {
  test("come in order, from several threads, as Tensors", async () => {
    const batches: Batch[] = [];
    const data = loader({ batchSize: 3, workers: 2, args: { slow: true } });
    expect(data.length).toBe(undefined);
    for await (const batch of data) batches.push(batch);
    expect(data.length).toBe(4);
    expect(await Promise.all(batches.map(({ i }) => i.tolist()))).toEqual([
      [0, 1, 2],
      [3, 4, 5],
      [6, 7, 8],
      [9],
    ]);
    expect(await batches[1]?.x.tolist()).toEqual([
      [12, 13, 14, 15],
      [16, 17, 18, 19],
      [20, 21, 22, 23],
    ]);
    expect([await batches[3]?.b.tolist(), batches[3]?.b.dtype.name, batches[3]?.name]).toEqual([
      [[9]],
      "uint8",
      ["s9"],
    ]);
    const threads = new Set((await Promise.all(batches.map((b) => b.threadId.tolist()))).flat());
    expect(threads.size).toBe(2);
  });
  test("shuffle, dropLast, transform and collate are as without threads", async () => {
    const options = { batchSize: 4, shuffle: true, seed: 3, dropLast: true };
    const here = new nn.DataLoader(
      Array.from({ length: 10 }, (_, i) => ({ i })),
      options,
    );
    const wanted: unknown[] = [];
    for await (const { i } of here) wanted.push(await i.tolist());
    expect(await read(loader({ ...options, workers: 2 }))).toEqual(wanted);
    const sums: unknown[] = [];
    const transform = (s: unknown, index: number) => (s as { i: number }).i * 100 + index;
    const collate = (list: unknown[]) => list.join(" ");
    for await (const s of new nn.DataLoader(SAMPLES, { batchSize: 5, transform, collate, workers: 2 }))
      sums.push(s);
    expect(sums).toEqual(["0 101 202 303 404", "505 606 707 808 909"]);
  });
  test("an array, a path, and several passes", async () => {
    const path = join(import.meta.dirname, "samplearray.mjs");
    const data = new nn.DataLoader(path, { batchSize: 2, workers: 2 });
    for (let pass = 0; pass < 2; pass++) {
      const seen: unknown[] = [];
      for await (const b of data) seen.push(await (b as Tensor).tolist());
      expect(seen).toEqual([[1, 2], [3]]);
    }
  });
  test("Tensors come over, whatever their type", async () => {
    const text = `
      const tensor = (name, data, shape) =>
        ({ lazydata: 1, shape, dtype: { name }, data: async () => data });
      export default { length: 2, get: (i) => ({
        half: tensor("float16", new Float32Array([i, 0.5]), [2, 1]), big: tensor("int64", new BigInt64Array([5n]), []) }) };`;
    const url = new URL(`data:text/javascript,${encodeURIComponent(text)}`);
    for await (const b of new nn.DataLoader(url, { batchSize: 2 })) {
      const { half, big } = b as { half: Tensor; big: Tensor };
      expect([half.shape, half.dtype.name, await half.tolist()]).toEqual([
        [2, 2, 1],
        "float16",
        [
          [[0], [0.5]],
          [[1], [0.5]],
        ],
      ]);
      expect([big.dtype.name, ((await big.tolist()) as bigint[]).map(String)]).toEqual(["int64", ["5", "5"]]);
    }
  });
});

describe("errors", () => {
  test("of a sample: after the batches before it, with the stack of the worker", async () => {
    const seen: unknown[] = [];
    const run = async () => {
      for await (const { i } of loader({ batchSize: 2, workers: 2, args: { throws: 5 } }))
        seen.push(await i.tolist());
    };
    const error = await run().then(
      () => undefined,
      (e: Error) => e,
    );
    expect(seen).toEqual([
      [0, 1],
      [2, 3],
    ]);
    expect([error?.name, error?.message]).toEqual(["RangeError", "sample 5 is lost"]);
    expect(error?.stack).toMatch(/at lost .*samples\.mjs/);
    expect(error?.stack).toContain("in a worker of DataLoader");
  });
  test.each<[string, () => nn.DataLoader, RegExp]>([
    ["the module is not there", () => new nn.DataLoader(module("none.mjs")), /Cannot find module.*none\.mjs/],
    [
      "it exports nothing",
      () => new nn.DataLoader(module("nosamples.mjs")),
      /nosamples\.mjs is not a dataset; expected/,
    ],
    ["its function throws", () => loader({ args: { fails: true }, workers: 2 }), /no such data/],
    ["a sample cannot be sent", () => loader({ args: { clones: 1 } }), /could not be cloned/],
    ["args cannot be sent", () => loader({ args: { f: () => 1 } }), /args cannot be sent to a worker/],
    ["the thread ends", () => loader({ args: { exit: 2 }, workers: 2 }), /a worker ended with exit code 3/],
  ])("%s", async (_, make, message) => {
    await expect(read(make() as never)).rejects.toThrow(message);
  });
  test("a module that is not there, or has no dataset, is an error of ours", async () => {
    const loaders = ["none.mjs", "nosamples.mjs"].map((name) => new nn.DataLoader(module(name)));
    const reads = loaders.map((it) => read(it as never).catch((e: unknown) => e));
    const [gone, empty] = await Promise.all(reads);
    expect(gone).toBeInstanceOf(FileError);
    expect(empty).toBeInstanceOf(ArgumentError);
  });
  test("options that would do nothing are refused", () => {
    const make = (data: unknown, options: object) => () => new nn.DataLoader(data as number[], options);
    expect(make(Tensor.ones(3), { workers: 2 })).toThrow(/workers is 2, but rows of Tensors are in memory/);
    expect(make(new Set([1]), { workers: 2 })).toThrow(/an iterable is read in order/);
    expect(make([1], { args: 1 })).toThrow(/args are for the URL of a module/);
    expect(make(SAMPLES, { workers: 0 })).toThrow(/loaded by workers only/);
  });
});

describe("bounds", () => {
  test("no more batches are asked for than prefetch says", async () => {
    const log = new Int32Array(new SharedArrayBuffer(4));
    const it = loader({ batchSize: 1, workers: 2, prefetch: 2, args: { log, length: 30 } })[
      Symbol.asyncIterator
    ]();
    await it.next();
    const reads = async (n: number): Promise<number> => {
      while (Atomics.load(log, 0) < n) await new Promise((done) => setTimeout(done, 1));
      await new Promise((done) => setTimeout(done, 20));
      return Atomics.load(log, 0);
    };
    expect(await reads(3)).toBe(3);
    await it.next();
    await it.next();
    expect(await reads(5)).toBe(5);
    await it.return?.();
  });
  test("a loop that is left does not wait for a thread that hangs", async () => {
    for await (const { i } of loader({ workers: 2, args: { hangs: 1 } })) {
      expect(await i.tolist()).toEqual([0]);
      break;
    }
  });
  test("a process ends: after a loop, after one that was left, and with an iterator that was dropped", () => {
    const folder = mkdtempSync(join(tmpdir(), "gradloom-workers-"));
    const file = join(folder, "program.mts");
    writeFileSync(
      file,
      `import { nn } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, "../../src/index.ts")).href)};
       const url = new URL(${JSON.stringify(SAMPLES.href)});
       let n = 0;
       for await (const _ of new nn.DataLoader(url, { workers: 2 })) n++;
       for await (const _ of new nn.DataLoader(url, { workers: 2, args: { hangs: 3 } })) { n++; break; }
       const dropped = new nn.DataLoader(url, { workers: 2 })[Symbol.asyncIterator]();
       await dropped.next();
       console.log(n + 1);\n`,
    );
    const { stdout, status, stderr } = spawnSync(process.execPath, ["--import", "tsx", file], {
      encoding: "utf8",
      timeout: 60_000,
    });
    rmSync(folder, { recursive: true });
    expect([stdout.trim(), status, stderr]).toEqual(["12", 0, ""]);
  }, 90_000);
});
