// The pages of examples/browser in Chromium: digits are learned and read on WASM and WEBGPU (SwiftShader), a
// story is told, and what goes wrong is said in words.

import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { digitOf, type Point } from "../../examples/browser/digit.ts";
import { makeSite, servePages, settingsOf } from "../../examples/browser/serve.ts";
import { findStories } from "../../examples/stories15m.ts";
import { CHROMIUM_FLAGS, findChromium, NO_CHROMIUM } from "../browser/server.ts";

const executablePath = findChromium();
const GPU_FLAGS = [
  "--no-sandbox",
  "--headless=new",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
];
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/** Strokes in a square of side 1, as a person would draw them. */
const DRAWINGS: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  "1": [[0.52, 0.2], [0.5, 0.5], [0.48, 0.82]], // biome-ignore format: points
  "3": [[0.3, 0.3], [0.45, 0.2], [0.62, 0.25], [0.64, 0.4], [0.5, 0.5], [0.64, 0.58], [0.66, 0.74], [0.5, 0.84], [0.3, 0.76]], // biome-ignore format: points
  "0": [[0.5, 0.2], [0.34, 0.32], [0.3, 0.5], [0.35, 0.7], [0.5, 0.8], [0.65, 0.7], [0.7, 0.5], [0.66, 0.32], [0.5, 0.2]], // biome-ignore format: points
};

/** Lets a test reach the GPU device that the page has opened, to lose it. */
const KEEP_DEVICE = `{
  const request = globalThis.GPUAdapter?.prototype.requestDevice;
  if (request) GPUAdapter.prototype.requestDevice = async function (...args) {
    return (globalThis.theDevice = await request.apply(this, args));
  };
}`;

let [browser, plain]: [Browser?, Browser?] = [];
let server: Awaited<ReturnType<typeof servePages>>;
beforeAll(async () => {
  if (executablePath === undefined) {
    console.log(`skip: ${NO_CHROMIUM}`);
    return;
  }
  server = await servePages(await makeSite(), 0);
  browser = await chromium.launch({ executablePath, args: GPU_FLAGS });
  plain = await chromium.launch({ executablePath, args: CHROMIUM_FLAGS });
});
afterAll(async () => {
  await browser?.close();
  await plain?.close();
  await server?.close();
});

async function open(name: string, options: BrowserContextOptions = {}, from = browser): Promise<Page> {
  const page = await (from as Browser).newPage(options);
  page.setDefaultTimeout(60_000);
  await page.addInitScript(KEEP_DEVICE);
  await page.goto(server.url + name);
  return page;
}
test("the server refuses options and ports that mean nothing", () => {
  expect(settingsOf([])).toEqual({ isBuild: false, port: 8787 });
  expect(settingsOf(["--build"], "0")).toEqual({ isBuild: true, port: 0 });
  expect(() => settingsOf(["--bulid"])).toThrow("--bulid is not an option");
  for (const port of ["abc", "", "-1", "65536"])
    expect(() => settingsOf([], port)).toThrow("expected a number");
});

/** Polls for as long as a busy machine may take. */
const until = <T>(read: () => Promise<T>) => expect.poll(read, { timeout: 60_000 });
const text = async (page: Page, id: string): Promise<string> => (await page.textContent(`#${id}`)) ?? "";
const number = async (page: Page, id: string): Promise<number> =>
  Number.parseFloat((await text(page, id)).replaceAll(",", ""));
const smoothLoss = async (page: Page): Promise<number> =>
  Number(/now ([\d.]+)$/.exec((await page.getAttribute("#chart", "aria-label")) ?? "")?.[1]);

/** Lets it train up to a step, and pauses. */
async function trainTo(page: Page, step: number): Promise<void> {
  await page.click("#start:enabled");
  await until(() => number(page, "step")).toBeGreaterThanOrEqual(step);
  await page.click("#start");
  await until(() => text(page, "status")).toContain("Paused");
  expect(await page.isHidden("#error"), await text(page, "error-text")).toBe(true);
}

async function draw(page: Page, points: readonly (readonly [number, number])[]): Promise<void> {
  await page.click("#clear");
  const box = await page.locator("#pad").boundingBox();
  const at = ([x, y]: readonly [number, number]): [number, number] => [
    (box?.x ?? 0) + x * (box?.width ?? 0),
    (box?.y ?? 0) + y * (box?.width ?? 0),
  ];
  await page.mouse.move(...at(points[0]!));
  await page.mouse.down();
  for (const p of points.slice(1)) await page.mouse.move(...at(p), { steps: 4 });
  await page.mouse.up();
}
const chances = (page: Page): Promise<number[]> =>
  page.$$eval("#bars li", (all) => all.map((li) => Number(li.style.getPropertyValue("--chance"))));

