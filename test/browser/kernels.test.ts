// Kernels that a page keeps for its next visit: a second visit lowers nothing, and whatever is wrong with
// what was kept, or with storage, is as if nothing had been kept.

import { type BrowserContext, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundlePage, CHROMIUM_FLAGS, executablePath, NO_CHROMIUM, serve } from "./harness.ts";
import type { KernelsPage } from "./kernelspage.ts";

declare const gradloomKernels: KernelsPage; // exists inside the page only

/** A database may be slow to answer on a busy machine: then a visit after finds what was kept. */
const BUSY = { timeout: 60_000, interval: 200 };
const ENTRY = "test/browser/kernelspage.ts";

describe("kernels of a page", () => {
  let context: BrowserContext;
  let files: Map<string, string>;
  let server: Awaited<ReturnType<typeof serve>>;
  beforeAll(async () => {
    if (executablePath === undefined) return;
    const browser = await chromium.launch({ executablePath, args: CHROMIUM_FLAGS });
    context = await browser.newContext();
    files = (await bundlePage(ENTRY, { build: "first" })).files;
    server = await serve(files, { isolated: false });
  });
  afterAll(async () => {
    await context?.browser()?.close();
    await server?.close();
  });
  const visit = async (setup?: string) => {
    const page = await context.newPage();
    if (setup !== undefined) await page.addInitScript(setup);
    await page.goto(server.url, { waitUntil: "load" });
    return page;
  };

  const computed = async (setup?: string) => {
    const page = await visit(setup);
    const result = await page.evaluate(() => gradloomKernels.compute());
    await page.close();
    return result;
  };

  /** The builds of what is kept a moment after a visit. */
  const keptAfter = async () => {
    const page = await visit();
    await page.evaluate(() => gradloomKernels.compute());
    await page.waitForTimeout(500);
    const builds = await page.evaluate(() => gradloomKernels.kept());
    await page.close();
    return { isEmpty: builds.length === 0, builds: new Set(builds) };
  };

  test("a second visit compiles what the first one kept", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const { value, lowered } = await computed();
    expect(lowered).toBe(true);
    await expect.poll(keptAfter, BUSY).toEqual({ isEmpty: false, builds: new Set(["first"]) });
    await expect.poll(() => computed(), BUSY).toEqual({ value, lowered: false });
    // storage that is refused, or not wanted, changes nothing but the time
    for (const setup of [
      "globalThis.GRADLOOM_ENV = { CACHE: '0' };",
      "IDBFactory.prototype.open = () => { throw new DOMException('refused', 'SecurityError'); };",
      "Object.defineProperty(globalThis, 'indexedDB', { value: undefined });",
      "IDBFactory.prototype.open = () => ({});", // never answers
    ]) {
      expect(await computed(setup)).toEqual({ value, lowered: true });
    }
  });

  test("what is damaged is made again, what another build kept is deleted", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await visit();
    const { value } = await page.evaluate(() => gradloomKernels.compute());
    await page.evaluate(() => gradloomKernels.kept(true));
    await page.close();
    expect(await computed()).toEqual({ value, lowered: true });

    files.clear();
    for (const [name, text] of (await bundlePage(ENTRY, { build: "other" })).files) files.set(name, text);
    expect((await computed()).value).toBe(value);
    await expect.poll(keptAfter, BUSY).toEqual({ isEmpty: false, builds: new Set(["other"]) });
    // more than there is room for
    const last = await visit();
    await last.evaluate(() => gradloomKernels.keep(2100));
    const count = async () => (await last.evaluate(() => gradloomKernels.kept())).length;
    await expect.poll(count, BUSY).toBe(2000);
    await last.close();
  });
});
