// Node's own modules, each loaded when it is first used. An import statement would load it with the package,
// and node:fs with all its streams: a start that uses none of them is several milliseconds shorter without.

import { createRequire } from "node:module";

/** Resolves and loads from where this file is. */
export const load = createRequire(import.meta.url);

export const builtin = {
  get asyncHooks() {
    return load("node:async_hooks") as typeof import("node:async_hooks");
  },
  get crypto() {
    return load("node:crypto") as typeof import("node:crypto");
  },
  get fs() {
    return load("node:fs") as typeof import("node:fs");
  },
  get files() {
    return load("node:fs/promises") as typeof import("node:fs/promises");
  },
  get os() {
    return load("node:os") as typeof import("node:os");
  },
  get path() {
    return load("node:path") as typeof import("node:path");
  },
  get url() {
    return load("node:url") as typeof import("node:url");
  },
  get v8() {
    return load("node:v8") as typeof import("node:v8");
  },
  get threads() {
    return load("node:worker_threads") as typeof import("node:worker_threads");
  },
};
