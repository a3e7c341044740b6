// scan: values and gradients are those of the unrolled loop, bit for bit where the order of operations is the
// same; kernels do not depend on the number of steps; it works in a jitted function, nested, with random
// numbers; what it cannot do it refuses by name.

import {
  clearKernelCache,
  createSchedule,
  Device,
  nn,
  type ScanOptions,
  scan,
  Tensor,
  TinyJit,
  Variable,
  withEnv,
} from "gradloom";
import { describe, expect, test } from "vitest";
import type { Sint } from "../../src/shape/symbolic.ts";
import { repeated } from "../../src/tensor/scan.ts";
import { deviceTest } from "../device/harness.ts";
import { numbers } from "../nn/close.ts";

type Body = (carry: readonly Tensor[], x: Tensor) => readonly [readonly Tensor[], Tensor];

/** The same as `scan`, by a loop of JavaScript. */
function unrolled(body: Body, init: readonly Tensor[], xs: Tensor, { reverse = false }: ScanOptions = {}) {
  const n = xs.shape[0] as number;
  let carry = init;
  const ys: Tensor[] = [];
  for (let i = 0; i < n; i++) {
    const at = reverse ? n - 1 - i : i;
    const [next, y] = body(carry, xs.select(0, at));
    carry = next;
    ys[at] = y;
  }
  return [carry, Tensor.stack(ys)] as const;
}

const [T, B, I, H] = [5, 3, 4, 6];
/** Parameters, first state and inputs, the same for every call. */
function inputs(device = "WASM", length = T) {
  const draw = numbers(3);
  const make = (...shape: number[]): Tensor =>
    nn.parameter(new Tensor(draw(shape.reduce((a, b) => a * b)), { device }).reshape(shape));
  return { u: make(I, H), w: make(H, H), b: make(H), h: make(B, H), c: make(B, H), x: make(length, B, I) };
}
type Inputs = ReturnType<typeof inputs>;

/** Two carries, weights from outside, an output of its own: matmuls, elementwise ops, a reduction. */
const cell =
  ({ u, w, b }: Inputs): Body =>
  ([h, c], x) => {
    const [hidden, memory] = [h as Tensor, c as Tensor];
    const pre = x.matmul(u).add(hidden.matmul(w)).add(b);
    const next = pre.tanh().mul(memory.sigmoid());
    const kept = memory.mul(0.5).add(next.sub(next.mean(-1, true)));
    return [[next, kept], next.mul(x.sum(-1, true))];
  };

type Loop = (
  body: Body,
  init: readonly Tensor[],
  xs: Tensor,
  options?: ScanOptions,
) => readonly [readonly Tensor[], Tensor];

/** The loss and all gradients. */
function trained(loop: Loop, given: Inputs, options?: ScanOptions): Tensor[] {
  for (const t of Object.values(given)) t.grad = undefined;
  const [[h, c], ys] = loop(cell(given), [given.h, given.c], given.x, options);
  const loss = ys
    .square()
    .sum()
    .add((h as Tensor).exp().mean())
    .add((c as Tensor).square().mean());
  loss.backward();
  return [loss, ...Object.values(given).map((t) => t.grad as Tensor)];
}
const values = async (ts: readonly Tensor[]): Promise<unknown[]> => {
  await Tensor.realize(...ts);
  return Promise.all(ts.map((t) => t.tolist()));
};
const flat = (x: unknown): number[] => (Array.isArray(x) ? x.flatMap(flat) : [Number(x)]);
/** How far numbers are from those expected, relative to the largest. */
function distance(got: unknown, want: unknown): number {
  const [a, b] = [flat(got), flat(want)];
  expect(a.length).toBe(b.length);
  const size = Math.max(1, ...b.map(Math.abs));
  return Math.max(...a.map((x, i) => Math.abs(x - (b[i] as number)))) / size;
}

