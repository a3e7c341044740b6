// WEBGPU in Node: the optional package `webgpu` brings Dawn, which drives any GPU through Vulkan, Metal or
// D3D12. A `navigator.gpu` that somebody installed goes first.

import { DeviceError } from "../errors.ts";
import { SUBGROUP_MATRICES } from "../render/wgslmatrix.ts";
import type { Gpu } from "./webgpu/api.ts";
import { WebGpuDevice } from "./webgpu/device.ts";
import { openGpu } from "./webgpu/open.ts";
import { platformGpu } from "./webgpu.ts";

const ADVICE =
  "install its driver (on Linux also the Vulkan loader, libvulkan1); VK_DRIVER_FILES can name a driver's file";

/**
 * Kernels stay inside their buffers and set what they read, so neither is checked or cleared for them; times
 * are not rounded. NVIDIA's 16-bit floats are behind a toggle.
 */
export const TOGGLES: readonly string[] = [
  "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia,use_vulkan_memory_model,disable_robustness,disable_workgroup_init",
  "disable-dawn-features=timestamp_quantization",
];

interface Dawn {
  create(options: readonly string[]): Gpu;
}
/** Dawn's Gpu must be held: it ends with its object. */
let dawn: Gpu | undefined;

/** By a name that bundlers do not follow: the package is optional. */
const load = (name: string): Promise<unknown> => import(name);

export async function open(
  name: string,
  importer: () => Promise<unknown> = () => load("webgpu"),
): Promise<WebGpuDevice> {
  const gpu = platformGpu() ?? dawn ?? (await create(name, importer));
  const opened = await openGpu(name, gpu, ADVICE);
  dawn = gpu;
  return new WebGpuDevice(name, opened, SUBGROUP_MATRICES);
}
async function create(name: string, importer: () => Promise<unknown>): Promise<Gpu> {
  try {
    return ((await importer()) as Dawn).create(TOGGLES);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
    throw new DeviceError(
      `${name}: cannot load the package webgpu, which has WebGPU for Node (${why}); run npm install webgpu`,
      { cause },
    );
  }
}
