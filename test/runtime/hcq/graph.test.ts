// HCQGraph: a captured run of kernels and copies is submitted as queues that were built once. What lies in
// them, that a run changes words and builds nothing, that queues of several devices wait for each other, and
// that random programs over one to four devices give what plain arrays give, call after call, also
// when the timelines wrap around.

import { Device, resetKernelNames, Tensor, TinyJit, Variable } from "gradloom";
import { beforeAll, describe, expect, test, vi } from "vitest";
import type { WasmDevice } from "../../../src/devices/wasm.ts";
import { HCQGraph } from "../../../src/runtime/hcq/graph.ts";
import { recorded } from "../../devices/wasm/record.ts";

const NAMES = ["WASM:40", "WASM:41", "WASM:42", "WASM:43"] as const;
const open = (name: string): WasmDevice => Device.get(name) as WasmDevice;
beforeAll(async () => {
  for (const name of NAMES) await Device.open(name);
});

describe("what is submitted", () => {
  test("a captured step: one submission, whatever it has in it", async () => {
    resetKernelNames();
    const device = NAMES[0];
    const w = await new Tensor([1, 2, 3, 4], { device }).realize();
    const step = new TinyJit((x: Tensor) => {
      const y = x.mul(w).sum();
      w.assign(w.add(y));
      return y;
    });
    const x = await new Tensor([1, 1, 1, 1], { device }).realize();
    for (let i = 0; i < 2; i++) step.sync(x);
    const dev = open(device);
    const before = dev.timelineValue;
    const lines = await recorded(dev, () => step.sync(x));
    expect(
      lines.map((l) => l.replace(/\d+$/, (n) => (Number(n) >= before - 1 ? `t${Number(n) - before}` : n))),
    ).toEqual([
      `${device} compute:`,
      `  wait ${device}.timeline >= t-1`,
      "  memoryBarrier",
      expect.stringMatching(/^ {2}exec r_\S+ args @0$/),
      expect.stringMatching(/^ {2}exec E_\S+ args @1$/),
      `  signal ${device}.timeline = t0`,
    ]);
    // and the same places again
    const again = await recorded(dev, () => step.sync(x));
    expect(again.map((l) => l.replace(/\d+$/, ""))).toEqual(lines.map((l) => l.replace(/\d+$/, "")));
    expect(await w.tolist()).toEqual([1, 2, 3, 4].map((v) => v + 10 + 50 + 250 + 1250));
  });

  test("two devices: copies have queues of their own, and signals say what is done", async () => {
    const [a, b] = [NAMES[0], NAMES[1]];
    const step = new TinyJit((x: Tensor) => {
      const there = x.add(1).to(b).mul(2);
      return [there.to(a).add(x), there];
    });
    const x = await new Tensor([1, 2], { device: a }).realize();
    for (let i = 0; i < 2; i++) step.sync(x);
    const lines = await recorded(open(a), () => step.sync(x));
    const shown = lines.map((l) =>
      l.replace(/( >= | = )\d+$/, (m, op) => (/timeline/.test(l) ? op : m)).replace(/(exec [Er]_)\S+/, "$1"),
    );
    expect(shown).toEqual([
      `${a} compute:`,
      `  wait ${a}.timeline >= `,
      "  memoryBarrier",
      "  exec E_ args @0",
      `  signal ${a}.graph0 = 1`,
      `  wait ${b}.graph3 >= 1`,
      "  exec E_ args @1",
      `  wait ${a}.graph1 >= 1`,
      `  signal ${a}.timeline = `,
      `${a} copy:`,
      `  wait ${a}.timeline >= `,
      `  wait ${b}.timeline >= `,
      `  wait ${a}.graph0 >= 1`,
      "  copy @2 <- @3, 8 bytes",
      `  signal ${a}.graph1 = 1`,
      `${b} compute:`,
      `  wait ${b}.timeline >= `,
      "  memoryBarrier",
      `  wait ${a}.graph1 >= 1`,
      "  exec E_ args @4",
      `  signal ${b}.graph2 = 1`,
      `  wait ${b}.graph3 >= 1`,
      `  signal ${b}.timeline = `,
      `${b} copy:`,
      `  wait ${b}.timeline >= `,
      `  wait ${a}.timeline >= `,
      `  wait ${b}.graph2 >= 1`,
      // the planner gave this copy the memory that the first one came from
      `  wait ${a}.graph0 >= 1`,
      `  wait ${a}.graph1 >= 1`,
      expect.stringMatching(/^ {2}copy @\d <- @\d, 8 bytes$/),
      `  signal ${b}.graph3 = 1`,
    ]);
    const [y, there] = step.sync(x);
    expect([y?.tolistSync(), there?.tolistSync()]).toEqual([
      [5, 8],
      [4, 6],
    ]);
  });

  test("a replay builds no queue and allocates nothing for arguments", async () => {
    const device = NAMES[0];
    const step = new TinyJit((x: Tensor) => {
      let y = x;
      for (let i = 0; i < 20; i++) y = y.add(1).contiguous();
      return y;
    });
    const x = await new Tensor([1, 2, 3], { device }).realize();
    for (let i = 0; i < 3; i++) step.sync(x);
    const dev = open(device);
    const spies = [
      vi.spyOn(dev, "computeQueue"),
      vi.spyOn(dev.transient, "alloc"),
      vi.spyOn(dev.hardware, "alloc"),
    ];
    const submit = vi.spyOn(dev.hardware, "submit");
    for (let i = 0; i < 10; i++) step.sync(x);
    expect(spies.map((s) => s.mock.calls.length)).toEqual([0, 0, 0]);
    expect(submit).toHaveBeenCalledTimes(10);
    vi.restoreAllMocks();
    expect(step.sync(x).tolistSync()).toEqual([21, 22, 23]);
  });

  test("JIT=2 would have been item by item: graphs take kernels and transfers, not copies from the host", async () => {
    const device = NAMES[0];
    const step = new TinyJit(async (x: Tensor) =>
      x
        .add(new Tensor([1, 2], { device }))
        .sum()
        .data(),
    );
    const x = await new Tensor([1, 2], { device }).realize();
    for (let i = 0; i < 3; i++) expect([...(await step(x))]).toEqual([6]);
    // the copy out last, the kernels before it in one piece; host data was copied once, by the capture
    expect(step.jitCache.map((i) => i.runner.name.replace(/_.*/, ""))).toEqual(["r", "copy"]);
  });

  test("values of variables are words that change", async () => {
    const device = NAMES[0];
    const n = Variable("n", 1, 8);
    const data = [1, 2, 3, 4, 5, 6, 7, 8];
    const x = await new Tensor(data, { device }).realize();
    const step = new TinyJit((k: ReturnType<typeof n.bind>) =>
      x
        .shrink([[0, k]])
        .mul(2)
        .contiguous()
        .sum(),
    );
    for (const k of [1, 2, 3, 8, 5, 1]) {
      expect(step.sync(n.bind(k)).itemSync()).toBe(data.slice(0, k).reduce((a, b) => a + 2 * b, 0));
    }
  });
});

