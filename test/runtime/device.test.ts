// The contract of a device from its author's side: one that can only be waited for with promises, as WebGPU
// can, and that asks for aligned offsets works with everything but the synchronous calls. And the registry:
// kinds of device and what they hold.

import { Device, DeviceError, Tensor, TinyJit, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";
import { open as openJS } from "../../src/devices/js.ts";
import type { Allocator, Compiled, Program } from "../../src/runtime/device.ts";
import { canonicalize, devicesOf } from "../../src/runtime/registry.ts";

const ALIGN = 256;
const later = <T>(make: () => T): Promise<T> =>
  new Promise((resolve, reject) => {
    setTimeout(() => {
      try {
        resolve(make());
      } catch (e) {
        reject(e);
      }
    }, 0);
  });

/** Takes work in order and does it later, one task each; the host sees none of its memory. */
class Patient implements Compiled<Uint8Array> {
  readonly name: string;
  readonly space = undefined;
  readonly timeline = undefined;
  readonly graph = undefined;
  readonly keepsTime = false;
  readonly compilesAside = true;
  readonly renderer: Compiled["renderer"];
  readonly allocator: Allocator<Uint8Array>;
  readonly offsets: number[] = [];
  readonly #js = openJS("JS");
  #last: Promise<unknown> = Promise.resolve();

  constructor(name: string) {
    this.name = name;
    this.renderer = this.#js.renderer;
    this.allocator = {
      ...this.#js.allocator,
      offsetAlign: ALIGN,
      view: () => undefined,
      copyin: (dest, src) => {
        const copy = src.slice(); // the caller may change it as soon as this returns
        void this.#enqueue(() => dest.set(copy));
      },
      copyout: (dest, src) => this.#enqueue(() => dest.set(src)),
      offset: (handle, nbytes, at) => {
        this.offsets.push(at);
        return handle.subarray(at, at + nbytes);
      },
    };
  }
  #enqueue<T>(work: () => T): Promise<T> {
    const mine = this.#last.then(() => later(work));
    this.#last = mine.catch(() => {});
    return mine;
  }
  async compile(name: string, source: Parameters<Compiled["compile"]>[1]): Promise<Program<Uint8Array>> {
    const program = (await later(() => this.#js.compile(name, source))) as Program<Uint8Array>;
    return {
      run: (handles, launch, wait) => {
        const done = this.#enqueue(() => program.run(handles, launch, wait));
        return wait ? done.then((seconds) => seconds ?? 0) : undefined;
      },
    };
  }
  synchronize(): Promise<void> {
    return this.#enqueue(() => {});
  }
}

const opened = new Map<string, Patient>();
Device.register({
  PATIENT: {
    storage: "memory",
    load: async () => ({
      open: (name) =>
        later(() => {
          opened.set(name, new Patient(name));
          return opened.get(name) as Patient;
        }),
    }),
  },
  SHELF: { storage: "file", load: () => ({ open: (name) => new Patient(name) }) },
});

describe("a device that can only be awaited", () => {
  const on = { device: "PATIENT" };

  test("computes, copies and moves", async () => {
    const a = new Tensor([1, 2, 3], on);
    const b = a.add(1).mul(a);
    expect(await b.tolist()).toEqual([2, 6, 12]);
    expect(await b.to("WASM").sum().to("PATIENT").add(a.sum()).item()).toBe(26);
    expect(await a.to("PATIENT:1").neg().to("PATIENT").add(a).tolist()).toEqual([0, 0, 0]);
    expect([...opened.keys()]).toEqual(["PATIENT", "PATIENT:1"]);
  });
  test("is refused by the synchronous calls, which say what to do", async () => {
    const t = new Tensor([1, 2], on).add(1);
    expect(() => t.dataSync()).toThrow(DeviceError);
    expect(() => t.dataSync()).toThrow(/asynchronous|await/);
    expect(await t.tolist()).toEqual([2, 3]);
    expect(() => t.dataSync()).toThrow(/await/);
  });
  test("trains in a captured step, with its buffers at multiples of what it asked for", async () => {
    const w = Tensor.ones([5, 3], on).contiguous();
    await w.realize();
    w.requiresGrad = true;
    const step = new TinyJit(async (x: Tensor) => {
      w.grad = undefined;
      const loss = x.matmul(w).tanh().square().sum();
      loss.backward();
      w.assign(w.detach().sub((w.grad as unknown as Tensor).mul(0.1)));
      return loss.detach().realize();
    });
    const losses: number[] = [];
    for (let i = 0; i < 5; i++) {
      const x = Tensor.ones([7, 5], on).mul(0.1).contiguous();
      losses.push(await (await step(await x.realize())).item());
    }
    expect(losses.every((l, i) => i === 0 || l < (losses[i - 1] as number))).toBe(true);
    const { offsets } = opened.get("PATIENT") as Patient;
    expect(offsets.length).toBeGreaterThan(0);
    expect(new Set(offsets).size).toBeGreaterThan(1);
    expect(offsets.filter((o) => o % ALIGN !== 0)).toEqual([]);
  });
  test("is searched on", async () => {
    const found = await withEnv({ BEAM: 1, BEAM_SECONDS: 1, CACHE: "0" }, () =>
      Tensor.ones([4, 4], on).contiguous().sum().item(),
    );
    expect(found).toBe(16);
  });
});

describe("what a kind of device holds is known before it is opened", () => {
  test("files: the path stays as it is, and nothing is computed there", () => {
    expect(canonicalize("shelf:a:0")).toBe("SHELF:a:0");
    expect(canonicalize("shelf:0")).toBe("SHELF:0");
    expect(devicesOf("shelf:a,b")).toEqual(["SHELF:a,b"]);
    expect(Device.computes("SHELF:a,b")).toBe(false);
    expect(() => {
      Device.DEFAULT = "SHELF:x";
    }).toThrow(/holds data and cannot compute/);
  });
  test("memory: numbers are short, groups are split", () => {
    expect(canonicalize("patient:0")).toBe("PATIENT");
    expect(devicesOf("patient, patient:1")).toEqual(["PATIENT", "PATIENT:1"]);
    expect([Device.storageOf("EXT"), Device.storageOf("DISK:/x"), Device.storageOf("WASM:3")]).toEqual([
      "array",
      "file",
      "memory",
    ]);
  });
  test("what follows the colon is a number, in one spelling", () => {
    for (const name of ["WASM:0; rm", "WASM:-1", "WASM:1e3", "WASM:01", "WASM: 1", "WASM:1:2", "WASM:x\n"]) {
      expect(() => Device.get(name), name).toThrow(/^device "WASM:.*": expected a number after the colon/);
      expect(() => new Tensor([1], { device: name }).realizeSync(), name).toThrow(DeviceError);
    }
    expect(Device.get("WASM:10")).toBe(Device.get("wasm:10"));
  });
  test("a kind that nobody registered is refused by name", () => {
    expect(() => Device.get("NOSUCH")).toThrow(/device NOSUCH does not exist; this build has .*WASM/);
  });
});

describe("the fastest device", () => {
  const slow = openJS("JS");
  const closed = (): never => {
    throw new DeviceError("no such hardware");
  };

  test("is the first by rank that opens, and opens as AUTO", async () => {
    const tried: string[] = [];
    const kind = (rank: number, open: (name: string) => Compiled) => ({
      storage: "memory" as const,
      rank,
      load: () => {
        return {
          open(name: string) {
            tried.push(name);
            return open(name);
          },
        };
      },
    });
    Device.register({
      EMULATED: kind(102, () => ({ ...slow, name: "EMULATED", isSoftware: true })),
      FAST: kind(100, (name) => new Patient(name)),
      SLOWER: kind(99, closed),
      ABSENT: kind(103, closed),
    });
    expect(await Device.best()).toBe("FAST");
    expect(tried).toEqual(["ABSENT", "EMULATED", "FAST"]);
    expect(Device.isOpen("FAST")).toBe(true);
    expect(await Device.open("AUTO")).toBe(Device.get("FAST"));
    expect(Device.kinds).not.toContain("AUTO");
  });
  test("is taken by DEV=AUTO without waiting", async () => {
    await withEnv({ DEV: "AUTO" }, async () => {
      expect(Device.DEFAULT).toBe("AUTO");
      const x = new Tensor([1, 2, 3]).add(1);
      expect([x.device, await x.tolist()]).toEqual(["AUTO", [2, 3, 4]]);
      const step = new TinyJit((t: Tensor) => t.mul(2));
      for (let i = 0; i < 3; i++) expect(await (await step(x)).tolist()).toEqual([4, 6, 8]);
      expect(await x.to("WASM").tolist()).toEqual([2, 3, 4]);
    });
    expect(() => Device.get("AUTO:1")).toThrow(/AUTO:1 does not exist/);
  });
  test("a mistake is not taken for a device that does not open", async () => {
    const broken = (): never => {
      throw new TypeError("a bug");
    };
    Device.register({ BROKEN: { storage: "memory", rank: 104, load: () => ({ open: broken }) } });
    await expect(Device.best()).rejects.toThrow(TypeError);
    Device.register({ BROKEN: { storage: "memory", load: () => ({ open: broken }) } });
  });
});

test("a kind's own name goes before another name for a kind", async () => {
  const open = (name: string) => new Patient(name);
  Device.register({ SPELT: { storage: "memory", aliases: ["OTHER"], load: () => ({ open }) } });
  expect((await Device.open("other")).name).toBe("SPELT");
  Device.register("OTHER", open);
  expect([(await Device.open("OTHER")).name, new Tensor([1], { device: "other" }).device]).toEqual([
    "OTHER",
    "OTHER",
  ]);
});
