// What the library asks of the platform it runs on: files, worker threads, a cache between processes, hooks.
// node.ts and browser.ts export these names; `#host` is one of the two. Types only. A new platform (Deno, an
// edge runtime) is one more file that exports them, and a condition in package.json.

import type { MaybePromise } from "../helpers.ts";

/** A worker thread, seen from where it was started. */
export interface WorkerHandle {
  terminate(): void;
  /** It has ended, as far as can be told without the event loop; `onEnd` may still be called. */
  isGone(): boolean;
  /** Asks whether one that has come up is still there, where its end may be missed; `onEnd` hears. */
  probe?(): void;
}

/** A worker thread that answers messages. */
export interface Peer {
  post(message: unknown): void;
  /** Whether the process stays alive for it; in a page this does nothing. */
  keepsAlive(on: boolean): void;
  terminate(): void;
}
export interface PeerEvents {
  message(answer: unknown): void;
  /** Called once, when the thread has ended or has failed outside of a request. */
  end(why: Error): void;
}

/**
 * A value that is visible to all that a call does, also after its awaits, and to nothing else. Where the
 * platform cannot tell (`exact` is false), everything that happens until the
 * call ends counts as a part of it.
 */
export interface AsyncScope {
  readonly exact: boolean;
  run<T>(value: unknown, fn: () => T): T;
  get(): unknown;
  /** nobody is inside any more */
  rest(): void;
}

export interface Host {
  /** Paths name files that the DISK device can hold; false: a path is an address. */
  readonly hasFiles: boolean;

  /** A text that `remember` kept under the key, in this process, an earlier one or an earlier visit. */
  recall(key: string): MaybePromise<string | undefined>;
  remember(key: string, text: string): MaybePromise<void>;

  /** This thread may block while it waits: nobody looks at it. */
  readonly canBlock: boolean;
  availableThreads(): number;
  /** Switches relaxed SIMD on where WebAssembly has it behind a flag; before the first module is compiled. */
  enableRelaxedSimd(): void;

  makeAsyncScope(): AsyncScope;
  /** Calls `fn` when the process ends, well or badly, or when the page is left. */
  atExit(fn: () => void): void;
  /** Shows a person how far something is; an empty text takes it away. */
  showProgress(text: string): void;
}

/** The functions of files/, which only some programs load. */
export interface Files {
  /** Bytes `start` to `end` of a file, all of it by default; a file that ends earlier gives fewer. */
  readBytes(path: string, start?: number, end?: number): Promise<Uint8Array<ArrayBuffer>>;
  fileSize(path: string): Promise<number>;
  /** Writes the parts one after the other; the file appears when it is whole. */
  writeBytes(path: string, parts: AsyncIterable<Uint8Array>): Promise<void>;
  writeText(path: string, text: string): void;
  /** The path of a file that an installed npm package holds. */
  packageFile(name: string, file: string): string;
}

/** The function of workers/, which a page loads when it needs workers. */
export interface WorkerHost {
  /**
   * Runs `source` in a new thread that keeps no process alive. The text defines `start(data, native)`;
   * `native()` gives a `Native` (native.ts) where the host can call native code.
   * `onEnd` hears why the thread is gone.
   */
  spawnWorker(source: string, data: unknown, onEnd: (why: string) => void): WorkerHandle;
}

/** The functions of peers/, which only a few programs load. */
export interface Peers {
  /**
   * Runs `source` in a new thread that has the settings of this one and may load modules. The text defines
   * `serve(data, receive, send, load)`; `receive` takes the function that hears messages, `load` imports.
   */
  spawnPeer(source: string, data: unknown, events: PeerEvents): Peer;
  /** The whole address of a module, which may be given as a path. */
  moduleAddress(path: string): string;
}
