// A device of its own on Dawn and a software driver, through a Gpu that counts, for each test that wants one.

import { Device, withEnv } from "gradloom";
import { create } from "webgpu";
import type { Gpu } from "../../../src/devices/webgpu/api.ts";
import { WebGpuDevice } from "../../../src/devices/webgpu/device.ts";
import { openGpu } from "../../../src/devices/webgpu/open.ts";
import { type Counted, counted } from "./counted.ts";

let gpu: Gpu | undefined;
let made = 0;

/** Only where swiftshader.ts finds WEBGPU open. */
export async function openCounted(tier = ""): Promise<{ name: string; count: Counted }> {
  gpu ??= create([]) as unknown as Gpu;
  const count = counted(gpu);
  const name = `COUNTED${made++}`;
  const open = async () => new WebGpuDevice(name, await openGpu(name, count.gpu, ""));
  Device.register({ [name]: { storage: "memory", load: () => ({ open }) } });
  await withEnv({ WEBGPU_TIER: tier }, () => Device.open(name));
  return { name, count };
}
