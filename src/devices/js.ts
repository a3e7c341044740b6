// JS: the device that interprets lists of UOps. Slow and plain, it is the oracle that every other device is
// compared with. Its parts are in js/: the interpreter of one thread, workgroups, shared memory that finds
// races.

import { CPU_OPS } from "../codegen/opt/cpuops.ts";
import { cpuLists } from "../codegen/opt/heuristics/cpu.ts";
import { COMMON_CORE, type Renderer, sourceOf } from "../codegen/target.ts";
import { InternalError } from "../errors.ts";
import type { Compiled } from "../runtime/device.ts";
import { UOpGraph } from "../uop/list.ts";
import { hostAllocator } from "./ext.ts";
import { interpreter } from "./js/interpreter.ts";

export const JSRenderer: Renderer = {
  name: "JS",
  grid: undefined,
  hasThreads: false,
  globalMax: [],
  localMax: [],
  sharedMax: 1 << 16,
  maxBuffers: 500,
  support: () => "native",
  has: () => true,
  saturatingCast: true,
  ieee: true,
  safeDivision: true,
  optOps: CPU_OPS,
  heuristic: cpuLists,
  core: COMMON_CORE,
  simd: undefined,
  gpu: undefined,
  render: (_, uops) => sourceOf(uops, { buffers: uops.globals().length, vals: uops.vars().length }),
};

export const open = (name: string): Compiled<Uint8Array> => ({
  name,
  allocator: hostAllocator(name),
  renderer: JSRenderer,
  keepsTime: false,
  space: undefined,
  timeline: undefined,
  graph: undefined,
  compilesAside: false,
  compile(_, { code }) {
    if (!(code instanceof UOpGraph)) throw new InternalError("JS runs lists of UOps");
    return interpreter(code);
  },
  synchronize() {},
});
