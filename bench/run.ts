// `npm run bench -- NAME [--json] [--write]` runs one benchmark and prints its rows, as a table or as JSON.
// `--write` also replaces the benchmark's section of bench/RESULTS.md; `--help` lists the other flags.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BEAM_FLAGS, beam } from "./beam.ts";
import { BUSY_FLAGS, busy } from "./busy.ts";
import { CPU_FLAGS, cpu } from "./cpu.ts";
import { DEEP_FLAGS, deep } from "./deep.ts";
import { GPU_FLAGS, gpu } from "./gpu.ts";
import { jit } from "./jit.ts";
import { ONNX_FLAGS, onnx } from "./onnx.ts";
import { overhead } from "./overhead.ts";
import { PAGE_FLAGS, page } from "./page.ts";
import { rnn } from "./rnn.ts";
import { SCATTER_FLAGS, scatter } from "./scatter.ts";
import { size } from "./size.ts";
import { machine, type Report, toMarkdown } from "./stats.ts";
import { train } from "./train.ts";
import { WEBGPU_FLAGS, webgpu } from "./webgpu.ts";

interface Benchmark {
  readonly run: (flags: ReadonlySet<string>) => Promise<Report>;
  readonly what: string;
  /** its own flags and what they do */
  readonly flags?: Readonly<Record<string, string>>;
}
const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  beam: { run: beam, what: "the heuristic's kernels beside what BEAM=4 finds", flags: BEAM_FLAGS },
  busy: { run: busy, what: "one thread and two beside another busy process", flags: BUSY_FLAGS },
  cpu: { run: cpu, what: "kernels and models beside peers and the machine's limits", flags: CPU_FLAGS },
  deep: { run: deep, what: "deep and wide graphs, and small eager steps", flags: DEEP_FLAGS },
  gpu: {
    run: gpu,
    what: "workloads on an NVIDIA GPU, through CUDA and NV, beside PyTorch",
    flags: GPU_FLAGS,
  },
  jit: { run: jit, what: "what a captured step costs: time of the host, of the device, memory" },
  onnx: { run: onnx, what: "models in the ONNX format beside onnxruntime", flags: ONNX_FLAGS },
  overhead: { run: overhead, what: "what the compiler costs" },
  page: { run: page, what: "how a page fares in Chromium while it trains", flags: PAGE_FLAGS },
  rnn: { run: rnn, what: "a training step of an LSTM: first, eager, jitted" },
  scatter: {
    run: scatter,
    what: "scatters, running sums and sorting beside plain loops over typed arrays",
    flags: SCATTER_FLAGS,
  },
  size: { run: size, what: "what a page downloads, by esbuild and rollup" },
  train: { run: train, what: "steps of training" },
  webgpu: {
    run: webgpu,
    what: "the GPU through WebGPU beside jax-js, tfjs and our CUDA; a page's first result",
    flags: WEBGPU_FLAGS,
  },
};
const COMMON: Readonly<Record<string, string>> = {
  "--json": "JSON in place of a table",
  "--write": "also replace the section of bench/RESULTS.md",
  "--help": "this text",
};

const args = process.argv.slice(2);
const flags = new Set(args.filter((a) => a.startsWith("--")));
const [name = ""] = args.filter((a) => !a.startsWith("--"));
const benchmark = Object.hasOwn(BENCHMARKS, name) ? BENCHMARKS[name] : undefined;
const isKnown = (flag: string): boolean =>
  Object.keys({ ...COMMON, ...benchmark?.flags }).some((f) => f.split("=")[0] === flag.split("=")[0]);

if (flags.has("--help")) console.log(usage());
else if (benchmark === undefined || ![...flags].every(isKnown)) {
  console.error(usage());
  process.exitCode = 2;
} else {
  const facts = machine();
  const report = await benchmark.run(flags);
  const text = toMarkdown(report, facts);
  console.log(flags.has("--json") ? JSON.stringify({ machine: facts, ...report }) : text);
  if (flags.has("--write")) write(report.title, text);
}

function usage(): string {
  const table = (rows: Readonly<Record<string, string>>): string[] =>
    Object.entries(rows).map(([left, right]) => `  ${left.padEnd(28)}${right}`);
  const names = benchmark === undefined ? Object.entries(BENCHMARKS) : [[name, benchmark] as const];
  return [
    "usage: npm run bench -- NAME [FLAGS]",
    ...table(Object.fromEntries(names.map(([n, b]) => [n, b.what]))),
    "flags:",
    ...table({ ...COMMON, ...benchmark?.flags }),
  ].join("\n");
}

/** Sections start with `## title`; the others stay as they are. */
function write(title: string, text: string): void {
  const file = join(import.meta.dirname, "RESULTS.md");
  const before = existsSync(file) ? readFileSync(file, "utf8") : "# Results\n";
  const [head = "", ...sections] = before.split(/^(?=## )/m);
  const others = sections.filter((s) => !s.startsWith(`## ${title}\n`));
  writeFileSync(file, [head.trimEnd(), text, ...others.map((s) => s.trimEnd())].join("\n\n").concat("\n"));
}
