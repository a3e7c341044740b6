// The devices of every platform, a line each. EXT and WASM load with the package, since every program uses
// them; the rest on first use.

import type { DeviceKinds } from "../runtime/device.ts";
import * as ext from "./ext.ts";
import * as wasm from "./wasm.ts";

export const kinds: DeviceKinds = {
  WASM: { storage: "memory", rank: 1, load: () => wasm },
  JS: { storage: "memory", load: async () => (await import("./simulated.ts")).js },
  NULL: { storage: "memory", load: async () => (await import("./simulated.ts")).nothing },
  EXT: { storage: "array", load: () => ext },
};
