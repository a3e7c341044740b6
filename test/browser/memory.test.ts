// Dropped tensors in a page: Chromium frees them before a WebAssembly memory of 4 GiB is full, although it
// sees small objects only, and eager training does not grow.

import { describe, expect, test } from "vitest";
import { bundlePage, executablePath, NO_CHROMIUM, useChromium } from "./harness.ts";
import type { MemoryPage } from "./memorypage.ts";

declare const gradloomMemory: MemoryPage; // exists inside the page only

const openPage = useChromium();
const open = async () =>
  openPage((await bundlePage("test/browser/memorypage.ts")).files, { isolated: false });

describe("in a page that is not isolated", () => {
  test("three tensors of 1 GiB are made and dropped, again and again", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open();
    for (let round = 0; round < 3; round++) {
      const got = await page.evaluate(() => gradloomMemory.drop(2 ** 30, 3));
      expect(got.held).toBeLessThan(4);
    }
  });
  test("eager steps hold what they held", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open();
    const sizes = await page.evaluate(() => gradloomMemory.train(120));
    // a step makes some 3 MB
    expect((sizes[3] as number) - (sizes[1] as number)).toBeLessThan(100 << 20);
  });
});
