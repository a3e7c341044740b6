// The page of models in Chromium: with the models of the npm packages where they are installed, and with
// files of the visitor's on a server that has none.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Tensor } from "gradloom";
import { onnx } from "gradloom/onnx";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { makeSite, servePages } from "../../../examples/browser/serve.ts";
import { FILES, findFile, INSTALL } from "../../../examples/models/packages.ts";
import { CHROMIUM_FLAGS, findChromium, NO_CHROMIUM } from "../../browser/server.ts";

const executablePath = findChromium();
const folder = mkdtempSync(join(tmpdir(), "gradloom-models-"));
let browser: Browser | undefined;
beforeAll(async () => {
  if (executablePath !== undefined)
    browser = await chromium.launch({ executablePath, args: [...CHROMIUM_FLAGS] });
});
afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

const until = <T>(read: () => Promise<T>) => expect.poll(read, { timeout: 60_000 });
const text = async (page: Page, id: string): Promise<string> => (await page.textContent(`#${id}`)) ?? "";
const texts = (page: Page, selector: string): Promise<(string | null)[]> =>
  page.$$eval(selector, (all) => all.map((e) => e.textContent));
async function open(): Promise<{ page: Page; close: () => Promise<void> }> {
  const server = await servePages(await makeSite(), 0);
  const page = await (browser as Browser).newPage({ viewport: { width: 390, height: 844 } });
  await page.goto(`${server.url}models.html`);
  const close = async (): Promise<void> => {
    await page.close();
    await server.close();
  };
  return { page, close };
}

/** A file of the visitor's. */
function fileOf(name: string, bytes: Uint8Array | string): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}
/** It sees one object in the middle, as surely as the picture is bright. */
const seeing = () =>
  onnx.write(
    {
      inputs: { images: { type: "float", dims: [1, 3, 32, 32] } },
      outputs: { boxes: { type: "float", dims: [1, 6, 1] } },
      weights: { box: new Tensor([[[16], [16], [16], [16], [0], [0.875]]]) },
      nodes: [
        { op: "ReduceMax", inputs: ["images"], outputs: ["most"], attributes: { keepdims: 0 } },
        { op: "Mul", inputs: ["box", "most"], outputs: ["boxes"] },
      ],
    },
    { metadata: { names: "{0: 'night', 1: 'day'}" } },
  );
/** It knows three words, each with a direction of its own. */
const WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "sun", "moon", "tea"];
const reading = () => {
  const table = new Tensor([[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]); // biome-ignore format: rows
  return onnx.write({
    inputs: { input_ids: { type: "int64", dims: ["rows", "pieces"] } },
    outputs: { last_hidden_state: { type: "float", dims: ["rows", "pieces", 3] } },
    weights: { table },
    nodes: [{ op: "Gather", inputs: ["table", "input_ids"], outputs: ["last_hidden_state"] }],
  });
};
const tokenizer = JSON.stringify({
  normalizer: { lowercase: true },
  model: { type: "WordPiece", unk_token: "[UNK]", vocab: Object.fromEntries(WORDS.map((w, i) => [w, i])) },
});

test("on a server without models, the page says what to install, and takes files", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  vi.stubEnv("MODELS", folder);
  const { page, close } = await open();
  vi.unstubAllEnvs();
  await page.locator("#objects-missing").waitFor();
  expect(await text(page, "objects-missing")).toContain(INSTALL);
  const picture = fileOf("white.png", await Tensor.full([3, 8, 16], 255).cast("uint8").toImage("png"));
  await page.setInputFiles("#picture-file", picture);
  await until(() => text(page, "objects-status")).toContain("Choose a model below");
  await page.setInputFiles("#objects-file", fileOf("yolo.onnx", await seeing()));
  await until(() => text(page, "objects-status")).toMatch(/^1 object in [\d.]+ s, on WASM$/);
  expect(await texts(page, "#objects li")).toEqual(["day 88%"]);
  expect(await page.getAttribute("#picture", "aria-label")).toBe("A picture with day 88%");

  await page.setInputFiles("#picture-file", fileOf("no.png", "this is text"));
  await until(() => text(page, "error-text")).toContain("not a picture that your browser can read");
  await page.setInputFiles("#objects-file", fileOf("bert.onnx", await reading()));
  await until(() => text(page, "error-text")).toContain("this model does not detect objects");
  expect(await text(page, "objects-status")).toBe("The picture could not be looked at");

  await page.fill("#query", "moon");
  await page.fill("#texts", "tea\nsun sun\nmoon");
  await page.click("#find");
  await until(() => text(page, "sentences-status")).toContain("Choose a model and its tokenizer");
  await page.setInputFiles("#sentences-file", fileOf("bert.onnx", await reading()));
  await page.setInputFiles("#tokenizer-file", fileOf("tokenizer.json", tokenizer));
  await page.click("#find:enabled");
  await until(() => texts(page, "#ranking li span:first-child")).toEqual(["moon", "sun sun", "tea"]);
  expect(await texts(page, "#ranking .score")).toEqual(["1.00", "0.80", "0.00"]);
  expect(await page.isHidden("#error")).toBe(true);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  await close();
});

test("yolov8n and MiniLM of the server", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const files = [FILES.yolo, FILES.photo, FILES.minilm, FILES.minilmWords];
  skip(files.some((file) => findFile(file) === undefined), `the models are not installed: ${INSTALL}`); // biome-ignore format: one line
  const { page, close } = await open();
  await page.click("#sample");
  await until(() => text(page, "objects-status")).toMatch(/^\d objects in [\d.]+ s, on WASM$/);
  expect((await texts(page, "#objects li")).slice(0, 2)).toEqual([
    expect.stringMatching(/^boat 7\d%$/),
    expect.stringMatching(/^person 6\d%$/),
  ]);
  expect(await page.isHidden("#objects-missing")).toBe(true);
  await page.click("#find");
  await until(() => text(page, "sentences-status")).toMatch(/^12 sentences in [\d.]+ s, on WASM$/);
  expect((await texts(page, "#ranking li span:first-child"))[0]).toBe("A puppy chews on an old shoe.");
  await page.fill("#query", "money");
  await page.click("#find:enabled");
  await until(async () => (await texts(page, "#ranking li span:first-child"))[0]).toContain(
    "The bank raised",
  );
  await close();
});
