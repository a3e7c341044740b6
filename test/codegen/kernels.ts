// For the tests of codegen: the last kernel of a tensor's schedule, lowered by hand with any list of OptOps
// for any target, run on a device or, where it wants a grid, on JS with the grid as loops. Random lists, and
// targets that lack something.

import { Buffer, CompiledRunner, createSchedule, runSchedule, type Tensor } from "gradloom";
import { fitting, type Kernel, toKernel } from "../../src/codegen/kernel.ts";
import { GRID } from "../../src/codegen/linear/workgrouplinear.ts";
import type { KernelGraph } from "../../src/codegen/lower/lower.ts";
import { GRID_OPS } from "../../src/codegen/opt/cpuops.ts";
import { GPU_OPS } from "../../src/codegen/opt/gpuops.ts";
import { gpuLists } from "../../src/codegen/opt/heuristics/gpu.ts";
import { MMA } from "../../src/codegen/opt/mma.ts";
import { type OptOp, type OptOpName, showOpts } from "../../src/codegen/opt/opts.ts";
import { OPT_OPS } from "../../src/codegen/opt/registry.ts";
import type { Renderer, Support } from "../../src/codegen/target.ts";
import { dtypes, type Value } from "../../src/dtype.ts";
import { nvidiaGpu } from "../../src/render/nvidia.ts";
import { Device } from "../../src/runtime/registry.ts";
import type { ScheduleItem } from "../../src/schedule/schedule.ts";
import { UOpGraph } from "../../src/uop/list.ts";
import { makeUOp, type UOp, type UOpName } from "../../src/uop/node.ts";
import { expectValues, tensor } from "../device/harness.ts";
import type { Random } from "../shape/random.ts";

/** Computes everything before the tensor's last kernel and gives that kernel's item. */
export async function lastItem(t: Tensor): Promise<ScheduleItem> {
  const schedule = createSchedule([t.lazydata]);
  await runSchedule(schedule.slice(0, -1));
  const item = schedule.at(-1);
  if (item?.ast[0]?.op !== "STORE") throw new Error(`the last item is ${item?.ast[0]?.op}, no kernel`);
  return item;
}

export const rendererOf = (device: string): Renderer => {
  const { renderer } = Device.get(device);
  if (renderer === undefined) throw new Error(`${device} has no renderer`);
  return renderer;
};

export const lowered = (item: ScheduleItem, opts: readonly OptOp[] = [], target?: Renderer): Kernel =>
  toKernel(item.ast, opts, target ?? rendererOf((item.outputs[0] as Buffer).device));

/** Runs a kernel on the item's inputs and gives what it stored, one output after the other. */
export async function runKernel(item: ScheduleItem, kernel: Kernel): Promise<Value[]> {
  const like = item.outputs[0] as Buffer;
  const device = Device.get(like.device);
  const program = await device.compile(kernel.name, rendererOf(like.device).render(kernel.name, kernel.uops));
  const outs = item.outputs.map((b) => new Buffer(b.device, b.size, b.dtype).allocate());
  const runner = new CompiledRunner({ ...kernel, device: like.device, program });
  runner.exec([...outs, ...item.inputs], item.varVals);
  return (await Promise.all(outs.map(async (b) => Array.from<Value>(await b.data())))).flat();
}

/** An op by the values of its parameters, in their order: opt("UPCAST", 0, 4) has 4 lanes on axis 0. */
export function opt(op: OptOpName, ...values: number[]): OptOp {
  const names = Object.keys(OPT_OPS.find((r) => r.name === op)?.params ?? { axis: 0, amount: 0 });
  return { op, ...Object.fromEntries(names.map((name, i) => [name, values[i]])) } as OptOp;
}
/** The values of the parameters of an op, in their order. */
export const valuesOf = ({ op, ...params }: OptOp): number[] => Object.values(params);
/** The product of a parameter over all ops of a name that a kernel was made with, on one axis or on all. */
export const factors = (k: Kernel, op: OptOpName, axis?: number): number =>
  k.opts
    .filter((o) => o.op === op && (axis === undefined || ("axis" in o && o.axis === axis)))
    .reduce((n, o) => n * (valuesOf(o)[1] ?? 1), 1);

