// OptOps change how a kernel runs and never what it computes: every single one that fits, and random lists of
// them, on kernels with several axes, fused reduces and padded reads, give what the empty list gives, on JS,
// WASM and CLANG. One that does not fit is refused.

import {
  ArgumentError,
  createSchedule,
  type DeviceError,
  dtypes,
  runSchedule,
  type ScheduleItem,
  Tensor,
} from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import { prepare } from "../../../src/codegen/kernel.ts";
import { type OptOp, type OptOpName, showOpts } from "../../../src/codegen/opt/opts.ts";
import type { Value } from "../../../src/dtype.ts";
import { clangRenderer } from "../../../src/render/languages.ts";
import { Device } from "../../../src/runtime/registry.ts";
import { expectValues, tensor } from "../../device/harness.ts";
import { makeProgram } from "../../device/program.ts";
import { Random } from "../../shape/random.ts";
import {
  gridAsLoops,
  gridTarget,
  lastItem,
  lowered,
  opsIn,
  opt,
  rendererOf,
  runKernel,
  trips,
  valuesOf,
} from "../kernels.ts";

const { int32, float32 } = dtypes;
const DEVICES = ["JS", "WASM", "CLANG"] as const;
type DeviceName = (typeof DEVICES)[number];
const closed = new Map<DeviceName, string>();
beforeAll(async () => {
  for (const d of DEVICES) await Device.open(d).catch((e: DeviceError) => closed.set(d, e.message));
});
/** A C compiler takes its time: only one list of so many is tried there. */
const EVERY = { JS: 1, WASM: 1, CLANG: 4 } as const;
/** Vectors of four in C too, whatever the processor has: the axes are short. */
const TARGETS = {
  JS: undefined,
  WASM: undefined,
  CLANG: clangRenderer({ widths: [4], accumulators: 12, registers: 16, fused: true }),
};

const ints = (device: string, shape: readonly number[], seed: number): Tensor => {
  const random = new Random(seed);
  const n = shape.reduce((a, b) => a * b, 1);
  const values: Value[] = Array.from({ length: n }, () => random.int(-9, 9));
  return tensor(device, int32, values, shape);
};
const floats = (device: string, shape: readonly number[], seed: number): Tensor =>
  ints(device, shape, seed).cast(float32);

