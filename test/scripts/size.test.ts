// What a page downloads stays below its limits, and a page has the methods of those areas that it imports.
// The package is built for it if it is older than src/.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { buildIfStale } from "../../bench/processes.ts";
import { esbuildPage, PAGES, sizeOf } from "../../bench/size/pages.ts";

beforeAll(() => buildIfStale(), 300_000);

test.each(PAGES)("a page with $name", { timeout: 120_000 }, async (page) => {
  expect(await sizeOf(page, esbuildPage)).toBeLessThanOrEqual(page.limit);
});

/** What a page prints, bundled for the browser and run. */
async function printed(text: string): Promise<string> {
  // inside the repository, where `gradloom` means this package
  const folder = mkdtempSync(join(import.meta.dirname, "../../node_modules/.cache-page-"));
  const out = mkdtempSync(join(tmpdir(), "gradloom-page-"));
  try {
    writeFileSync(join(folder, "page.js"), text);
    for (const [name, code] of await esbuildPage(join(folder, "page.js"))) {
      writeFileSync(
        join(out, name.replace(/\.js$/, ".mjs")),
        code.replaceAll(/(\.\/[\w-]+)\.js"/g, '$1.mjs"'),
      );
    }
    const { stdout, stderr } = spawnSync(process.execPath, [join(out, "page.mjs")], { encoding: "utf8" });
    return stdout + stderr;
  } finally {
    rmSync(folder, { recursive: true });
    rmSync(out, { recursive: true });
  }
}
const INVERSE =
  'console.log(JSON.stringify(await new Tensor([[2, 0], [0, 4]], { dtype: "float32" }).inverse().tolist()))';

test("a method of an area that the page did not load says what to import", { timeout: 120_000 }, async () => {
  const said = await printed(`import { Tensor } from "gradloom"; ${INVERSE};`);
  // the name of the error's class, whatever the minifier called it
  expect(said).toMatch(/\[ArgumentError\]: inverse: this method of Tensor is in an area/);
  expect(said).toContain('add: import "gradloom/linalg" (or "gradloom/all" for every area)');
});

test("several devices are such an area", { timeout: 120_000 }, async () => {
  const ones = 'console.log(String(await Tensor.ones([2], { device: "WASM,WASM:1" }).tolist()))';
  const said = await printed(`import { Tensor } from "gradloom"; ${ones};`);
  expect(said).toContain('add: import "gradloom/shard"');
  expect((await printed(`import "gradloom/shard"; import { Tensor } from "gradloom"; ${ones};`)).trim()).toBe(
    "1,1",
  );
});

test.each(["linalg", "all"])("with gradloom/%s it is there", { timeout: 120_000 }, async (area) => {
  const said = await printed(`import "gradloom/${area}"; import { Tensor } from "gradloom"; ${INVERSE};`);
  expect(said.trim()).toBe("[[0.5,0],[0,0.25]]");
});
