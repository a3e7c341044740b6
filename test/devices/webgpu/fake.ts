// A Gpu of plain objects that computes nothing and notes what it is asked for. Each part can be made to fail,
// as a driver, a browser or an unlucky user would.

import type {
  Gpu,
  GpuAdapter,
  GpuBuffer,
  GpuDevice,
  GpuFault,
  GpuLimits,
  GpuLoss,
} from "../../../src/devices/webgpu/api.ts";

export interface FakeOptions {
  readonly features?: readonly string[];
  readonly limits?: GpuLimits;
  /** there is no adapter */
  readonly isMissing?: boolean;
  /** the adapter refuses a device */
  readonly refuses?: string;
  /** the message of the shader compiler */
  readonly compileError?: string;
  /** allocating fails on the GPU */
  readonly isFull?: boolean;
  readonly info?: GpuAdapter["info"];
  /** features of WGSL */
  readonly language?: readonly string[];
  /** what is asked for and never answered */
  readonly hangs?: "adapter" | "device" | "compile" | "compile info";
  /** the message with which no adapter is given */
  readonly throws?: string;
}
export interface Fake {
  readonly gpu: Gpu;
  /** calls by name */
  readonly calls: Map<string, number>;
  readonly requested: { features: readonly string[]; limits: GpuLimits }[];
  readonly bytes: { alive: number };
  /** the most buffers that a kernel was given, and what passes were given without a buffer */
  readonly bound: { most: number; immediates: number[][] };
  lose(reason?: string, message?: string): void;
  fault(message: string, kind?: string): void;
  /** how waits end: at once, never, or with an error */
  answer: "at once" | "never" | "never maps" | "error";
  /** what the clock says at the beginning and the end of a pass, in nanoseconds */
  times: [bigint, bigint];
}

export const LIMITS: GpuLimits = {
  maxBufferSize: 1 << 20,
  maxStorageBufferBindingSize: 1 << 19,
  maxStorageBuffersPerShaderStage: 8,
  maxComputeWorkgroupStorageSize: 16384,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256,
  maxComputeWorkgroupSizeY: 256,
  maxComputeWorkgroupSizeZ: 1024,
  maxComputeWorkgroupsPerDimension: 65535,
  minStorageBufferOffsetAlignment: 256,
};

export function fakeGpu(options: FakeOptions = {}): Fake {
  const calls = new Map<string, number>();
  const note = (name: string): void => void calls.set(name, (calls.get(name) ?? 0) + 1);
  const bytes = { alive: 0 };
  const bound: Fake["bound"] = { most: 0, immediates: [] };
  const never = (): Promise<never> => new Promise(() => {});
  const requested: Fake["requested"] = [];
  let lose: (loss: GpuLoss) => void = () => {};
  let device: GpuDevice | undefined;
  const answered = <T>(value: T): Promise<T> => {
    if (fake.answer === "never") return new Promise(() => {});
    return fake.answer === "error" ? Promise.reject(new Error("the GPU says no")) : Promise.resolve(value);
  };
  const buffer = (size: number): GpuBuffer => {
    bytes.alive += size;
    let memory: ArrayBuffer | undefined = new ArrayBuffer(size);
    return {
      size,
      mapAsync: () => {
        note("map");
        return fake.answer === "never maps" ? never() : answered(undefined);
      },
      getMappedRange: (at = 0, length = size) => {
        if (size === 16) new BigUint64Array(memory as ArrayBuffer).set(fake.times);
        return (memory as ArrayBuffer).slice(at, at + length);
      },
      unmap: () => {},
      destroy: () => {
        if (memory !== undefined) bytes.alive -= size;
        memory = undefined;
      },
    };
  };
  const pass = {
    setPipeline: () => {},
    setBindGroup: () => {},
    setImmediates: (_: number, data: ArrayBufferView) =>
      void bound.immediates.push([...(data as Int32Array)]),
    dispatchWorkgroups: () => note("dispatch"),
    end: () => {},
  };
  const make = (): GpuDevice => ({
    limits: { ...LIMITS, ...options.limits },
    features: new Set(options.features),
    lost: new Promise((resolve) => {
      lose = resolve;
    }),
    onuncapturederror: null,
    queue: {
      submit: () => note("submit"),
      writeBuffer: () => note("write"),
      onSubmittedWorkDone: () => answered(undefined),
    },
    createBuffer: ({ size }) => {
      note("buffer");
      return buffer(size);
    },
    createShaderModule: () => ({
      getCompilationInfo: async () =>
        options.hangs === "compile info"
          ? never()
          : { messages: [{ type: "error", message: options.compileError ?? "", lineNum: 7 }] },
    }),
    createBindGroupLayout: ({ entries }) => {
      bound.most = Math.max(bound.most, entries.length);
      return {};
    },
    createPipelineLayout: () => ({}),
    createComputePipelineAsync: async () => {
      note("pipeline");
      if (options.hangs === "compile") return never();
      if (options.compileError !== undefined) throw new Error("invalid shader module");
      return {};
    },
    createBindGroup: () => {
      note("bind group");
      return {};
    },
    createCommandEncoder: () => ({
      beginComputePass: () => pass,
      copyBufferToBuffer: () => note("copy"),
      copyBufferToTexture: () => note("draw"),
      resolveQuerySet: () => {},
      finish: () => ({}),
    }),
    createQuerySet: () => ({ destroy: () => {} }),
    pushErrorScope: () => {},
    popErrorScope: async (): Promise<GpuFault | null> => (options.isFull ? { message: "VK_ERROR" } : null),
    destroy: () => {},
  });
  const adapter: GpuAdapter = {
    features: new Set(options.features),
    limits: { ...LIMITS, ...options.limits },
    info: options.info ?? {},
    async requestDevice({ requiredFeatures, requiredLimits }) {
      requested.push({ features: requiredFeatures, limits: requiredLimits });
      if (options.hangs === "device") return never();
      if (options.refuses !== undefined) throw new Error(options.refuses);
      device = make();
      return device;
    },
  };
  const fake: Fake = {
    gpu: {
      wgslLanguageFeatures: new Set(options.language),
      async requestAdapter() {
        if (options.hangs === "adapter") return never();
        if (options.throws !== undefined) throw new Error(options.throws);
        return options.isMissing ? null : adapter;
      },
    },
    calls,
    requested,
    bytes,
    bound,
    lose: (reason = "unknown", message = "the driver was reset") => lose({ reason, message }),
    fault: (message, kind = "GPUValidationError") =>
      device?.onuncapturederror?.({ error: Object.assign({ message }, { [Symbol.toStringTag]: kind }) }),
    answer: "at once",
    times: [0n, 0n],
  };
  return fake;
}
