// The devices of Node: those of every platform, and those that need files, compilers and foreign functions.

import { addImages } from "../images.ts";
import type { DeviceKinds } from "../runtime/device.ts";
import { kinds as everywhere } from "./everywhere.ts";
import { useSized } from "./wasm/memory.ts";
import { sizedMemory } from "./wasm/sized.ts";

useSized(sizedMemory);
addImages();

export const kinds: DeviceKinds = {
  ...everywhere,
  CLANG: { storage: "memory", rank: 2, load: () => import("./clang.ts") },
  CUDA: { storage: "memory", rank: 5, load: () => import("./cuda.ts") },
  // no rank: nobody has run it on hardware yet, and WEBGPU is there on the same Macs
  METAL: { storage: "memory", load: () => import("./metal.ts") },
  OPENCL: { storage: "memory", aliases: ["GPU"], load: () => import("./opencl.ts") },
  DISK: { storage: "file", load: () => import("./disk.ts") },
  WEBGPU: { storage: "memory", rank: 3, load: () => import("./dawn.ts") },
  // no rank: nobody has tried it on hardware, so AUTO does not take it
  AMD: { storage: "memory", load: () => import("./amd.ts") },
  NV: { storage: "memory", rank: 4, load: () => import("./nv.ts") },
};