describe("values and gradients of the unrolled loop", () => {
  deviceTest("forward and backward, in both directions, saved or computed again", async (device) => {
    for (const options of [{}, { reverse: true, checkpoint: true }]) {
      const given = inputs(device);
      const got = await values(trained(scan as Loop, given, options));
      const want = await values(trained(unrolled, given, options));
      got.forEach((g, i) => void expect(distance(g, want[i]), `result ${i}`).toBeLessThan(1e-5));
    }
  });
  test("sums in the same order are the same bits", async () => {
    const given = inputs();
    const [w, h] = [given.x.select(0, 0).detach(), given.x.select(0, 1).detach()].map(nn.parameter) as [
      Tensor,
      Tensor,
    ];
    const body: Body = ([s], x) => [[(s as Tensor).mul(w).add(x.tanh())], (s as Tensor).mul(x)];
    const run = async (loop: Loop) => {
      w.grad = h.grad = given.x.grad = undefined;
      const [[last], ys] = loop(body, [h], given.x);
      (last as Tensor).square().sum().add(ys.sum()).backward();
      return values([last as Tensor, ys, ...[w, h, given.x].map((t) => t.grad as unknown as Tensor)]);
    };
    expect(await run(scan as Loop)).toEqual(await run(unrolled));
  });
  test("trees of tensors, integer rows, outputs that are undefined, a length without rows", async () => {
    const table = new Tensor([[1.5], [2], [4]]);
    const [{ total }, out] = scan(
      ({ total, n }: { total: Tensor; n: Tensor }, { id, scale }: { id: Tensor; scale: Tensor }) => [
        { total: total.add(table.indexSelect(0, id).mul(scale)), n: n.add(1) },
        [n, { id: id.mul(10) }] as const,
      ],
      { total: Tensor.zeros(1, 1), n: new Tensor([7]) },
      { id: new Tensor([[0], [2], [1]]), scale: new Tensor([1, 10, 100.5]) },
    );
    expect(await total.tolist()).toEqual([[242.5]]);
    expect(await out[0].tolist()).toEqual([[7], [8], [9]]);
    expect(await out[1].id.tolist()).toEqual([[0], [20], [10]]);
    const [count, nothing] = scan((n: Tensor) => [n.mul(2), undefined], new Tensor([1]), undefined, {
      length: 10,
    });
    expect([await count.tolist(), nothing]).toEqual([[1024], undefined]);
    const one = scan((n: Tensor, x: Tensor) => [n.add(x), x], new Tensor([1]), new Tensor([[5]]));
    expect([await one[0].tolist(), await one[1].tolist()]).toEqual([[6], [[5]]]);
  });
  test("one value as two outputs, and as a carry and an output", async () => {
    const [last, [y, again, sums]] = scan(
      (sum: Tensor, x: Tensor) => {
        const y = x.mul(3);
        const next = sum.add(y);
        return [next, [y, y, next]] as const;
      },
      new Tensor([0]),
      new Tensor([[1], [2], [3]]),
    );
    expect([await y.tolist(), await again.tolist()]).toEqual([
      [[3], [6], [9]],
      [[3], [6], [9]],
    ]);
    expect([await sums.tolist(), await last.tolist()]).toEqual([[[3], [9], [18]], [18]]);
  });
  test("rows of views: transposed, flipped, expanded, cut, of constants", async () => {
    const x = Tensor.arange(24).cast("float32").reshape(2, 3, 4);
    const sum = (xs: Tensor) =>
      scan((s: Tensor, r: Tensor) => [s.add(r), s.mul(r)], xs.select(0, 0).mul(0), xs);
    const loop = (xs: Tensor) =>
      unrolled(([s], r) => [[(s as Tensor).add(r)], (s as Tensor).mul(r)], [xs.select(0, 0).mul(0)], xs);
    const stored = await x.clone().realize();
    for (const xs of [x, stored]) {
      for (const seen of [
        xs.permute(2, 0, 1),
        xs.flip(1).transpose(0, 1),
        xs
          .shrink([
            [0, 2],
            [1, 3],
            [1, 4],
          ])
          .transpose(0, 2),
        xs.unsqueeze(0).expand(3, 2, 3, 4),
        xs.pad([
          [1, 0],
          [0, 0],
          [0, 1],
        ]),
        Tensor.ones(3, 2).mul(xs.sum()),
        Tensor.full([3, 2], 2.5),
        Tensor.full([3, 2], 2.5).pad([
          [2, 1],
          [0, 0],
        ]),
      ]) {
        const [s, ys] = sum(seen);
        const [[want], wantYs] = loop(seen);
        expect(await s.tolist()).toEqual(await (want as Tensor).tolist());
        expect(await ys.tolist()).toEqual(await wantYs.tolist());
      }
    }
  });
  test("every type of carry", async () => {
    for (const dtype of ["float16", "bfloat16", "float64", "int64", "uint8"] as const) {
      const x = new Tensor([
        [1, 0],
        [1, 1],
        [0, 1],
      ]).cast(dtype);
      const [s, ys] = scan((s: Tensor, r: Tensor) => [s.add(s).add(r), s], Tensor.zeros([2], { dtype }), x);
      expect([flat(await s.tolist()), flat(await ys.tolist())]).toEqual([
        [6, 3],
        [0, 0, 1, 0, 3, 1],
      ]);
    }
  });
  test("without fusion, and without optimisation", async () => {
    const run = () => values(trained(scan as Loop, inputs("WASM", 3)));
    const want = await run();
    for (const settings of [{ FUSE: 0 }, { NOOPT: 1 }])
      expect(distance(await withEnv(settings, run), want)).toBeLessThan(1e-5);
  });
  test("an assign to what the body reads waits for the scan", async () => {
    const w = await new Tensor([2.5, 3]).contiguous().realize();
    const [s] = scan(
      (s: Tensor, x: Tensor) => [s.mul(w).add(x), undefined],
      Tensor.ones(2),
      new Tensor([
        [1, 1],
        [2, 2],
      ]),
    );
    const [t] = scan(
      (s: Tensor, x: Tensor) => [s.mul(w).add(x), undefined],
      Tensor.ones(2),
      new Tensor([[0, 0]]),
    );
    w.assign(w.add(t));
    expect(await w.tolist()).toEqual([5, 6]);
    expect(await s.tolist()).toEqual([10.75, 14]);
  });
  test("carries that are passed on, swapped or constant", async () => {
    const [a, b, c] = [new Tensor([1, 2]), new Tensor([3, 4]), new Tensor([5, 6])];
    const [[x, y, z], ys] = scan(
      ([a, b, c], r: Tensor) => [[b, a, Tensor.full([2], 9)], a.mul(0).add(c).add(r)],
      [a, b, c],
      new Tensor([1, 2, 3]),
    );
    expect(await values([x, y, z])).toEqual([
      [3, 4],
      [1, 2],
      [9, 9],
    ]);
    expect(await ys.tolist()).toEqual([
      [6, 7],
      [11, 11],
      [12, 12],
    ]);
  });
  test("what the body computes of outside tensors alone runs once", async () => {
    const w = await Tensor.rand(64, 64).realize();
    const steps = (n: number) => {
      const [h] = scan(
        (h: Tensor) => [h.matmul(w.matmul(w)).tanh(), undefined],
        Tensor.ones(2, 64),
        undefined,
        {
          length: n,
        },
      );
      return createSchedule([h.lazydata]).length;
    };
    expect(steps(11) - steps(10)).toBe(steps(21) - steps(20));
    expect(steps(11) - steps(10)).toBe(1);
  });
});

