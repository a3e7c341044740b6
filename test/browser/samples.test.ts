// Web workers read the samples of a DataLoader from a module of the page.

import { expect, test } from "vitest";
import { bundlePage, executablePath, NO_CHROMIUM, useChromium } from "./harness.ts";
import type { SamplesPage } from "./samplespage.ts";

declare const gradloomSamples: SamplesPage; // exists inside the page only

const openPage = useChromium();
const SAMPLES = `export default ({ length, throws }) => ({
  length,
  get(i) {
    if (i === throws) throw new RangeError("sample " + i + " is lost");
    return { i, x: new Float32Array([i, i + 0.5]) };
  },
});`;

test("samples in order, errors by name", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const { files } = await bundlePage("test/browser/samplespage.ts");
  const page = await openPage(new Map([...files, ["samples.js", SAMPLES]]));
  expect(await page.evaluate(() => gradloomSamples.read())).toEqual([
    [
      [0, 1],
      [
        [0, 0.5],
        [1, 1.5],
      ],
    ],
    [
      [2, 3],
      [
        [2, 2.5],
        [3, 3.5],
      ],
    ],
    [[4], [[4, 4.5]]],
  ]);
  const [lost, none] = await page.evaluate(() => gradloomSamples.problems());
  expect(lost).toBe("RangeError: sample 1 is lost");
  expect(none).toMatch(/none\.js/);
});
