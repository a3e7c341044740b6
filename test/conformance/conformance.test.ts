// torch's own samples: the open file whole on WASM, a tenth of it on JS, on two devices, and on kernels as a
// GPU gets them. Skipped, with the reason, where it is absent; CONFORMANCE names another file of the form.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Tensor } from "gradloom";
import { CUDARenderer } from "gradloom/render";
import { expect, it } from "vitest";
import { whyClosed } from "../device/harness.ts";
import { registerOracle } from "../devices/oracle.ts";
import { describe, type Report, runSamples, share } from "./runner.ts";
import { readSamples, type Sample } from "./sample.ts";

const file =
  process.env.CONFORMANCE ??
  fileURLToPath(new URL("../../../shared/conformance/opinfo-open.jsonl.gz", import.meta.url));
const MISSING = `there is no file ${file}; CONFORMANCE names one of the form`;

const expectToAgree = (report: Report): void => {
  expect(share(report.value), describe(report)).toBeGreaterThanOrEqual(0.98);
  expect(share(report.gradient), describe(report)).toBeGreaterThanOrEqual(0.97);
};
const samples = (): readonly Sample[] => readSamples(file);

it("WASM agrees with torch", { timeout: 150_000 }, async ({ skip }) => {
  skip(!existsSync(file), MISSING);
  const report = await runSamples(samples(), { device: "WASM" });
  expectToAgree(report);
  const silent = [...report.ops].filter(([, t]) => t.value.passed === 0).map(([op]) => op);
  expect(silent, "operators without a sample that passes").toEqual([]);
});

it("JS agrees with torch on a tenth", { timeout: 150_000 }, async ({ skip }) => {
  skip(!existsSync(file), MISSING);
  const tenth = samples().filter((_, i) => i % 10 === 0);
  expectToAgree(await runSamples(tenth, { device: "JS" }));
});

it("CUDA's kernels, which JS executes, agree with torch on a tenth", { timeout: 150_000 }, async ({
  skip,
}) => {
  skip(!existsSync(file), MISSING);
  const tenth = samples().filter((s, i) => i % 10 === 3 || s.op === "nn.functional.max_pool3d");
  const report = await runSamples(tenth, { device: registerOracle("GPU", CUDARenderer) });
  expectToAgree(report);
  expect([report.value.failed, report.gradient.failed], describe(report)).toEqual([0, 0]);
});

it("WEBGPU agrees with torch on a tenth, but for what is float64", { timeout: 300_000 }, async ({ skip }) => {
  skip(!existsSync(file), MISSING);
  const closed = await whyClosed("WEBGPU");
  skip(closed !== undefined, closed);
  const tenth = samples().filter((_, i) => i % 10 === 7);
  const report = await runSamples(tenth, { device: "WEBGPU" });
  expect([report.value.failed, report.gradient.failed], describe(report)).toEqual([0, 0]);
  expect(share(report.value), describe(report)).toBeGreaterThanOrEqual(0.95);
});

it("two devices agree with torch on a tenth, or say what they refuse", { timeout: 150_000 }, async ({
  skip,
}) => {
  skip(!existsSync(file), MISSING);
  const tenth = samples().filter((_, i) => i % 10 === 5);
  const devices = ["WASM", "WASM:1"];
  for (const dim of [0, 1]) {
    const place = (t: Tensor) => t.shard(devices, (t.shape[dim] ?? 0) >= devices.length ? dim : null);
    const report = await runSamples(tenth, { device: "WASM", place });
    const reasons = [...report.value.reasons.keys(), ...report.gradient.reasons.keys()];
    const odd = reasons.filter((why) => !/^unsupported|is sharded along dim \d/.test(why));
    expect(odd, describe(report)).toEqual([]);
    expect(share(report.value), describe(report)).toBeGreaterThanOrEqual(dim === 0 ? 0.97 : 0.9);
  }
});
