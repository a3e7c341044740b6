// Makes the device MOCKNV: NV with a GPU in JavaScript behind it, for the suites that run on every device.

import { registry } from "#devices";
import { NVDevice } from "../../../src/devices/nv/device.ts";
import { MockGpu, type MockOptions } from "./mock.ts";

export const MOCK = "MOCKNV";

export function mockDevice(name: string, options: MockOptions = {}): { device: NVDevice; gpu: MockGpu } {
  const gpu = new MockGpu(options);
  return { device: new NVDevice(name, gpu, gpu.compiler()), gpu };
}

Object.assign(registry, { [MOCK]: () => ({ open: (name: string) => mockDevice(name).device }) });
