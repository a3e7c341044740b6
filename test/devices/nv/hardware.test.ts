// What only a GPU can show, and the same on the mock as far as it goes: random work in large numbers without
// a leak, and a kernel that reads where no memory is, which must be told and must not end the process.

import { Device } from "gradloom";
import { describe, expect, test } from "vitest";
import type { NVDevice } from "../../../src/devices/nv/device.ts";
import { open } from "../../../src/devices/nv.ts";
import { strayUops } from "../../runtime/hcq/kernels.ts";
import { Stress } from "../../runtime/hcq/stress.ts";

async function gpuOrWhy(): Promise<NVDevice | string> {
  try {
    return (await Device.open("NV")) as NVDevice;
  } catch (e) {
    return (e as Error).message;
  }
}
const gpu = await gpuOrWhy();

describe("random work", () => {
  test("100,000 submissions on the GPU", { timeout: 120_000 }, async ({ skip }) => {
    if (typeof gpu === "string") return skip(gpu);
    const first = new Stress(gpu, 1);
    await first.run(1000);
    await first.end();
    const before = gpu.gpu.freeBytes();
    const stress = new Stress(gpu, 2);
    await stress.run(100_000);
    await stress.end();
    expect(gpu.gpu.freeBytes()).toBe(before);
  });
});

test("a kernel that reads where no memory is", { timeout: 30_000 }, async ({ skip }) => {
  if (typeof gpu === "string") return skip(gpu);
  const device = await open("NV");
  const name = "stray";
  const program = await device.compile(name, device.renderer.render(name, strayUops()));
  const block = device.allocator.alloc(64, true);
  await device.synchronize();
  program.run([block, block], { globalSize: [1], localSize: [1], vals: [] }, false);
  const told = /kernel stray: NV: the compute channel stopped: an access to an address where no memory is/;
  await expect(async () => device.synchronize()).rejects.toThrow(told);
  // told once, and both it and others go on
  await device.synchronize();
  const after = new Stress(device, 4);
  await after.run(100);
  await after.end();
  device.gpu.close();
  const stress = new Stress(gpu, 3);
  await stress.run(100);
  await stress.end();
});