describe("gradients", () => {
  test("only of what wants one: detached, noGrad, unused outputs and carries", async () => {
    const given = inputs();
    const body = cell(given);
    const [[h]] = Tensor.noGrad(() => scan(body, [given.h, given.c], given.x));
    expect((h as Tensor).requiresGrad).toBe(false);
    const [, ys] = scan(
      ([h, c], x: Tensor) => body([h.detach(), c.detach()], x) as never,
      [given.h, given.c],
      given.x.detach(),
    ) as unknown as [unknown, Tensor];
    ys.sum().backward();
    expect([given.h.grad, given.x.grad].map((g) => g === undefined)).toEqual([false, true]);
    expect(flat(await (given.h.grad as unknown as Tensor).tolist()).every((x) => x === 0)).toBe(true);
  });
  test("results are used twice, and backward runs twice", async () => {
    const w = nn.parameter(new Tensor([2], { dtype: "float32" }));
    const [last, ys] = scan(
      (s: Tensor, x: Tensor) => [s.mul(w).add(x), s],
      new Tensor([1.5]),
      new Tensor([[1], [2], [3.5]]),
    );
    const [a, b] = [last.sum(), last.square().sum().add(ys.sum()).add(ys.square().sum())];
    a.backward();
    const first = flat(await (w.grad as unknown as Tensor).tolist())[0] as number;
    // last = 1.5 w³ + w² + 2 w + 3.5
    expect(first).toBeCloseTo(4.5 * 4 + 2 * 2 + 2, 5);
    b.backward();
    const both = flat(await (w.grad as unknown as Tensor).tolist())[0] as number;
    const z = (w: number): number => {
      let s = 1.5;
      let out = 0;
      for (const x of [1, 2, 3.5]) {
        out += s + s * s;
        s = s * w + x;
      }
      return out + s * s;
    };
    expect(both - first).toBeCloseTo((z(2 + 1e-5) - z(2 - 1e-5)) / 2e-5, 3);
  });
  test("closed over: weights, values computed of them outside, and data of the host", async () => {
    const w = nn.parameter(new Tensor([0.5, 1.5]));
    const run = async (loop: Loop) => {
      w.grad = undefined;
      const outside = w.square().add(1);
      const body: Body = ([s], x) => [
        [(s as Tensor).mul(outside).add(x.mul(new Tensor([1, 2])))],
        (s as Tensor).mul(w),
      ];
      const [[s], ys] = loop(
        body,
        [Tensor.ones(2)],
        new Tensor([
          [1, 2],
          [3, 4],
          [5, 6.5],
        ]),
      );
      (s as Tensor).sum().add(ys.sum()).backward();
      return values([s as Tensor, ys, w.grad as unknown as Tensor]);
    };
    const [got, want] = [await run(scan as Loop), await run(unrolled)];
    expect(distance(got, want)).toBeLessThan(1e-6);
  });
  test("second derivatives", async () => {
    const run = async (loop: Loop) => {
      const [w, x] = [
        nn.parameter(new Tensor([0.5, -0.25])),
        nn.parameter(
          new Tensor([
            [1, 2],
            [0.5, 1],
          ]),
        ),
      ];
      const [[s], ys] = loop(
        ([s], x) => [[(s as Tensor).mul(w).add(x).tanh()], (s as Tensor).mul(x)],
        [Tensor.ones(2)],
        x,
      );
      (s as Tensor).square().sum().add(ys.sum()).backward(undefined, { createGraph: true });
      const [gw, gx] = [w.grad as unknown as Tensor, x.grad as unknown as Tensor];
      w.grad = x.grad = undefined;
      gw.square().sum().add(gx.square().sum()).backward();
      return values([gw, gx, w.grad as unknown as Tensor, x.grad as unknown as Tensor]);
    };
    expect(distance(await run(scan as Loop), await run(unrolled))).toBeLessThan(1e-6);
  });
});

