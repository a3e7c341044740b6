// How often kernels are compiled: once for each structure, shapes included, whatever the tensors; together
// where the device compiles beside the host; who hears of a kernel that does not compile; and how much is
// made on the way to a new one.

import { CompileError, createSchedule, Device, nn, runSchedule, type ScheduleItem, Tensor } from "gradloom";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Kernel, toFastKernel } from "../../src/codegen/kernel.ts";
import type { Renderer, Source } from "../../src/codegen/target.ts";
import { clearKernelCache, runnerFor } from "../../src/engine/compile.ts";
import { optimized } from "../../src/engine/compiler.ts";
import { withEnv } from "../../src/env.ts";
import { type MaybePromise, runSync } from "../../src/helpers.ts";
import type { Compiled, Program } from "../../src/runtime/device.ts";
import type { CompiledRunner } from "../../src/runtime/runner.ts";
import { astStructure } from "../../src/schedule/lazyop.ts";
import { nextUOpId } from "../../src/uop/node.ts";

type Compile = (name: string, source: Source) => MaybePromise<Program>;
/** A device that is asked instead of WASM's own compiler. */
const wasm = Device.get("WASM") as Compiled & { compile: Compile; compilesAside: boolean };
const own: Compile = wasm.compile.bind(wasm);

beforeEach(clearKernelCache);
afterEach(() => {
  vi.restoreAllMocks();
  wasm.compilesAside = false;
});

describe("the same structure is compiled once", () => {
  const count = () => vi.spyOn(wasm, "compile").mockImplementation(own);

  test("a second layer of the same shape costs nothing", async () => {
    const compile = count();
    const x = await Tensor.ones([4, 16]).contiguous().realize();
    const [a, b, c] = [new nn.Linear(16, 16), new nn.Linear(16, 16), new nn.Linear(16, 8)];
    await Tensor.realize(...nn.getParameters([a, b, c]));
    compile.mockClear();
    const first = await a.forward(x).relu().realize();
    const kernels = compile.mock.calls.length;
    expect(kernels).toBeGreaterThan(0);
    const second = await b.forward(first).relu().realize();
    expect(compile.mock.calls.length).toBe(kernels);
    await c.forward(second).relu().realize();
    expect(compile.mock.calls.length).toBe(2 * kernels);
  });
  test("a second step of training costs nothing", async () => {
    const compile = count();
    const layer = new nn.Linear(6, 3);
    const optimizer = new nn.optim.Adam(nn.getParameters(layer));
    const counts: number[] = [];
    for (let i = 0; i < 3; i++) {
      const loss = Tensor.train(() => layer.forward(Tensor.ones([5, 6])))
        .square()
        .mean();
      optimizer.zeroGrad();
      loss.backward();
      await optimizer.step(loss);
      counts.push(compile.mock.calls.length);
    }
    expect(counts[0]).toBeGreaterThan(0);
    expect(counts[2]).toBe(counts[1]);
  });
  test("within one graph too", async () => {
    const compile = count();
    let x = await Tensor.ones([8, 8]).contiguous().realize();
    const weights = await Promise.all([1, 2, 3, 4].map((n) => Tensor.full([8, 8], n).contiguous().realize()));
    compile.mockClear();
    for (const w of weights) x = x.matmul(w).relu();
    await x.realize();
    expect(compile).toHaveBeenCalledTimes(1);
  });
});

test("a compiled kernel keeps what launches need, and not the graph it came from", () => {
  const [item] = createSchedule([Tensor.empty([4, 9]).realizeSync().softmax().lazydata]);
  const runner = runSync(runnerFor(item as ScheduleItem), "test") as CompiledRunner;
  const { uops, floats, ...facts } = runner.kernel as Partial<Kernel> & CompiledRunner["kernel"];
  expect([uops, floats]).toEqual([undefined, undefined]);
  expect(facts).toMatchObject({ device: "WASM", globals: [0, 1], repeats: false, localSize: [] });
});

describe("a device that compiles beside the host", () => {
  /** Compiles when asked to, all that was asked for so far. */
  function later(fails: (name: string) => boolean = () => false) {
    const log: string[] = [];
    wasm.compilesAside = true;
    vi.spyOn(wasm, "compile").mockImplementation((name, source) => {
      log.push("start");
      return new Promise((resolve, reject) =>
        setTimeout(() => {
          log.push("end");
          if (fails(name)) reject(new CompileError(`no ${name}`));
          else resolve(own(name, source));
        }, 1),
      );
    });
    return log;
  }
  /** Kernels of different shapes, each reading what the one before stored. */
  const steps = (): Tensor[] => {
    const list = [Tensor.ones([2]).contiguous()];
    for (let i = 3; i < 6; i++)
      list.push(
        (list.at(-1) as Tensor)
          .pad([[0, 1]])
          .add(1)
          .contiguous(),
      );
    return list;
  };

  test("starts all kernels before it waits for the first", async () => {
    const log = later();
    const list = steps();
    await Tensor.realize(...list);
    expect(log.join(" ")).toBe("start start start start end end end end");
    expect(await list[3]?.tolist()).toEqual([4, 4, 3, 2, 1]);
  });
  test("a kernel that fails fails in its turn: what came before stays, what comes after is not touched", async () => {
    const list = steps();
    const log = later((name) => name.startsWith("E_4"));
    await expect(Tensor.realize(...list)).rejects.toThrow(/no E_4/);
    // four together, and the one that failed once more
    expect(log.filter((x) => x === "start").length).toBe(5);
    expect(list.map((t) => t.lazydata.base.realized !== undefined)).toEqual([true, true, false, false]);
  });
  test("refuses to be waited for without await, as before", () => {
    later();
    expect(() => Tensor.ones([7]).contiguous().realizeSync()).toThrow(/async/);
  });
  test("runs what one CommandQueue has on several devices", async () => {
    later();
    const there = Tensor.ones([9]).contiguous().to("JS").add(1);
    await runSchedule(createSchedule([there.lazydata]));
    expect(await there.tolist()).toEqual(new Array(9).fill(2));
  });
});

