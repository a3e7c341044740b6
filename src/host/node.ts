// The platform of Node: files, worker threads, a cache on disk, hooks at the end of the process. The contract
// is in contract.ts. Node's own modules are loaded when they are first used (builtin.ts).

import type { AsyncLocalStorage } from "node:async_hooks";
import { env } from "../env.ts";
import { FileError } from "../errors.ts";
import { timestamp } from "../helpers.ts";
import { builtin, load } from "./builtin.ts";
import type { AsyncScope, WorkerHandle } from "./contract.ts";
import { keep, kept, keyOf } from "./diskcache.ts";
import { Native } from "./native.ts";

export { enableRelaxedSimd } from "./v8flags.ts";
export type { WorkerHandle };

// ---- files ----

/** Files are on this host: a path names one, and DISK can hold it. */
export const hasFiles = true;

export function writeText(path: string, text: string): void {
  try {
    builtin.fs.writeFileSync(path, text);
  } catch (cause) {
    throw new FileError(`cannot write ${path}: ${(cause as Error).message}`, { cause });
  }
}

/** Bytes `start` to `end` of a file, all of it by default; a file that ends earlier gives fewer. */
export async function readBytes(path: string, start = 0, end?: number): Promise<Uint8Array<ArrayBuffer>> {
  try {
    const file = await builtin.files.open(path, "r");
    try {
      const stop = Math.min(end ?? Infinity, (await file.stat()).size);
      const bytes = new Uint8Array(Math.max(0, stop - start));
      for (let done = 0; done < bytes.byteLength; ) {
        const { bytesRead } = await file.read(bytes, done, bytes.byteLength - done, start + done);
        if (bytesRead === 0) return bytes.slice(0, done);
        done += bytesRead;
      }
      return bytes;
    } finally {
      await file.close();
    }
  } catch (cause) {
    throw new FileError(`cannot read ${path}: ${(cause as Error).message}`, { cause });
  }
}

export async function fileSize(path: string): Promise<number> {
  try {
    return (await builtin.files.stat(path)).size;
  } catch (cause) {
    throw new FileError(`cannot read ${path}: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Writes the parts one after the other to a new file, which takes the place of the old one when it is whole:
 * a program that dies on the way leaves the old one, and whoever reads that one still does.
 */
export async function writeBytes(path: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
  const draft = `${path}.${process.pid}.${Date.now().toString(36)}.part`;
  try {
    const file = await builtin.files.open(draft, "wx");
    try {
      for await (const part of parts) {
        for (let done = 0; done < part.byteLength; )
          done += (await file.write(part, done, part.byteLength - done)).bytesWritten;
      }
      // without this a crash of the machine could leave the new name with no data
      await file.sync();
    } finally {
      await file.close();
    }
    await builtin.files.rename(draft, path);
  } catch (cause) {
    await builtin.files.rm(draft, { force: true });
    if ((cause as NodeJS.ErrnoException).code === undefined) throw cause;
    throw new FileError(`cannot write ${path}: ${(cause as Error).message}`, { cause });
  }
}

/** The path of a file that an installed npm package holds. */
export function packageFile(name: string, file: string): string {
  const { dirname, join } = builtin.path;
  for (const paths of [undefined, { paths: [process.cwd()] }]) {
    try {
      return join(dirname(load.resolve(`${name}/package.json`, paths)), file);
    } catch {}
  }
  throw new FileError(`the npm package ${name} is not installed; run: npm install ${name}`);
}

// ---- what a search found, for the next process: a file each ----

export const recall = (key: string): string | undefined => {
  const bytes = kept("opts", keyOf(key));
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
};
export const remember = (key: string, text: string): void =>
  keep("opts", keyOf(key), new TextEncoder().encode(text));

// ---- threads ----

/** Waiting may block the thread: nobody looks at it. */
export const canBlock = true;

export const availableThreads = (): number => builtin.os.availableParallelism();

/**
 * Runs `source`, which defines `start(data)`, in a new thread that keeps no process
 * alive. `onEnd` hears why it is gone.
 */
export function spawnWorker(source: string, data: unknown, onEnd: (why: string) => void): WorkerHandle {
  const text = `${source}const Native = ${Native};
    const { data, koffi, folder, thread } = require("node:worker_threads").workerData;
    try {
      thread[0] = Number(require("node:fs").readlinkSync("/proc/thread-self").split("/").at(-1));
    } catch {}
    start(data, () => new Native({ koffi: require(koffi), fs: require("node:fs"), folder }));\n`;
  // its number for the system, 0 where it cannot be known
  const thread = new Int32Array(new SharedArrayBuffer(4));
  const workerData = { data, koffi: koffiPath(), folder: builtin.os.tmpdir(), thread };
  // a loader that this process was started with (TypeScript, tests) would cost each worker a start of its own
  const worker = new builtin.threads.Worker(text, {
    eval: true,
    workerData,
    execArgv: [],
    env: {},
    name: "gradloom",
  });
  worker.unref();
  let ended = false;
  let terminatedAt = Infinity;
  worker.on("error", (e) => onEnd(e.message));
  worker.on("exit", (code) => {
    ended = true;
    onEnd(`exit code ${code}`);
  });
  return {
    terminate() {
      terminatedAt = timestamp();
      void worker.terminate();
    },
    isGone() {
      if (ended) return true;
      const [number] = thread;
      if (number !== 0) return !builtin.fs.existsSync(`/proc/self/task/${number}`);
      return timestamp() - terminatedAt > END_MS;
    },
  };
}
/** A thread that was ended and cannot be looked for is taken for gone after this long. */
const END_MS = 2000;

/** Where a worker finds koffi, which it loads when it first meets native code. */
function koffiPath(): string {
  try {
    return load.resolve("koffi");
  } catch {
    return "koffi";
  }
}

// ---- hooks ----

export function makeAsyncScope(): AsyncScope {
  let storage: AsyncLocalStorage<unknown> | undefined;
  return {
    exact: true,
    run(value, fn) {
      storage ??= new builtin.asyncHooks.AsyncLocalStorage<unknown>();
      return storage.run(value, fn);
    },
    get: () => storage?.getStore(),
    // promises are slower while it is in use
    rest: () => storage?.disable(),
  };
}

/** Calls `fn` when the process ends, well or badly. */
export const atExit = (fn: () => void): void => void process.once("exit", fn);

/** Between two lines where no terminal is, in milliseconds. */
const LINE_PAUSE = 1000;
let lastLine = -Infinity;

/**
 * Shows how far something is to a person who waits at a terminal; an empty text takes it away. Elsewhere it
 * is a line now and then, with DEBUG only: a log is not for this.
 */
export function showProgress(text: string): void {
  if (!env.PROGRESS) return;
  const { isTTY, columns = 80 } = process.stderr;
  if (isTTY) process.stderr.write(`\r\x1b[K${text.slice(0, columns - 1)}`);
  else if (env.DEBUG >= 1 && text !== "" && timestamp() - lastLine >= LINE_PAUSE) {
    lastLine = timestamp();
    process.stderr.write(`${text}\n`);
  }
}
