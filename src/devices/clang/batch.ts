// Many kernels at once: what is asked for before anybody waits is compiled together, several kernels in one
// text and as many compilers as there are cores. A compiler spends half of its time for one kernel on its own
// start. In goes a kernel's C, out comes its own shared object (compiler.ts says what that is), or later a
// promise that a sync caller can sit out.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { Source } from "../../codegen/target.ts";
import { type MaybePromise, range, type Waitable, waitable } from "../../helpers.ts";
import { keep, kept } from "../../host/diskcache.ts";
import {
  type CCompiler,
  compileAlone,
  ENTRY,
  flagsOf,
  type Job,
  jobFor,
  LINK,
  LINK_LIBRARIES,
  linker,
  withEntry,
} from "./compiler.ts";

/** More kernels than this in one text save little, and all of them wait for the last. */
const MAX_TOGETHER = 10;
/** How often what is done is looked for, in milliseconds. */
const LOOK = 50;

/** A kernel that somebody waits for. */
class Order {
  readonly job: Job;
  readonly code: Waitable<Uint8Array>;
  #result: Uint8Array | Error | undefined;
  #settle!: () => void;

  constructor(job: Job) {
    this.job = job;
    const done = new Promise<void>((resolve) => {
      this.#settle = resolve;
    });
    this.code = waitable(
      done.then(() => this.#get()),
      () => this.#now(),
    );
  }

  /** Takes what was made, or where nothing was, finds out why. */
  finish(made: Uint8Array | undefined): void {
    if (this.#result !== undefined) return;
    try {
      this.#result = made ?? compileAlone(this.job);
      keep("clang", this.job.key, this.#result);
    } catch (e) {
      this.#result = e as Error;
    }
    orders.delete(this.job.key);
    this.#settle();
  }
  #get(): Uint8Array {
    if (ArrayBuffer.isView(this.#result)) return this.#result;
    throw this.#result;
  }
  /**
   * With all others that wait, or alone where it has been begun already by processes
   * that only tell the event loop.
   */
  #now(): Uint8Array {
    if (waiting.includes(this)) compileWaitingSync();
    this.finish(undefined);
    return this.#get();
  }
}

/** By key: two devices may want the same kernel. */
const orders = new Map<string, Order>();
/** Orders that have not been started. */
let waiting: Order[] = [];

/**
 * The shared object of a kernel: at once if it is kept, else when all that was asked for with it is there.
 */
export function compileTogether(
  compiler: CCompiler,
  name: string,
  source: Source<string>,
): MaybePromise<Uint8Array> {
  const job = jobFor(compiler, name, source);
  const known = kept("clang", job.key);
  if (known !== undefined) return known;
  let order = orders.get(job.key);
  if (order === undefined) {
    order = new Order(job);
    orders.set(job.key, order);
    waiting.push(order);
    // a caller places all its orders before it waits
    if (waiting.length === 1) queueMicrotask(compileWaiting);
  }
  return order.code;
}

function takeWaiting(): Order[] {
  const taken = waiting;
  waiting = [];
  return taken;
}

function compileWaiting(): void {
  const taken = takeWaiting();
  if (taken.length === 0) return;
  const batch = new KernelBatch(taken);
  const look = setInterval(() => batch.collect(false), LOOK);
  const end = (): void => {
    clearInterval(look);
    process.off("exit", remove);
    batch.collect(true);
    batch.remove();
  };
  const remove = (): void => batch.remove();
  process.once("exit", remove);
  const shell = spawn("sh", ["-c", batch.script], { cwd: batch.folder, stdio: "ignore" });
  shell.once("error", end);
  shell.once("close", end);
}

function compileWaitingSync(): void {
  const batch = new KernelBatch(takeWaiting());
  try {
    spawnSync("sh", ["-c", batch.script], { cwd: batch.folder, stdio: "ignore" });
    batch.collect(true);
  } finally {
    batch.remove();
  }
}

/** A folder with texts, and the shell script that compiles them in it. */
class KernelBatch {
  readonly folder = mkdtempSync(join(tmpdir(), "gradloom-"));
  readonly script: string;
  readonly #orders: readonly Order[];
  readonly #left: Set<number>;

  constructor(orders: readonly Order[]) {
    this.#orders = orders;
    this.#left = new Set(orders.keys());
    this.#write("exports", `{ global: ${ENTRY}; local: *; };`);
    const texts = this.#texts();
    texts.forEach((text, i) => {
      this.#write(`${i}.sh`, linker.present ? this.#split(text, i) : this.#whole(text));
    });
    // one loop for each core takes whatever text is next. How long a text takes is not known before, so none
    // is assigned to a core: some kernels take ten times as long as others of their length. Of two processes
    // that make a folder, one succeeds
    const all = [...texts.keys()].join(" ");
    const next = `for t in ${all}; do mkdir $t.taken 2>/dev/null && . ./$t.sh; done &`;
    const loops = range(Math.min(texts.length, availableParallelism())).map(() => next);
    this.script = `${loops.join("\n")}\nwait`;
  }

  /** Numbers of kernels that share a text: of one compiler, about as long as the others. */
  #texts(): number[][] {
    const size = (i: number): number => this.#orders[i]!.job.source.code.length;
    const texts: number[][] = [];
    for (const compiler of new Set(this.#orders.map((o) => o.job.compiler))) {
      const mine = [...this.#orders.keys()].filter((i) => this.#orders[i]!.job.compiler === compiler);
      const cores = availableParallelism();
      const perCore = Math.ceil(mine.length / cores / MAX_TOGETHER);
      const parts = range(Math.min(mine.length, perCore * cores)).map((): number[] => []);
      const length = (part: readonly number[]): number => part.reduce((n, i) => n + size(i), 0);
      for (const i of mine.sort((a, b) => size(b) - size(a)))
        parts.reduce((a, b) => (length(b) < length(a) ? b : a)).push(i);
      texts.push(...parts);
    }
    return texts;
  }

  /** One text for all of them; the linker leaves in each object what its kernel needs. */
  #split(kernels: readonly number[], text: number): string {
    const preambles = new Set<string>();
    const bodies = kernels.map((i) => {
      const { name, source } = this.#orders[i]!.job;
      const [preamble, body] = splitPreamble(source.code, name);
      for (const item of preamble) preambles.add(item);
      return withEntry(name, { ...source, code: body }, `_${i}`);
    });
    this.#write(`${text}.c`, [...preambles, ...bodies].join("\n"));
    const object = `${this.#compile(kernels)} -ffunction-sections -c -o ${text}.o ${text}.c`;
    const entry = `--gc-sections --version-script=exports --defsym=${ENTRY}=${ENTRY}_$k`;
    const link = `ld ${LINK.join(" ")} ${entry} ${text}.o ${LINK_LIBRARIES.join(" ")} -o $k.so`;
    return `${object} && for k in ${kernels.join(" ")}; do ${link} && : > $k.ok; done;`;
  }
  /** A text and a compiler each. */
  #whole(kernels: readonly number[]): string {
    for (const i of kernels) {
      const { name, source } = this.#orders[i]!.job;
      this.#write(`${i}.c`, withEntry(name, source));
    }
    const compile = `${this.#compile(kernels)} -shared -o $k.so $k.c -lm`;
    return `for k in ${kernels.join(" ")}; do ${compile} && : > $k.ok; done;`;
  }
  #compile([first = 0]: readonly number[]): string {
    const { compiler } = this.#orders[first]!.job;
    return [...compiler.command, ...flagsOf(compiler)].map(quoted).join(" ");
  }
  #write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  /** Hands out what is finished. `over`: all compilers have ended, so the rest has failed. */
  collect(over: boolean): void {
    for (const i of this.#left) {
      const isThere = existsSync(join(this.folder, `${i}.ok`));
      if (!isThere && !over) continue;
      this.#left.delete(i);
      this.#orders[i]?.finish(isThere ? readFileSync(join(this.folder, `${i}.so`)) : undefined);
    }
  }
  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/**
 * What stands before the kernel, each definition by itself, and the kernel: two kernels may share a helper.
 */
function splitPreamble(source: string, name: string): [string[], string] {
  const at = source.indexOf(`void ${name}(`);
  const items: string[] = [];
  let item = "";
  let depth = 0;
  for (const line of source.slice(0, at).split("\n")) {
    item += `${line}\n`;
    const opened = line.startsWith("#") ? Number(/^#if/.test(line)) : line.split("{").length - 1;
    const closed = line.startsWith("#") ? Number(/^#endif/.test(line)) : line.split("}").length - 1;
    depth += opened - closed;
    if (depth > 0) continue;
    items.push(item);
    item = "";
  }
  return [items, source.slice(at)];
}
