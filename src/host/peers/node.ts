// Worker threads of Node that answer messages. The contract is in ../contract.ts. Loaded by code that needs
// them.

import { allVariables } from "../../env.ts";
import { DeviceError } from "../../errors.ts";
import { builtin } from "../builtin.ts";
import type { Peer, PeerEvents } from "../contract.ts";

/**
 * Runs `source`, which defines `serve(data, receive, send, load)`, in a new thread with the flags and
 * settings of this process; kernels in it have one thread, unless THREADS says otherwise.
 */
export function spawnPeer(source: string, data: unknown, events: PeerEvents): Peer {
  const text = `${source}const { parentPort, workerData } = require("node:worker_threads");
    const receive = (hear) => parentPort.on("message", hear);
    const send = (message, transfer) => parentPort.postMessage(message, transfer);
    serve(workerData, receive, send, (address) => import(address));\n`;
  const worker = new builtin.threads.Worker(text, {
    eval: true,
    workerData: data,
    env: { THREADS: "1", ...allVariables() },
    name: "gradloom samples",
  });
  let isGone = false;
  const end = (why: Error): void => {
    if (isGone) return;
    isGone = true;
    events.end(why);
  };
  worker.on("message", (m) => events.message(m));
  worker.on("messageerror", end);
  worker.on("error", end);
  worker.on("exit", (code) => end(new DeviceError(`a worker ended with exit code ${code}`)));
  return {
    post: (message) => worker.postMessage(message),
    keepsAlive: (on) => (on ? worker.ref() : worker.unref()),
    terminate: () => void worker.terminate(),
  };
}
export const moduleAddress = (path: string): string =>
  /^(?:file|data|node|https?):/.test(path) ? path : builtin.url.pathToFileURL(path).href;
