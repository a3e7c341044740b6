// METAL devices on the fake runtime: one by itself, or as a device of this process. Importing register.ts
// makes MOCKMETAL, for the suites that run on every device.

import { Device } from "gradloom";
import { gpusOf } from "../../../src/devices/metal/context.ts";
import { MetalDevice } from "../../../src/devices/metal/device.ts";
import { FakeMetal, type FakeOptions } from "./fakegpu.ts";

export interface Fake {
  readonly metal: FakeMetal;
  open(name?: string): MetalDevice;
}

export function fakeMetal(options: FakeOptions = {}): Fake {
  const metal = new FakeMetal(options);
  let gpus: ReturnType<typeof gpusOf> | undefined;
  return {
    metal,
    open(name = "METAL") {
      gpus ??= gpusOf(metal.runtime, name);
      return new MetalDevice(name, gpus, metal.kernels.rendererFor);
    },
  };
}

/** From now on `Device.open(kind)` gives devices of this runtime. Before the first is opened. */
export function installFake(options: FakeOptions = {}, kind = "METAL"): Fake {
  const fake = fakeMetal(options);
  Device.register({ [kind]: { storage: "memory", load: () => ({ open: (name) => fake.open(name) }) } });
  return fake;
}
