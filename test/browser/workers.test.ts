// WASM's workers in a page: with COOP and COEP headers memory is shared, kernels run beside and a timer keeps
// firing; without them, or where the page's policy forbids such workers, the same program
// runs on the page's own thread.

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { bundlePage, executablePath, NO_CHROMIUM, type ServeOptions, useChromium } from "./harness.ts";
import type { WorkersPage } from "./workerspage.ts";

declare const gradloomWorkers: WorkersPage; // exists inside the page only

const openPage = useChromium();

async function open(options: ServeOptions, minify = false): Promise<Page> {
  const { files } = await bundlePage("test/browser/workerspage.ts", { minify });
  return openPage(files, options);
}

describe.each([
  ["as written", false],
  ["minified", true],
])("an isolated page, %s", (_, minify) => {
  test("workers run, and the page stays responsive", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open({}, minify);
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
    const n = 640;
    await page.evaluate((size) => gradloomWorkers.products(size, 1), n); // compiles, starts the workers
    const got = await page.evaluate((size) => gradloomWorkers.products(size, 6), n);
    expect(got.values).toEqual(new Array(6).fill(n ** 3));
    expect(got.shared).toBe(true);
    expect(got.workers).toBeGreaterThan(0);
    expect(got.up).toBe(true);
    // the page was never held up for as long as a product takes
    expect(got.ticks).toBeGreaterThan(6);
    expect(got.longest).toBeLessThan(Math.max(60, got.ms / 3));
    expect(await page.evaluate(() => gradloomWorkers.twoDevices())).toBe(128 ** 2 * 128 * 129);
    expect(await page.evaluate(() => gradloomWorkers.sync(300))).toBe(300 ** 3);
  });
});

test.for([
  ["", true, Infinity],
  [" before they could say that they were there", false, Infinity],
  [" before the second one had come up", true, 1],
] as const)(
  "workers that the page ends in the middle of a kernel%s are missed and replaced",
  async ([, couldSay, up], { skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open({});
    const { heard, after, fresh } = await page.evaluate(
      ([x, n]) => gradloomWorkers.killed(x, n ?? Infinity),
      [couldSay, up === Infinity ? null : up] as const,
    );
    expect(heard).toMatch(
      /^DeviceError: WASM compute: kernel endless failed on worker \d+: the worker is gone/,
    );
    expect(after.values).toEqual([640 ** 3]);
    expect(fresh).toBeGreaterThan(0);
  },
);

describe.each([
  ["isolated", {}],
  ["not isolated", { isolated: false }],
])("a captured training step in a page %s", (_, options) => {
  test("replays with the losses of eager steps, and the page stays responsive", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open(options);
    const [eager, jitted] = [
      await page.evaluate(() => gradloomWorkers.training(false, 8)),
      await page.evaluate(() => gradloomWorkers.training(true, 8)),
    ];
    expect(jitted.losses).toEqual(eager.losses);
    expect(new Set(jitted.losses).size).toBe(8);
    expect([eager.runs, jitted.runs]).toEqual([8, 2]);
    if (!(await page.evaluate(() => crossOriginIsolated))) return;
    expect(jitted.ticks).toBeGreaterThan(6);
    expect(jitted.longest).toBeLessThan(Math.max(60, jitted.ms / 3));
  });
});

describe.each([
  ["eager", false],
  ["jitted", true],
])("a page that is not isolated, %s steps", (_, jitted) => {
  test("gets its thread back between the parts of the work", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open({ isolated: false });
    const steps = 6;
    const { losses } = await page.evaluate(([j, n]) => gradloomWorkers.training(j, n), [
      jitted,
      steps,
    ] as const);
    const got = await page.evaluate(([j, n]) => gradloomWorkers.messages(j, n), [jitted, steps] as const);
    expect(got.losses).toEqual(losses);
    // a step has some ten kernels, each a part at least, and a replay stops between them too
    expect(got.messages).toBeGreaterThan(10 * steps);
  });
});

describe.each([
  ["not isolated", { isolated: false }, false],
  ["whose policy forbids workers", { policy: "worker-src 'self'" }, true],
])("a page %s", (_, options, shared) => {
  test("computes on its own thread", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open(options);
    const got = await page.evaluate(() => gradloomWorkers.products(320, 2));
    expect(got.values).toEqual([320 ** 3, 320 ** 3]);
    expect([got.shared, got.up]).toEqual([shared, false]);
    expect(await page.evaluate(() => gradloomWorkers.twoDevices())).toBe(128 ** 2 * 128 * 129);
  });
});
