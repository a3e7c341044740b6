// The public names of gradloom, nothing else.

export * from "./codegen/names.ts";
export type { OptOp } from "./codegen/opt/opts.ts";
export type { Renderer, Source, Target } from "./codegen/target.ts";
export {
  DType,
  type DTypeLike,
  type DTypeName,
  dtypes,
  type NumberArray,
  PtrDType,
  promote,
  type TypedArray,
} from "./dtype.ts";
export { CommandQueue, CopyItem, SyncItem, showItem, WaitItem } from "./engine/commandqueue.ts";
export { clearKernelCache } from "./engine/compile.ts";
export { Device } from "./engine/devices.ts";
export { CacheCollector, type TraceItem } from "./engine/jit/collector.ts";
export { TinyJit } from "./engine/jit/jit.ts";
export { Trace } from "./engine/jit/trace.ts";
export { runSchedule, runScheduleSync } from "./engine/realize.ts";
export { type Env, env, withEnv } from "./env.ts";
export * from "./errors.ts";
export * as fft from "./func/guarded/fft.ts";
export * as func from "./func/guarded/transforms.ts";
export type { ImageDType } from "./images.ts";
export { LazyBuffer } from "./lazy/lazybuffer.ts";
export { MultiLazyBuffer } from "./lazy/multi.ts";
export * as nn from "./nn/index.ts";
export { BinaryOps, BufferOps, LoadOps, ReduceOps, TernaryOps, UnaryOps } from "./ops.ts";
export { Buffer } from "./runtime/buffer.ts";
export { GlobalCounters } from "./runtime/counters.ts";
export { HCQCompatAllocator, type HCQCompatAllocRes } from "./runtime/hcq/allocator.ts";
export { HCQCompatCompiled, type HCQSignal } from "./runtime/hcq/device.ts";
export { HCQGraph } from "./runtime/hcq/graph.ts";
export { HCQProgram, type KernArgs } from "./runtime/hcq/program.ts";
export { HWCommandQueue, HWComputeQueue, HWCopyQueue, hcqCommand } from "./runtime/hcq/queue.ts";
export type { Span } from "./runtime/profile.ts";
export { profiler } from "./runtime/profiling.ts";
export { BufferCopy, BufferRead, BufferXfer, CompiledRunner, CustomOp } from "./runtime/runner.ts";
export { ConstBuffer, type LazyOp, MemBuffer, showAst } from "./schedule/lazyop.ts";
export { createSchedule, type ScheduleItem } from "./schedule/schedule.ts";
export { ShapeTracker } from "./shape/shapetracker.ts";
export { type Sint, Variable } from "./shape/symbolic.ts";
export { View } from "./shape/view.ts";
export { type ScanOptions, scan } from "./tensor/scan.ts";
export { type CustomGradient, Tensor, type TensorData, type TensorOptions } from "./tensor/tensor.ts";
export type * from "./tensor/types.ts";
export type { UOp } from "./uop/node.ts";
