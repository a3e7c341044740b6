// Worker threads of Node, made of text. The contract is in ../contract.ts.

import { timestamp } from "../../helpers.ts";
import { builtin } from "../builtin.ts";
import type { WorkerHandle } from "../contract.ts";
import { koffiPath } from "../koffi.ts";
import { Native } from "../native.ts";

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
      // from the first call on: later calls must not extend the time that it gets
      terminatedAt = Math.min(terminatedAt, timestamp());
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
