// Makes the device MOCKAMD: AMD with a kernel driver and a GPU in JavaScript behind it, for the suites that
// run on every device. The GPU executes only when it is waited for, so that the host runs ahead.

import { Device } from "gradloom";
import { AMDDevice } from "../../../src/devices/amd/device.ts";
import { openGpu } from "../../../src/devices/amd/driver/driver.ts";
import { MockKfd, type MockOptions } from "./mock.ts";

export const MOCK = "MOCKAMD";

export function mockDevice(name: string, options: MockOptions = {}): { device: AMDDevice; kfd: MockKfd } {
  const kfd = new MockKfd(options);
  return { device: new AMDDevice(name, openGpu(kfd, 0), kfd.compiler()), kfd };
}

Device.register({
  [MOCK]: {
    storage: "memory",
    load: () => ({ open: (name: string) => mockDevice(name, { when: "poll" }).device }),
  },
});
