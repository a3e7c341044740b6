// `npm run bench -- NAME [--json] [--write]` runs one benchmark and shows its rows, as a table for people or as JSON
// for machines. `--write` also replaces the benchmark's section of bench/RESULTS.md.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cpu } from "./cpu.ts";
import { jit } from "./jit.ts";
import { overhead } from "./overhead.ts";
import { machine, type Report, toMarkdown } from "./stats.ts";
import { train } from "./train.ts";

type Benchmark = (flags: ReadonlySet<string>) => Promise<Report>;
const BENCHMARKS: Record<string, Benchmark> = { cpu, jit, overhead, train };

const args = process.argv.slice(2);
const flags = new Set(args.filter((a) => a.startsWith("--")));
const [name = ""] = args.filter((a) => !a.startsWith("--"));
const benchmark = Object.hasOwn(BENCHMARKS, name) ? BENCHMARKS[name] : undefined;
const FLAGS = name === "cpu" ? ["--json", "--write", "--busy", "--only=NAME"] : ["--json", "--write"];
const isKnown = (flag: string): boolean => FLAGS.some((f) => f.split("=")[0] === flag.split("=")[0]);

if (benchmark === undefined || ![...flags].every(isKnown)) {
  console.error(
    `usage: npm run bench -- ${Object.keys(BENCHMARKS).join("|")} ${FLAGS.map((f) => `[${f}]`).join(" ")}`,
  );
  process.exitCode = 2;
} else {
  const facts = machine();
  const report = await benchmark(flags);
  const text = toMarkdown(report, facts);
  console.log(flags.has("--json") ? JSON.stringify({ machine: facts, ...report }) : text);
  if (flags.has("--write")) write(report.title, text);
}

/** Sections start with `## title`; the others stay as they are. */
function write(title: string, text: string): void {
  const file = join(import.meta.dirname, "RESULTS.md");
  const before = existsSync(file) ? readFileSync(file, "utf8") : "# Results\n";
  const [head = "", ...sections] = before.split(/^(?=## )/m);
  const others = sections.filter((s) => !s.startsWith(`## ${title}\n`));
  writeFileSync(file, [head.trimEnd(), text, ...others.map((s) => s.trimEnd())].join("\n\n").concat("\n"));
}
