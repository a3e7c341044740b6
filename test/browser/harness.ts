// A Chromium for the tests of a file, and pages in it; server.ts has what they stand on.

import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { CHROMIUM_FLAGS, findChromium, type ServeOptions, serve } from "./server.ts";

export * from "./server.ts";

export const executablePath = findChromium();

/** A Chromium for all tests of a file, where there is one; gives what opens a page of these files in it. */
export function useChromium(
  flags: readonly string[] = CHROMIUM_FLAGS,
): (files: ReadonlyMap<string, string>, options?: ServeOptions) => Promise<Page> {
  let browser: Browser | undefined;
  const closing: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    if (executablePath !== undefined) browser = await chromium.launch({ executablePath, args: [...flags] });
  });
  afterAll(async () => {
    await browser?.close();
    for (const close of closing) await close();
  });
  return async (files, options) => {
    const server = await serve(files, options);
    closing.push(server.close);
    const page = await (browser as Browser).newPage();
    await page.goto(server.url, { waitUntil: "load" });
    return page;
  };
}