describe("digits", () => {
  test("WASM learns to read what is drawn; WEBGPU goes on with it, and learns by itself", async ({
    skip,
  }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open("mnist.html");
    await trainTo(page, 500);
    expect(await smoothLoss(page)).toBeLessThan(0.5);
    expect(await number(page, "tested")).toBeGreaterThan(85);
    for (const [digit, points] of Object.entries(DRAWINGS)) {
      await draw(page, points);
      await until(() => text(page, "guess")).toBe(digit);
      expect((await chances(page)).reduce((a, b) => a + b)).toBeCloseTo(1, 2);
    }

    await page.selectOption("#batch", "16");
    if (await page.isDisabled("input[value=WEBGPU]")) {
      console.log(`skip: ${await text(page, "device-note")}`);
      return;
    }
    await page.check("input[value=WEBGPU]", { force: true });
    await until(() => text(page, "status")).toContain("on WEBGPU");
    await draw(page, DRAWINGS["3"]!);
    await until(() => text(page, "guess")).toBe("3");
    await page.click("#reset");
    await until(() => text(page, "step")).toBe("0");
    await trainTo(page, 45);
    expect(await smoothLoss(page)).toBeLessThan(2.1);
    expect(await text(page, "device-note")).toContain("WEBGPU: your graphics processor");

    // a GPU that is lost stops the training with words, and can be opened again
    await page.click("#start");
    await page.evaluate(`theDevice.destroy()`);
    await until(() => text(page, "error-text")).toMatch(
      /the GPU was lost|since it was lost|was lost with the GPU/,
    );
    expect(await text(page, "status")).toBe("Training has stopped; Reset begins anew");
    await page.click("#reset");
    await until(() => text(page, "status")).toMatch(/^Ready: .* on WEBGPU$/);
    expect(await page.isHidden("#error")).toBe(true);
    await page.close();
  });

  test("without a GPU the page says why, and WASM goes on; a finger draws", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open("mnist.html", PHONE, plain);
    await until(() => text(page, "device-note")).toMatch(/WEBGPU cannot be chosen: .{20}/);
    expect(await page.isDisabled("input[value=WEBGPU]")).toBe(true);
    await page.locator("#start:enabled").waitFor();
    await page.tap("#pad");
    await until(() => text(page, "sure")).toContain("nothing is learned yet");
    await page.tap("#sample");
    await trainTo(page, 20);
    await until(() => text(page, "sure")).toMatch(/sure, (and right|but it is a \d)/);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await page.close();
  });

  test("a drawing is fitted into 20 x 20 pixels around its centre of mass", () => {
    const points = (list: readonly (readonly [number, number])[]): Point[] =>
      list.map(([x, y]) => ({ x, y }));
    for (const [list, scale] of [
      [DRAWINGS["3"]!, 1],
      [DRAWINGS["1"]!, 100],
      [[[5, 5]] as const, 1],
    ] as const) {
      const pixels = digitOf([points(list.map(([x, y]) => [x * scale, y * scale] as const))])!;
      const inked = [...pixels.keys()].filter((i) => pixels[i]! > 0);
      const mass = pixels.reduce((a, b) => a + b, 0);
      const centre = (of: (i: number) => number): number =>
        inked.reduce((sum, i) => sum + of(i) * pixels[i]!, 0) / mass;
      expect(centre((i) => (i % 28) + 0.5)).toBeCloseTo(14, 0);
      expect(centre((i) => Math.floor(i / 28) + 0.5)).toBeCloseTo(14, 0);
      const rows = inked.map((i) => Math.floor(i / 28));
      expect(Math.max(...rows) - Math.min(...rows)).toBeLessThanOrEqual(21);
    }
    expect(digitOf([])).toBeUndefined();
    // as wide in a small drawing as in a large one
    const small = points(DRAWINGS["0"]!).map(({ x, y }) => ({ x: x / 9, y: y / 9 }));
    expect(digitOf([small])).toEqual(digitOf([points(DRAWINGS["0"]!)]));
  });
});

describe("stories", () => {
  test("the likeliest story, then one that is stopped", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    skip(findStories() === undefined, "stories15M is not installed (npm install)");
    const page = await open("stories.html", {}, plain);
    await page.fill("#temperature", "0");
    await page.selectOption("#length", "64");
    await page.click("#write");
    await until(() => text(page, "status")).toBe("Told: 64 tokens, on WASM");
    expect(await text(page, "story")).toMatch(
      /^Once upon a time, there was a little girl named Lily\. She loved to play outside in the sunshine\./,
    );
    expect(await text(page, "device")).toBe("WASM");
    await page.fill("#prompt", "Tom had a red ball");
    await page.fill("#temperature", "1");
    await page.selectOption("#length", "256");
    await page.click("#write");
    await until(() => number(page, "tokens")).toBeGreaterThan(8);
    await page.click("#write");
    await until(() => text(page, "status")).toMatch(/^Stopped: \d+ tokens, on WASM$/);
    expect(await text(page, "story")).toMatch(/^Tom had a red ball/);
    await page.close();
  });
});

describe("the pages", () => {
  test("what cannot be loaded is said in words", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await (plain as Browser).newPage();
    await page.route("**/data/**", (route) => route.fulfill({ status: 404, body: "" }));
    await page.goto(`${server.url}mnist.html`);
    await until(() => text(page, "error-text")).toMatch(/cannot fetch .*404/);
    expect(await text(page, "status")).toBe("The digits could not be loaded");
    await page.goto(`${server.url}stories.html`);
    await page.click("#write");
    await until(() => text(page, "error-text")).toMatch(/cannot fetch .*404/);
    expect(await text(page, "write")).toBe("Tell a story");
    await page.close();
  });

  test("every control has a name, and the first page leads to the others", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const page = await open("", {}, plain);
    const links = await page.$$eval("main a", (all) => all.map((a) => a.getAttribute("href")));
    expect(links).toEqual(["mnist.html", "stories.html", "models.html"]);
    for (const name of links) {
      await page.goto(server.url + name);
      expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
      const nameless = await page.$$eval("button, input, select, textarea, progress", (all) =>
        all
          .filter((e) => {
            const { labels } = e as HTMLInputElement;
            const own = e.getAttribute("aria-label") ?? (e instanceof HTMLButtonElement ? e.textContent : "");
            return !own && !labels?.[0]?.textContent;
          })
          .map((e) => e.outerHTML),
      );
      expect(nameless).toEqual([]);
    }
    expect((await fetch(`${server.url}nothing.html`)).status).toBe(404);
    await page.close();
  });
});
