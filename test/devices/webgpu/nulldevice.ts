// A device of Dawn's backend without a GPU: it checks the texts of kernels as any other does, and has every
// feature. Nothing runs on it.

import type { Gpu, GpuDevice } from "../../../src/devices/webgpu/api.ts";

/** The reason, where there is none. */
export async function nullDevice(features: readonly string[]): Promise<GpuDevice | string> {
  try {
    const { create } = (await import("webgpu")) as unknown as { create(toggles: readonly string[]): Gpu };
    const gpu = create(["backend=null", "enable-dawn-features=allow_unsafe_apis,use_vulkan_memory_model"]);
    const adapter = await gpu.requestAdapter();
    if (adapter === null) return "Dawn has no backend without a GPU";
    held.push(gpu);
    return await adapter.requestDevice({ requiredFeatures: features, requiredLimits: {} });
  } catch (e) {
    return `the package webgpu does not load: ${(e as Error).message}`;
  }
}
/** Dawn's Gpu ends with its object. */
const held: Gpu[] = [];
