// The first result of a page on WEBGPU in Chromium, from navigation on: the first visit, and later ones.

import { join } from "node:path";
import { chromium } from "playwright-core";
import { findChromium, NO_CHROMIUM, WEBGPU_FLAGS } from "../../test/browser/server.ts";
import { type Open, visit } from "../page/visit.ts";
import { buildIfStale } from "../processes.ts";
import { esbuildPage } from "../size/pages.ts";
import { type Row, summarize } from "../stats.ts";

/** Milliseconds from navigation to the first result, when everything is cached. */
const FIRST_RESULT = 300;

/** The same page again and again: what the browser and the page keep is there from the second visit on. */
const program = (times: number): string => `
  const visit = () => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    const listen = ({ data }) => {
      if (data?.kind !== "done") return;
      removeEventListener("message", listen);
      frame.remove();
      resolve(data.ms);
    };
    addEventListener("message", listen);
    frame.src = "/gpu/index.html";
    document.body.append(frame);
  });
  const all = [];
  for (let i = 0; i <= ${times}; i++) all.push(await visit());
  report(all);`;

export async function pageRows(skipped: string[]): Promise<Row[]> {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    skipped.push(`a page: ${NO_CHROMIUM}`);
    return [];
  }
  buildIfStale();
  const files = new Map<string, string>();
  for (const [name, text] of await esbuildPage(join(import.meta.dirname, "../size/webgpu.js"))) {
    const done = 'parent.postMessage({ kind: "done", ms: performance.now() }, "*");';
    files.set(`gpu/${name}`, name === "page.js" ? `${text}\n${done}` : text);
  }
  const html = '<!doctype html><meta charset="utf-8"><script type="module" src="page.js"></script>';
  files.set("gpu/index.html", html);
  const open: Open = async (url) => {
    const browser = await chromium.launch({ executablePath, args: WEBGPU_FLAGS });
    await (await browser.newPage()).goto(url);
    return () => browser.close();
  };
  const [first = NaN, ...later] = await visit<number[]>(open, { files, program: program(9) });
  const what = "Chromium, SwiftShader: a page of twenty methods on WEBGPU, from navigation on";
  return [
    { what: `${what}, first visit`, ...summarize([first]) },
    { what: `${what}, later`, ...summarize(later), limit: FIRST_RESULT },
  ];
}