describe("kernels", () => {
  /** How many kernels are compiled for a training step, and how many launched. */
  async function counts(length: number): Promise<{ compiled: number; launched: number }> {
    const given = inputs("JS", length);
    await Tensor.realize(...Object.values(given));
    const structures = new Set<string>();
    const results = trained(scan as Loop, given);
    const items = createSchedule(results.map((t) => t.lazydata));
    for (const item of items) structures.add(item.ast.map((u) => JSON.stringify(shapeless(u))).join());
    return { compiled: structures.size, launched: items.length };
  }
  /** The ops of a kernel, without sizes. */
  const shapeless = (u: { op: string; srcs: readonly unknown[] }): unknown => [
    u.op,
    u.srcs.map((s) => shapeless(s as { op: string; srcs: readonly unknown[] })),
  ];
  test("their number does not depend on the number of steps", async () => {
    const [a, b, c] = [await counts(10), await counts(11), await counts(31)];
    expect([b.compiled, c.compiled]).toEqual([a.compiled, a.compiled]);
    expect(c.launched - b.launched).toBe(20 * (b.launched - a.launched));
  });
  test("a second scan of the same shapes compiles nothing, nor do the loops of one of another length", async () => {
    clearKernelCache();
    const device = await Device.open("WASM");
    const compiled = async (length: number): Promise<number> => {
      const { w, h, x } = inputs("WASM", length);
      await Tensor.realize(w, h, x);
      const { compile } = device;
      let count = 0;
      device.compile = (...args: Parameters<typeof compile>) => {
        count++;
        return compile.apply(device, args);
      };
      const [last] = scan((s: Tensor, r: Tensor) => [s.matmul(w).add(r.sum()).tanh(), undefined], h, x);
      last.sum().backward();
      await values([w.grad as unknown as Tensor, h.grad as unknown as Tensor]);
      device.compile = compile;
      return count;
    };
    expect(await compiled(5)).toBeGreaterThan(3);
    // one kernel knows the length: the contraction over all steps, after the loop
    expect([await compiled(5), await compiled(7)]).toEqual([0, 1]);
  });
});

