// What took long to make and will be asked for again by another process: bytes under a key, one file each, in
// the folder that the setting CACHE names. A file is whole or not there. Losing it costs time and nothing
// else, so a folder that cannot be written does not make a program fail: the process
// says so once and keeps nothing.

import { env } from "../env.ts";
import { builtin } from "./builtin.ts";

/** More files than this and the older half goes. */
const MAX_FILES = 8192;

/** undefined: nothing is kept. */
function folderOf(kind: string): string | undefined {
  if (env.CACHE === "0") return undefined;
  return builtin.path.join(
    env.CACHE === "" ? builtin.path.join(builtin.os.homedir(), ".cache", "gradloom") : env.CACHE,
    kind,
  );
}

/** A name for everything that the bytes depend on. */
export const keyOf = (...parts: readonly string[]): string =>
  builtin.crypto.createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 40);

/** Folders that were looked through for too many files, and those that cannot be used. */
const counted = new Set<string>();
const unusable = new Set<string>();

/** What was kept under the key. */
export function kept(kind: string, key: string): Uint8Array | undefined {
  const folder = folderOf(kind);
  try {
    return folder === undefined ? undefined : builtin.fs.readFileSync(builtin.path.join(folder, key));
  } catch {
    return undefined;
  }
}

export function keep(kind: string, key: string, bytes: Uint8Array): void {
  const folder = folderOf(kind);
  if (folder === undefined || unusable.has(folder)) return;
  const file = builtin.path.join(folder, key);
  try {
    makeFolder(builtin.path.resolve(folder));
    if (!counted.has(folder)) prune(folder);
    counted.add(folder);
    const draft = `${file}.${process.pid}`;
    builtin.fs.writeFileSync(draft, bytes);
    builtin.fs.renameSync(draft, file);
  } catch (e) {
    unusable.add(folder);
    console.warn(
      `gradloom: ${folder} cannot keep what was compiled (${(e as Error).message}), so every process compiles anew; ` +
        "set CACHE to a folder that can be written, or to 0",
    );
  }
}

/** Node's own recursive mkdir tries forever where a file system has folders but takes none, such as /proc. */
function makeFolder(folder: string): void {
  if (builtin.fs.existsSync(folder)) return;
  makeFolder(builtin.path.dirname(folder));
  try {
    // what is kept here is run as code: nobody else may write it
    builtin.fs.mkdirSync(folder, { mode: 0o700 });
  } catch (e) {
    // another process may have been faster
    if ((e as NodeJS.ErrnoException).code !== "EEXIST") throw e;
  }
}

/** What was kept under the key, or else made now and kept. */
export function cached(kind: string, key: string, make: () => Uint8Array): Uint8Array {
  const known = kept(kind, key);
  if (known !== undefined) return known;
  const bytes = make();
  keep(kind, key, bytes);
  return bytes;
}

function prune(folder: string): void {
  const names = builtin.fs.readdirSync(folder);
  if (names.length <= MAX_FILES) return;
  const files = names.map((name) => ({
    name,
    at: builtin.fs.statSync(builtin.path.join(folder, name)).mtimeMs,
  }));
  for (const { name } of files.sort((a, b) => a.at - b.at).slice(0, names.length >> 1)) {
    builtin.fs.rmSync(builtin.path.join(folder, name), { force: true });
  }
}
