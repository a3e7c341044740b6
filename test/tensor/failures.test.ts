// What goes wrong while things run: devices that are not there, not open or cannot compute, sync calls in the
// middle of async ones, reads that fail among others, functions that throw. The program goes on after each.

import { execFileSync } from "node:child_process";
import { type Buffer, Device, DeviceError, runSchedule, Tensor, TinyJit } from "gradloom";
import { afterEach, describe, expect, test } from "vitest";
import { itemsOf } from "../schedule/count.ts";

const x = new Tensor([
  [1, 2, 3],
  [4, 5, 6],
]);
const v = new Tensor([1, 2, 3]);

afterEach(async () => {
  expect(await new Tensor([1, 2]).dot(new Tensor([3, 4])).item()).toBe(11);
});

describe("a setting that names no device", () => {
  const src = new URL("../../src/index.ts", import.meta.url).href;
  const root = new URL("../..", import.meta.url);
  const run = (dev: string, code: string): string =>
    execFileSync(process.execPath, ["--import", "tsx", "--input-type=module", "-e", code], {
      cwd: root,
      env: { ...process.env, DEV: dev },
      encoding: "utf8",
    });
  test("DEV=NOPE: the error comes with the first tensor that is computed, and can be caught", () => {
    const code = `
      import { Device, Tensor } from ${JSON.stringify(src)};
      try { await new Tensor([1, 2]).add(1).data(); } catch (e) { console.log(e.name + ": " + e.message); }
      Device.DEFAULT = "js";
      console.log((await new Tensor([1, 2]).add(1).tolist()).join());`;
    const [error, value] = run("NOPE", code).trim().split("\n");
    expect(error).toMatch(/^DeviceError: device NOPE does not exist; this build has WASM, JS/);
    expect(value).toBe("2,3");
  });
});

describe("devices that hold data and do not compute", () => {
  test("EXT says so and names the way out", async () => {
    const t = new Tensor([1, 2], { device: "EXT" });
    await expect(t.add(1).data()).rejects.toThrow(DeviceError);
    expect(() => t.add(1).dataSync()).toThrow(
      /EXT holds data and cannot compute; move the tensor first: t\.to\("WASM"\)/,
    );
    expect(await t.to("WASM").add(1).tolist()).toEqual([2, 3]);
    expect(await t.tolist()).toEqual([1, 2]);
  });
});

describe("waiting", () => {
  test("the sync form on a device that is not open names it and says how to open it", async () => {
    expect(Device.isOpen("NULL:7")).toBe(false);
    const t = new Tensor([1, 2]).to("NULL:7").add(1);
    expect(() => t.dataSync()).toThrow(DeviceError);
    expect(() => t.realizeSync()).toThrow(/NULL:7 is not open yet.*await Device\.open\("NULL:7"\) first/);
    expect(() => Device.get("JS:9")).toThrow(/JS:9 is not open yet.*await Device\.open\("JS:9"\)/);
    await Device.open("NULL:7");
    expect(t.tolistSync()).toEqual([0, 0]);
  });
  test("the sync form refuses while an async one runs, which ends undisturbed", async () => {
    const reading = x.add(1).data();
    expect(() => x.dataSync()).toThrow(DeviceError);
    expect(() => x.sum().itemSync()).toThrow(
      /an async realize is still running; await it first, or use the async form/,
    );
    expect([...(await reading)]).toEqual([2, 3, 4, 5, 6, 7]);
    expect([...x.dataSync()]).toEqual([1, 2, 3, 4, 5, 6]);
  });
  test("the sync form works right after any async one, also one that failed", async () => {
    await runSchedule(itemsOf(x.mul(2)));
    expect(v.tolistSync()).toEqual([1, 2, 3]);
    await Tensor.realize(x.mul(3));
    expect(v.tolistSync()).toEqual([1, 2, 3]);
    await x
      .to("NOPE")
      .realize()
      .catch(() => {});
    expect(v.tolistSync()).toEqual([1, 2, 3]);
  });
  test("many reads at once give each its own value", async () => {
    const reads = Array.from({ length: 60 }, (_, i) => v.mul(i).add(x).sum(1).data());
    const values = (await Promise.all(reads)).map((d) => [...d]);
    expect(values).toEqual(reads.map((_, i) => [6 * i + 6, 6 * i + 15]));
  });
  test("one that fails among many does not take the others with it", async () => {
    const results = await Promise.allSettled([
      v.add(1).data(),
      v.to("NOPE").data(),
      v.add(2).data(),
      Tensor.empty([2 ** 45]).data(),
      v.add(3).data(),
    ]);
    expect(results.map((r) => r.status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
      "rejected",
      "fulfilled",
    ]);
    expect(results.flatMap((r) => (r.status === "fulfilled" ? [[...r.value]] : []))).toEqual([
      [2, 3, 4],
      [3, 4, 5],
      [4, 5, 6],
    ]);
  });
  test("the same tensor asked for twice at once is computed once", async () => {
    const t = v.add(10).contiguous();
    const [one, two] = await Promise.all([t.data(), t.data()]);
    expect([...one]).toEqual([11, 12, 13]);
    expect(one).toEqual(two);
    expect(one).not.toBe(two);
  });
});