describe("in a jitted function", () => {
  deviceTest("a training step is captured, and replays as the eager one", async (device) => {
    const losses = async (jitted: boolean): Promise<number[]> => {
      const { x, ...weights } = inputs(device);
      await Tensor.realize(x, ...Object.values(weights));
      const optimizer = new nn.optim.Adam(Object.values(weights), { lr: 0.01 });
      const step = (x: Tensor): Tensor => {
        const [[h], ys] = scan(cell({ ...weights, x }), [weights.h, weights.c], x);
        const loss = ys
          .square()
          .sum()
          .add((h as Tensor).sum())
          .add((weights.c as Tensor).square().sum());
        optimizer.zeroGrad();
        loss.backward();
        return loss;
      };
      const whole = async (x: Tensor): Promise<Tensor> => {
        const loss = step(x);
        await optimizer.step(loss);
        return loss;
      };
      const run = jitted ? new TinyJit(whole) : whole;
      const found: number[] = [];
      for (let i = 0; i < 5; i++) {
        const input = await x
          .detach()
          .mul(1 + i / 10)
          .realize();
        found.push(Number(await (await run(input)).item()));
      }
      if (jitted) expect((run as TinyJit<[Tensor], unknown>).jitCache.length).toBeGreaterThan(2 * T);
      return found;
    };
    expect(distance(await losses(true), await losses(false))).toBeLessThan(1e-6);
  });
  test("random numbers are new at every replay, as in eager calls", async () => {
    const run = async (jitted: boolean): Promise<unknown[]> => {
      Tensor.manualSeed(5);
      const w = await nn.parameter(Tensor.ones(4)).realize();
      const fn = (x: Tensor): Tensor[] => {
        w.grad = undefined;
        const [s, ys] = scan(
          (s: Tensor, r: Tensor) => [s.add(r.mul(w).dropout(0.5, true)), Tensor.rand(2)],
          x.select(0, 0),
          x,
        );
        s.sum().backward();
        return [s, ys, w.grad as unknown as Tensor];
      };
      const call = jitted ? new TinyJit(fn) : async (x: Tensor) => fn(x);
      const found: unknown[] = [];
      for (let i = 0; i < 4; i++)
        found.push(...(await values(await call(await Tensor.ones(3, 4).realize()))));
      return [...found, await Tensor.rand(3).tolist()];
    };
    expect(await run(true)).toEqual(await run(false));
  });
  test("a scan from before the call is not a part of the capture", async () => {
    const [s] = scan(
      (s: Tensor, x: Tensor) => [s.add(x), undefined],
      new Tensor([0]),
      new Tensor([[1], [2], [3]]),
    );
    const step = new TinyJit((x: Tensor) => x.add(s));
    const got: unknown[] = [];
    for (let i = 0; i < 3; i++) got.push(await (await step(await new Tensor([i]).realize())).tolist());
    expect([got, step.jitCache.length]).toEqual([[[6], [7], [8]], 1]);
  });
});

