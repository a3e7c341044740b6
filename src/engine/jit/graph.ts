// Condenses what was captured: runs of kernels and transfers on devices that can take them as one thing
// become graphs. What a graph is made of is the device's business; the rest stays item by item.

import { env } from "../../env.ts";
import { InternalError } from "../../errors.ts";
import type { Compiled, GraphItem, GraphRunner, GraphSlot } from "../../runtime/device.ts";
import { HCQGraph } from "../../runtime/hcq/graph.ts";
import { BufferXfer, CompiledRunner } from "../../runtime/runner.ts";
import { Device } from "../devices.ts";
import type { CapturedFunction, JitItem, Slot } from "./capture.ts";
import { rangeOf } from "./placement.ts";

/** A graph that stands for some of the items, or an item. */
export type GraphStage =
  | { readonly kind: "graph"; readonly graph: GraphRunner; readonly items: readonly JitItem[] }
  | { readonly kind: "item"; readonly item: JitItem };

export function condense({ items, slots }: CapturedFunction): GraphStage[] {
  const places = slots.map(placeOf);
  const stages: GraphStage[] = [];
  for (let at = 0; at < items.length; ) {
    const run = runAt(items, at);
    if (run.length === 0) stages.push({ kind: "item", item: items[at++] as JitItem });
    else {
      const make = Device.get(deviceOf(run[0] as GraphItem)).graph;
      if (make === undefined) throw new InternalError("a graph on a device that makes none");
      const end = at + run.length;
      const graph = make === "HCQ" ? new HCQGraph(run, places) : make(run, places);
      stages.push({ kind: "graph", graph, items: items.slice(at, end) });
      at = end;
    }
  }
  return stages;
}

const deviceOf = (x: GraphItem): string => (x.kind === "kernel" ? x.device : x.from).name;

/** The items from `at` on that one graph can take. */
function runAt(items: readonly JitItem[], at: number): GraphItem[] {
  const run: GraphItem[] = [];
  if (env.JIT === 2) return run;
  let space: unknown;
  for (const item of items.slice(at)) {
    const found = graphItem(item);
    const device = found === undefined ? undefined : Device.get(deviceOf(found));
    if (found === undefined || device?.graph === undefined) break;
    if (run.length > 0 && device.space !== space) break;
    space = device.space;
    run.push(found);
  }
  return run;
}

/** An item as a graph takes it; undefined where none does. */
function graphItem(item: JitItem): GraphItem | undefined {
  const { runner, args, varVals } = item;
  if (runner instanceof CompiledRunner) {
    const { kernel } = runner;
    return {
      kind: "kernel",
      device: Device.get(kernel.device),
      program: kernel.program,
      args: kernel.globals.map((i) => args[i] as number),
      written: args.slice(0, item.outputs),
      globalSize: kernel.globalSize,
      localSize: kernel.localSize,
      vars: kernel.vars,
      varVals,
      work: kernel.ops + kernel.bytes,
    };
  }
  if (!(runner instanceof BufferXfer)) return undefined;
  const [dest, src] = args as [number, number];
  const [to, from] = item.devices.map((d) => Device.get(d)) as [Compiled, Compiled];
  if (to.space !== from.space) return undefined;
  return { kind: "copy", dest, src, nbytes: item.nbytes, from, to };
}

/** Where a slot lies. What is swapped with every call shares memory with nothing that is written. */
function placeOf(slot: Slot): GraphSlot {
  if (slot.kind !== "fixed") return { handle: undefined, root: slot, from: 0, to: Infinity };
  return { handle: slot.buffer.handle, ...rangeOf(slot.buffer) };
}