interface Case {
  readonly make: (device: string) => Tensor;
  readonly outputs: readonly number[];
  readonly reduces: readonly number[];
  /** a float sum in another order */
  readonly ulps?: number;
  /** the reduce axes whose values a later loop needs again, and how many those are */
  readonly stages?: Readonly<Record<number, number>>;
  /** the output axes that operands of its sum do not depend on */
  readonly packs?: readonly number[];
  /** it is the same value in all of them */
  readonly oneValue?: boolean;
}
const CASES: Readonly<Record<string, Case>> = {
  "a transposed sum of two": {
    make: (d) => ints(d, [6, 4], 1).T.add(ints(d, [4, 6], 2)),
    outputs: [4, 6],
    reduces: [],
  },
  "a matmul": {
    make: (d) => ints(d, [8, 12], 3).dot(ints(d, [12, 6], 4)),
    outputs: [8, 6],
    reduces: [12],
    packs: [0, 1],
  },
  "a product of three with a batch": {
    make: (d) =>
      ints(d, [2, 3, 8], 21)
        .matmul(ints(d, [8, 6], 22))
        .mul(ints(d, [6], 23)),
    outputs: [6, 6],
    reduces: [8],
    packs: [0, 1],
  },
  "a convolution": {
    make: (d) => ints(d, [2, 3, 6, 7], 24).conv2d(ints(d, [4, 3, 3, 2], 25)),
    outputs: [2, 4, 4, 6],
    reduces: [3, 3, 2],
    packs: [0, 1, 2, 3],
  },
  "a sum over two axes that are not neighbours": {
    make: (d) => ints(d, [2, 6, 4], 5).sum([0, 2]),
    outputs: [6],
    reduces: [2, 4],
  },
  "a padded read": {
    make: (d) =>
      ints(d, [5, 4], 6)
        .pad([
          [1, 2],
          [0, 2],
        ])
        .mul(3)
        .add(1),
    outputs: [8, 6],
    reduces: [],
  },
  "a sum of a padded and flipped read": {
    make: (d) =>
      ints(d, [3, 4], 7)
        .pad([
          [1, 2],
          [2, 2],
        ])
        .flip(1)
        .sum(1),
    outputs: [6],
    reduces: [8],
  },
  "a convolution by hand": {
    // windows of 3 over a padded row: one read overlaps the next
    make: (d) => {
      const x = ints(d, [2, 8], 8).pad([null, [1, 1]]);
      const taps = [0, 1, 2].map((k) => x.shrink([null, [k, k + 8]]).mul(k + 2));
      return taps.reduce((a, b) => a.add(b)).max(0);
    },
    outputs: [8],
    reduces: [2],
  },
  "a softmax, which is one kernel": {
    make: (d) => floats(d, [4, 6], 9).softmax(),
    outputs: [4, 6],
    reduces: [6, 6],
    ulps: 4,
    stages: { 3: 6 },
  },
  "a softmax over the middle axis": {
    make: (d) => floats(d, [2, 6, 4], 12).softmax(1),
    outputs: [2, 6, 4],
    reduces: [6, 6],
    ulps: 4,
    stages: { 4: 6 },
  },
  "a softmax over two axes that are not neighbours": {
    make: (d) => {
      const e = floats(d, [2, 3, 4], 13).mul(0.1).exp();
      return e.div(e.sum([0, 2], true));
    },
    outputs: [2, 3, 4],
    reduces: [2, 4],
    ulps: 4,
    stages: { 3: 8 },
  },
  "a value that two sums and the result need": {
    make: (d) => {
      const e = floats(d, [3, 5], 14).mul(0.1).exp();
      const centred = e.sub(e.mean(1, true));
      return centred.mul(centred.square().sum(1, true).add(1).rsqrt());
    },
    outputs: [3, 5],
    reduces: [5, 5],
    ulps: 64,
    stages: { 2: 5, 3: 5 },
  },
  "a sum of what another sum divides": {
    make: (d) => {
      const e = floats(d, [4, 6], 15).mul(0.1).exp2();
      return e.mul(e.div(e.sum(1, true)).log2()).sum(1);
    },
    outputs: [4],
    reduces: [6, 6],
    ulps: 64,
    stages: { 1: 6, 2: 6 },
    oneValue: true,
  },
  "a variance, a reduce inside a reduce": {
    make: (d) => floats(d, [4, 8], 10).var(1),
    outputs: [4],
    reduces: [8, 8],
    ulps: 8,
  },
  "a reduce to one element": { make: (d) => ints(d, [12], 11).max(), outputs: [], reduces: [12] },
};

/** Whether a list fits, by the book: what is left of each axis, and which kind takes which op. */
function fits(
  opts: readonly OptOp[],
  { outputs, reduces, stages = {}, packs = [], oneValue }: Case,
): boolean {
  const sizes = [...outputs, ...reduces];
  const staged = opts.flatMap((o) => (o.op === "KEEP" || o.op === "PACK" ? [o.axis] : []));
  if ((oneValue ? Math.min(1, staged.length) : new Set(staged).size) < staged.length) return false;
  if (opts.filter((o) => o.op === "THREAD").length > 1) return false;
  const left = [...sizes];
  const fit = opts.every((o) => {
    const { op } = o;
    const [axis = -1, amount = 1] = valuesOf(o);
    const isOutput = axis < outputs.length;
    if (op === "SWAP") return isOutput && amount >= 0 && amount < outputs.length;
    const size = left[axis];
    if (op === "KEEP") return stages[axis] === amount;
    if (op === "PACK") return packs.includes(axis);
    const wantsOutput = op !== "UNROLL" && op !== "GROUP";
    if (size === undefined || isOutput !== wantsOutput || amount < 1) return false;
    if (op === "THREAD") return true;
    if (op === "PADTO") {
      if (size !== sizes[axis] || amount > size) return false;
      left[axis] = Math.ceil(size / amount) * amount;
      return true;
    }
    if (size % amount !== 0) return false;
    left[axis] = size / amount;
    return true;
  });
  // what is written out whole has no loop to pack for
  const loops = left.slice(outputs.length).some((n) => n > 1);
  return fit && (loops || !staged.some((axis) => packs.includes(axis)));
}

