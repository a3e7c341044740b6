// WEBGPU gives what numpy gives, and what the reference gives for random graphs, in the tiers that differ
// here: all that SwiftShader has (subgroups), and what every browser has. `npm run fuzz -- --device WEBGPU
// --programs 1000` runs as many as there is time for.

import { Device, withEnv } from "gradloom";
import { test } from "vitest";
import { settingOf } from "../../scripts/fuzz/execute.ts";
import { generate } from "../../scripts/fuzz/generate/generate.ts";
import { classOf } from "../../scripts/fuzz/language.ts";
import { unsuited } from "../../scripts/fuzz/suited.ts";
import { whyClosed } from "../device/harness.ts";
import { type Case, runCases } from "./oracle.ts";
import { oracleSuite } from "./suite.ts";

/** Opened with fewer features, it is another device. */
const LEAST = "WEBGPU:1";
const closed = await whyClosed("WEBGPU");
if (closed === undefined) await withEnv({ WEBGPU_TIER: "f32" }, () => Device.open(LEAST));

const programs = { everything: false, searched: 12, rotates: true };
await oracleSuite("WEBGPU", {
  ...programs,
  programs: 48,
  settings: ["SPEC=1", "NOOPT=1", "FUSE=0", "JIT=1"],
});
if (closed === undefined) await oracleSuite(LEAST, { ...programs, programs: 48, settings: ["SPEC=1"] });

function randomGraphs(count: number, device: string): Case[] {
  const found: Case[] = [];
  for (let seed = 1; found.length < count; seed++) {
    const made = generate(seed, classOf(seed));
    if (unsuited(made.program, device) === undefined) found.push(made);
  }
  return found;
}
test("WEBGPU: 150 random graphs", { timeout: 600_000 }, async ({ skip }) => {
  skip(closed !== undefined, closed);
  await runCases(randomGraphs(150, "WEBGPU"), "WEBGPU", settingOf("default"));
});