describe("kernels that differ in a constant", () => {
  const kernelOf = (t: Tensor): ScheduleItem => createSchedule([t.lazydata]).at(-1) as ScheduleItem;
  const x = Tensor.empty([64, 48]).realizeSync();
  const works: Record<string, (c: number) => Tensor> = {
    elementwise: (c) => x.mul(c).add(c).exp2(),
    product: (c) => x.matmul(x.T).mul(c),
    softmax: (c) => x.mul(c).softmax(),
    "a sum of what may be nothing": (c) => x.mul(c).sub(x.mul(c)).sum(1),
    variance: (c) => x.add(c).var(0),
  };
  const VALUES = [2.5, 7.25, 1, 0, -1, -0, Number.NaN, Infinity, 0.1];

  test.each(Object.entries(works))("get the list they would have got alone: %s", (_, work) => {
    const renderer = wasm.renderer as Renderer;
    for (const c of VALUES) {
      const { ast } = kernelOf(work(c));
      const alone = toFastKernel(ast, renderer, false);
      for (let round = 0; round < 2; round++) {
        const { opts, uops } = optimized(ast, renderer, false);
        expect(opts).toEqual(alone.opts);
        expect(String(uops)).toBe(String(alone.uops));
      }
    }
  });
  test("are of one structure, unless it is a number that folds, an integer, or the shape differs", () => {
    const of = (t: Tensor): string => astStructure(kernelOf(t).ast).key;
    expect(of(x.mul(2.5))).toBe(of(x.mul(7.25)));
    for (const c of [0, 1, -1, Infinity, Number.NaN]) expect(of(x.mul(c))).not.toBe(of(x.mul(2.5)));
    expect(of(x.cast("int32").mul(5))).not.toBe(of(x.cast("int32").mul(6)));
    expect(of(Tensor.empty([64, 47]).realizeSync().mul(2.5))).not.toBe(of(x.mul(2.5)));
    expect(of(x.add(2.5))).not.toBe(of(x.mul(2.5)));
  });
  test("compute each its own", async () => {
    const three = await Tensor.full([3], 3).contiguous().realize();
    for (const c of [2.5, 7.25]) expect(await three.mul(c).tolist()).toEqual([3 * c, 3 * c, 3 * c]);
  });
});

describe("a new small kernel costs little: what is made on the way is counted", () => {
  const filled = (...shape: number[]): Tensor => Tensor.empty(shape).realizeSync();
  /** Maps and Sets; nodes of the graph and the list. Some more than are made today. */
  const works: Record<string, { build: (n: number) => Tensor; collections: number; nodes: number }> = {
    dot: { build: (n) => filled(n).dot(filled(n)), collections: 130, nodes: 90 },
    elementwise: { build: (n) => filled(n).mul(filled(n)).add(1.5).relu(), collections: 120, nodes: 80 },
    matmul: { build: (n) => filled(4, n).dot(filled(n, 8)), collections: 155, nodes: 200 },
    softmax: { build: (n) => filled(4, n).softmax(), collections: 265, nodes: 400 },
  };
  const counted = (make: () => void): number => {
    const { Map: OwnMap, Set: OwnSet } = globalThis;
    let made = 0;
    globalThis.Map = class<K, V> extends OwnMap<K, V> {
      constructor(entries?: Iterable<readonly [K, V]> | null) {
        super(entries);
        made++;
      }
    } as MapConstructor;
    globalThis.Set = class<T> extends OwnSet<T> {
      constructor(values?: Iterable<T> | null) {
        super(values);
        made++;
      }
    } as SetConstructor;
    try {
      make();
    } finally {
      Object.assign(globalThis, { Map: OwnMap, Set: OwnSet });
    }
    return made;
  };

  test.each(Object.entries(works))("%s", (_, { build, collections, nodes }) => {
    const renderer = wasm.renderer as Renderer;
    const make = ({ lazydata }: Tensor): void => {
      const [item] = createSchedule([lazydata]);
      const kernel = optimized((item as ScheduleItem).ast, renderer, false);
      renderer.render(kernel.name, kernel.uops);
    };
    withEnv({ SPEC: 0 }, () => {
      make(build(99)); // what is made once for the process
      for (const n of [100, 101, 102, 104]) {
        const t = build(n);
        const first = nextUOpId();
        const made = counted(() => make(t));
        expect(made, `Maps and Sets for ${n}`).toBeLessThanOrEqual(collections);
        expect(nextUOpId() - first, `nodes for ${n}`).toBeLessThanOrEqual(nodes);
      }
    });
  });
});
