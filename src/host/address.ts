// What messages say about addresses: which one it was, in full, and why nothing came from there.

import { FileError } from "../errors.ts";

/** The whole address of a path that is relative to the page. */
export function addressOf(path: string): string {
  try {
    return new URL(path, globalThis.location?.href).href;
  } catch {
    return path;
  }
}

/** No answer came, or it broke off. */
export function unreachable(path: string, cause: unknown): FileError {
  const why =
    globalThis.navigator?.onLine === false
      ? "the browser is offline"
      : "no server answered there, or it does not let this page read it (CORS, or connect-src of the page's " +
        "Content-Security-Policy)";
  return new FileError(`cannot fetch ${addressOf(path)}: ${(cause as Error).message}; ${why}`, { cause });
}
