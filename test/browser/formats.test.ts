// The library in every form that bundlers give it: a classic script (iife), CommonJS, a module out of a blob,
// a classic worker. None of these has an `import.meta.url` that a URL could be made of.

import { describe, expect, test } from "vitest";
import { bundleText, executablePath, NO_CHROMIUM, useChromium } from "./harness.ts";

const openPage = useChromium();

const ENTRY = `
import { Tensor } from "gradloom";
globalThis.dot = async () => Number(await new Tensor([1, 2]).dot(new Tensor([3, 4])).item());
if (typeof importScripts === "function") dot().then(postMessage, (e) => postMessage(String(e)));
`;

const bundled = (format: "iife" | "cjs" | "esm"): Promise<string> => bundleText(ENTRY, format);

declare const dot: () => Promise<number>; // exists inside the page only

describe.each(["iife", "cjs", "esm"] as const)("as %s", (format) => {
  test("bundles without a warning", async () => {
    expect((await bundled(format)).length).toBeGreaterThan(0);
  });
});

describe("in Chromium", () => {
  test("a classic script and CommonJS compute in a page", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    for (const format of ["iife", "cjs"] as const) {
      const text = await bundled(format);
      const page = await openPage(new Map([["page.js", `const module = { exports: {} };\n${text}`]]));
      expect(await page.evaluate(() => dot()), format).toBe(11);
    }
  });
  test("a module out of a blob computes", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const text = await bundled("esm");
    const page = await openPage(new Map([["page.js", ""]]));
    const got = await page.evaluate(async (source) => {
      const src = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      const script = Object.assign(document.createElement("script"), { type: "module", src });
      const loaded = new Promise((done) => script.addEventListener("load", done));
      document.head.append(script);
      await loaded;
      return dot();
    }, text);
    expect(got).toBe(11);
  });
  test("a classic worker computes, from a file and from a blob", async ({ skip }) => {
    skip(executablePath === undefined, NO_CHROMIUM);
    const text = await bundled("iife");
    const files = new Map([
      ["page.js", ""],
      ["worker.js", text],
    ]);
    const page = await openPage(files);
    const got = await page.evaluate(async (source) => {
      const answer = (url: string) =>
        new Promise((done) => {
          const worker = new Worker(url);
          worker.onmessage = ({ data }) => done(data);
          worker.onerror = (e) => done(`${e.message}`);
        });
      const blob = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      return [await answer("/worker.js"), await answer(blob)];
    }, text);
    expect(got).toEqual([11, 11]);
  });
});