/** Every op on every axis with every amount that could make sense, fitting or not. */
function singles({ outputs, reduces }: Case): OptOp[] {
  const sizes = [...outputs, ...reduces];
  const names = ["SWAP", "UPCAST", "UNROLL", "GROUP", "LOCAL", "THREAD", "PADTO", "KEEP", "PACK"] as const;
  return sizes.flatMap((size, axis) =>
    names.flatMap((op) => {
      const amounts =
        op === "SWAP" ? outputs.map((_, i) => i) : Array.from({ length: size + 6 }, (_, i) => i + 1);
      return amounts.map((amount) => opt(op, axis, amount));
    }),
  );
}

function randomList(r: Random, { outputs, reduces, stages = {}, packs = [] }: Case): OptOp[] {
  const axes = outputs.length + reduces.length;
  return Array.from({ length: r.int(2, 4) }, () => {
    const axis = r.int(0, axes - 1);
    const elements = stages[axis];
    if (elements !== undefined && r.chance(50)) return opt("KEEP", axis, elements);
    if (packs.includes(axis) && r.chance(30)) return opt("PACK", axis);
    if (outputs.length > 1 && r.chance(25))
      return opt("SWAP", r.int(0, outputs.length - 1), r.int(0, outputs.length - 1));
    return opt(
      axis < outputs.length
        ? r.pick(["UPCAST", "UPCAST", "LOCAL", "THREAD", "PADTO"] as const)
        : r.pick(["UNROLL", "GROUP"] as const),
      axis,
      r.pick([2, 2, 3, 4]),
    );
  });
}

describe.each(DEVICES)("%s", (device) => {
  for (const [name, c] of Object.entries(CASES)) {
    test(name, async ({ skip }) => {
      skip(closed.has(device), closed.get(device));
      const target = TARGETS[device];
      const item = await lastItem(c.make(device));
      const plain = lowered(item);
      const sizes = [...c.outputs, ...c.reduces];
      expect(plain.name.replace(/n\d+$/, "")).toBe([c.reduces.length > 0 ? "r" : "E", ...sizes].join("_"));
      const want = await runKernel(item, plain);
      expect(new Set(want).size, "the values differ").toBeGreaterThan(c.outputs.length === 0 ? 0 : 1);
      const random = new Random(sizes.length * 31 + sizes.reduce((a, b) => a + b, 0));
      const lists = [
        ...singles(c).map((o) => [o]),
        ...Array.from({ length: 40 }, () => randomList(random, c)),
      ];
      let ran = 0;
      for (const [i, opts] of lists.entries()) {
        if (!fits(opts, c)) {
          expect(() => lowered(item, opts), showOpts(opts)).toThrow(ArgumentError);
          continue;
        }
        if (i % EVERY[device] !== 0) continue;
        ran++;
        const kernel = lowered(item, opts, target);
        expect(kernel.opts).toBe(opts);
        const type = item.outputs[0]?.dtype ?? float32;
        const tolerance = c.ulps === undefined ? {} : { ulps: c.ulps };
        expectValues(type, await runKernel(item, kernel), want, `${name} with ${showOpts(opts)}`, tolerance);
      }
      expect(ran, "some lists fit").toBeGreaterThan(device === "CLANG" ? 0 : sizes.length);
    });
  }
});

/** What fits; a list that does not is refused and no more. */
function attempt<T>(f: () => T): T | undefined {
  try {
    return f();
  } catch (e) {
    if (e instanceof ArgumentError) return undefined;
    throw e;
  }
}

describe("random kernels", () => {
  /** A list of OptOps out of the sizes in a kernel's name; whether it fits is not known. */
  const guess = (r: Random, name: string): OptOp[] => {
    const sizes = name.replace(/n\d+$/, "").split("_").slice(1).map(Number);
    return Array.from({ length: r.int(1, 3) }, () => {
      const axis = r.int(0, sizes.length - 1);
      const factors = [2, 3, 4, 5, 6, 8].filter((f) => (sizes[axis] as number) % f === 0);
      return opt(
        r.pick(["UPCAST", "UPCAST", "UNROLL", "GROUP", "LOCAL", "THREAD", "PADTO", "SWAP"]),
        axis,
        factors.length === 0 ? 1 : r.pick(factors),
      );
    });
  };
  test.for(DEVICES)("on %s, and on JS as a grid", async (device, { skip }) => {
    skip(closed.has(device), closed.get(device));
    let ran = 0;
    for (let seed = 1; seed <= 250; seed += EVERY[device] ** 2) {
      const program = await makeProgram(seed + 5000, device, 5 + (seed % 16));
      const r = new Random(seed);
      for (const item of createSchedule([(program.nodes.at(-1) as { t: Tensor }).t.lazydata])) {
        if (item.ast[0]?.op === "STORE" && item.outputs[0]?.size !== 0) {
          const plain = lowered(item);
          const want = await runKernel(item, plain);
          for (let k = 0; k < 5; k++) {
            const opts = guess(r, plain.name);
            const kernels = attempt(() => [
              lowered(item, opts, TARGETS[device]),
              ...(device === "JS" ? [gridAsLoops(lowered(item, opts, gridTarget()))] : []),
            ]);
            for (const kernel of kernels ?? []) {
              ran++;
              const what = `${program.text()}${plain.name} with ${showOpts(opts)}`;
              const type = item.outputs[0]?.dtype ?? float32;
              expectValues(type, await runKernel(item, kernel), want, what, { zeros: "equal" });
            }
          }
        }
        await runSchedule([item]);
      }
    }
    expect(ran).toBeGreaterThan(100 / EVERY[device]);
  });
});

