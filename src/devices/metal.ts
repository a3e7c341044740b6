// METAL: kernels in the Metal Shading Language, on the GPU of a Mac, through the Objective-C runtime; no
// native build. The parts are in metal/; this file loads the runtime when the first device is opened.

import { DeviceError } from "../errors.ts";
import { openKoffi } from "../host/koffi.ts";
import { gpusOf, type MetalGpu } from "./metal/context.ts";
import { MetalDevice } from "./metal/device.ts";
import { openRuntime } from "./metal/objc.ts";

let gpus: readonly MetalGpu[] | undefined;

export async function open(name: string): Promise<MetalDevice> {
  if (process.platform !== "darwin") {
    throw new DeviceError(
      `${name}: Metal is part of macOS, and this is ${process.platform}; WEBGPU runs on the GPUs of Linux and Windows, ` +
        "CUDA and NV on NVIDIA's",
    );
  }
  gpus ??= gpusOf(openRuntime(await openKoffi(name), name), name);
  return new MetalDevice(name, gpus);
}
