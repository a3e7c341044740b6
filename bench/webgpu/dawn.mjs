// Gives Node the `navigator.gpu` of a page, with the GPU's 16-bit floats and without checks of each access:
// as gradloom opens it (src/devices/dawn.ts).

import { TOGGLES } from "../../src/devices/dawn.ts";

export async function installGpu() {
  if (globalThis.navigator?.gpu !== undefined) return;
  const { create, globals } = await import("webgpu");
  Object.assign(globalThis, globals);
  // held by the page's object: Dawn's Gpu ends with it
  Object.defineProperty(globalThis, "navigator", {
    value: { gpu: create([...TOGGLES]), userAgent: "Node" },
    configurable: true,
  });
}
