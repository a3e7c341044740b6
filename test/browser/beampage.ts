// The page of beam.test.ts: a product whose kernel BEAM searches for. Says how many
// kernels the device compiled for it.

import { Device, Tensor, withEnv } from "gradloom";

const gradloomBeam = {
  async product(cache: string): Promise<{ values: number[]; compiled: number }> {
    const device = await Device.open("WASM");
    const compile = device.compile.bind(device);
    let compiled = 0;
    device.compile = (...args) => {
      compiled++;
      return compile(...args);
    };
    const x = await Tensor.arange(24 * 40)
      .reshape(24, 40)
      .cast("float32")
      .contiguous()
      .realize();
    const y = await Tensor.arange(40 * 12)
      .reshape(40, 12)
      .cast("float32")
      .contiguous()
      .realize();
    compiled = 0;
    const run = async () => Array.from(await x.matmul(y).data(), Number);
    return { values: await withEnv({ BEAM: 1, BEAM_SECONDS: 2, CACHE: cache }, run), compiled };
  },
};
export type BeamPage = typeof gradloomBeam;
Object.assign(globalThis, { gradloomBeam });
