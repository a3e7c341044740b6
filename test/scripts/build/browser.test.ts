// dist/browser as scripts/build/browser.mjs makes it: files that a bundler can pick from, minified, with maps
// that lead to the sources, and one chunk for what a page loads from the start.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { buildIfStale } from "../../../bench/processes.ts";
import { esbuildPage } from "../../../bench/size/pages.ts";

const root = join(import.meta.dirname, "../../..");
const folder = join(root, "dist/browser");

beforeAll(() => buildIfStale(), 300_000);

test("every module is minified and has a map to its source", () => {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".js"));
  expect(files.length).toBeGreaterThan(200);
  const bytes = { built: 0, source: 0 };
  for (const file of files) {
    const path = join(folder, file);
    const source = join(root, "src", file.replace(/\.js$/, ".ts"));
    bytes.built += statSync(path).size;
    bytes.source += statSync(source).size;
    const map = JSON.parse(readFileSync(`${path}.map`, "utf8")) as { sources: string[] };
    expect(
      map.sources.map((s) => join(dirname(path), s)),
      file,
    ).toEqual([source]);
  }
  expect(bytes.built).toBeLessThan(bytes.source / 2);
});

test("a map leads from a message to its line, although imports were rewritten", () => {
  const path = join(folder, "tensor/areas.js");
  const message = "this method of Tensor is in an area";
  const map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, "utf8")));
  const lineOf = (text: string): number => text.slice(0, text.indexOf(message)).split("\n").length - 1;
  const text = readFileSync(path, "utf8");
  const line = lineOf(text);
  const column = text.split("\n")[line]?.indexOf(message) ?? -1;
  const found = map.findEntry(line, column) as { originalLine: number };
  const source = readFileSync(join(root, "src/tensor/areas.ts"), "utf8");
  expect(Math.abs(found.originalLine - lineOf(source))).toBeLessThanOrEqual(1);
});

test("opcodes of WebAssembly are numbers, so that a page has no table of their names", () => {
  const renderer = join(folder, "render/wasm");
  for (const file of ["alu.js", "simd.js", "wasm.js", "addresses.js", "relaxed.js"]) {
    const text = readFileSync(join(renderer, file), "utf8");
    expect(text, file).not.toMatch(/from"\.\/vectorops|\["[fi](?:32|64)\.\w+"\]/);
  }
  // OP["f32.sqrt"] and VECTOR_OP["f32x4.sqrt"]
  expect(readFileSync(join(renderer, "alu.js"), "utf8")).toMatch(/\b145\b/);
  expect(readFileSync(join(renderer, "simd.js"), "utf8")).toMatch(/\b16580835\b/);
});

test("imports name files that are there", () => {
  for (const file of ["index.js", "host/browser.js", "engine/compile.js", "devices/browser.js"]) {
    const text = readFileSync(join(folder, file), "utf8");
    const paths = [...text.matchAll(/(?:from|import)\(?"([^"]+)"/g)].map(([, path = ""]) => path);
    for (const path of paths) expect(existsSync(join(folder, dirname(file), path)), path).toBe(true);
  }
});

test("declarations import nothing by the package's own short names, which a user does not have", () => {
  const types = join(root, "dist/types");
  const files = readdirSync(types, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".d.ts"));
  expect(files.length).toBeGreaterThan(200);
  for (const file of files) expect(readFileSync(join(types, file), "utf8"), file).not.toMatch(/["']#\w/);
});

test("what a page loads from the start is its own file and one chunk", { timeout: 60_000 }, async () => {
  const files = await esbuildPage(join(root, "bench/size/dot.js"));
  const imported = new Set(["page.js"]);
  for (const name of imported)
    for (const [, path = ""] of files.get(name)?.matchAll(/(?:from|import)"\.\/([^"]+)"/g) ?? [])
      imported.add(path);
  expect(imported.size).toBe(2);
});
