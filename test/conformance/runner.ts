// Runs many samples, counts outcomes by operator, and says it in words.

import { Device, type Tensor } from "gradloom";
import { check, type Verdict } from "./check.ts";
import { handlerOf, REASONS } from "./registry.ts";
import type { Sample } from "./sample.ts";

export interface Tally {
  passed: number;
  failed: number;
  unsupported: number;
  /** the reason of each failure, with how many samples had it */
  readonly reasons: Map<string, number>;
}
export interface OpTally {
  readonly value: Tally;
  readonly gradient: Tally;
}
export interface Report {
  readonly ops: Map<string, OpTally>;
  readonly value: Tally;
  readonly gradient: Tally;
}

const tally = (): Tally => ({ passed: 0, failed: 0, unsupported: 0, reasons: new Map() });

function count(t: Tally, verdict: Verdict): void {
  t[verdict.outcome]++;
  if (verdict.why === undefined) return;
  const why = `${verdict.outcome === "unsupported" ? "unsupported: " : ""}${verdict.why}`;
  t.reasons.set(why, (t.reasons.get(why) ?? 0) + 1);
}

export interface RunOptions {
  readonly device: string;
  /** where the tensors of a sample go from there */
  readonly place?: (t: Tensor) => Tensor;
  /** called after each sample */
  readonly onSample?: (sample: Sample, value: Verdict, gradient: Verdict | undefined) => void;
}

export async function runSamples(
  samples: readonly Sample[],
  { device, place, onSample }: RunOptions,
): Promise<Report> {
  const report: Report = { ops: new Map(), value: tally(), gradient: tally() };
  const before = Device.DEFAULT;
  Device.DEFAULT = device; // for the operators that make tensors from nothing
  try {
    for (const sample of samples) {
      const op = report.ops.get(sample.op) ?? { value: tally(), gradient: tally() };
      report.ops.set(sample.op, op);
      const { value, gradient } = await check(sample, device, place);
      for (const t of [op.value, report.value]) count(t, value);
      if (gradient !== undefined) for (const t of [op.gradient, report.gradient]) count(t, gradient);
      onSample?.(sample, value, gradient);
    }
  } finally {
    Device.DEFAULT = before;
  }
  return report;
}

/** The part that passed; samples that are unsupported count as not passed. */
export const share = (t: Tally): number => {
  const all = t.passed + t.failed + t.unsupported;
  return all === 0 ? 1 : t.passed / all;
};

export function describe(report: Report): string {
  const lines: string[] = [];
  const covered = [...report.ops].filter(
    ([op, t]) => handlerOf(op) !== undefined && t.value.passed + t.value.failed > 0,
  );
  lines.push(`ops covered / ops in file: ${covered.length} / ${report.ops.size}`);
  for (const [what, t] of [
    ["values", report.value],
    ["gradients", report.gradient],
  ] as const) {
    const percent = (100 * share(t)).toFixed(2);
    lines.push(
      `${what}: samples passed / failed / unsupported: ${t.passed} / ${t.failed} / ${t.unsupported} (${percent} %)`,
    );
  }
  const bad = [...report.ops].filter(([, { value, gradient }]) => share(value) < 1 || share(gradient) < 1);
  if (bad.length > 0)
    lines.push("failures by operator (values passed/failed/unsupported, gradients likewise):");
  for (const [op, { value, gradient }] of bad.sort(([a], [b]) => (a < b ? -1 : 1))) {
    const show = (t: Tally): string => `${t.passed}/${t.failed}/${t.unsupported}`;
    lines.push(`  ${op}: ${show(value)}, ${show(gradient)}`);
    const reasons = new Map([...value.reasons, ...gradient.reasons]);
    for (const [why, n] of [...reasons].slice(0, 3))
      lines.push(`      ${n} x ${why.split("\n")[0]?.slice(0, 200)}`);
    if (REASONS[op] !== undefined) lines.push(`      ${REASONS[op]}`);
  }
  return lines.join("\n");
}
