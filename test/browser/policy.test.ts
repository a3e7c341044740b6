// A page's Content-Security-Policy: where it forbids what the library needs, the message names the directive
// that is missing. What cannot be fetched is named by its whole address.

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { bundlePage, executablePath, NO_CHROMIUM, type ServeOptions, useChromium } from "./harness.ts";
import type { WorkersPage } from "./workerspage.ts";

declare const gradloomWorkers: WorkersPage; // exists inside the page only

const openPage = useChromium();

async function open(policy: string, options: ServeOptions = {}): Promise<{ page: Page; said: string[] }> {
  const { files } = await bundlePage("test/browser/workerspage.ts", { minify: true });
  const page = await openPage(files, { ...options, policy });
  const said: string[] = [];
  page.on("console", (message) => said.push(message.text()));
  return { page, said };
}
/** The name and the message of what it throws. */
const failure = (page: Page): Promise<string> =>
  page.evaluate(() =>
    gradloomWorkers.twoDevices().then(
      () => "nothing",
      (e: Error) => `${e.name}: ${e.message}`,
    ),
  );

describe("a policy", () => {
  test("without 'wasm-unsafe-eval': the error says so, and does not call it internal", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const { page } = await open("script-src 'self'; worker-src blob:");
    const text = await failure(page);
    expect(text).toMatch(/^DeviceError: WASM: the Content-Security-Policy of this page forbids WebAssembly/);
    expect(text).toContain("add 'wasm-unsafe-eval' to its script-src directive");
    expect(text).not.toContain("internal:");
  });
  test("with it: the page computes", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const { page } = await open("script-src 'self' 'wasm-unsafe-eval'; worker-src blob:");
    expect(await failure(page)).toBe("nothing");
  });
  test("without worker-src blob: the page computes, and the console says what is missing", async ({
    skip,
  }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const { page, said } = await open("worker-src 'self'");
    await page.evaluate(() => gradloomWorkers.products(320, 2));
    await expect.poll(() => said.join("\n")).toContain("add `worker-src blob:` to it");
  });
});

test("what cannot be fetched is named by its address", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const { page } = await open("connect-src 'self'");
  const load = () =>
    page.evaluate(() =>
      gradloomWorkers.load("weights.safetensors").catch((e: Error) => `${e.name}: ${e.message}`),
    );
  const address = `${new URL("weights.safetensors", page.url())}`;
  expect(await load()).toContain(`FileError: cannot fetch ${address}: the server answered 404`);
  await page.context().setOffline(true);
  expect(await load()).toContain(
    `FileError: cannot fetch ${address}: Failed to fetch; the browser is offline`,
  );
  await page.context().setOffline(false);
});
