// PROFILE=1: what ran when, as a trace that Perfetto and chrome://tracing show: a process a device, a track a
// queue, and the host's own. On HCQ devices the times are the timestamps of signals around each command, read
// when the command is done; on others the host's clock. The trace is written to PROFILEPATH when the process
// ends.

import { atExit } from "#host";
import { writeText } from "#host/files";
import { env } from "../env.ts";
import { FileError } from "../errors.ts";
import { getOrMake } from "../helpers.ts";
import { isReduceOp } from "../ops.ts";
import type { HCQCompatAllocRes } from "./hcq/allocator.ts";
import type { HCQCompatCompiled, HCQSignal } from "./hcq/device.ts";
import type { Command, HWCommandQueue } from "./hcq/queue.ts";
import { clock } from "./profiling.ts";

/** Something that took time on a track; microseconds since 1970. */
export interface Span {
  /** the device, or `host` */
  readonly device: string;
  readonly track: string;
  readonly name: string;
  readonly kind: "kernel" | "copy" | "wait" | "enqueue";
  readonly start: number;
  readonly end: number;
  readonly args: Readonly<Record<string, string | number>>;
}
/** A kernel that was scheduled: where, and the number of the node that it computes. */
export interface ScheduledKernel {
  readonly device: string;
  readonly node: number;
}
/** The parts of a ScheduleItem that are noted. */
interface ProfiledItem {
  readonly ast: readonly { readonly op: string }[];
  readonly outputs: readonly { readonly device: string }[];
  readonly lazies: readonly ProfiledNode[];
  readonly partOf?: ProfiledNode;
}
/** The parts of a LazyBuffer that are looked at. */
interface ProfiledNode {
  readonly id: number;
  readonly base: ProfiledNode;
  readonly op: string | undefined;
  readonly srcs: readonly ProfiledNode[] | undefined;
  readonly hasMemory: boolean;
  readonly shape: readonly unknown[];
}
/** Signals that are stamped before and after a command. */
export interface Marks {
  readonly start: HCQSignal;
  readonly end: HCQSignal;
}
/** A submission whose stamps are not read yet. */
interface PendingSubmission {
  readonly device: HCQCompatCompiled;
  readonly kind: string;
  readonly commands: readonly Command[];
  /** what the last stamp was before: it is done when that has changed */
  readonly before: number;
  /** the marks are used by this submission only */
  readonly once: boolean;
}

/**
 * The node that most of a kernel's work is for: its largest reduction, else its last result. `ends` are the
 * results of all kernels, which a kernel reads and does not compute.
 */
function mainNode(results: readonly ProfiledNode[], ends: ReadonlySet<ProfiledNode>): number {
  const size = (n: ProfiledNode): number =>
    n.shape.reduce<number>((a, s) => a * (typeof s === "number" ? s : 1), 1);
  const open = results.map((r) => r.base);
  const seen = new Set(open);
  let [most, node] = [0, Math.max(...results.map((r) => r.id))];
  for (let n = open.pop(); n !== undefined; n = open.pop()) {
    const [first] = n.srcs ?? [];
    if (n.op !== undefined && isReduceOp(n.op) && first !== undefined && size(first) > most) {
      most = size(first);
      node = n.id;
    }
    for (const { base } of n.srcs ?? []) {
      if (seen.has(base) || ends.has(base) || base.hasMemory) continue;
      seen.add(base);
      open.push(base);
    }
  }
  return node;
}

/** The trace stops here: a viewer would not open more. */
const MAX_SPANS = 1_000_000;
/** Finished submissions are looked for when there are this many. */
const LOOK = 256;

export class Profiler {
  #spans: Span[] = [];
  #pending: PendingSubmission[] = [];
  #asked = false;
  readonly #collectors: (() => void)[] = [];
  readonly #listeners = new Set<(items: readonly ScheduledKernel[]) => void>();

  get spans(): readonly Span[] {
    this.collect();
    return this.#spans;
  }

