// Opens a page in a real browser and waits for what it reports: in Chromium, or in a Firefox of its own
// without a window. In: the files of a page by name, and the text of its program, which calls
// `report(value)`.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { CHROMIUM_FLAGS, findChromium } from "../../test/browser/server.ts";

/** Opens an address; what it gives closes the browser. */
export type Open = (url: string) => Promise<() => Promise<void>>;

export interface Visit {
  /** by path below the root; `/a/b/page.js` is also served as any `/a-7/b/page.js` */
  readonly files: ReadonlyMap<string, string>;
  /** a module; `report` is in scope */
  readonly program: string;
  readonly isolated?: boolean;
  readonly seconds?: number;
}

const REPORT = `const report = (value) =>
  fetch("/report", { method: "POST", body: JSON.stringify(value === undefined ? null : value) });
addEventListener("unhandledrejection", (e) => report({ failed: String(e.reason?.stack ?? e.reason) }));
addEventListener("error", (e) => report({ failed: String(e.message) }));`;

/** The value that the page reports. */
export async function visit<T>(open: Open, { files, program, isolated, seconds = 300 }: Visit): Promise<T> {
  const html = `<!doctype html><meta charset="utf-8"><script>${REPORT}</script>
    <script type="module">${program}</script>`;
  let done: (text: string) => void = () => {};
  const reported = new Promise<string>((resolve) => {
    done = resolve;
  });
  const server = createServer((request, response) => {
    const path = (request.url ?? "/").slice(1);
    if (path === "report") {
      let text = "";
      request.on("data", (part) => {
        text += part;
      });
      request.on("end", () => {
        response.end();
        done(text);
      });
      return;
    }
    const name = path.replace(/^([a-z]+)-\d+\//, "$1/");
    const body = path === "" ? html : files.get(name);
    response.writeHead(body === undefined ? 404 : 200, {
      "Content-Type": path === "" || path.endsWith("html") ? "text/html" : "text/javascript",
      "Cache-Control": "no-store",
      "Cross-Origin-Resource-Policy": "same-origin",
      ...(isolated
        ? { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" }
        : {}),
    });
    response.end(body);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const close = await open(`http://127.0.0.1:${port}/`);
  const timer = setTimeout(() => done(`{ "failed": "no report after ${seconds} s" }`), seconds * 1000);
  try {
    const value = JSON.parse(await reported) as T & { readonly failed?: string };
    if (value?.failed !== undefined) throw new Error(`the page failed: ${value.failed}`);
    return value;
  } finally {
    clearTimeout(timer);
    await close();
    server.closeAllConnections();
    server.close();
  }
}

/** The browsers that are there, by name. */
export function browsers(): ReadonlyMap<string, Open> {
  const found = new Map<string, Open>();
  const executablePath = findChromium();
  if (executablePath !== undefined) {
    found.set("Chromium", async (url) => {
      const browser = await chromium.launch({ executablePath, args: CHROMIUM_FLAGS });
      await (await browser.newPage()).goto(url);
      return () => browser.close();
    });
  }
  if (hasFirefox()) found.set("Firefox", openFirefox);
  return found;
}

function hasFirefox(): boolean {
  try {
    execFileSync("firefox", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const PREFERENCES = `user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.auto", false);
user_pref("app.update.enabled", false);
user_pref("browser.tabs.warnOnClose", false);
user_pref("dom.max_script_run_time", 0);
`;

/** With a profile of its own, which goes with it. */
const openFirefox: Open = async (url) => {
  const profile = mkdtempSync(join(tmpdir(), "gradloom-firefox-"));
  writeFileSync(join(profile, "user.js"), PREFERENCES);
  const args = ["--headless", "--no-remote", "--profile", profile, url];
  const child: ChildProcess = spawn("firefox", args, {
    stdio: "ignore",
    env: { ...process.env, HOME: profile },
  });
  return async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill();
    await ended;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
};
