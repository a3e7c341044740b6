// What a page has instead of files: addresses to read from, and a function of the page that takes what is
// written. The contract is in ../contract.ts. Loaded by code that reads or writes.

import { DeviceError, FileError } from "../../errors.ts";
import type { MaybePromise } from "../../helpers.ts";
import { addressOf, unreachable } from "../address.ts";

/** A page has no files: what is written goes to the function that the page put there, if any. */
type Write = (path: string, data: string | Uint8Array) => MaybePromise<void>;
const page = globalThis as { GRADLOOM_WRITE?: Write };

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
