// Makes the device MOCKNV: NV with a GPU in JavaScript behind it, for the suites that run on every device;
// MOCKLATE is the same with a GPU that executes only when it is waited for, so that the host runs ahead.

import { Device } from "gradloom";
import { NVDevice } from "../../../src/devices/nv/device.ts";
import { MockGpu, type MockOptions } from "./mock.ts";

export const MOCK = "MOCKNV";
export const LATE = "MOCKLATE";

export function mockDevice(name: string, options: MockOptions = {}): { device: NVDevice; gpu: MockGpu } {
  const gpu = new MockGpu(options);
  return { device: new NVDevice(name, gpu, gpu.compiler()), gpu };
}

const kind = (options: MockOptions) => ({
  storage: "memory" as const,
  load: () => ({ open: (name: string) => mockDevice(name, options).device }),
});
Device.register({ [MOCK]: kind({}), [LATE]: kind({ when: "poll" }) });