describe("random numbers", () => {
  for (const reverse of [false, true]) {
    test(`each step draws what the unrolled loop draws${reverse ? ", from the end" : ""}`, async () => {
      const draw = async (loop: Loop): Promise<unknown[]> => {
        Tensor.manualSeed(11);
        const w = nn.parameter(Tensor.ones(2, 3));
        const body: Body = ([s], x) => {
          const noisy = x.mul(w).dropout(0.4, true);
          return [[(s as Tensor).add(noisy)], noisy.add(Tensor.rand(2, 3))];
        };
        const [[s], ys] = loop(body, [Tensor.zeros(2, 3)], Tensor.ones(6, 2, 3), { reverse });
        (s as Tensor).sum().add(ys.sum()).backward();
        return [
          ...(await values([s as Tensor, ys, w.grad as unknown as Tensor])),
          await Tensor.rand(2).tolist(),
        ];
      };
      expect(await draw(scan as Loop)).toEqual(await draw(unrolled));
    });
  }
});

describe("nested", () => {
  // 3 steps inside: not a power of 2
  test.each([2, 3])("a scan in a scan of %i steps, with gradients and random numbers", async (steps) => {
    const run = async (nested: boolean): Promise<unknown[]> => {
      Tensor.manualSeed(4);
      const w = nn.parameter(
        new Tensor([
          [0.5, 0.1],
          [-0.3, 0.2],
        ]),
      );
      const x = nn.parameter(
        Tensor.arange(6 * steps)
          .reshape(3, steps, 2)
          .div(10),
      );
      const inner: Body = ([h], r) => {
        const next = (h as Tensor).matmul(w).add(r).tanh();
        return [[next], next.mul(Tensor.rand(2))];
      };
      const loop = (nested ? scan : unrolled) as Loop;
      const outer: Body = ([h], r) => {
        const [[end], ys] = loop(inner, [(h as Tensor).unsqueeze(0)], r.unsqueeze(1));
        return [[(end as Tensor).squeeze(0).mul(w.sum())], ys.square().sum()];
      };
      const [[h], ys] = loop(outer, [Tensor.ones(2)], x);
      (h as Tensor).sum().add(ys.sum()).backward();
      return values([h as Tensor, ys, w.grad as unknown as Tensor, x.grad as unknown as Tensor]);
    };
    const [got, want] = [await run(true), await run(false)];
    expect(distance(got, want)).toBeLessThan(1e-6);
  });
});

