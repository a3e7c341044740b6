// WEBGPU in Chromium, on its software adapter: random graphs give what the reference gives, in the tiers that
// differ there, with WASM beside it in the same page; a captured step trains as on WASM.

import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GraphsPage } from "./graphspage.ts";
import { bundlePage, executablePath, NO_CHROMIUM, serve, WEBGPU_FLAGS } from "./harness.ts";

declare const gradloomGraphs: GraphsPage; // exists inside the page only

let [browser, page, closed]: [Browser?, Page?, string?] = [];
let close: (() => Promise<void>) | undefined;
beforeAll(async () => {
  closed = executablePath === undefined ? NO_CHROMIUM : undefined;
  if (executablePath === undefined) return;
  const { files } = await bundlePage("test/browser/graphspage.ts");
  const server = await serve(files);
  close = server.close;
  browser = await chromium.launch({ executablePath, args: WEBGPU_FLAGS });
  page = await browser.newPage();
  await page.goto(server.url, { waitUntil: "load" });
  closed = await page.evaluate(() => gradloomGraphs.open("WEBGPU", "full"));
  if (closed === undefined) closed = await page.evaluate(() => gradloomGraphs.open("WEBGPU:1", "f32"));
}, 60_000);
afterAll(async () => {
  await browser?.close();
  await close?.();
});

describe("random graphs", () => {
  test.for([
    { devices: ["WEBGPU", "WASM"], count: 48, first: 1, setting: "default" },
    { devices: ["WEBGPU:1"], count: 24, first: 1001, setting: "default" },
    { devices: ["WEBGPU"], count: 12, first: 2001, setting: "JIT=1" },
  ])("$count on $devices, $setting", { timeout: 300_000 }, async (of, { skip }) => {
    skip(closed !== undefined, closed);
    const { bad, kernels } = await (page as Page).evaluate(
      ({ devices, first, count, setting }) => gradloomGraphs.graphs(devices, first, count, setting),
      of,
    );
    expect(bad).toEqual([]);
    expect(kernels).toBeGreaterThanOrEqual(of.count);
  });
});

test("a captured step trains as on WASM", { timeout: 60_000 }, async ({ skip }) => {
  skip(closed !== undefined, closed);
  const losses = (device: string): Promise<number[]> =>
    (page as Page).evaluate((d) => gradloomGraphs.losses(d, 6), device);
  const [got, want] = [await losses("WEBGPU"), await losses("WASM")];
  expect(want.at(-1)).toBeLessThan(want[0] as number);
  got.forEach((x, i) => void expect(x).toBeCloseTo(want[i] as number, 4));
});