describe("KEEP on random kernels", () => {
  /** Sums of something costly over some axes, which come back to what they are sums of. */
  const program = (r: Random, device: string): Tensor => {
    const shape = [r.int(1, 3), r.int(2, 9), r.int(2, 8)];
    const axes = r.pick([[0], [1], [2], [1, 2], [0, 2], [0, 1, 2]]);
    let t = floats(device, shape, r.int(1, 1000)).mul(0.1);
    const costly = [
      (x: Tensor) => x.exp2(),
      (x: Tensor) => x.square().add(1).log2(),
      (x: Tensor) => x.sin().exp2(),
    ];
    for (let i = 0; i < r.int(1, 2); i++) {
      const e = r.pick(costly)(t);
      const total = r.chance(50) ? e.sum(axes, true) : e.square().max(axes, true);
      t = r.pick([() => e.sub(total), () => e.div(total.add(3)), () => e.mul(e.sub(total)).add(t)])();
    }
    const end = r.int(0, 3);
    return end === 0 ? t.sum(axes) : end === 1 ? t.pad([null, [1, 2], null]).add(1) : t;
  };
  test.for(DEVICES)("on %s, and on JS as a grid", async (device, { skip }) => {
    skip(closed.has(device), closed.get(device));
    let ran = 0;
    for (let seed = 1; seed <= 120; seed += EVERY[device] ** 2) {
      const r = new Random(seed);
      const item = await lastItem(program(r, device));
      const target = TARGETS[device] ?? rendererOf(device);
      const { axes, keepable } = prepare(item.ast, [], target);
      const want = await runKernel(item, lowered(item));
      for (let k = 0; k < 4; k++) {
        const { producer, elements } = keepable.length === 0 ? {} : r.pick(keepable);
        if (producer === undefined || elements === undefined) break;
        const others = Array.from({ length: r.int(0, 3) }, () => {
          const { of, size, kind } = r.pick(axes);
          const factors = [2, 3, 4].filter((f) => Number(size) % f === 0);
          const op =
            kind === "reduce" ? (["UNROLL", "GROUP"] as const) : (["UPCAST", "LOCAL", "THREAD"] as const);
          return opt(r.pick(op), of, factors.length === 0 ? 1 : r.pick(factors));
        });
        const opts = [...others, opt("KEEP", producer.axis, elements)];
        const kernels = attempt(() => [
          lowered(item, opts, target),
          ...(device === "JS" ? [gridAsLoops(lowered(item, opts, gridTarget()))] : []),
        ]);
        for (const kernel of kernels ?? []) {
          ran++;
          const what = `seed ${seed}: ${kernel.name} with ${showOpts(opts)}`;
          expectValues(float32, await runKernel(item, kernel), want, what, { ulps: 64 });
        }
      }
    }
    expect(ran).toBeGreaterThan(device === "CLANG" ? 5 : 100);
  });
});

