// Whole processes, from their start to their first result: a dot product, and the first step of training on
// MNIST, with and without kernels cached by an earlier process. Returns rows for the benchmarks.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { buildIfStale, log, type Program, timeToPrint } from "./processes.ts";
import { type Row, summarize } from "./stats.ts";

/** All of them, or those whose name contains `which`. `folder` is for their caches. */
export async function startRows(folder: string, which = ""): Promise<Row[]> {
  buildIfStale();
  const cache = join(folder, "cache");
  const programs: (Program & { what: string; rounds: number; limit?: number; fresh?: boolean })[] = [
    {
      what: "start to the first dot product: bare node",
      rounds: 9,
      name: "node",
      file: "node.mjs",
      prints: "11",
    },
    {
      what: "start to the first dot product: WASM",
      rounds: 9,
      name: "WASM",
      file: "gradloom.mjs",
      prints: "11",
      limit: 200,
    },
    {
      what: "beautiful_mnist, start to the end of step 1: WASM",
      rounds: 3,
      name: "WASM",
      file: "mnist.mjs",
      prints: "finite",
      limit: 2500,
    },
    {
      what: "beautiful_mnist, start to the end of step 1: CLANG, nothing cached",
      rounds: 2,
      name: "CLANG",
      file: "mnist.mjs",
      prints: "finite",
      env: { DEV: "CLANG", CACHE: cache },
      limit: 5000,
      fresh: true,
    },
    {
      what: "beautiful_mnist, start to the end of step 1: CLANG, compiled before",
      rounds: 3,
      name: "CLANG",
      file: "mnist.mjs",
      prints: "finite",
      env: { DEV: "CLANG", CACHE: cache },
    },
  ];
  const rows: Row[] = [];
  for (const { what, rounds, limit, fresh, ...program } of programs) {
    if (!what.includes(which)) continue;
    log(what);
    const times: number[] = [];
    if (fresh !== true) await timeToPrint(program); // the first run fills the file cache
    for (let i = 0; i < rounds; i++) {
      if (fresh === true) rmSync(cache, { recursive: true, force: true });
      times.push(await timeToPrint(program));
    }
    rows.push({ what, ...summarize(times), ...(limit === undefined ? {} : { limit }) });
  }
  return rows;
}
