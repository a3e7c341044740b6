// stories15M on NVIDIA GPUs, with its real weights: the same tokens as on WASM.

import { Device } from "gradloom";
import { expect, test } from "vitest";
import { Storyteller } from "../../examples/llama.ts";
import { findStories, loadStories } from "../../examples/stories15m.ts";

const TOKENS = 64;

async function story(path: string, device: string): Promise<number[]> {
  const before = Device.DEFAULT;
  Device.DEFAULT = device;
  try {
    const tokens: number[] = [];
    for await (const token of new Storyteller(loadStories(path).model, TOKENS).tell()) tokens.push(token);
    return tokens;
  } finally {
    Device.DEFAULT = before;
  }
}

for (const device of ["CUDA", "NV"]) {
  test(`${device} tells WASM's story`, { timeout: 120_000 }, async ({ skip }) => {
    const why = await Device.open(device).then(
      () => "",
      (e: Error) => e.message,
    );
    skip(why !== "", why);
    const path = findStories();
    if (path === undefined) return skip("stories15M is not installed");
    const told = await story(path, device);
    expect(told).toEqual(await story(path, "WASM"));
    expect(told).toHaveLength(TOKENS);
  });
}
