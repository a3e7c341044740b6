// From samples to figures: the median with its spread, the facts of the machine, and tables. Knows nothing
// about what is measured.

import { availableParallelism, cpus, loadavg, totalmem } from "node:os";

/** A summary of many samples, in their unit. */
export interface Summary {
  readonly median: number;
  readonly p10: number;
  readonly p90: number;
  readonly samples: number;
}
/** One measured quantity, in milliseconds unless `unit` says otherwise. */
export interface Row extends Summary {
  readonly what: string;
  /** the median must stay below */
  readonly limit?: number;
  /** and should stay below */
  readonly target?: number;
  readonly note?: string;
  readonly unit?: string;
}
export interface Report {
  readonly title: string;
  readonly rows: readonly Row[];
  /** what could not be measured, and why */
  readonly skipped: readonly string[];
  /** facts of the machine, besides those of `machine()` */
  readonly facts?: Readonly<Record<string, string>>;
}

export function summarize(samples: readonly number[]): Summary {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (q: number): number => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN;
  return { median: at(0.5), p10: at(0.1), p90: at(0.9), samples: samples.length };
}

/** Enough to compare two runs by, and nothing that names the machine. */
export function machine(): Readonly<Record<string, string>> {
  return {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    os: `${process.platform} ${process.arch}`,
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: String(availableParallelism()),
    memory: `${(totalmem() / 2 ** 30).toFixed(0)} GiB`,
    "load before": (loadavg()[0] ?? 0).toFixed(1),
  };
}

export function toMarkdown(
  { title, rows, skipped, facts: more = {} }: Report,
  facts: Readonly<Record<string, string>>,
): string {
  const head = ["what", "median ms", "p10", "p90", "samples", "limit", "target", ""];
  const cells = rows.map((r) => [
    r.what,
    r.unit === undefined ? digits(r.median) : `${digits(r.median)} ${r.unit}`,
    digits(r.p10),
    digits(r.p90),
    String(r.samples),
    r.limit === undefined ? "" : `< ${r.limit}`,
    r.target === undefined ? "" : String(r.target),
    verdict(r),
  ]);
  const machine = Object.entries({ ...facts, ...more }).map(([name, value]) => `${name} ${value}`);
  return [
    `## ${title}`,
    `\`npm run bench -- ${title} --write\`; ${machine.join(", ")}.`,
    table(head, cells),
    ...skipped.map((s) => `Skipped: ${s}.`),
  ].join("\n\n");
}

function verdict({ median, limit, target, note }: Row): string {
  const said = note === undefined ? "" : `; ${note}`;
  if (limit === undefined) return note ?? "";
  if (median >= limit) return `MISSED${said}`;
  return (target !== undefined && median >= target ? "limit met" : "met") + said;
}

/** Three significant digits: a shared machine is not more precise. */
const digits = (x: number): string =>
  x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x >= 1 ? x.toFixed(2) : x.toFixed(3);

/** A Markdown table whose columns are also aligned in a terminal. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((h, i) => Math.max(h.length, ...rows.map((r) => r[i]?.length ?? 0)));
  const isText = (i: number): boolean => i === 0 || i === head.length - 1;
  const line = (cells: readonly string[]): string => {
    const padded = cells.map((c, i) => (isText(i) ? c.padEnd(widths[i] ?? 0) : c.padStart(widths[i] ?? 0)));
    return `| ${padded.join(" | ")} |`;
  };
  const rule = widths.map((w, i) => (isText(i) ? "-".repeat(w) : `${"-".repeat(w - 1)}:`));
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}