describe("many runs", () => {
  for (const devices of [1, 2, 3]) {
    test(`timelines of ${devices} that wrap around every 50 submissions: 1,000 replays are right`, async () => {
      const used = NAMES.slice(0, devices);
      const limits = used.map((d) => open(d).timelineLimit);
      for (const d of used) {
        await open(d).synchronize();
        open(d).timelineLimit = Math.max(50, open(d).timelineValue);
      }
      const total = await new Tensor([0, 0], { device: used[0] as string }).realize();
      const step = new TinyJit((x: Tensor) => {
        let y = x;
        for (const d of [...used, used[0] as string]) y = y.to(d).add(1);
        total.assign(total.add(y));
      });
      for (let i = 0; i < 1000; i++) step.sync(new Tensor([i % 7, 1], { device: used[0] as string }));
      const sum = Array.from({ length: 1000 }, (_, i) => (i % 7) + devices + 1).reduce((a, b) => a + b, 0);
      expect(await total.tolist()).toEqual([sum, 1000 * (devices + 2)]);
      expect(used.every((d) => open(d).era > 0)).toBe(true);
      used.forEach((d, i) => {
        open(d).timelineLimit = limits[i] as number;
      });
    }, 60_000);
  }
});

// ---- random programs ----

/** Two values of one device: beside each other, one turned around, one summed up. */
const BINARY = ["add", "add", "mul", "turn", "total"] as const;
type Binary = (typeof BINARY)[number];
type Op =
  | { readonly kind: Binary; readonly a: number; readonly b: number; readonly stored: boolean }
  | { readonly kind: "shift"; readonly a: number; readonly by: number; readonly stored: boolean }
  | { readonly kind: "to"; readonly a: number; readonly device: number }
  | { readonly kind: "assign"; readonly state: number; readonly a: number };

