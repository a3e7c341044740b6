// Keeps the code that V8 made for the parts of the built package, when a process ends: the next one takes it
// instead of compiling them (start.ts). A process that finds none keeps its own. Code that a process of few
// kernels kept has few functions, so a process that compiled more than twice as many kernels takes its place.

import { builtin, load } from "./builtin.ts";
import { makeFolder, prune, write } from "./diskcache.ts";
import { whyUnsafe } from "./folder.ts";
import { HEADER_BYTES, type PartCode } from "./start.ts";
import { underFlags } from "./v8flags.ts";

/** A file for each version of Node and of the package: room for a dozen. */
const MAX_BYTES = 32 * 2 ** 20;
/** V8 throws code away that has not run for a while: what a longer process has left is not better. */
const LONG_S = 60;

/** Whether the code of a process is worth keeping. */
export const isBetter = (kernels: number, earlier: number, seconds: number): boolean =>
  earlier < 0 || (kernels > 2 * earlier && seconds < LONG_S);

/** Keeps the code of these parts; `kernels` is how many this process compiled. */
export function keepCode(codes: readonly PartCode[], kernels: number): void {
  const better = codes.filter((code) => isBetter(kernels, code.kernels, process.uptime()));
  // flags are those of the process: a thread must not change them while others compile
  if (better.length === 0 || !builtin.threads.isMainThread) return;
  try {
    for (const code of better) keep(code, kernels);
  } catch {} // a folder that cannot be used: each process compiles, as if there were no cache
}

function keep({ script, folder, key, flags }: PartCode, kernels: number): void {
  const data = underFlags(flags, () => script.createCachedData());
  const half = new Uint8Array(HEADER_BYTES + data.byteLength);
  new DataView(half.buffer).setUint32(0, kernels, true);
  half.set(data, HEADER_BYTES);
  makeFolder(builtin.path.resolve(folder));
  if (whyUnsafe(load, folder) !== undefined) return;
  prune(folder, MAX_BYTES);
  write(builtin.path.join(folder, key), half, half);
}
