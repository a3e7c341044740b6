// Dropped tensors in a page: Chromium frees them before a WebAssembly memory of 4 GiB is full, although it
// sees small objects only, and eager training does not grow. And a memory that is larger.

import { describe, expect, test } from "vitest";
import { bundlePage, executablePath, NO_CHROMIUM, useChromium } from "./harness.ts";
import type { MemoryPage } from "./memorypage.ts";

declare const gradloomMemory: MemoryPage; // exists inside the page only

const openPage = useChromium();
const open = async (isolated = false) =>
  openPage((await bundlePage("test/browser/memorypage.ts")).files, { isolated });

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

describe.each([true, false])("WASM_MEMORY above 4, in a page that is isolated: %s", (isolated) => {
  test("tensors beyond 4 GiB are computed with", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open(isolated);
    const got = await page.evaluate(() => gradloomMemory.computeAbove(8));
    expect(got.top).toBeGreaterThan(2 ** 32);
    const wanted = { sum: 0, product: new Array<number>(64).fill(0) };
    for (let i = 0; i < 2 ** 20; i++) wanted.sum += i % 1000;
    for (let n = 0; n < 64 * 64; n++) wanted.product[n % 64]! += (63 * 64 + Math.floor(n / 64)) * n;
    expect(got.sum).toBe(wanted.sum);
    // the products are below 2^24, their sums are not
    got.product.forEach((x, i) => {
      expect(Math.abs(x / wanted.product[i]! - 1)).toBeLessThan(1e-5);
    });
  });
});
