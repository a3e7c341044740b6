// Worker threads of a page that answer messages. The contract is in ../contract.ts. Loaded by code that needs
// them.

import { DeviceError } from "../../errors.ts";
import { addressOf } from "../address.ts";
import type { Peer, PeerEvents } from "../contract.ts";
import { watchPolicy } from "../policy.ts";

/** As `spawnWorker`, for a module worker that answers messages. */
export function spawnPeer(source: string, data: unknown, events: PeerEvents): Peer {
  watchPolicy();
  const text = `${source}const receive = (hear) => { onmessage = ({ data }) => hear(data); };
    const send = (message, transfer) => postMessage(message, transfer ?? []);
    onmessage = ({ data }) => serve(data, receive, send, (address) => import(address));\n`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module", name: "gradloom samples" });
  let isGone = false;
  const end = (why: string): void => {
    if (isGone) return;
    isGone = true;
    worker.terminate();
    URL.revokeObjectURL(url);
    events.end(new DeviceError(`a worker ended: ${why}`));
  };
  worker.onmessage = ({ data: answer }) => events.message(answer);
  worker.onmessageerror = () => end("its answer cannot be read");
  worker.onerror = (event) => {
    event.preventDefault();
    end(event.message ?? "it could not be started");
  };
  worker.postMessage(data);
  return { post: (m) => worker.postMessage(m), keepsAlive() {}, terminate: () => end("terminated") };
}
export const moduleAddress = (path: string): string => addressOf(path);
