// NV: an NVIDIA GPU that we drive ourselves (nv/): kernels are CUDA C++ compiled by NVRTC, everything after
// that is ioctls and words in the GPU's own rings. `NV:1` is the second GPU.

import { isText } from "../codegen/target.ts";
import { DeviceError, InternalError } from "../errors.ts";
import { openKoffi } from "../host/koffi.ts";
import { CUDARenderer, cudaFor } from "../render/languages.ts";
import type { KernelCompiler } from "../runtime/hcq/hardware.ts";
import { ordinalOf } from "../runtime/registry.ts";
import { CudaCompiler, openNvrtc } from "./cuda/nvrtc.ts";
import { openKernel } from "./linux/syscalls.ts";
import { maxShared } from "./nv/commands/qmd.ts";
import { NVDevice } from "./nv/device.ts";
import { openGpu } from "./nv/driver/driver.ts";
import type { NVGpu } from "./nv/gpu.ts";

export async function open(name: string): Promise<NVDevice> {
  const number = ordinalOf(name);
  const koffi = await openKoffi(name);
  const gpu = openGpu(await openKernel("NV"), number);
  try {
    const nvrtc = openNvrtc(koffi, name);
    return new NVDevice(name, gpu, cubins(new CudaCompiler(nvrtc, gpu.arch, name), name, gpu));
  } catch (e) {
    gpu.close();
    throw e;
  }
}

/** Only machine code will do: what would compile PTX is a part of the driver that we do not load. */
function cubins(
  compiler: CudaCompiler,
  name: string,
  { arch, smCount, maxWarpsPerSM }: NVGpu,
): KernelCompiler {
  if (compiler.kind !== "cubin") {
    throw new DeviceError(
      `${name}: NVRTC is older than this GPU and makes no code for sm_${arch}; install a newer CUDA toolkit, or use DEV=CUDA`,
    );
  }
  const figures = { computeUnits: smCount, threadsPerUnit: 32 * maxWarpsPerSM };
  return {
    renderer: { ...cudaFor(CUDARenderer, arch, figures), name: "NV", sharedMax: maxShared(arch) },
    compile(kernel, source) {
      if (!isText(source)) throw new InternalError("NV compiles CUDA C++");
      return compiler.compile(kernel, source.code);
    },
  };
}
