// BEAM in a page: what a search found is in IndexedDB, and the next visit takes it
// from there. CACHE=0 keeps nothing.

import { describe, expect, test } from "vitest";
import type { BeamPage } from "./beampage.ts";
import { bundlePage, executablePath, NO_CHROMIUM, useChromium } from "./harness.ts";

declare const gradloomBeam: BeamPage; // exists inside the page only

const openPage = useChromium();

/** Two visits of one browser. */
async function visits(cache: string): Promise<Awaited<ReturnType<BeamPage["product"]>>[]> {
  const { files } = await bundlePage("test/browser/beampage.ts");
  const page = await openPage(files);
  const results = [];
  for (let visit = 0; visit < 2; visit++) {
    if (visit > 0) await page.reload({ waitUntil: "load" });
    results.push(await page.evaluate((c) => gradloomBeam.product(c), cache));
  }
  return results;
}

describe("BEAM in a page", () => {
  test("the second visit measures nothing", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const [first, second] = await visits("");
    expect(first?.compiled).toBeGreaterThan(3);
    expect(second?.compiled).toBe(1);
    expect(second?.values).toEqual(first?.values);
  });
  test("CACHE=0: it does", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const [, second] = await visits("0");
    expect(second?.compiled).toBeGreaterThan(3);
  });
});
