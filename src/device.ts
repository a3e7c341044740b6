// gradloom/device: what a device outside of this package is made of. docs/guide/runtimes.md is the guide,
// examples/runtime.ts a device in one file. `Device.register(name, open)` adds it.

export {
  type Code,
  type Gpu,
  isText,
  type Renderer,
  type Source,
  type Support,
  sourceOf,
  type Target,
} from "./codegen/target.ts";
export { chain, type MaybePromise, type Step, waitable } from "./helpers.ts";
export type { AluOp, NativeOps } from "./ops.ts";
export type {
  Allocator,
  Compiled,
  DeviceKind,
  DeviceKinds,
  DeviceOpener,
  Display,
  GraphCopy,
  GraphItem,
  GraphKernel,
  GraphMaker,
  GraphRunner,
  GraphSlot,
  Handle,
  Launch,
  Program,
  StorageKind,
  Timeline,
} from "./runtime/device.ts";
export { HCQCompatAllocator, type HCQCompatAllocRes } from "./runtime/hcq/allocator.ts";
export { type Fence, HCQCompatCompiled, type HCQSignal } from "./runtime/hcq/device.ts";
export { HCQGraph } from "./runtime/hcq/graph.ts";
export { HCQProgram, type KernArgs } from "./runtime/hcq/program.ts";
export {
  type BoundStream,
  type Command,
  type CommandArgs,
  type CommandName,
  HWCommandQueue,
  hcqCommand,
  type QueueBackend,
} from "./runtime/hcq/queue.ts";
export {
  RecordedComputeQueue as HWComputeQueue,
  RecordedCopyQueue as HWCopyQueue,
} from "./runtime/hcq/recorded.ts";
export type { Marks } from "./runtime/profile.ts";
export { ordinalOf } from "./runtime/registry.ts";
