// Tensors on canvases in Chromium, through WEBGPU and through ImageData; and what WEBGPU does in a page:
// pictures become tensors, variables are immediates, a software adapter is not the best device.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { CanvasPage } from "./canvaspage.ts";
import { bundlePage, executablePath, NO_CHROMIUM, useChromium, WEBGPU_FLAGS } from "./harness.ts";

declare const gradloomCanvas: CanvasPage; // exists inside the page only

/** Without these Chromium loses a software adapter that draws on a canvas. */
const DRAWING = ["--use-angle=swiftshader", "--enable-features=Vulkan", "--use-vulkan=swiftshader"];
const openPage = useChromium([...WEBGPU_FLAGS, ...DRAWING]);
let opened: Promise<Page> | undefined;
async function open(skip: (when: boolean, why?: string) => void): Promise<Page> {
  skip(executablePath === undefined, NO_CHROMIUM);
  opened ??= bundlePage("test/browser/canvaspage.ts").then(({ files }) => openPage(files));
  const page = await opened;
  const closed = await page.evaluate(() => gradloomCanvas.closed());
  skip(closed !== undefined, closed);
  return page;
}

test("a tensor is drawn the same by WEBGPU and by WASM", async ({ skip }) => {
  const page = await open(skip);
  const draw = (...args: Parameters<CanvasPage["draw"]>) =>
    page.evaluate((xs) => gradloomCanvas.draw(...xs), args);
  const cases: [number[], number[], "float32" | "uint8", { layout: "HWC" }?][] = [
    [[2, 3], [0, 0.5, 1, -1, 2, 0.25], "float32"],
    [[3, 1, 2], [0, 1, 0.2, 0.4, 0.6, 0.8], "float32"],
    [[1, 2, 3], [1, 2, 3, 250, 251, 252], "uint8", { layout: "HWC" }],
    [[2, 1, 2], [100, 200, 255, 0], "uint8"],
    [[4, 1, 1], [255, 0, 255, 128], "uint8"],
    [[4, 1, 2], [255, 9, 128, 9, 0, 9, 255, 0], "uint8"],
    [[70, 65], Array.from({ length: 70 * 65 }, (_, i) => i % 256), "uint8"],
  ];
  for (const [shape, values, dtype, options] of cases) {
    const gpu = await draw("WEBGPU", shape, values, dtype, options);
    const cpu = await draw("WASM", shape, values, dtype, options);
    expect([gpu.by, cpu.by], `${shape}`).toEqual(["webgpu", "2d"]);
    expect(gpu.shown, `${shape}`).toEqual(cpu.shown);
    expect(gpu.size).toEqual(cpu.size);
  }
  const grey = await draw("WEBGPU", [1, 3], [0, 0.5, 1], "float32");
  expect(grey).toEqual({
    shown: [0, 0, 0, 255, 128, 128, 128, 255, 255, 255, 255, 255],
    size: [3, 1],
    by: "webgpu",
  });
});

test("a canvas with another context is used or refused", async ({ skip }) => {
  const got = await (await open(skip)).evaluate(() => gradloomCanvas.contexts());
  expect(got.flat).toEqual(["2d", 255, 255, 255, 255]);
  expect(got.refused).toMatch(/^ArgumentError: toCanvas: this canvas has another context.* WASM cannot draw/);
  expect(got.none).toMatch(/^ArgumentError: toCanvas: expected a canvas/);
  expect(got.inJit).toMatch(/^JitError: .*toCanvas/);
  expect(got.large).toMatch(/^DeviceError: WEBGPU: a picture of 9000 × 1 pixels; this GPU draws up to 8192/);
});

test("pictures become tensors on WEBGPU", async ({ skip }) => {
  const got = await (await open(skip)).evaluate(() => gradloomCanvas.pictures());
  const want = [
    [
      [11, 21, 31, 0],
      [41, 51, 61, 0],
    ],
  ];
  for (const form of ["ImageData", "canvas", "ImageBitmap"]) expect(got[form], form).toEqual(want);
  // a frame may be kept in another colour space
  const frame = (got.VideoFrame as number[][][]).flat(2);
  frame.forEach((x, i) => void expect(Math.abs(x - (want.flat(2)[i] as number)) <= 3, `${frame}`).toBe(true));
});

test("variables reach kernels, and the software adapter is not the best device", async ({ skip }) => {
  const page = await open(skip);
  expect(await page.evaluate(() => gradloomCanvas.variables())).toEqual([2, 4, 7, 11]);
  expect(await page.evaluate(() => gradloomCanvas.best())).toBe("WASM");
});