/** Less than a vector, several of them with a rest, several without. */
const SIZES = [3, 70, 64] as const;
interface Program {
  readonly size: number;
  readonly devices: number;
  readonly ops: readonly Op[];
  /** values 0 and 1 are inputs, then one state a device; on which device each value is */
  readonly where: readonly number[];
  readonly results: readonly number[];
}

function dice(seed: number): (n: number) => number {
  let s = Math.imul(seed + 1, 2654435761) >>> 0;
  return (n) => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
    return Math.floor((s / 2 ** 32) * n);
  };
}

function program(seed: number): Program {
  const roll = dice(seed);
  const devices = 1 + roll(4);
  const where = [roll(devices), roll(devices), ...Array.from({ length: devices }, (_, d) => d)];
  const ops: Op[] = [];
  const some = () => roll(where.length);
  for (let i = 2 + roll(7); i > 0; i--) {
    const a = some();
    const kind = roll(8);
    // what is not stored may be fused, or come out of one kernel with others
    const stored = roll(3) > 0;
    if (kind < 3) {
      const mates = where.flatMap((d, v) => (d === where[a] ? [v] : []));
      const b = mates[roll(mates.length)] as number;
      ops.push({ kind: BINARY[roll(BINARY.length)] as Binary, a, b, stored });
      where.push(where[a] as number);
    } else if (kind < 4) {
      ops.push({ kind: "shift", a, by: roll(2) + 1, stored });
      where.push(where[a] as number);
    } else if (kind < 7 && devices > 1) {
      const device = (((where[a] as number) + 1 + roll(devices - 1)) % devices) as number;
      ops.push({ kind: "to", a, device });
      where.push(device);
    } else {
      ops.push({ kind: "assign", state: 2 + (where[a] as number), a });
      where.push(where[a] as number);
    }
  }
  const results = Array.from({ length: 1 + roll(2) }, () => 2 + devices + roll(ops.length));
  return { size: SIZES[roll(SIZES.length)] as number, devices, ops, where, results };
}

/** The program on plain arrays; states are changed in place. */
function plain({ ops, results }: Program, inputs: Int32Array[], states: Int32Array[]): Int32Array[] {
  const values = [...inputs, ...states];
  const zip = (a: number, b: number, f: (x: number, y: number) => number) =>
    (values[a] as Int32Array).map((x, i) => f(x, (values[b] as Int32Array)[i] as number));
  const at = (i: number): Int32Array => values[i] as Int32Array;
  const compute: Record<Binary, (a: number, b: number) => Int32Array> = {
    add: (a, b) => zip(a, b, (x, y) => (x + y) | 0),
    mul: (a, b) => zip(a, b, (x, y) => Math.imul(x, y)),
    turn: (a, b) => at(b).map((y, i) => (y + (at(a).at(-1 - i) as number)) | 0),
    total: (a, b) => at(b).map((y) => at(a).reduce((p, q) => (p + q) | 0, y)),
  };
  for (const op of ops) {
    if (op.kind === "shift") values.push(at(op.a).map((x) => (x + op.by) | 0));
    else if (op.kind === "to") values.push(at(op.a).slice());
    else if (op.kind !== "assign") values.push(compute[op.kind](op.a, op.b));
    else {
      const next = compute.add(op.a, op.state);
      values.push(next);
      values[op.state] = next;
    }
  }
  states.forEach((s, d) => {
    s.set(values[2 + d] as Int32Array);
  });
  return results.map((r) => values[r] as Int32Array);
}

