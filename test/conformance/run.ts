// npm run conformance -- FILE [--device WASM] [--op name] [--limit n] [--every n] [--share i/n] [--verbose]
// Runs a file of torch's own samples and says what agrees. Exits with 1 unless 98 % of the values and 97 % of
// the gradients do.

import { parseArgs } from "node:util";
import { Device } from "gradloom";
import "../devices/webgpu/swiftshader.ts";
import { describe, runSamples, share } from "./runner.ts";
import { readSamples } from "./sample.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    device: { type: "string", default: Device.DEFAULT },
    op: { type: "string", multiple: true },
    limit: { type: "string" },
    every: { type: "string", default: "1" },
    share: { type: "string", default: "0/1" },
    verbose: { type: "boolean", default: false },
  },
});
const [file] = positionals;
if (file === undefined) {
  console.error(
    "conformance: which file? npm run conformance -- FILE [--device WASM] [--op name] [--limit n] [--verbose]",
  );
  process.exit(2);
}
const every = Number(values.every);
const [part, parts] = values.share.split("/").map(Number) as [number, number];
const samples = readSamples(file)
  .filter((s) => values.op === undefined || values.op.includes(s.op))
  .filter((_, i) => i % every === 0)
  .filter((_, i) => i % parts === part)
  .slice(0, values.limit === undefined ? undefined : Number(values.limit));

const started = performance.now();
const report = await runSamples(samples, {
  device: values.device,
  onSample: (sample, value, gradient) => {
    if (!values.verbose) return;
    const call = JSON.stringify({ variant: sample.variant, args: sample.args, kwargs: sample.kwargs });
    const words = [value, gradient].map((v) => (v === undefined ? "-" : v.outcome)).join(", ");
    const why = [value.why, gradient?.why].filter((w) => w !== undefined);
    console.log(
      `${sample.op} ${call.length > 300 ? `${call.slice(0, 300)}…` : call}: ${words}${why.length > 0 ? `: ${why.join("; ")}` : ""}`,
    );
  },
});
console.log(describe(report));
console.log(
  `${samples.length} samples on ${values.device} in ${((performance.now() - started) / 1000).toFixed(1)} s`,
);
process.exitCode = share(report.value) >= 0.98 && share(report.gradient) >= 0.97 ? 0 : 1;
