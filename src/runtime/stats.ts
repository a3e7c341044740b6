// One line for each kernel or copy at DEBUG>=2, in tinygrad's columns, and the counters that go with it.

import { env } from "../env.ts";
import { type Color, colored, padColored } from "../helpers.ts";
import { GlobalCounters } from "./counters.ts";

interface Executed {
  readonly kind: "kernel" | "copy" | "sync";
  readonly device: string;
  readonly name: string;
  readonly args: number;
  readonly ops: number;
  readonly bytes: number;
  /** seconds; undefined when nobody waited */
  readonly seconds: number | undefined;
}

const COLORS: Record<Executed["kind"], Color> = { kernel: "cyan", copy: "yellow", sync: "RED" };

export function updateStats(e: Executed): void {
  if (e.kind === "kernel") GlobalCounters.kernelCount++;
  else if (e.kind === "copy") GlobalCounters.copyCount++;
  GlobalCounters.globalOps += e.ops;
  GlobalCounters.globalMem += e.bytes;
  GlobalCounters.timeSumS += e.seconds ?? 0;
  if (env.DEBUG >= 2) console.log(statsLine(e));
}

/** device, kernel number, name, arg count, memory in use, time / time so far, GFLOPS, GB/s */
export function statsLine(e: Executed): string {
  const fixed = (x: number, width: number) => x.toFixed(2).padStart(width);
  const number = e.kind === "sync" ? "" : String(GlobalCounters.kernelCount + GlobalCounters.copyCount);
  const head = `*** ${e.device.slice(0, 7).padEnd(7)} ${number.padStart(4)}`;
  const name = padColored(colored(e.name, COLORS[e.kind]), 42);
  const memory = `arg ${String(e.args).padStart(3)} mem ${fixed(GlobalCounters.memUsed / 1e9, 5)} GB`;
  if (e.seconds === undefined) return `${head} ${name} ${memory}`;
  const rate = (n: number) => fixed(e.seconds === undefined || e.seconds <= 0 ? 0 : n / e.seconds / 1e9, 8);
  const time = `tm ${fixed(e.seconds * 1e6, 9)}us/${fixed(GlobalCounters.timeSumS * 1e3, 9)}ms`;
  return `${head} ${name} ${memory} ${time} (${rate(e.ops)} GFLOPS, ${rate(e.bytes)} GB/s)`;
}
