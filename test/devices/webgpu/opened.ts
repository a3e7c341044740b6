// A device of its own on a fake Gpu, for each test that wants one.

import { Device, Tensor } from "gradloom";
import { WebGpuDevice } from "../../../src/devices/webgpu/device.ts";
import { openGpu } from "../../../src/devices/webgpu/open.ts";
import { type Fake, type FakeOptions, fakeGpu } from "./fake.ts";

let made = 0;
/** A device of its own on a fake. */
export async function opened(
  options: FakeOptions = {},
): Promise<{ name: string; fake: Fake; device: WebGpuDevice }> {
  const fake = fakeGpu(options);
  const name = `FAKEGPU${made++}`;
  const open = async () => new WebGpuDevice(name, await openGpu(name, fake.gpu, "buy one"));
  Device.register({ [name]: { storage: "memory", load: () => ({ open }) } });
  const device = (await Device.open(name)) as WebGpuDevice;
  fake.calls.clear();
  return { name, fake, device };
}
export const ones = (device: string, n = 64): Promise<Tensor> =>
  Tensor.ones([n], { device }).contiguous().realize();
