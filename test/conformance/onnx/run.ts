// npm run onnx-conformance -- DIR_OR_TGZ [--device WASM] [--only regexp] [--every n] [--share i/n]
//   [--runs n] [--verbose]
// Runs ONNX's own backend tests, each `--runs` times (the third is a replay), and says what passed, failed,
// and is not supported, and why. Exits with 1 below 97 % of the cases.

import { parseArgs } from "node:util";
import { Device } from "gradloom";
import "../../devices/webgpu/swiftshader.ts";
import { readCases } from "./cases.ts";
import { type CaseVerdict, checkCase } from "./check.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    device: { type: "string", default: Device.DEFAULT },
    only: { type: "string", default: "" },
    every: { type: "string", default: "1" },
    share: { type: "string", default: "0/1" },
    runs: { type: "string", default: "1" },
    verbose: { type: "boolean", default: false },
  },
});
const [path] = positionals;
if (path === undefined) {
  console.error(
    "onnx-conformance: which cases? npm run onnx-conformance -- DIR_OR_TGZ [--device WASM] [--only regexp]",
  );
  process.exit(2);
}
Device.DEFAULT = values.device;
const only = new RegExp(values.only);
const [part, parts] = values.share.split("/").map(Number) as [number, number];
const cases = readCases(path, (name) => only.test(name))
  .filter((_, i) => i % Number(values.every) === 0)
  .filter((_, i) => i % parts === part);

const started = performance.now();
const verdicts: (CaseVerdict & { name: string })[] = [];
for (const one of cases) {
  const before = performance.now();
  const verdict = await checkCase(one, Number(values.runs));
  verdicts.push({ name: one.name, ...verdict });
  if (values.verbose || verdict.outcome !== "passed") {
    const why = verdict.why === undefined ? "" : `: ${verdict.why.slice(0, 400)}`;
    const ms = values.verbose ? ` (${(performance.now() - before).toFixed(0)} ms)` : "";
    console.log(`${verdict.outcome} ${one.name}${ms}${why}`);
  }
}
const count = (outcome: string): number => verdicts.filter((v) => v.outcome === outcome).length;
const share = count("passed") / verdicts.length;
console.log(
  `${verdicts.length} cases on ${values.device} in ${((performance.now() - started) / 1000).toFixed(1)} s: ` +
    `${count("passed")} passed (${(100 * share).toFixed(2)} %), ${count("failed")} failed, ${count("unsupported")} unsupported`,
);
process.exitCode = share >= 0.97 ? 0 : 1;
