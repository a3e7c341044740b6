// The part of the WebGPU API that this device uses, as the standard has it. Typed here, so that neither a
// package of types nor a browser's library reaches ours, and so that tests can bring a GPU of their own.

/** Bits of a buffer's `usage`. */
export const USAGE = {
  MAP_READ: 0x1,
  COPY_SRC: 0x4,
  COPY_DST: 0x8,
  UNIFORM: 0x40,
  STORAGE: 0x80,
  QUERY_RESOLVE: 0x200,
} as const;
/** Bits of a texture's. */
export const TEXTURE_USAGE = { COPY_DST: 0x2, RENDER_ATTACHMENT: 0x10 } as const;
export const MAP_READ = 1;
/** The bit of a stage's `visibility`. */
export const COMPUTE = 4;

export interface Gpu {
  requestAdapter(options?: {
    powerPreference?: "high-performance" | "low-power";
  }): Promise<GpuAdapter | null>;
  readonly wgslLanguageFeatures?: ReadonlySet<string>;
}
/** Limits by their names in the standard. */
export type GpuLimits = Readonly<Record<string, number>>;
/** Matrices that subgroups multiply: the types of factors and sums, and the sides. */
export interface MatrixConfig {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}
export interface GpuInfo {
  readonly vendor?: string;
  readonly architecture?: string;
  readonly device?: string;
  readonly description?: string;
  readonly subgroupMinSize?: number;
  readonly subgroupMaxSize?: number;
  /** an experiment of Dawn's */
  readonly subgroupMatrixConfigs?: Iterable<MatrixConfig>;
  /** the CPU does the work of a GPU */
  readonly isFallbackAdapter?: boolean;
}
export interface GpuAdapter {
  readonly features: ReadonlySet<string>;
  readonly limits: GpuLimits;
  readonly info?: GpuInfo;
  requestDevice(wanted: {
    readonly requiredFeatures: readonly string[];
    readonly requiredLimits: GpuLimits;
  }): Promise<GpuDevice>;
}

export interface GpuLoss {
  readonly reason: string;
  readonly message: string;
}
export interface GpuFault {
  readonly message: string;
}
export interface GpuDevice {
  readonly queue: GpuQueue;
  readonly limits: GpuLimits;
  readonly features: ReadonlySet<string>;
  readonly lost: Promise<GpuLoss>;
  onuncapturederror: ((event: { readonly error: GpuFault }) => void) | null;
  createBuffer(of: { size: number; usage: number; mappedAtCreation?: boolean }): GpuBuffer;
  createShaderModule(of: { label?: string; code: string }): GpuShaderModule;
  createBindGroupLayout(of: { entries: readonly GpuLayoutEntry[] }): GpuBindGroupLayout;
  createPipelineLayout(of: {
    bindGroupLayouts: readonly GpuBindGroupLayout[];
    immediateSize?: number;
  }): GpuPipelineLayout;
  createComputePipelineAsync(of: GpuPipelineOf): Promise<GpuPipeline>;
  createBindGroup(of: {
    label?: string;
    layout: GpuBindGroupLayout;
    entries: readonly GpuBinding[];
  }): GpuBindGroup;
  createCommandEncoder(): GpuEncoder;
  createQuerySet(of: { type: "timestamp"; count: number }): GpuQuerySet;
  pushErrorScope(filter: "validation" | "out-of-memory" | "internal"): void;
  popErrorScope(): Promise<GpuFault | null>;
  destroy(): void;
}
export interface GpuQueue {
  submit(commands: readonly GpuCommands[]): void;
  writeBuffer(buffer: GpuBuffer, at: number, data: ArrayBufferView): void;
  onSubmittedWorkDone(): Promise<unknown>;
}
export interface GpuBuffer {
  readonly size: number;
  mapAsync(mode: number, at?: number, size?: number): Promise<unknown>;
  getMappedRange(at?: number, size?: number): ArrayBuffer;
  unmap(): void;
  destroy(): void;
}
export interface GpuMessage {
  readonly type: string;
  readonly message: string;
  readonly lineNum: number;
}
export interface GpuShaderModule {
  getCompilationInfo(): Promise<{ readonly messages: readonly GpuMessage[] }>;
}
export interface GpuLayoutEntry {
  readonly binding: number;
  readonly visibility: number;
  readonly buffer: {
    readonly type: "storage" | "read-only-storage" | "uniform";
    readonly hasDynamicOffset?: boolean;
  };
}
export interface GpuPipelineOf {
  readonly label?: string;
  readonly layout: GpuPipelineLayout;
  readonly compute: { readonly module: GpuShaderModule; readonly entryPoint: string };
}
export interface GpuBinding {
  readonly binding: number;
  readonly resource: { readonly buffer: GpuBuffer; readonly offset: number; readonly size: number };
}
export interface GpuEncoder {
  beginComputePass(of?: { timestampWrites?: GpuTimestamps }): GpuPass;
  copyBufferToBuffer(src: GpuBuffer, from: number, dest: GpuBuffer, to: number, size: number): void;
  copyBufferToTexture(
    src: { buffer: GpuBuffer; offset: number; bytesPerRow: number },
    dest: { texture: GpuTexture },
    size: readonly number[],
  ): void;
  resolveQuerySet(queries: GpuQuerySet, first: number, count: number, dest: GpuBuffer, at: number): void;
  finish(): GpuCommands;
}
/** A canvas, and the part of it that shows textures. */
export interface GpuCanvas {
  getContext(kind: "webgpu"): GpuCanvasContext | null;
}
export interface GpuCanvasContext {
  configure(of: { device: GpuDevice; format: string; usage: number; alphaMode: string }): void;
  getCurrentTexture(): GpuTexture;
}
export interface GpuTimestamps {
  readonly querySet: GpuQuerySet;
  readonly beginningOfPassWriteIndex: number;
  readonly endOfPassWriteIndex: number;
}
export interface GpuPass {
  setPipeline(pipeline: GpuPipeline): void;
  setBindGroup(index: number, group: GpuBindGroup, dynamicOffsets?: readonly number[]): void;
  /** from WebGPU of 2026 on: bytes that the kernel reads without a buffer */
  setImmediates?(at: number, data: ArrayBufferView): void;
  dispatchWorkgroups(x: number, y?: number, z?: number): void;
  end(): void;
}
/** Objects that are only handed on. */
interface Opaque<Kind extends string> {
  readonly __brand?: Kind;
}
export interface GpuBindGroupLayout extends Opaque<"bind group layout"> {}
export interface GpuPipelineLayout extends Opaque<"pipeline layout"> {}
export interface GpuPipeline extends Opaque<"pipeline"> {}
export interface GpuBindGroup extends Opaque<"bind group"> {}
export interface GpuTexture extends Opaque<"texture"> {}
export interface GpuCommands extends Opaque<"commands"> {}
export interface GpuQuerySet extends Opaque<"query set"> {
  destroy(): void;
}
