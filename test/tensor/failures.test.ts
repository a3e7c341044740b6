// What goes wrong while things run: devices that are not there, not open or cannot compute, sync calls in the
// middle of async ones, reads that fail among others, functions that throw. The program goes on after each.

import { execFileSync } from "node:child_process";
import { Device, DeviceError, runSchedule, Tensor } from "gradloom";
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
