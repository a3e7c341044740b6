// The platform of a page or of a web worker: addresses instead of files, Workers made of text, IndexedDB,
// hooks of the page. The contract is in contract.ts.

import { env } from "../env.ts";
import { DeviceError, FileError } from "../errors.ts";
import type { MaybePromise } from "../helpers.ts";
import { setSlice } from "../pace.ts";
import { addressOf, unreachable } from "./address.ts";
import type { AsyncScope, WorkerHandle } from "./contract.ts";

export type { WorkerHandle };

// ---- files ----

/** A page has no files: what is written goes to the function that the page put there, if any. */
type Write = (path: string, data: string | Uint8Array) => MaybePromise<void>;
const page = globalThis as { GRADLOOM_WRITE?: Write };
export const hasFiles = false;

export function writeText(path: string, text: string): void {
  page.GRADLOOM_WRITE?.(path, text);
}

export async function writeBytes(path: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
  if (page.GRADLOOM_WRITE === undefined) {
    throw new DeviceError(
      `cannot write ${path}: a page has no files; take the bytes instead (without a path the call returns them), ` +
        "or set globalThis.GRADLOOM_WRITE",
    );
  }
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(part.slice());
  const bytes = new Uint8Array(all.reduce((n, part) => n + part.byteLength, 0));
  let at = 0;
  for (const part of all) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  await page.GRADLOOM_WRITE(path, bytes);
}

/** A path is an address, relative to the page. */
export async function readBytes(path: string, start = 0, end?: number): Promise<Uint8Array<ArrayBuffer>> {
  const whole = start === 0 && end === undefined;
  const last = end === undefined ? "" : end - 1;
  const span = whole ? {} : { headers: { Range: `bytes=${start}-${last}` } };
  const unread = (cause: unknown): never => {
    throw unreachable(path, cause);
  };
  const reply = await fetch(path, span).catch(unread);
  if (!reply.ok) throw new FileError(`cannot fetch ${addressOf(path)}: the server answered ${reply.status}`);
  const bytes = new Uint8Array(await reply.arrayBuffer().catch(unread));
  return whole || reply.status === 206 ? bytes : bytes.slice(start, end);
}

export function fileSize(path: string): Promise<number> {
  throw new DeviceError(`the size of ${path} is not known: a page has no files`);
}

export function packageFile(name: string, file: string): string {
  throw new FileError(`${name}/${file}: a page has no npm packages; give the address of the files instead`);
}

// ---- what a search found, for the next visit: IndexedDB ----

const STORE = "opts";
let database: Promise<IDBDatabase | undefined> | undefined;
const answered = <T>(request: IDBRequest<T>): Promise<T | undefined> =>
  new Promise((done) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => done(undefined); // a private window may refuse: nothing is kept then
  });
function openDatabase(): Promise<IDBDatabase | undefined> {
  database ??= (() => {
    if (env.CACHE === "0" || globalThis.indexedDB === undefined) return Promise.resolve(undefined);
    const request = indexedDB.open("gradloom", 1);
    request.onupgradeneeded = () => void request.result.createObjectStore(STORE);
    return answered(request);
  })();
  return database;
}
export async function recall(key: string): Promise<string | undefined> {
  const db = await openDatabase();
  return db && answered(db.transaction(STORE).objectStore(STORE).get(key) as IDBRequest<string>);
}
export async function remember(key: string, text: string): Promise<void> {
  const db = await openDatabase();
  if (db) await answered(db.transaction(STORE, "readwrite").objectStore(STORE).put(text, key));
}

// ---- threads ----

/** A page must not block its thread. */
export const canBlock = false;

/**
 * How long the page may wait for its thread: with what is done between two looks at the clock it stays below
 * a frame of 60 Hz for the most part.
 */
const SLICE_MS = 10;
setSlice(SLICE_MS);

export const availableThreads = (): number => globalThis.navigator?.hardwareConcurrency ?? 1;

let isWatched = false;
/** No error says why a worker did not come up; an event does, where it is the policy of the page. */
function watchPolicy(): void {
  if (isWatched) return;
  isWatched = true;
  globalThis.addEventListener?.("securitypolicyviolation", (event) => {
    const { effectiveDirective, blockedURI } = event as SecurityPolicyViolationEvent;
    if (effectiveDirective !== "worker-src" || !blockedURI.startsWith("blob")) return;
    console.warn(
      "gradloom: the Content-Security-Policy of this page forbids workers made of blobs, so kernels run on " +
        "the thread of the page; add `worker-src blob:` to it",
    );
  });
}

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

/** A page has the features that its browser has. */
export function enableRelaxedSimd(): void {}

// ---- hooks ----

/** A page cannot tell who is inside. */
export const makeAsyncScope = (): AsyncScope => ({ exact: false, run: (_, fn) => fn(), get() {}, rest() {} });

/** Calls `fn` when the page is left; in a worker never. */
export const atExit = (fn: () => void): void =>
  void globalThis.addEventListener?.("pagehide", fn, { once: true });

/** A page shows how far something is as it likes, if it put a function there; an empty text takes it away. */
export function showProgress(text: string): void {
  if (env.PROGRESS) (globalThis as { GRADLOOM_PROGRESS?: (text: string) => void }).GRADLOOM_PROGRESS?.(text);
}
