// Values that other programs hand over: Node's Buffer, subclasses, and objects of another realm (a vm
// context, a frame), whose classes are not ours. They are data everywhere that data is taken.

import { runInNewContext } from "node:vm";
import { Buffer, dtypes, func, nn, scan, Tensor, TinyJit, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";

/** What the code makes in a realm of its own. */
const other = <T = never>(code: string): T => runInNewContext(code) as T;
const bytes = (...xs: number[]): Uint8Array => globalThis.Buffer.from(xs);
class Samples extends Float32Array {}
class Rows extends Array<number> {}

type Data = readonly number[];
const DATA: Readonly<Record<string, () => Data>> = {
  "a Buffer": () => bytes(5, 6) as unknown as Data,
  "a subclass of a typed array": () => Samples.of(5, 6) as unknown as Data,
  "a subclass of Array": () => Rows.of(5, 6),
  "a typed array of another realm": () => other("new Float64Array([5, 6])"),
  "an array of another realm": () => other("[5, 6]"),
};

describe.each(Object.entries(DATA))("%s", (_, data) => {
  test.each<[string, (x: Data) => Tensor | Promise<Tensor>]>([
    ["new Tensor", (x) => new Tensor(x)],
    ["Tensor.from", (x) => Tensor.from(x)],
    ["an element of rows", (x) => new Tensor([x]).get(0)],
    ["an operand", (x) => Tensor.zeros(2).add(x as unknown as Tensor)],
    ["setitem", (x) => Tensor.zeros(2).setitem([], x as unknown as Tensor)],
    ["where", (x) => new Tensor([true, true]).where(x as unknown as Tensor, 0)],
    ["cat", (x) => Tensor.cat([x] as unknown as Tensor[])],
  ])("%s", async (_, make) => {
    expect(await (await make(data())).tolist()).toEqual([5, 6]);
  });
  test("a sample of a DataLoader", async () => {
    const warned: unknown[] = [];
    const note = (w: unknown) => void warned.push(w);
    process.on("warning", note);
    for await (const batch of new nn.DataLoader([data(), data()], { batchSize: 2 })) {
      expect(await (batch as unknown as Tensor).tolist()).toEqual([[5, 6], [5, 6]]); // biome-ignore format: a matrix
    }
    await new Promise((done) => setImmediate(done));
    process.off("warning", note);
    expect(warned).toEqual([]);
  });
  test("a curve", () => expect(nn.plot.line(data())).toBe(nn.plot.line([5, 6])));
});

describe("bytes", () => {
  test.each<[string, (file: Uint8Array) => unknown]>([
    ["a Buffer", (file) => globalThis.Buffer.from(file)],
    [
      "an ArrayBuffer of another realm",
      (file) => other<(x: unknown) => unknown>("x => Uint8Array.from(x).buffer")(file),
    ],
    [
      "an Uint8Array of another realm",
      (file) => other<(x: unknown) => unknown>("x => Uint8Array.from(x)")(file),
    ],
    [
      "a SharedArrayBuffer",
      (file) => {
        const shared = new Uint8Array(new SharedArrayBuffer(file.length));
        shared.set(file);
        return shared.buffer;
      },
    ],
  ])("%s is a file for a loader", async (_, given) => {
    const file = await nn.safeSave({ w: new Tensor([1.5]) });
    const { w } = await nn.safeLoad(given(file as unknown as Uint8Array) as Uint8Array);
    expect(await w?.tolist()).toEqual([1.5]);
  });
  test("fill a Buffer of a device", () => {
    const four = other<Uint8Array>("new Uint8Array(new Float32Array([1.5]).buffer)");
    for (const given of [four, globalThis.Buffer.from(four)]) {
      expect(new Buffer("EXT", 1, dtypes.float32).allocate(given).dataSync()).toEqual(
        new Float32Array([1.5]),
      );
      const buffer = new Buffer("WASM", 1, dtypes.float32).allocate();
      buffer.copyin(given);
      expect(buffer.dataSync()).toEqual(new Float32Array([1.5]));
    }
  });
});

describe("objects of another realm", () => {
  const wrap = other<(t: unknown) => Record<string, unknown>>(
    "t => ({ map: new Map([['w', t]]), set: new Set([t]), list: [t], plain: { t } })",
  );
  test("are models", () => {
    const w = new Tensor([1.5], { requiresGrad: true });
    const drop = new nn.Dropout(0.5);
    expect(Object.keys(nn.getStateDict(wrap(w)))).toEqual(["map.w", "set.0", "list.0", "plain.t"]);
    expect(nn.getParameters(wrap(w))).toEqual([w]);
    nn.evaluate({ only: wrap(drop).map });
    expect(drop.training).toBe(false);
  });
  test("are options, samples and plain values", async () => {
    const options = other<{ dtype: "int64" }>('({ dtype: "int64" })');
    expect(Tensor.zeros(2, options).dtype).toBe(dtypes.int64);
    expect(Tensor.eye(2, options).dtype).toBe(dtypes.int64);
    for await (const batch of new nn.DataLoader(other<{ x: number }[]>("[{ x: 1 }, { x: 2 }]"), {
      batchSize: 2,
    })) {
      expect((batch as { x: Tensor }).x.shape).toEqual([2]);
    }
    const file = await nn.save({ step: other<object>("({ epoch: 3, losses: [1, 2] })") as never });
    expect((await nn.load(file as never, { step: {} as never })) as unknown).toMatchObject({
      step: { epoch: 3 },
    });
  });
  test("are arguments of a jit and of scan", async () => {
    const jit = new TinyJit((x: { a: Tensor }) => x.a.add(1).realize());
    const boxed = other<(a: Tensor) => { a: Tensor }>("a => ({ a })");
    for (const i of [1, 2, 3]) {
      expect(await (await jit(boxed(await new Tensor([i]).realize()))).tolist()).toEqual([i + 1]);
    }
    const body = (carry: { a: Tensor }, x: Tensor) => [boxed(carry.a.add(x)), carry.a] as const;
    const [last] = scan(body, boxed(new Tensor(0)), new Tensor([1, 2, 3]));
    expect(await last.a.item()).toBe(6);
  });
  test("are promises", async () => {
    const later = other<(f: () => unknown) => () => Promise<unknown>>(
      "f => async () => { await null; return f(); }",
    );
    const inside = later(
      () => Tensor.zeros(1).requiresGrad || new Tensor([1.5], { requiresGrad: true }).mul(2).requiresGrad,
    );
    expect(await Tensor.noGrad(inside)).toBe(false);
    expect(
      await withEnv(
        { NOOPT: 1 },
        later(() => 7),
      ),
    ).toBe(7);
    expect(() => func.grad(later(() => 1) as never, new Tensor([1.5]))).toThrow("a Promise");
  });
});
