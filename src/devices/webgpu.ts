// WEBGPU in a page, or wherever else the platform has `navigator.gpu`.

import { DeviceError } from "../errors.ts";
import type { Gpu } from "./webgpu/api.ts";
import { WebGpuDevice } from "./webgpu/device.ts";
import { openGpu } from "./webgpu/open.ts";

const ADVICE =
  "update the browser and the GPU's driver; Chromium on Linux needs --enable-unsafe-webgpu for some GPUs " +
  "(chrome://gpu says why one is left out)";

/** `navigator.gpu`, if there is one. */
export const platformGpu = (): Gpu | undefined =>
  (globalThis as { navigator?: { gpu?: Gpu } }).navigator?.gpu ?? undefined;

export async function open(name: string): Promise<WebGpuDevice> {
  const gpu = platformGpu();
  if (gpu === undefined) {
    throw new DeviceError(
      `${name}: this browser has no WebGPU (navigator.gpu); it takes Chrome 113, Safari 26 or Firefox 141 or ` +
        "later, and a page from https or localhost. WASM runs everywhere",
    );
  }
  return new WebGpuDevice(name, await openGpu(name, gpu, ADVICE));
}
