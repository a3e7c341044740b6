// What a page in a real browser stands on: a bundle of an entry, a server on loopback, a Chromium's path.
// harness.ts opens it in tests, bench/page.ts in a benchmark.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { build } from "esbuild";

export const root = join(import.meta.dirname, "..", "..");

/**
 * Bundles `entry` (below the repository) as a browser would get it: file name ->
 * text, and what it could not hold.
 */
export async function bundlePage(
  entry: string,
  { minify = false, build: name }: { minify?: boolean; build?: string } = {},
) {
  // what the page keeps is good for pages of the same build
  const define: Record<string, string> = {};
  if (name !== undefined) define.GRADLOOM_BUILD = JSON.stringify(name);
  const result = await build({
    absWorkingDir: root,
    entryPoints: { page: entry },
    bundle: true,
    minify,
    define,
    splitting: true,
    format: "esm",
    target: "es2022",
    platform: "browser",
    conditions: ["browser"],
    outdir: "dist",
    write: false,
    metafile: true,
    logLevel: "silent",
  });
  const files = new Map(result.outputFiles.map((file) => [basename(file.path), file.text]));
  const externals = Object.values(result.metafile.outputs)
    .flatMap((output) => output.imports)
    .filter((imported) => imported.external)
    .map((imported) => imported.path);
  return { files, externals };
}

/** A program as one minified file, in any format. */
export async function bundleText(text: string, format: "iife" | "cjs" | "esm"): Promise<string> {
  const { outputFiles, warnings } = await build({
    absWorkingDir: root,
    stdin: { contents: text, resolveDir: root },
    bundle: true,
    minify: true,
    format,
    platform: "browser",
    conditions: ["browser"],
    target: "es2022",
    write: false,
    logLevel: "silent",
  });
  if (warnings.length > 0) throw new Error(warnings.map((w) => w.text).join("\n"));
  return outputFiles[0]?.text as string;
}

export interface ServeOptions {
  /** the page may share memory */
  readonly isolated?: boolean;
  /** its Content-Security-Policy */
  readonly policy?: string;
}

/** Serves the files and an empty page that loads page.js. */
export async function serve(
  files: ReadonlyMap<string, string>,
  { isolated = true, policy }: ServeOptions = {},
) {
  const html = '<!doctype html><meta charset="utf-8"><script type="module" src="/page.js"></script>';
  const server = createServer((request, response) => {
    const name = (request.url ?? "/").slice(1);
    const body = name === "" ? html : files.get(name);
    response.writeHead(body === undefined ? 404 : 200, {
      "Content-Type": name === "" ? "text/html" : "text/javascript",
      "Cross-Origin-Resource-Policy": "same-origin",
      ...(isolated
        ? { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" }
        : {}),
      ...(policy === undefined ? {} : { "Content-Security-Policy": policy }),
    });
    response.end(body);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((closed) => {
      server.close(() => closed());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}/`, close };
}

export const NO_CHROMIUM = "no Chromium found: install chromium or set CHROMIUM_PATH to its executable";

export const CHROMIUM_FLAGS = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

/** With WebGPU, computed by the software driver that Chromium brings. */
export const WEBGPU_FLAGS = [
  ...CHROMIUM_FLAGS.filter((flag) => flag !== "--disable-gpu"),
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
];

/** CHROMIUM_PATH alone where it is set, else the usual places. */
export function findChromium(): string | undefined {
  const named = process.env.CHROMIUM_PATH;
  const usual = ["/usr/bin/chromium", ...["chromium", "chromium-browser", "google-chrome"].map(which)];
  return (named ? [named] : usual).find((path) => path && existsSync(path));
}

function which(name: string): string | undefined {
  try {
    return execFileSync("which", [name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}
