// What PyTorch says at the edges: ties, NaN, empty and 0-d tensors, mixed types, options that change each
// other. edges.jsonl was computed by edges.py; unlike the large file it is always
// here, and all of it must agree.

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { describe, runSamples, share } from "./runner.ts";
import { readSamples } from "./sample.ts";

const samples = readSamples(fileURLToPath(new URL("./edges.jsonl", import.meta.url)));

it.for(["WASM", "JS"])("%s agrees with torch at the edges", { timeout: 120_000 }, async (device) => {
  const chosen = samples.filter((_, i) => device === "WASM" || i % 4 === 0);
  const report = await runSamples(chosen, { device });
  expect([share(report.value), share(report.gradient)], describe(report)).toEqual([1, 1]);
});
