// Opens a GPU: an adapter, and a device with all of its features and limits that kernels can use, each asked
// for by itself. In goes a Gpu (a page's `navigator.gpu`, Dawn in Node), out comes a GpuDevice and what is
// known of it. WEBGPU_TIER holds it to less, so that what a browser with fewer features runs can be tested.

import { env } from "../../env.ts";
import { ArgumentError, DeviceError } from "../../errors.ts";
import type { Gpu, GpuAdapter, GpuDevice, GpuInfo, GpuLimits, MatrixConfig } from "./api.ts";

/**
 * What kernels may use. f32: what the standard has (Firefox). f16: with 16-bit floats (Safari). full: with
 * whatever the adapter has besides (Chrome).
 */
export const TIERS = ["f32", "f16", "full"] as const;
export type Tier = (typeof TIERS)[number];

/** A feature of WGSL: variables of a kernel without a buffer. */
const IMMEDIATES = "immediate_address_space";

/** Products of matrices by subgroups, an experiment of Dawn's. */
const MATRICES = "chromium-experimental-subgroup-matrix";

/** What each tier adds to the one before: features of a device, and of the language WGSL. */
const ADDED: Readonly<Record<Tier, { features: readonly string[]; language: readonly string[] }>> = {
  f32: { features: ["timestamp-query"], language: [] },
  f16: { features: ["shader-f16"], language: [] },
  full: { features: ["subgroups", MATRICES], language: [IMMEDIATES] },
};

/** The limits that kernels and buffers meet; the more of each the better. */
const LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupSizeZ",
  "maxComputeWorkgroupsPerDimension",
  "maxImmediateSize",
] as const;
/** The less the better: a part of a buffer may start at more places. */
const ALIGNMENT = "minStorageBufferOffsetAlignment";

export interface OpenGpu {
  readonly device: GpuDevice;
  readonly info: GpuInfo;
  /** the driver computes on the CPU */
  readonly isSoftware: boolean;
  readonly hasHalf: boolean;
  readonly hasTimestamps: boolean;
  /** bytes of a kernel's variables that a pass takes without a buffer; 0: none */
  readonly immediates: number;
  /** threads that exchange values without memory; 1 where that is not known before a kernel runs */
  readonly subgroup: number;
  /** what its subgroups multiply */
  readonly configs: readonly MatrixConfig[];
}

export function tierOf(wanted: string): Tier {
  if (wanted === "") return "full";
  const tier = TIERS.find((t) => t === wanted);
  if (tier !== undefined) return tier;
  throw new ArgumentError(`WEBGPU_TIER=${wanted}: expected ${TIERS.join(", ")}, or nothing for all there is`);
}

/** `advice` says what to do where there is no GPU, or no answer. */
export async function openGpu(name: string, gpu: Gpu, advice: string): Promise<OpenGpu> {
  const tier = tierOf(env.WEBGPU_TIER);
  const inTime = <T>(what: string, asked: Promise<T>): Promise<T> => within(name, what, advice, asked);
  const adapter = await inTime("adapter", gpu.requestAdapter({ powerPreference: "high-performance" }));
  if (!adapter) throw new DeviceError(`${name}: WebGPU is here, but it finds no GPU; ${advice}`);
  const added = TIERS.slice(0, TIERS.indexOf(tier) + 1).map((t) => ADDED[t]);
  const features = added.flatMap((a) => a.features).filter((f) => adapter.features.has(f));
  const language = added.flatMap((a) => a.language).filter((f) => gpu.wgslLanguageFeatures?.has(f) === true);
  const wanted = { requiredFeatures: features, requiredLimits: limitsOf(adapter) };
  const device = await inTime("device", adapter.requestDevice(wanted));
  const info = adapter.info ?? {};
  const { subgroupMinSize: least = 0, subgroupMaxSize: most = 0 } = info;
  return {
    device,
    info,
    isSoftware: info.isFallbackAdapter === true,
    hasHalf: features.includes("shader-f16"),
    hasTimestamps: features.includes("timestamp-query"),
    immediates: language.includes(IMMEDIATES) ? (device.limits.maxImmediateSize ?? 0) : 0,
    // where they may be of several sizes a kernel cannot know its own before it runs
    subgroup: features.includes("subgroups") && least === most && least > 0 ? least : 1,
    configs: features.includes(MATRICES) ? [...(info.subgroupMatrixConfigs ?? [])] : [],
  };
}

/** What WebGPU is asked for at opening; a driver that hangs must not hang the program. */
async function within<T>(name: string, what: string, advice: string, asked: Promise<T>): Promise<T> {
  const seconds = env.HCQ_TIMEOUT;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const why = `${name}: WebGPU was asked for the GPU's ${what} and has not answered for ${seconds} s (HCQ_TIMEOUT)`;
    timer = setTimeout(() => reject(new DeviceError(`${why}; ${advice}`)), seconds * 1000);
  });
  try {
    return await Promise.race([asked, late]);
  } catch (cause) {
    if (cause instanceof DeviceError) throw cause;
    const why = cause instanceof Error ? cause.message.trim() : String(cause);
    throw new DeviceError(`${name}: the GPU cannot be opened: ${why}; ${advice}`, { cause });
  } finally {
    clearTimeout(timer);
  }
}

/** Every limit as the adapter has it. A browser that reports what no kernel can have is not believed. */
function limitsOf({ limits }: GpuAdapter): GpuLimits {
  const most: Partial<Record<string, number>> = { maxComputeWorkgroupSizeZ: 64 };
  const wanted: Record<string, number> = {};
  for (const limit of LIMITS) {
    const has = limits[limit];
    if (has !== undefined) wanted[limit] = Math.min(has, most[limit] ?? Infinity);
  }
  const alignment = limits[ALIGNMENT];
  if (alignment !== undefined) wanted[ALIGNMENT] = alignment;
  return wanted;
}
