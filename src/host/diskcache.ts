// What took long to make and will be asked for again by another process: bytes under a key, one file each, in
// the folder that the setting CACHE names. What is kept here is run as code: so the folder must belong to the
// user alone, and each file carries a checksum. A file is whole or not there, also with many processes at
// once. Losing it costs time and nothing else, so a folder that cannot be used does not make a program fail:
// the process says so once and keeps nothing.

import { env } from "../env.ts";
import { builtin, load } from "./builtin.ts";
import { folderOf as folderIn, isPrivate, whyUnsafe } from "./folder.ts";

/** More than this in a folder, and the oldest go until half is left. */
const MAX_FILES = 8192;
const MAX_BYTES = 512 * 2 ** 20;
/** A folder is looked through at the first file that a process keeps there, and after each of this many. */
const LOOK_EVERY = 256;
/** A draft this old was left by a process that died; what was read this long ago counts as used now. */
const HOUR_MS = 3_600_000;
const SUM_BYTES = 32;

/** undefined: nothing is kept. */
const folderOf = (kind: string): string | undefined => folderIn(load, kind, env.CACHE);

/** A name for everything that the bytes depend on. */
export const keyOf = (...parts: readonly string[]): string =>
  builtin.crypto.createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 40);

/** Earlier versions kept bare bytes under the key itself: they must not meet files with a checksum. */
const nameOf = (key: string): string => `${key}.sum`;

/** The key counts: a file under another's name is damaged, too. */
const checksum = (key: string, bytes: Uint8Array): Uint8Array =>
  builtin.crypto.createHash("sha256").update(key).update("\0").update(bytes).digest();

/** How many files this process has kept in each folder. */
const written = new Map<string, number>();
/**
 * Folders to which others have access, which are not used; and full or read-only ones, which are only read.
 */
const unusable = new Set<string>();
const readOnly = new Set<string>();

/** What was kept under the key; a file that is damaged is removed. */
export function kept(kind: string, key: string): Uint8Array | undefined {
  const folder = folderOf(kind);
  if (folder === undefined || unusable.has(folder)) return undefined;
  const file = builtin.path.join(folder, nameOf(key));
  try {
    if (!isOwn(folder)) return undefined;
    const { whole, age } = read(file);
    const bytes = whole.subarray(SUM_BYTES);
    if (sameBytes(whole.subarray(0, SUM_BYTES), checksum(key, bytes))) {
      if (age > HOUR_MS) touch(file);
      return bytes;
    }
    builtin.fs.rmSync(file, { force: true });
  } catch {} // it is not there, is not this user's, or cannot be removed
  return undefined;
}
/** The folder was the user's when it was looked at; the file that was opened must be, too. */
function read(file: string): { readonly whole: Uint8Array; readonly age: number } {
  const { fs } = builtin;
  const handle = fs.openSync(file, "r");
  try {
    const facts = fs.fstatSync(handle);
    if (!facts.isFile() || !isPrivate(facts)) throw new Error("not a file of this user alone");
    return { whole: fs.readFileSync(handle), age: Date.now() - facts.mtimeMs };
  } finally {
    fs.closeSync(handle);
  }
}
const sameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.byteLength === b.byteLength && a.every((x, i) => x === b[i]);
function touch(file: string): void {
  try {
    const now = new Date();
    builtin.fs.utimesSync(file, now, now);
  } catch {} // another process has removed it
}

export function keep(kind: string, key: string, bytes: Uint8Array): void {
  const folder = folderOf(kind);
  if (folder === undefined || unusable.has(folder) || readOnly.has(folder)) return;
  try {
    makeFolder(builtin.path.resolve(folder));
    if (!isOwn(folder)) return;
    const count = written.get(folder) ?? 0;
    written.set(folder, count + 1);
    if (count % LOOK_EVERY === 0) prune(folder);
    write(builtin.path.join(folder, nameOf(key)), checksum(key, bytes), bytes);
  } catch (e) {
    readOnly.add(folder);
    console.warn(
      `gradloom: ${folder} cannot keep what was compiled (${(e as Error).message}), so every process compiles anew; ` +
        "set CACHE to a folder that can be written, or to 0",
    );
  }
}

/** The draft has a name that no other process or thread has; it is on the disk before it is the file. */
export function write(file: string, ...parts: readonly Uint8Array[]): void {
  const { fs } = builtin;
  const draft = `${file}.${process.pid}.${builtin.crypto.randomUUID()}.part`;
  try {
    const handle = fs.openSync(draft, "wx", 0o600);
    try {
      for (const part of parts)
        for (let done = 0; done < part.byteLength; ) done += fs.writeSync(handle, part, done);
      fs.fsyncSync(handle);
    } finally {
      fs.closeSync(handle);
    }
    fs.renameSync(draft, file);
  } catch (e) {
    fs.rmSync(draft, { force: true });
    throw e;
  }
}

/** Whether the folder is this user's alone; if not, the process says why. */
function isOwn(folder: string): boolean {
  const why = whyUnsafe(load, folder);
  if (why === undefined) return true;
  unusable.add(folder);
  console.warn(`gradloom: ${folder} is not used, because files in it are run as code: ${why}`);
  return false;
}

/** Node's own recursive mkdir tries forever where a file system has folders but takes none, such as /proc. */
export function makeFolder(folder: string): void {
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

/** The oldest go where there is too much, and drafts that nobody will finish. */
export function prune(folder: string, maxBytes = MAX_BYTES): void {
  const { fs, path } = builtin;
  const found = fs.readdirSync(folder).flatMap((name) => {
    // another process may clean at the same time
    const facts = fs.statSync(path.join(folder, name), { throwIfNoEntry: false });
    return facts?.isFile() ? [{ name, at: facts.mtimeMs, size: facts.size }] : [];
  });
  const old = (f: { name: string; at: number }) => f.name.endsWith(".part") && f.at < Date.now() - HOUR_MS;
  const files = found.filter((f) => !old(f)).sort((a, b) => a.at - b.at);
  const doomed = found.filter(old);
  let [count, bytes] = [files.length, files.reduce((sum, f) => sum + f.size, 0)];
  if (count > MAX_FILES || bytes > maxBytes) {
    for (const file of files) {
      if (count <= MAX_FILES / 2 && bytes <= maxBytes / 2) break;
      doomed.push(file);
      count--;
      bytes -= file.size;
    }
  }
  for (const { name } of doomed) fs.rmSync(path.join(folder, name), { force: true });
}