  /** Notes what the host itself saw. */
  add(span: Span): void {
    if (!this.#asked) {
      this.#asked = true;
      atExit(() => this.#writeLast());
    }
    if (this.#spans.length < MAX_SPANS) this.#spans.push(span);
  }

  /** Notes a submission, and hands it over: `submit` is timed as the host's part of it. */
  submitting(device: HCQCompatCompiled, queue: HWCommandQueue, submit: () => void): void {
    const commands = queue.commands.filter((c) => c.marks !== undefined);
    const last = commands.at(-1)?.marks?.end;
    // a bound queue stamps the same signals again: what they say of the run before is read first
    if (queue.boundTo !== undefined) this.collect();
    const before = last === undefined ? 0 : device.readTimestamp(last);
    const start = clock();
    submit();
    const name = `${device.name} ${queue.kind}`;
    this.add({
      device: "host",
      track: "enqueue",
      name,
      kind: "enqueue",
      start,
      end: clock(),
      args: { commands: queue.length, words: queue.q.length },
    });
    if (last === undefined) return;
    this.#pending.push({ device, kind: queue.kind, commands, before, once: queue.boundTo === undefined });
    if (this.#pending.length % LOOK === 0) this.collect();
  }

  /** Calls `listen` with the kernels of each schedule before they run, until the result is called. */
  onSchedule(listen: (items: readonly ScheduledKernel[]) => void): () => void {
    this.#listeners.add(listen);
    return () => void this.#listeners.delete(listen);
  }
  scheduled(schedule: readonly ProfiledItem[]): void {
    if (this.#listeners.size === 0) return;
    const own = new Set(schedule.flatMap((si) => si.lazies.map((lb) => lb.base)));
    const kernels = schedule
      .filter((si) => si.ast[0]?.op === "STORE")
      .map((si) => ({
        device: si.outputs[0]?.device ?? "",
        node: mainNode(si.partOf === undefined ? si.lazies : [si.partOf], own),
      }));
    for (const listen of this.#listeners) listen(kernels);
  }

  /** For devices that keep spans of their own: called when those that are done are wanted. */
  onCollect(collect: () => void): void {
    this.#collectors.push(collect);
  }

  /** Reads the stamps of what is done. */
  collect(): void {
    for (const collect of this.#collectors) collect();
    this.#pending = this.#pending.filter((p) => !this.#read(p));
  }
  #read({ device, kind, commands, before, once }: PendingSubmission): boolean {
    const time = (signal: HCQSignal) => device.gpu2cpuTime(device.readTimestamp(signal));
    const last = commands.at(-1)?.marks as Marks;
    if (device.readTimestamp(last.end) === before) return false;
    for (const command of commands) {
      const { start, end } = command.marks as Marks;
      this.add({
        device: device.name,
        track: kind,
        start: time(start),
        end: time(end),
        ...describe(command),
      });
      if (!once) continue;
      device.freeSignal(start);
      device.freeSignal(end);
    }
    return true;
  }

  /** The trace so far in the Trace Event Format, times from the first span on. */
  trace(): string {
    const spans = apart(this.spans);
    const origin = spans.reduce((least, s) => Math.min(least, s.start), Infinity);
    const devices = [...new Set(spans.map((s) => s.device))];
    const tracks = [...new Set(spans.map((s) => `${s.device}\n${s.track}`))];
    const named = (what: string, pid: number, tid: number, name: string) => ({
      name: what,
      ph: "M",
      pid,
      tid,
      args: { name },
    });
    const round = (us: number) => Math.round(us * 1000) / 1000;
    const ids = (s: Pick<Span, "device" | "track">) => ({
      pid: devices.indexOf(s.device) + 1,
      tid: tracks.indexOf(`${s.device}\n${s.track}`) + 1,
    });
    const events = [
      ...devices.map((d, i) => named("process_name", i + 1, 0, d)),
      ...tracks.map((t) => {
        const [device, track] = t.split("\n") as [string, string];
        const { pid, tid } = ids({ device, track });
        return named("thread_name", pid, tid, track);
      }),
      ...spans.map((s) => ({
        name: s.name,
        cat: s.kind,
        ph: "X",
        ts: round(s.start - origin),
        dur: round(Math.max(0, s.end - s.start)),
        ...ids(s),
        args: s.args,
      })),
    ];
    return JSON.stringify({ traceEvents: events, displayTimeUnit: "ns" });
  }
  write(path: string = env.PROFILEPATH): void {
    writeText(path, this.trace());
  }
  /**
   * At the end of a process that may have done all it should: that its trace is lost does not make it fail.
   */
  #writeLast(): void {
    if (this.#spans.length === 0) return;
    try {
      this.write();
    } catch (e) {
      if (!(e instanceof FileError)) throw e;
      console.warn(`gradloom: PROFILE=1: ${e.message}; set PROFILEPATH to a file that can be written`);
    }
  }
  /** Forgets what was noted so far. */
  reset(): void {
    this.collect();
    this.#spans = [];
  }
}

/**
 * Spans in the order of their start; those of a track that run at the same time
 * lie on tracks beside each other.
 */
function apart(spans: readonly Span[]): Span[] {
  /** by track: when each of those beside each other is free again */
  const ends = new Map<string, number[]>();
  return spans
    .toSorted((a, b) => a.start - b.start)
    .map((s) => {
      const lanes = getOrMake(ends, `${s.device}\n${s.track}`, () => []);
      const free = lanes.findIndex((end) => end <= s.start);
      const lane = free === -1 ? lanes.length : free;
      lanes[lane] = s.end;
      return lane === 0 ? s : { ...s, track: `${s.track} ${lane + 1}` };
    });
}

/** What a command is called in a trace, and what is known of it. */
function describe({ name, args = {} }: Command): Pick<Span, "name" | "kind" | "args"> {
  if ("program" in args) {
    const { program, globalSize } = args;
    const known: Record<string, string | number> = {};
    if (program.cost !== undefined)
      Object.assign(known, { FLOP: program.cost.ops, bytes: program.cost.bytes });
    if (globalSize.length > 0) known.global = globalSize.join(" × ");
    return { name: program.name, kind: "kernel", args: known };
  }
  if ("dest" in args) {
    const { dest, src, nbytes } = args;
    const of = (res: HCQCompatAllocRes): string => (res.isHost ? "host" : res.device.name);
    return { name: `${of(dest)} <- ${of(src)}`, kind: "copy", args: { bytes: nbytes } };
  }
  if ("value" in args)
    return { name: `${name} ${args.signal.label}`, kind: "wait", args: { value: args.value } };
  return { name, kind: "wait", args: {} };
}
