// AMD: a GPU of AMD's that we drive ourselves (amd/): kernels are HIP compiled by clang or by ROCm's library,
// everything after that is ioctls and packets in the GPU's own rings. `AMD:1` is the second GPU. Untried on
// hardware.

import { DeviceError } from "../errors.ts";
import { amdFor } from "../render/amd.ts";
import { ordinalOf } from "../runtime/registry.ts";
import { findHipTool, HipCompiler } from "./amd/compiler.ts";
import { AMDDevice } from "./amd/device.ts";
import { openGpu } from "./amd/driver/driver.ts";
import { openKernel } from "./linux/syscalls.ts";

export async function open(name: string): Promise<AMDDevice> {
  const number = ordinalOf(name);
  const gpu = openGpu(await openKernel("AMD"), number);
  try {
    const { arch, computeUnits } = gpu;
    const renderer = amdFor(arch, { computeUnits });
    if (renderer === undefined) throw new DeviceError(`${name}: no kernels are made for ${arch} here`);
    const compiler = new HipCompiler(findHipTool(arch), arch, name);
    return new AMDDevice(name, gpu, {
      renderer,
      compile: (kernel, source) => compiler.compile(kernel, source),
    });
  } catch (e) {
    gpu.close();
    throw e;
  }
}