describe("a function of the user that throws", () => {
  test("its own error comes out, the tensor stays uncomputed, and a second attempt may succeed", async () => {
    let broken = true;
    const t = Tensor.customOp(
      ([out]) => {
        if (broken) throw new RangeError("my own fault");
        out?.copyin(new Uint8Array(new Int32Array([7, 8]).buffer));
      },
      [2],
      [],
      { dtype: "int32" },
    );
    const user = t.add(1);
    await expect(user.data()).rejects.toThrow(new RangeError("my own fault"));
    expect(() => user.dataSync()).toThrow(RangeError);
    broken = false;
    expect(await user.tolist()).toEqual([8, 9]);
  });
});

describe("a custom op that is async", () => {
  const later = <T>(value: T): Promise<T> => new Promise((resolve) => setTimeout(resolve, 5, value));

  test("is waited for", async () => {
    const op = Tensor.customOp(
      async ([out]) => void (await out?.copyin(await later(new Uint8Array([3, 4])))),
      [2],
      [],
      { dtype: "uint8" },
    );
    expect(await op.add(1).tolist()).toEqual([4, 5]);
  });

  test("rejects where it throws, at once or later; the next try calls it again", async () => {
    for (const fail of [
      async () => Promise.reject(new RangeError("no data")),
      async () => {
        await later(0);
        throw new RangeError("no data");
      },
    ]) {
      let calls = 0;
      const counted = () => {
        calls++;
        return fail();
      };
      const op = Tensor.customOp(counted, [2], [], { dtype: "uint8" }).add(1);
      await expect(op.tolist()).rejects.toThrow(new RangeError("no data"));
      await expect(op.tolist()).rejects.toThrow(new RangeError("no data"));
      expect(calls).toBe(2);
    }
  });

  test("is refused by sync calls, which say why", () => {
    const fetchIt = async (): Promise<void> => {};
    expect(() => Tensor.customOp(fetchIt, [2], [], { dtype: "uint8" }).tolistSync()).toThrow(
      /the custom op fetchIt is async; use the async form/,
    );
  });

  test("in a captured step, too", async () => {
    let fails = false;
    const step = new TinyJit((x: Tensor) =>
      Tensor.customOp(
        async ([out, given]) => {
          await later(0);
          if (fails) throw new RangeError("no data");
          await out?.copyin((given as Buffer).asBuffer().map((v) => v * 2));
        },
        [2],
        [x],
        { dtype: "uint8" },
      ).realize(),
    );
    for (const [i, want] of [
      [1, 2],
      [2, 4],
      [3, 6],
      [4, 8],
    ] as const) {
      const x = await new Tensor([i, i], { dtype: "uint8" }).contiguous().realize();
      expect(await (await step(x)).tolist()).toEqual([want, want]);
    }
    fails = true;
    const x = await new Tensor([1, 1], { dtype: "uint8" }).contiguous().realize();
    await expect(step(x)).rejects.toThrow("no data");
  });
});
