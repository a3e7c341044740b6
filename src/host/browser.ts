// The platform of a page or of a web worker: addresses instead of files, Workers made of text, IndexedDB,
// hooks of the page. The contract is in contract.ts.

import { env } from "../env.ts";
import { setSlice } from "../pace.ts";
import type { AsyncScope } from "./contract.ts";

/** A path is an address. */
export const hasFiles = false;

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
