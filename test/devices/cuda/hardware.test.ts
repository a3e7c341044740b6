// What only NVIDIA's driver can show of the CUDA device: that it compiles PTX, for a
// GPU that NVRTC is too old for.

import { Device, Tensor, TinyJit, withEnv } from "gradloom";
import { expect, test } from "vitest";
import { CudaSystem } from "../../../src/devices/cuda/context.ts";
import { CudaDevice } from "../../../src/devices/cuda/device.ts";
import { openDriver } from "../../../src/devices/cuda/driver.ts";
import { type CodeKind, type Nvrtc, openNvrtc } from "../../../src/devices/cuda/nvrtc.ts";
import { openKoffi } from "../../../src/host/koffi.ts";
import { CUDARenderer } from "../../../src/render/languages.ts";

test("an NVRTC that is older than the GPU: PTX, compiled by the driver", async ({ skip }) => {
  const [koffi, why] = await openKoffi("CUDA").then(
    async (k) =>
      [
        k,
        await Device.open("CUDA").then(
          () => "",
          (e: Error) => e.message,
        ),
      ] as const,
    (e: Error) => [undefined, e.message] as const,
  );
  if (koffi === undefined || why !== "") return skip(why);
  const nvrtc = openNvrtc(koffi, "CUDA");
  const kinds = new Set<CodeKind>();
  const old: Nvrtc = {
    version: `${nvrtc.version}, said to be old`,
    archs: nvrtc.archs.filter((a) => a <= 80),
    compile(source, options, kind) {
      kinds.add(kind);
      return nvrtc.compile(source, options, kind);
    },
  };
  const system = new CudaSystem(openDriver(koffi, "CUDA"), "CUDA");
  const open = (name: string) => new CudaDevice(name, system, old, CUDARenderer);
  Device.register({ OLDCUDA: { storage: "memory", load: () => ({ open }) } });
  await withEnv({ CACHE: "0" }, async () => {
    const on = { device: "OLDCUDA" };
    const a = Tensor.arange(64 * 64, on)
      .reshape(64, 64)
      .fmod(7);
    const step = new TinyJit((x: Tensor) => x.dot(x.transpose()).cast("bfloat16").softmax(-1).sum());
    await a.realize();
    for (let i = 0; i < 3; i++) expect(Number(await (await step(a)).item())).toBeCloseTo(64, 0);
    const half = a.cast("float16");
    expect(await half.dot(half).data()).toEqual(await half.to("WASM").dot(half.to("WASM")).data());
  });
  expect(kinds).toEqual(new Set(["ptx"]));
});
