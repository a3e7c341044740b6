// What the compiler itself costs, measured inside one process. overhead.ts bundles this file like the package
// and runs it in plain node: `pipeline.mjs PART ROUNDS` prints the samples as JSON, in milliseconds; the
// first sample of each is cold. Sizes and constants differ every time, so that no kernel occurs twice.

import type { Renderer } from "../src/codegen/target.ts";
import { runnerFor } from "../src/engine/compile.ts";
import { optimized } from "../src/engine/compiler.ts";
import { runSync, toposort } from "../src/helpers.ts";
import { createSchedule, Device, type LazyBuffer, type ScheduleItem, Tensor } from "../src/index.ts";

/** Milliseconds by name, one entry per round. */
export type Samples = Record<string, number[]>;

const samples: Samples = {};
function note(name: string, ms: number): void {
  samples[name] ??= [];
  samples[name].push(ms);
}
function timed<T>(name: string, work: () => T): T {
  const start = performance.now();
  const result = work();
  note(name, performance.now() - start);
  return result;
}

const filled = (...shape: number[]): Tensor => Tensor.empty(shape).realizeSync();

/** Typical small kernels; `i` makes each one new. */
const KERNELS: Record<string, (i: number) => Tensor> = {
  dot: (i) => filled(i + 2).dot(filled(i + 2)),
  elementwise: (i) =>
    filled(i + 2)
      .mul(filled(i + 2))
      .add(i + 0.5)
      .relu(),
  matmul: (i) => filled(4, i + 2).dot(filled(i + 2, 8)),
  softmax: (i) => filled(4, i + 2).softmax(),
};

/** From a LazyBuffer to a runner that is ready to be called; then another one, stage by stage. */
function kernels(kind: string, rounds: number): void {
  const build = KERNELS[kind] as (i: number) => Tensor;
  const device = Device.get("WASM");
  const renderer = device.renderer as Renderer;
  for (let i = 0; i < rounds; i++) {
    const whole = build(2 * i).lazydata;
    timed("all", () => runSync(runnerFor(only(createSchedule([whole]))), "bench"));
    const staged = build(2 * i + 1).lazydata;
    const item = timed("schedule", () => only(createSchedule([staged])));
    const kernel = timed("lower", () => optimized(item.ast, renderer, false));
    const source = timed("render", () => renderer.render(kernel.name, kernel.uops));
    timed("compile", () => device.compile(kernel.name, source));
  }
}

function only(items: readonly ScheduleItem[]): ScheduleItem {
  const [item] = items;
  if (item === undefined || items.length !== 1) throw new Error(`expected one kernel, got ${items.length}`);
  return item;
}

/**
 * A chain of layers: a matmul, a normalisation, a residual, a sigmoid. `seed` makes every kernel of it new.
 * Written in primitive ops where a method's definition may change: figures are comparable only if the graph
 * stays the same.
 */
function deepNetwork(layers: number, seed: number): LazyBuffer {
  const width = 8 + seed;
  let x = filled(16, width);
  for (let layer = 0; layer < layers; layer++) {
    const scale = 1 + layer / 64 + seed;
    const h = x.dot(filled(width, width)).add(scale).relu();
    const norm = h.sub(h.mean(-1, true)).div(h.var(-1, true).add(1e-5).sqrt());
    const z = norm.mul(scale).add(x).maximum(norm.neg());
    const sigmoid = z.neg().mul(Math.LOG2E).exp2().add(1).reciprocal();
    x = sigmoid.add(x.max(0, true));
  }
  return x.lazydata;
}

const countNodes = (out: LazyBuffer): number =>
  toposort([out.base], (x) => (x.srcs ?? []).map((s) => s.base)).length;

function graphs(rounds: number): void {
  const renderer = Device.get("WASM").renderer as Renderer;
  for (let i = 0; i < rounds; i++) {
    const out = deepNetwork(56, i);
    const items = timed("schedule", () => createSchedule([out]));
    timed("lower", () => items.map((si) => optimized(si.ast, renderer, false)));
    note("nodes", countNodes(out));
    note("kernels", items.length);
  }
}

/** The second layer of a shape: a new graph of known structure, up to the cached runner. */
function known(rounds: number): void {
  const layer = (): LazyBuffer => filled(16, 64).dot(filled(64, 64)).add(1).relu().lazydata;
  for (let i = 0; i <= rounds; i++) {
    const item = only(createSchedule([layer()]));
    if (i === 0) runSync(runnerFor(item), "bench");
    else timed("known", () => runSync(runnerFor(item), "bench"));
  }
}

/** Compiles the modules of a graph: one after the other, or all started before the first wait. */
async function modules(rounds: number): Promise<void> {
  const renderer = Device.get("WASM").renderer as Renderer;
  for (let i = 0; i < rounds; i++) {
    const codes = createSchedule([deepNetwork(56, i)]).map((si) => {
      const { name, uops } = optimized(si.ast, renderer, false);
      return renderer.render(name, uops).code as Uint8Array<ArrayBuffer>;
    });
    const half = codes.length >> 1;
    timed("sync", () => codes.slice(0, half).map((code) => new WebAssembly.Module(code)));
    const start = performance.now();
    await Promise.all(codes.slice(half).map((code) => WebAssembly.compile(code)));
    note("async", performance.now() - start);
    note("modules", half);
  }
}

/** A compiled kernel on data that is in memory: what remains is the engine's own work. */
async function realizes(rounds: number): Promise<void> {
  const [a, b] = [filled(16), filled(16)];
  for (let i = 0; i < rounds; i++) {
    const c = timed("build", () => a.add(b));
    timed("sync", () => c.realizeSync());
    c.dispose();
    const d = a.add(b);
    const start = performance.now();
    await d.realize();
    note("async", performance.now() - start);
    d.dispose();
    const e = a.add(b);
    timed("read", () => e.dataSync());
    e.dispose();
  }
}

const [part = "", count = "1"] = process.argv.slice(2);
if (part === "graphs") graphs(Number(count));
else if (part === "known") known(Number(count));
else if (part === "modules") await modules(Number(count));
else if (part === "realizes") await realizes(Number(count));
else kernels(part, Number(count));
console.log(JSON.stringify(samples));
