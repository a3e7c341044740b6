// Files that a page downloads once: `fetchCached` keeps them in the page's own file system (OPFS), so that
// the next visit reads weights from the disk, also offline. In: an address. Out: a Blob, which the loaders
// read in parts. Where there is no such file system it is fetched every time.

import { FileError } from "../errors.ts";
import { addressOf, unreachable } from "../host/address.ts";

export interface FetchCachedOptions {
  /** Ask the server whether the file has changed (the default); false: what is kept is taken as it is. */
  readonly revalidate?: boolean;
  /**
   * Called while the file is downloaded: with the bytes so far, and with those of the whole file if the
   * server says how many they are.
   */
  readonly onProgress?: (received: number, total: number | undefined) => void;
}
/** What is known of a file that is kept. */
interface KeptFile {
  readonly address: string;
  /** what the server called this version of it */
  readonly version: string;
  readonly size: number;
}

const FOLDER = "gradloom-files";

/**
 * Downloads a file, or takes it from the page's own file system (OPFS) if it was downloaded on an earlier
 * visit and has not changed on the server since. Offline, what is kept is taken. The result goes to
 * `nn.safeLoad`, `nn.npyLoad`, `nn.npzLoad` or `Tensor.from`.
 * @example
 * const file = await nn.fetchCached("data:application/octet-stream;base64,AQID");
 * await (await Tensor.from(file)).tolist() // => [1, 2, 3]
 */
export async function fetchCached(address: string | URL, options: FetchCachedOptions = {}): Promise<Blob> {
  const url = addressOf(String(address));
  const folder = /^https?:/.test(url) ? await openFolder() : undefined;
  if (folder === undefined) return watched(await get(url), options).blob();
  const name = await nameOf(url);
  const kept = await lookUp(folder, name);
  if (kept !== undefined && (options.revalidate === false || (await isCurrent(kept.record))))
    return kept.file;
  return download(folder, name, url, options);
}

/**
 * Removes what `fetchCached` keeps of an address; without one, all of it.
 * @example
 * await nn.forgetCached() // => undefined
 */
export async function forgetCached(address?: string | URL): Promise<void> {
  const folder = await openFolder();
  if (folder === undefined) return;
  const only = address === undefined ? undefined : await nameOf(addressOf(String(address)));
  // not while the names are being listed
  const names: string[] = [];
  for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) names.push(name);
  for (const name of names) if (only === undefined || name.startsWith(only)) await folder.removeEntry(name);
}

/** undefined: there is none, or this page may not have it. */
async function openFolder(): Promise<FileSystemDirectoryHandle | undefined> {
  try {
    const root = await globalThis.navigator.storage.getDirectory();
    return await root.getDirectoryHandle(FOLDER, { create: true });
  } catch {
    return undefined;
  }
}
async function nameOf(url: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(url));
  return Array.from(new Uint8Array(hash), (x) => x.toString(16).padStart(2, "0")).join("");
}

async function lookUp(
  folder: FileSystemDirectoryHandle,
  name: string,
): Promise<{ record: KeptFile; file: File } | undefined> {
  try {
    const text = await (await (await folder.getFileHandle(`${name}.json`)).getFile()).text();
    const record = JSON.parse(text) as KeptFile;
    const file = await (await folder.getFileHandle(`${name}.bin`)).getFile();
    return file.size === record.size ? { record, file } : undefined;
  } catch {
    return undefined; // not there, or damaged
  }
}

/** A server that cannot be asked has the last word on nothing: what is kept is current. */
async function isCurrent({ address, version }: KeptFile): Promise<boolean> {
  try {
    const reply = await fetch(address, { method: "HEAD", cache: "no-cache" });
    return !reply.ok || versionOf(reply) === version;
  } catch {
    return true;
  }
}
function versionOf({ headers }: Response): string {
  const of = (name: string): string => headers.get(name) ?? "";
  return of("ETag") || `${of("Last-Modified")}|${of("Content-Length")}`;
}

async function get(url: string): Promise<Response> {
  const reply = await fetch(url).catch((cause: unknown) => {
    throw unreachable(url, cause);
  });
  if (reply.ok) return reply;
  throw new FileError(`cannot fetch ${url}: the server answered ${reply.status} ${reply.statusText}`.trim());
}

/** The reply, whose bytes are counted as they are read. */
function watched(reply: Response, { onProgress }: FetchCachedOptions): Response {
  if (onProgress === undefined || reply.body === null) return reply;
  // the length is that of what travels, which may be compressed: then there are more bytes than it says
  const size = Number(reply.headers.get("Content-Length") ?? 0);
  const isWhole = size > 0 && !reply.headers.has("Content-Encoding");
  let received = 0;
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, out) {
      received += bytes.byteLength;
      onProgress(received, isWhole && received <= size ? size : undefined);
      out.enqueue(bytes);
    },
  });
  return new Response(reply.body.pipeThrough(count), { headers: reply.headers });
}

/** The record is written last: a file without one does not count. */
async function download(
  folder: FileSystemDirectoryHandle,
  name: string,
  url: string,
  options: FetchCachedOptions,
): Promise<Blob> {
  const reply = watched(await get(url), options);
  if (reply.body === null) return reply.blob();
  let isStored = false;
  try {
    await folder.removeEntry(`${name}.json`).catch(() => {});
    const data = await folder.getFileHandle(`${name}.bin`, { create: true });
    await reply.body.pipeTo(await data.createWritable());
    isStored = true;
    const file = await data.getFile();
    const record: KeptFile = { address: url, version: versionOf(reply), size: file.size };
    const written = await (await folder.getFileHandle(`${name}.json`, { create: true })).createWritable();
    await written.write(JSON.stringify(record));
    await written.close();
    return file;
  } catch (cause) {
    await folder.removeEntry(`${name}.bin`).catch(() => {});
    if (isStored || isFull(cause)) return (await get(url)).blob(); // it is used all the same, and not kept
    throw unreachable(url, cause);
  }
}
/** The disk or the page's share of it is full, or this browser cannot write there. */
const isFull = (e: unknown): boolean =>
  e instanceof TypeError ? /createWritable/.test(e.message) : (e as Error)?.name === "QuotaExceededError";
