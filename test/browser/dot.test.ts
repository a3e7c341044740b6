// gradloom in a page: the core bundles without `node:` modules, and Chromium
// computes a dot product and a matmul.

import { type Browser, type Page as BrowserPage, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundlePage, CHROMIUM_FLAGS, findChromium, NO_CHROMIUM, serve } from "./harness.ts";
import type { Page } from "./page.ts";

declare const gradloomPage: Page; // exists inside the page only

const executablePath = findChromium();
const bundle = await bundlePage("test/browser/page.ts");

test("the core bundles for a browser without node: imports", () => {
  expect(bundle.externals).toEqual([]);
  for (const [name, text] of bundle.files) {
    expect(text.match(/(?:\bfrom|\bimport|\bimport\(|\brequire\()\s*["'`]node:[^"'`]*/g), name).toBeNull();
  }
});

describe("in a Chromium page", () => {
  let server: Awaited<ReturnType<typeof serve>> | undefined;
  let browser: Browser | undefined;
  let page: BrowserPage;
  const pageErrors: string[] = [];

  beforeAll(async () => {
    if (executablePath === undefined) return;
    server = await serve(bundle.files);
    browser = await chromium.launch({ executablePath, args: CHROMIUM_FLAGS });
    page = await browser.newPage();
    page.on("pageerror", (error) => pageErrors.push(String(error)));
    await page.goto(server.url, { waitUntil: "load" });
  });

  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  test("the page loads and is isolated", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    expect(pageErrors).toEqual([]);
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
  });

  test("dot([1, 2], [3, 4]) is 11", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    expect(await page.evaluate(() => gradloomPage.dot([1, 2], [3, 4]))).toBe(11);
  });

  test("a 256x256 matmul equals plain loops", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const n = 256;
    const [a, b] = [noise(n, 1), noise(n, 2)];
    const got = await page.evaluate(([a, b]) => gradloomPage.matmul(a, b), [a, b] as const);
    expect(got.type).toBe("Float32Array");
    expect(got.values.length).toBe(n * n);
    const want = plainMatmul(a, b);
    const worst = want.reduce((most, value, i) => Math.max(most, Math.abs(value - got.values[i]!)), 0);
    // 256 products below 1/4, each rounded to float32: 2^-24 * 256 * 64 at the very worst.
    expect(worst).toBeLessThan(1e-3);
  });
});

/** An n x n matrix of float32 values in [-0.5, 0.5), the same for the same seed. */
function noise(n: number, seed: number): number[][] {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.fround((state >>> 8) / 2 ** 24 - 0.5);
  };
  return Array.from({ length: n }, () => Array.from({ length: n }, next));
}

function plainMatmul(a: number[][], b: number[][]): number[] {
  return a.flatMap((row) => b[0]!.map((_, j) => row.reduce((sum, value, k) => sum + value * b[k]![j]!, 0)));
}
