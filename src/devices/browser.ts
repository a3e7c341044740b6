// The devices of a browser build: those of every platform, and the page's GPU.

import { env } from "../env.ts";
import type { DeviceKinds } from "../runtime/device.ts";
import { kinds as everywhere } from "./everywhere.ts";
import { useSized } from "./wasm/memory.ts";
import * as wasm from "./wasm.ts";

const loadSized = async () => {
  useSized((await import("./wasm/sized.ts")).sizedMemory);
  return wasm;
};

export const kinds: DeviceKinds = {
  ...everywhere,
  WASM: { storage: "memory", rank: 1, load: () => (env.WASM_MEMORY === 4 ? wasm : loadSized()) },
  WEBGPU: { storage: "memory", rank: 3, load: () => import("./webgpu.ts") },
};
