// CUDA devices on the fake driver, for the tests of this folder: one by itself,
// or as the CUDA of this process.

import { Device } from "gradloom";
import { CudaSystem } from "../../../src/devices/cuda/context.ts";
import { CudaDevice } from "../../../src/devices/cuda/device.ts";
import { FakeDriver, type FakeOptions, type FakeState } from "./fake.ts";
import { FakeKernels } from "./fakekernels.ts";

export interface Fake {
  readonly state: FakeState;
  readonly kernels: FakeKernels;
  open(name?: string): CudaDevice;
}

export function fakeCuda(options: FakeOptions = {}): Fake {
  const kernels = new FakeKernels(options.plain);
  const { state, driver } = new FakeDriver(kernels, options);
  let system: CudaSystem | undefined;
  return {
    state,
    kernels,
    open(name = "CUDA") {
      system ??= new CudaSystem(driver, name);
      return new CudaDevice(name, system, kernels.nvrtc, kernels.renderer);
    },
  };
}

/** From now on `Device.open("CUDA")` gives devices of this driver. Before the first is opened. */
export function installFake(options: FakeOptions = {}): Fake {
  const fake = fakeCuda(options);
  Device.register({ CUDA: { storage: "memory", load: () => ({ open: (name) => fake.open(name) }) } });
  return fake;
}

/** How often a call was made since the last look. */
export function callsOf(state: FakeState): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of state.calls.splice(0)) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
