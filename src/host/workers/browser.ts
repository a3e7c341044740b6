// Worker threads of a page, made of text. The contract is in ../contract.ts. Loaded when a kernel is large
// enough for them.

import type { WorkerHandle } from "../contract.ts";
import { watchPolicy } from "../policy.ts";

/**
 * Runs `source`, which defines `start(data)`, in a new thread. `onEnd` hears why it is gone. The text comes
 * as a blob: a page whose Content-Security-Policy has no `worker-src blob:` refuses it. No event says that a
 * worker was terminated, so each holds a lock for all its life, and whoever gets it after it knows.
 */
export function spawnWorker(source: string, data: unknown, onEnd: (why: string) => void): WorkerHandle {
  watchPolicy();
  const name = `gradloom-${crypto.randomUUID()}`;
  const text = `${source}onmessage = ({ data }) => {
    if (navigator.locks === undefined) start(data);
    else navigator.locks.request(${JSON.stringify(name)}, () => {
      postMessage("locked");
      start(data);
    });
  };\n`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url);
  let isGone = false;
  const end = (why: string): void => {
    if (isGone) return;
    isGone = true;
    onEnd(why);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    end(event.message ?? "it could not be started");
  };
  worker.onmessage = () => void navigator.locks.request(name, () => end("terminated"));
  worker.postMessage(data);
  return {
    terminate() {
      worker.terminate();
      end("terminated");
    },
    isGone: () => isGone,
    // where it was ended as soon as it had come up, its message is lost
    probe() {
      if (!isGone)
        void navigator.locks.request(name, { ifAvailable: true }, (lock) => lock && end("terminated"));
    },
  };
}
