// The first file of the built package in Node: loads a part of it, a CommonJS file that is a function of what
// it is given. V8 takes longer to compile the core than to run a small program with it, so the code that V8
// made for an earlier process is kept in the folder of the setting CACHE (codecache.ts writes it) and taken
// from there. Whatever is unusual here (no such folder, code of another V8, a bundle of a user's, another
// runtime) costs time and nothing else: the file is loaded as any other. In: the name of a part and where
// this file is. Out: the function, and what codecache.ts must know to keep its code.

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { Script } from "node:vm";
import { foreignVariable, setting } from "../env.ts";
import { folderOf, isPrivate, whyUnsafe } from "./folder.ts";

/** A part of the package: it gives its exports. */
export type MakePart = (given: unknown) => unknown;

/** Code that V8 makes for a part, and where it is kept. */
export interface PartCode {
  readonly script: Script;
  readonly folder: string;
  /** differs where the part, the V8 or its flags differ */
  readonly key: string;
  /** those of V8 that this package had set when the part was loaded (v8flags.ts) */
  readonly flags: string;
  /** how many kernels the process compiled whose code was taken; -1: none was taken */
  readonly kernels: number;
}

export interface PackagePart {
  readonly make: MakePart;
  readonly code?: PartCode | undefined;
}

/** Ahead of the code: how many kernels the process compiled that made it. V8 wants the code aligned. */
export const HEADER_BYTES = 8;

/**
 * The part in the file `name` beside `url`, compiled with the code that was kept. `bundled` loads it where a
 * user's bundler has put it, which is where no such file is. `flags` are those of V8 that
 * this package has set by now.
 */
export function loadPart(
  name: string,
  url: string | undefined,
  bundled: () => MakePart,
  flags = "",
): PackagePart {
  try {
    const load = createRequire(url as string);
    return compiled(load, name, url as string, flags) ?? { make: load(name) as MakePart };
  } catch {
    return { make: bundled() };
  }
}

type Require = ReturnType<typeof createRequire>;

/** Makes a function of a file, as Node does for CommonJS. */
const BEFORE = "(function(module){";

/** undefined: the file is to be loaded as any other. */
function compiled(load: Require, name: string, url: string, flags: string): PackagePart | undefined {
  const { versions, execArgv, sourceMapsEnabled } = process as typeof process & {
    sourceMapsEnabled?: boolean;
  };
  // other runtimes keep code in ways of their own
  if ("Deno" in globalThis || versions.bun !== undefined) return undefined;
  // Node reads the maps of files that it loads itself; coverage counts code that this process compiled
  if (sourceMapsEnabled || foreignVariable("NODE_V8_COVERAGE")) return undefined;
  const folder = setting("CODECACHE") === 0 ? undefined : folderOf(load, "code", setting("CACHE") as string);
  if (folder === undefined) return undefined;
  try {
    const fs = load("node:fs") as typeof import("node:fs");
    const vm = load("node:vm") as typeof import("node:vm");
    const filename = fileURLToPath(new URL(name, url));
    const text = fs.readFileSync(filename, "latin1"); // the build writes ASCII alone
    const key = keyOf(
      ...[name, versions.node, versions.v8, process.arch, String(fs.statSync(filename).mtimeMs)],
      ...[foreignVariable("NODE_OPTIONS") ?? "", flags, ...execArgv],
    );
    const kept = keptCode(load, folder, key);
    const script = new vm.Script(`${BEFORE}${text}\n})`, {
      filename,
      columnOffset: -BEFORE.length, // places in the text are those in the file
      cachedData: kept?.subarray(HEADER_BYTES),
    });
    const run = script.runInThisContext() as (module: { exports?: MakePart }) => void;
    // a test runner may have given this file other globals than V8's
    if (!(run instanceof Function)) return undefined;
    const module: { exports?: MakePart } = {};
    run(module);
    const kernels = kept === undefined || script.cachedDataRejected ? -1 : kept.readUInt32LE();
    return { make: module.exports as MakePart, code: { script, folder, key, flags, kernels } };
  } catch {
    return undefined;
  }
}

/** A short name for all that the code depends on: FNV-1a, since node:crypto takes milliseconds to load. */
export function keyOf(...parts: readonly string[]): string {
  let [a, b] = [0x811c9dc5, 0x01000193];
  for (const char of parts.join("\0")) {
    const code = char.codePointAt(0) as number;
    a = Math.imul(a ^ code, 0x01000193) >>> 0;
    b = Math.imul(b ^ (code + a), 0x5bd1e995) >>> 0;
  }
  return `${parts[0]?.replace(/^.*\//, "")}-${a.toString(36)}${b.toString(36)}`;
}

/**
 * A file has all bytes twice: V8 does not notice damage, comparing is ten times as fast as a checksum, and
 * both halves are never damaged alike. The second half is read piece by piece, which needs no new memory.
 */
function keptCode(load: Require, folder: string, key: string): Buffer | undefined {
  const fs = load("node:fs") as typeof import("node:fs");
  try {
    if (whyUnsafe(load, folder) !== undefined) return undefined;
    const file = fs.openSync(`${folder}/${key}`, "r");
    try {
      const facts = fs.fstatSync(file);
      if (!isPrivate(facts)) return undefined;
      const size = facts.size / 2;
      const half = Buffer.allocUnsafeSlow(size);
      const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
      let isWhole = size > HEADER_BYTES && fs.readSync(file, half) === size;
      for (let done = 0; isWhole && done < size; done += PIECE_BYTES) {
        const bytes = fs.readSync(file, piece);
        isWhole = piece.subarray(0, bytes).equals(half.subarray(done, done + PIECE_BYTES));
      }
      return isWhole ? half : undefined;
    } finally {
      fs.closeSync(file);
    }
  } catch {
    return undefined;
  }
}
const PIECE_BYTES = 1 << 16;
