// The devices of Node: those of the browser, and those that need files, compilers and foreign functions.

import type { DeviceKinds } from "../runtime/device.ts";
import { kinds as everywhere } from "./browser.ts";

export const kinds: DeviceKinds = {
  ...everywhere,
  CLANG: { storage: "memory", load: () => import("./clang.ts") },
  CUDA: { storage: "memory", load: () => import("./cuda.ts") },
  DISK: { storage: "file", load: () => import("./disk.ts") },
  NV: { storage: "memory", load: () => import("./nv.ts") },
};
