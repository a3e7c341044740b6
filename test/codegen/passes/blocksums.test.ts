// A long sum of floats goes in blocks. What lies beyond the end of the last one adds
// nothing, whatever is made of it.

import { Device, Tensor, withEnv } from "gradloom";
import { expect, test } from "vitest";

await Device.open("JS");

test.for(["JS", "WASM"])("%s: a prime number of terms, none of which is 0 for a 0", (device) => {
  for (const NOOPT of [0, 1]) {
    withEnv({ NOOPT }, () => {
      for (const n of [4099, 8209]) {
        const zeros = Tensor.zeros(2, n).to(device).contiguous().realizeSync();
        expect([...(zeros.exp().sum(1).dataSync() as Float32Array)], `${n} terms`).toEqual([n, n]);
      }
    });
  }
});
