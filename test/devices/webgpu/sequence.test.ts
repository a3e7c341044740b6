// Small kernels of a captured step in one dispatch, on Dawn and SwiftShader: values equal to those of kernels
// by themselves, whatever their types, threads and memory are, and only kernels that fit together.

import { Device, type DTypeName, Tensor, TinyJit, withEnv } from "gradloom";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Random } from "../../shape/random.ts";
import type { Counted } from "./counted.ts";
import { openCounted } from "./opencounted.ts";
import { whyClosed } from "./swiftshader.ts";

const closed = await whyClosed();

describe("small kernels in a row", () => {
  let count: Counted;
  let name: string;
  const before = Device.DEFAULT;
  beforeAll(async () => {
    if (closed !== undefined) return;
    ({ name, count } = await openCounted());
    Device.DEFAULT = name;
  });
  afterAll(() => {
    Device.DEFAULT = before;
  });
  const dispatches = (): number => count.calls.get("dispatchWorkgroups") ?? 0;
  /** Runs until small kernels run together: that is compiled beside the first replays. */
  async function settle<X extends unknown[]>(step: (...xs: X) => Promise<Tensor>, ...xs: X): Promise<void> {
    for (let i = 0; i < 5; i++) {
      (await step(...xs)).dispose();
      await count.compiled();
    }
  }
  /** Dispatches of a replay, and its values. */
  async function replayed(body: (x: Tensor) => Tensor, x: Tensor): Promise<[number, unknown]> {
    const step = new TinyJit(body);
    await settle(step, x);
    count.calls.clear();
    const result = await step(x);
    const counted = dispatches();
    return [counted, await result.tolist()];
  }
  const chain =
    (kernels: number) =>
    (x: Tensor): Tensor => {
      let y = x;
      for (let i = 0; i < kernels; i++) y = y.add(1).contiguous();
      return y;
    };

  test("200 dependent kernels of 1024 elements are four dispatches", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const x = await Tensor.arange(1024).contiguous().realize();
    const [counted, values] = await replayed(chain(200), x);
    expect(counted).toBe(4);
    expect(values).toEqual(Array.from({ length: 1024 }, (_, i) => i + 200));
  });
  test("a row of large kernels stays as it is", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const x = await Tensor.zeros(1 << 16)
      .contiguous()
      .realize();
    expect((await replayed(chain(5), x))[0]).toBe(5);
  });
  test("a replay with other memory binds that memory", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const step = new TinyJit((a: Tensor) => a.mul(2).contiguous().add(a).contiguous());
    const results: Tensor[] = [];
    for (let i = 0; i < 6; i++) {
      results.push(await step(await Tensor.full([100], i).contiguous().realize()));
      await count.compiled();
    }
    // all are kept: each has memory of its own
    for (const [i, r] of results.entries()) expect(await r.tolist()).toEqual(Array(100).fill(3 * i));
  });
  test("a step that overwrites its own input", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const w = await Tensor.ones(50).contiguous().realize();
    const step = new TinyJit((x: Tensor) => {
      const y = x.add(w).contiguous();
      w.assign(y.mul(0.5));
      return y;
    });
    const x = await Tensor.full([50], 3).contiguous().realize();
    const seen: number[] = [];
    for (let i = 0; i < 6; i++) {
      seen.push(Number(((await (await step(x)).tolist()) as number[])[7]));
      await count.compiled();
    }
    expect(seen).toEqual([4, 5, 5.5, 5.75, 5.875, 5.9375]);
  });
  test("profiled kernels run by themselves, and together again", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const x = await Tensor.zeros(64).contiguous().realize();
    const step = new TinyJit(chain(4));
    await settle(step, x);
    const counted = async (): Promise<number> => {
      count.calls.clear();
      const y = await step(x);
      const all = dispatches();
      expect(await y.tolist()).toEqual(Array(64).fill(4));
      return all;
    };
    expect(await counted()).toBe(1);
    expect(await withEnv({ PROFILE: 1 }, counted)).toBe(4);
    expect(await counted()).toBe(1);
  });
  test("memory that moves while kernels are profiled is that of the next replay", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const w = await Tensor.zeros(8).contiguous().realize();
    const step = new TinyJit((x: Tensor) => {
      w.assign(x.add(1).contiguous().mul(2));
      return w;
    });
    const [a, b] = [1, 100].map((v) => Tensor.full([8], v, { dtype: "float32" }).contiguous()) as [
      Tensor,
      Tensor,
    ];
    const first = async (x: Tensor): Promise<number> => {
      await step(x);
      await count.compiled();
      return Number(((await w.tolist()) as number[])[0]);
    };
    for (let i = 0; i < 5; i++) expect(await first(await a.realize())).toBe(4);
    expect(await withEnv({ PROFILE: 1 }, async () => first(await b.realize()))).toBe(202);
    expect(await first(b)).toBe(202);
    expect(await first(a)).toBe(4);
  });
  test("sync replays run, together or not", async ({ skip }) => {
    skip(closed !== undefined, closed);
    const x = await Tensor.ones(64).contiguous().realize();
    const step = new TinyJit(chain(3));
    for (let i = 0; i < 2; i++) (await step(x)).dispose();
    for (let i = 0; i < 4; i++) {
      expect(await step.sync(x).tolist()).toEqual(Array(64).fill(4));
      await count.compiled();
    }
  });
  test("random steps of small kernels equal those that are not captured", async ({ skip }) => {
    skip(closed !== undefined, closed);
    let [kernels, all] = [0, 0];
    for (let seed = 0; seed < 15; seed++) {
      const x = await input(new Random(seed));
      const step = new TinyJit((t: Tensor) => program(new Random(seed), t));
      const expected = await (await program(new Random(seed), x).realize()).tolist();
      for (let i = 0; i < 5; i++) {
        await count.compiled();
        count.calls.clear();
        expect(await (await step(x)).tolist(), `seed ${seed}, call ${i}`).toEqual(expected);
      }
      kernels += step.jitCache.length;
      all += dispatches();
    }
    expect(all).toBeLessThan(kernels / 2);
  });
});

const input = (r: Random): Promise<Tensor> => {
  const shape = [r.int(1, 9), r.int(1, 40)];
  const n = (shape[0] as number) * (shape[1] as number);
  return new Tensor(
    Array.from({ length: n }, () => r.int(-8, 8)),
    { dtype: "int32" },
  )
    .reshape(...shape)
    .contiguous()
    .realize();
};
const TYPES: readonly DTypeName[] = ["int32", "float32", "uint8", "bool", "int16", "int64", "float16"];

/** A chain of stored values: each step is a kernel, of other threads and types than the one before. */
function program(r: Random, x: Tensor): Tensor {
  let all = [x];
  for (let i = r.int(4, 12); i > 0; i--) {
    const a = r.pick(all);
    const [rows, columns] = a.shape as [number, number];
    const made = r.pick<() => Tensor>([
      () => a.add(1),
      () => a.cast(r.pick(TYPES)),
      () => a.mul(3).maximum(2),
      () => a.cast("int32").sum(0, true).expand(rows, columns),
      () => a.cast("int32").max(1, true),
      () => a.permute(1, 0),
      () => a.flip(1),
      () => a.cast("float32").sum().reshape(1, 1),
      () => a.cast("int32").cumsum(1),
      () => a.cast("int32").sub(a.cast("int32").max(1, true)),
    ])();
    all = [...all, made.contiguous()];
  }
  // what the end does not need is not computed
  const sums = all.map((t) => t.cast("int32").bitwiseAnd(1023).sum().reshape(1));
  return Tensor.cat(sums, 0);
}