describe("refused by name", () => {
  const x = new Tensor([[1], [2]]);
  const cases: readonly [string, () => unknown, RegExp][] = [
    [
      "no steps",
      () => scan((s: Tensor) => [s, undefined], x, undefined, { length: 0 }),
      /0 steps; expected at least 1/,
    ],
    [
      "no rows",
      () => scan((s: Tensor, r: Tensor) => [s, r], x, Tensor.zeros(0, 1)),
      /0 steps; expected at least 1/,
    ],
    ["no length", () => scan((s: Tensor) => [s, undefined], x, undefined), /give the number of steps/],
    [
      "rows of different number",
      () => scan((s: Tensor) => [s, undefined], x, [x, Tensor.ones(3)]),
      /xs\[0\] asks for 2 steps, xs\[1\] for 3/,
    ],
    ["a scalar as rows", () => scan((s: Tensor) => [s, undefined], x, new Tensor(1)), /xs has no dims/],
    [
      "another shape",
      () => scan((s: Tensor) => [s.sum(), undefined], x, x),
      /the carry has shape \[2, 1\], and the body returned shape \[\]/,
    ],
    [
      "another type",
      () => scan((s: Tensor) => [s.cast("float32"), undefined], x, x),
      /the carry is int32, and the body returned float32/,
    ],
    [
      "another structure",
      () => scan((([s]: Tensor[]) => [[s, s], undefined]) as never, [x] as never, x),
      /the carry is a list of 1, and the body returned a list of 2/,
    ],
    [
      "a number",
      () => scan((s: Tensor) => [s, 5 as never], x, x),
      /the output of the body is number 5, expected a tensor/,
    ],
    ["no pair", () => scan((s: Tensor) => s as never, x, x), /expected \[carry, y\]/],
    [
      "an async body",
      () => scan((async (s: Tensor) => [s, s]) as never, x, x),
      /a Promise, expected \[carry, y\]; it must not be async/,
    ],
    [
      "several devices",
      () =>
        scan(
          (s: Tensor, r: Tensor) => [s.add(r), s],
          Tensor.ones(2).shard(["WASM:0", "WASM:1"], 0),
          Tensor.ones(3, 2).shard(["WASM:0", "WASM:1"], 1),
        ),
      /a scan runs on one device/,
    ],
    [
      "two devices",
      () => scan((s: Tensor) => [s, undefined], x, Tensor.ones([2], { device: "JS" })),
      /xs is on JS, init on WASM/,
    ],
    [
      "a symbolic size",
      () =>
        scan((s: Tensor, r: Tensor) => [s, r], x, Tensor.ones(8).shrink([[0, Variable("n", 1, 8).bind(3)]])),
      /must be a plain number/,
    ],
    [
      "a body that assigns",
      () => scan((s: Tensor, r: Tensor) => [x.assign(x.add(r)), s], x, x),
      /the body of a scan changes a tensor from outside/,
    ],
    [
      "a body that assigns to its carry",
      () => scan((s: Tensor, r: Tensor) => [s.assign(s.add(r)), undefined], x, x),
      /assigns to a tensor/,
    ],
    [
      "a body that reads a value",
      () => scan((s: Tensor) => [s.mul(Number(s.sum().itemSync())), undefined], x, x),
      /has no value: the body is traced once/,
    ],
    [
      "a body that moves a value",
      () => scan((s: Tensor) => [s.to("JS").to("WASM"), undefined], x, x),
      /moves a value of the step to another device/,
    ],
  ];
  test.each(cases)("%s", (_, run, message) => void expect(run).toThrow(message));
  test("a tensor that leaves the body", async () => {
    let seen = x;
    scan(
      (s: Tensor) => {
        seen = s.add(1);
        return [seen, undefined];
      },
      x,
      x,
    );
    await expect(seen.tolist()).rejects.toThrow(/tensors of it cannot be used after it/);
  });
});

describe("a loop that counts", () => {
  const count = (x: Tensor, at: Sint): Tensor =>
    Tensor.arange(4).narrow(0, at, 1).mul(10).contiguous().add(x);
  test("the body takes the number of the step, for views; what it makes of it is new in each step", async () => {
    const x = await new Tensor([1, 2]).realize();
    expect(await repeated(x, 4, count).tolist()).toEqual([61, 62]);
    const pick = (s: Tensor, at: Sint): Tensor => s.mul(3).add(s.narrow(0, at, 1));
    expect(await repeated(x, 2, pick).tolist()).toEqual([4 * 3 + 7, 7 * 3 + 7]);
  });
  test("once, never, and inside another loop", async () => {
    const x = await new Tensor([1, 2]).realize();
    expect(await repeated(x, 1, count).tolist()).toEqual([1, 2]);
    expect(await repeated(x, 0, count).tolist()).toEqual([1, 2]);
    const [last] = scan((s: Tensor) => [repeated(s, 3, count), undefined], x, undefined, { length: 3 });
    expect(await last.tolist()).toEqual([91, 92]);
  });
});
