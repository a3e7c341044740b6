// CUDA: kernels as CUDA C++, compiled by NVRTC and launched through the driver's own interface; no CUDA
// runtime, no native build. The parts are in cuda/; this file loads the two libraries when the first device
// is opened.

import { openKoffi } from "../host/koffi.ts";
import { CUDARenderer } from "../render/languages.ts";
import { CudaSystem } from "./cuda/context.ts";
import { CudaDevice } from "./cuda/device.ts";
import { openDriver } from "./cuda/driver.ts";
import { openNvrtc } from "./cuda/nvrtc.ts";

let system: CudaSystem | undefined;

export async function open(name: string): Promise<CudaDevice> {
  const koffi = await openKoffi(name);
  system ??= new CudaSystem(openDriver(koffi, name), name);
  return new CudaDevice(name, system, openNvrtc(koffi, name), CUDARenderer);
}
