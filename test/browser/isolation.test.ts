// The guide's service worker makes a page cross-origin isolated whose server sends no headers, and its worker
// computes.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bundleText, executablePath, NO_CHROMIUM, root, useChromium } from "./harness.ts";

const guide = readFileSync(join(root, "docs/guide/browser.md"), "utf8");
const blocks = [...guide.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(([, language, text]) => ({
  language,
  text: text as string,
}));
const block = (holds: string): string => blocks.find(({ text }) => text.includes(holds))?.text ?? "";

const openPage = useChromium();

test("a page on a host without header control becomes isolated", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const script = block("workers.register").replaceAll(/<\/?script>/g, "");
  const files = new Map([
    ["page.js", script],
    ["isolate.js", block("clients.claim")],
  ]);
  const page = await openPage(files, { isolated: false });
  await expect.poll(() => page.evaluate(() => crossOriginIsolated).catch(() => false)).toBe(true);
});

test("the guide's worker computes", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const worker = await bundleText(block('addEventListener("message"'), "esm");
  const files = new Map([
    ["page.js", ""],
    ["worker.js", worker],
  ]);
  const page = await openPage(files, { isolated: false });
  const got = await page.evaluate(
    () =>
      new Promise((done) => {
        const made = new Worker("/worker.js", { type: "module" });
        made.onmessage = ({ data }) => done(Array.from(data as Float32Array));
        made.onerror = (e) => done(e.message);
        made.postMessage(new Float32Array([1, 2.5]));
      }),
  );
  expect(got).toEqual([2, 5]);
});