/** Small whole numbers: exact in any order. */
export function wholeFloats(device: string, shape: readonly number[], r: Random): Tensor {
  const n = shape.reduce((a, b) => a * b, 1);
  const values = Array.from({ length: n }, () => r.int(-9, 9));
  return tensor(device, dtypes.float32, values, shape);
}

/** Up to four of the candidates that the target's OptOps have for a kernel; each op is as likely. */
export function randomOpts(r: Random, kernel: KernelGraph, target: Renderer): OptOp[] {
  const all = target.optOps
    .map((record): readonly OptOp[] => record.candidates(kernel, { target, inPlace: false }))
    .filter((candidates) => candidates.length > 0);
  return all.length === 0 ? [] : Array.from({ length: r.int(0, 4) }, () => r.pick(r.pick(all)));
}

/** The kernel with this list gives these float32s; false where the list is refused. */
export async function expectSame(
  item: ScheduleItem,
  opts: readonly OptOp[],
  target: Renderer,
  { want, seed, ulps }: { want: readonly Value[]; seed: number; ulps: number },
): Promise<boolean> {
  const kernel = fitting(item.ast, opts, target);
  if (kernel === undefined) return false;
  const what = `seed ${seed}: ${kernel.name} with ${showOpts(opts)}`;
  expectValues(dtypes.float32, await runKernel(item, kernel), want, what, { ulps });
  return true;
}

/** The same kernel with every index of the grid as a loop around it, which JS can interpret. */
export function gridAsLoops(kernel: Kernel): Kernel {
  const list = new UOpGraph();
  const made = new Map<UOp, UOp>();
  const push = (u: UOp): UOp => {
    list.push(u);
    return u;
  };
  const grid: UOp[] = [];
  const number = (n: number): UOp => push(makeUOp("CONST", dtypes.int32, [], n) as UOp);
  for (const u of kernel.uops) {
    if (u.op === "SPECIAL") {
      const loop = push(makeUOp("LOOP", dtypes.int32, [number(0), number(u.arg[2])], undefined) as UOp);
      grid.push(loop);
      made.set(u, loop);
    } else {
      const srcs = u.srcs.map((s) => made.get(s) as UOp);
      made.set(u, push(makeUOp(u.op, u.dtype, srcs, u.arg as never) as UOp));
    }
  }
  for (const loop of grid.reverse()) push(makeUOp("ENDLOOP", undefined, [loop], undefined) as UOp);
  return { ...kernel, uops: list, globalSize: [], localSize: [] };
}

/** JS as if it ran a grid of threads. */
export const gridTarget = (): Renderer => ({
  ...rendererOf("JS"),
  name: "GRID",
  optOps: GRID_OPS,
  grid: GRID,
  globalMax: [65535, 65535, 65535],
  localMax: [256, 256, 64],
  sharedMax: 1 << 14,
});

/** JS as if it were a GPU whose warps are this wide. */
export const gpuTarget = (warp: number): Renderer => ({
  ...gridTarget(),
  name: `GPU${warp}`,
  optOps: GPU_OPS,
  localMax: [1024, 1024, 64],
  sharedMax: 49152,
  heuristic: gpuLists,
  gpu: { ...nvidiaGpu(90, { computeUnits: 4 }), warp, tensorCores: MMA, fuses: () => false },
});

/** JS as if it had float16 and bfloat16 only so far. */
export const narrowTarget = (support: Support): Renderer => ({
  ...rendererOf("JS"),
  name: `NARROW_${support}`,
  support: (d) => (d === dtypes.float16 || d === dtypes.bfloat16 ? support : "native"),
});

export const opsIn = <K extends UOpName>({ uops }: Kernel, op: K): UOp<K>[] =>
  uops.uops.filter((u): u is UOp<K> => u.op === op);
/** How many iterations each loop of the kernel has, in the order of the list. */
export const trips = (kernel: Kernel): number[] =>
  opsIn(kernel, "LOOP").map(({ end }) => (end.op === "CONST" ? Number(end.value) : Number.NaN));