const COMPUTE: Record<Binary, (a: Tensor, b: Tensor) => Tensor> = {
  add: (a, b) => a.add(b),
  mul: (a, b) => a.mul(b),
  turn: (a, b) => a.flip(0).add(b),
  total: (a, b) => a.sum(0, true, { dtype: "int32" }).add(b),
};
function lazy(
  { ops, results }: Program,
  names: readonly string[],
  inputs: readonly Tensor[],
  states: readonly Tensor[],
): Tensor[] {
  const values = [...inputs, ...states];
  const at = (i: number): Tensor => values[i] as Tensor;
  for (const op of ops) {
    if (op.kind === "to") values.push(at(op.a).to(names[op.device] as string));
    else if (op.kind !== "assign") {
      const made = op.kind === "shift" ? at(op.a).add(op.by) : COMPUTE[op.kind](at(op.a), at(op.b));
      values.push(op.stored ? made.contiguous() : made);
    } else {
      const state = at(op.state);
      // values that were taken from the state before stay what they were
      for (let v = 0; v < values.length; v++)
        if (values[v] === state && v !== op.state) values[v] = state.clone();
      state.assign(at(op.a).add(state));
      values.push(state.clone());
    }
  }
  return results.map((r) => at(r).clone());
}

const CALLS = 4;
/** The devices of the graph, or as many of the oracle. */
const ORACLE = ["JS", "JS:1", "JS:2", "JS:3"];
function check(seed: number, jitted: boolean, names: readonly string[] = NAMES): void {
  const p = program(seed);
  const roll = dice(seed + 1e6);
  const ints = () => Int32Array.from({ length: p.size }, () => roll(1000));
  const model = Array.from({ length: p.devices }, ints);
  const states = model.map((s, d) => new Tensor(s, { device: names[d] as string }));
  Tensor.realizeSync(...states);
  // an input that nothing uses is refused, so each is used by something
  const fn = (x: Tensor, y: Tensor) => [...lazy(p, names, [x, y], states), x.add(0), y.add(0)];
  const jit = new TinyJit(fn);
  for (let call = 0; call < CALLS; call++) {
    const inputs = [ints(), ints()];
    const [x, y] = inputs.map(
      (data, i) => new Tensor(data, { device: names[p.where[i] as number] as string }),
    ) as [Tensor, Tensor];
    const got = jitted ? jit.sync(x, y) : fn(x, y);
    if (!jitted) Tensor.realizeSync(...got, ...states);
    const want = plain(p, inputs, model);
    for (const [i, w] of want.entries()) {
      const data = got[i]?.dataSync();
      if (String(data) !== String(w))
        throw new Error(`seed ${seed}, call ${call}, result ${i}: ${data}, expected ${w}`);
    }
  }
  for (const [d, s] of states.entries()) expect(s.dataSync(), `seed ${seed}, state ${d}`).toEqual(model[d]);
}

// a wait that is never met throws after HCQ_TIMEOUT, so that nothing hangs silently
test(`2,500 programs of random kernels and copies over one to four devices, ${CALLS} calls each, jit on and off, give what JS and plain arrays give`, async () => {
  for (const name of ORACLE) await Device.open(name);
  for (let seed = 0; seed < 2500; seed++) {
    for (const jitted of [true, false]) check(seed, jitted);
    check(seed, false, ORACLE);
    // finalisers run between tasks only
    if (seed % 25 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
}, 600_000);

test("graphs are what runs", () => {
  const run = vi.spyOn(HCQGraph.prototype, "run");
  check(6, true);
  expect(run.mock.calls.length).toBeGreaterThanOrEqual(CALLS - 2);
  run.mockRestore();
});