describe("what they do", () => {
  const matmul = () => lastItem((CASES["a matmul"] as Case).make("JS"));

  test("UPCAST stores neighbours side by side and shortens the loop", async () => {
    const kernel = lowered(await matmul(), [opt("UPCAST", 0, 4), opt("UPCAST", 1, 2)]);
    expect(opsIn(kernel, "STORE")).toHaveLength(8);
    expect(trips(kernel)).toEqual([2, 3, 12]);
    // 4 rows and 2 columns are loaded once for 8 products
    expect(opsIn(kernel, "LOAD")).toHaveLength(6);
    expect(opsIn(kernel, "DEFINE_ACC")).toHaveLength(8);
  });
  test("UNROLL shortens a reduce, the whole of it leaves no loop", async () => {
    const item = await matmul();
    expect(trips(lowered(item, [opt("UNROLL", 2, 4)]))).toEqual([8, 6, 3]);
    const flat = lowered(item, [opt("UNROLL", 2, 12)]);
    expect(trips(flat)).toEqual([8, 6]);
    expect(opsIn(flat, "DEFINE_ACC")).toHaveLength(0);
    expect(opsIn(flat, "LOAD")).toHaveLength(24);
  });
  test("GROUP keeps an accumulator a lane and combines them after the loop", async () => {
    const kernel = lowered(await matmul(), [opt("GROUP", 2, 4)]);
    expect(trips(kernel)).toEqual([8, 6, 3]);
    expect(opsIn(kernel, "DEFINE_ACC")).toHaveLength(4);
  });
  test("THREAD makes a loop the grid", async () => {
    const kernel = lowered(await matmul(), [opt("THREAD", 0)]);
    expect(kernel.globalSize).toEqual([8]);
    expect(trips(kernel)).toEqual([6, 12]);
    expect(lowered(await matmul(), [opt("THREAD", 1)]).globalSize).toEqual([6]);
  });
  test("four lanes that lie side by side are one vector on WASM", async () => {
    const types = (kernel: ReturnType<typeof lowered>, op: "LOAD" | "STORE" | "DEFINE_ACC") =>
      opsIn(kernel, op).map((u) => ((op === "STORE" ? u.srcs[2] : u) as { dtype: unknown }).dtype);
    const x = floats("WASM", [8, 12], 3);
    const y = floats("WASM", [12, 8], 4);
    // rows times columns: along the columns of y both y and the result are side by side
    const wide = lowered(await lastItem(x.dot(y)), [opt("UPCAST", 1, 8), opt("UPCAST", 0, 2)]);
    const four = float32.vec(4);
    expect(types(wide, "STORE")).toEqual([four, four, four, four]);
    expect(types(wide, "DEFINE_ACC")).toEqual([four, four, four, four]);
    expect(new Set(types(wide, "LOAD"))).toEqual(new Set([four, float32]));
    // rows times rows: only along the sum
    const rows = lowered(await lastItem(x.dot(floats("WASM", [8, 12], 5).T)), [opt("GROUP", 2, 4)]);
    expect(types(rows, "DEFINE_ACC")).toEqual([four]);
    expect(types(rows, "STORE")).toEqual([float32]);
    // doubles have no vectors here: lane by lane
    const doubles = lowered(await lastItem(x.cast("float64").dot(y.cast("float64"))), [opt("UPCAST", 1, 4)]);
    expect(new Set(types(doubles, "DEFINE_ACC"))).toEqual(new Set([dtypes.float64]));
  });
  test("SWAP exchanges loops", async () => {
    const item = await matmul();
    expect(trips(lowered(item, [opt("SWAP", 0, 1)]))).toEqual([6, 8, 12]);
    expect(trips(lowered(item, [opt("SWAP", 0, 1), opt("SWAP", 1, 0)]))).toEqual([8, 6, 12]);
  });
  test("KEEP computes what two loops need once, into an array that the later one reads", async () => {
    const item = await lastItem(floats("JS", [4, 6], 9).softmax());
    const count = (kernel: ReturnType<typeof lowered>, op: string): number =>
      opsIn(kernel, "ALU").filter((u) => u.fn === op).length;
    const [plain, staged] = [lowered(item), lowered(item, [opt("KEEP", 3, 6)])];
    expect([count(plain, "EXP2"), count(staged, "EXP2")]).toEqual([2, 1]);
    expect([trips(plain), trips(staged)]).toEqual([
      [4, 6, 6, 6],
      [4, 6, 6, 6],
    ]);
    const [array] = opsIn(staged, "DEFINE_LOCAL");
    expect(array?.arg).toEqual(["temp0", 6]);
    expect(opsIn(staged, "STORE").filter((u) => u.srcs[0] === array)).toHaveLength(1);
    expect(opsIn(staged, "LOAD").filter((u) => u.srcs[0] === array)).toHaveLength(1);
    // the rows of a tile have parts of their own, and a workgroup's members too
    const tile = lowered(item, [opt("KEEP", 3, 6), opt("UPCAST", 0, 2), opt("LOCAL", 0, 2)], gridTarget());
    expect(opsIn(tile, "DEFINE_LOCAL")[0]?.arg).toEqual(["temp0", 24]);
  });
  test("KEEP is refused where there is no room", async () => {
    const item = await lastItem(floats("JS", [4, 6], 9).softmax());
    const target = (sharedMax: number) => ({ ...gridTarget(), sharedMax });
    expect(() => lowered(item, [opt("KEEP", 3, 6)], target(64))).not.toThrow();
    expect(() => lowered(item, [opt("KEEP", 3, 6)], target(63))).toThrow(/room for 63 bytes/);
    expect(() => lowered(item, [opt("KEEP", 3, 6), opt("UPCAST", 0, 4)], target(64))).toThrow(ArgumentError);
  });
  test("KEEP has nothing to keep where all that is shared is cheap", async () => {
    for (const t of [floats("JS", [4, 8], 10).var(1), floats("JS", [4, 8], 10).logSoftmax()]) {
      const item = await lastItem(t);
      for (const axis of [1, 2, 3])
        expect(() => lowered(item, [opt("KEEP", axis, 8)])).toThrow(ArgumentError);
    }
  });
  test("LOCAL is an inner loop where there is no grid", async () => {
    expect(trips(lowered(await matmul(), [opt("LOCAL", 0, 4)]))).toEqual([2, 6, 4, 12]);
  });
  test("a list is shown as it is written", () => {
    expect(showOpts([opt("UPCAST", 0, 4), opt("SWAP", 0, 1)])).toBe("UPCAST(0, lanes=4) SWAP(0, with=1)");
  });

  test.each([
    ["an axis that is not there", opt("UPCAST", 3, 2)],
    ["a reduce axis that is not there", opt("UNROLL", 7, 1)],
    ["a negative axis", opt("LOCAL", -1, 2)],
    ["no divisor", opt("UPCAST", 0, 3)],
    ["zero", opt("UPCAST", 0, 0)],
    ["a negative amount", opt("UNROLL", 2, -2)],
    ["a fraction", opt("UPCAST", 0, 0.5)],
    ["more than there is", opt("LOCAL", 1, 12)],
    ["UPCAST of a reduce axis", opt("UPCAST", 2, 2)],
    ["LOCAL of a reduce axis", opt("LOCAL", 2, 2)],
    ["UNROLL of an output axis", opt("UNROLL", 0, 2)],
    ["SWAP with no axis at all", opt("SWAP", 0, 3)],
    ["SWAP of a reduce axis", opt("SWAP", 2, 0)],
    ["an op that is not there", opt("TILE" as OptOpName, 0, 2)],
    ["an op named like a property of objects", opt("toString" as OptOpName, 0, 2)],
  ])("%s is refused", async (_, o) => {
    const item = await matmul();
    expect(() => lowered(item, [o])).toThrow(ArgumentError);
    expect(() => lowered(item, [o])).toThrow(showOpts([o]));
  });
  test("more lanes than a padded axis has elements are refused", async () => {
    const item = await lastItem(ints("JS", [6, 1], 1).add(ints("JS", [6, 1], 2)));
    const padded = [opt("PADTO", 0, 4), opt("UPCAST", 0, 4)];
    expect(lowered(item, padded).opts).toBe(padded);
    expect(() => lowered(item, [...padded, opt("UPCAST", 0, 2)])).toThrow(ArgumentError);
  });
  test("more lanes than could ever be written out are refused", () => {
    const item = createSchedule([Tensor.empty([33_000, 33_000]).T.add(1).lazydata]).at(-1) as ScheduleItem;
    const all = [0, 1].map((axis) => opt("UPCAST", axis, 33_000));
    expect(() => lowered(item, all)).toThrow(ArgumentError);
    expect(() => lowered(item, all)).toThrow("use smaller amounts");
  });
  test("what is left is what counts", async () => {
    const item = await matmul();
    expect(() => lowered(item, [opt("UPCAST", 0, 4), opt("LOCAL", 0, 2)])).not.toThrow();
    expect(() => lowered(item, [opt("UPCAST", 0, 4), opt("LOCAL", 0, 4)])).toThrow(ArgumentError);
  });
});
