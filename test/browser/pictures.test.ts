// Pictures as a page has them become tensors: drawn, decoded, or as they are.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { jpegFile } from "../tensor/image/files.ts";
import { bundlePage, executablePath, NO_CHROMIUM, useChromium } from "./harness.ts";
import type { PicturesPage } from "./picturespage.ts";

declare const gradloomPictures: PicturesPage; // exists inside the page only

const openPage = useChromium();
const open = async (): Promise<Page> => openPage((await bundlePage("test/browser/picturespage.ts")).files);

test("every form gives the pixels", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const page = await open();
  const { forms, expected } = await page.evaluate(() => ({
    forms: gradloomPictures.forms,
    expected: gradloomPictures.expected,
  }));
  expect(forms.length).toBe(8);
  for (const form of forms) {
    const got = await page.evaluate((f) => gradloomPictures.read(f), form);
    expect([got.shape, got.dtype], form).toEqual([[2, 3, 4], "uint8"]);
    // a video frame may be kept in another colour space
    const off = got.values.map((x, i) => Math.abs(x - (expected[i] as number)));
    expect(Math.max(...off), form).toBeLessThanOrEqual(form === "VideoFrame" ? 3 : 0);
  }
});

test("files are read and written, and ImageData goes to a canvas", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const page = await open();
  const file = [...jpegFile({ blocks: [[[20, 220]]], orientation: 6 })];
  const got = await page.evaluate((bytes) => {
    globalThis.JPEG_FILE = bytes;
    return gradloomPictures.files();
  }, file);
  // turned: what was left is above
  expect(got.grey).toEqual([[1, 16, 8], 20, 220]);
  expect(got.stored).toEqual([1, 8, 16]);
  // alpha changes nothing, as it would on a canvas
  expect(got.png).toEqual([[[10]], [[200]], [[90]], [[3]]]);
  expect(got.jpeg).toEqual([[3, 8, 16], 128]);
  expect(got.drawn).toEqual(await page.evaluate(() => gradloomPictures.expected));
  expect(got.webp).toEqual([3, 2, 3]);
  expect(got.bomb).toMatch(/16 × 8 = 128 pixels, the limit is 3/);
});

test("a Float16Array is float16", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const got = await (await open()).evaluate(() => gradloomPictures.half());
  skip(got === undefined, "this Chromium has no Float16Array");
  expect(got).toEqual([3, -4]);
});

test("what cannot be read says why", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const [closed, video, broken] = await (await open()).evaluate(() => gradloomPictures.problems());
  expect(closed).toMatch(/^ArgumentError: Tensor\.from: ImageBitmap (?:cannot be read|is 0 wide)/);
  expect(video).toMatch(/HTMLVideoElement is 0 wide and 0 high; wait until it is loaded/);
  expect(broken).toMatch(/this image\/png cannot be decoded/);
});
