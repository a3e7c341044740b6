// `npm run bench -- size`: what a page downloads that uses the package, by esbuild and by rollup. The CI
// holds esbuild's figures to their limits (test/scripts/size.test.ts).

import { whyClosed } from "../test/devices/webgpu/swiftshader.ts";
import { buildIfStale, isInstalled, SKIP } from "./processes.ts";
import { type Bundler, esbuildPage, PAGES, rollupPage, sizeOf } from "./size/pages.ts";
import { type Report, type Row, summarize } from "./stats.ts";

const BUNDLERS: Readonly<Record<string, Bundler>> = { esbuild: esbuildPage, rollup: rollupPage };

export async function size(): Promise<Report> {
  buildIfStale();
  const rows: Row[] = [];
  const skipped: string[] = [];
  const closed = await whyClosed();
  if (closed !== undefined) skipped.push(`pages on WEBGPU: ${closed}`);
  for (const [name, bundler] of Object.entries(BUNDLERS)) {
    if (name === "rollup" && !isInstalled("rollup")) {
      skipped.push(`rollup: rollup ${SKIP}`);
      continue;
    }
    for (const page of PAGES.filter(({ isGpu }) => isGpu !== true || closed === undefined)) {
      const kilobytes = (await sizeOf(page, bundler)) / 1000;
      const what = `a page with ${page.name}, by ${name}`;
      const [limit, target] = [page.limit / 1000, page.target / 1000];
      rows.push({ what, ...summarize([kilobytes]), limit, target, unit: "KB gzipped" });
    }
  }
  return { title: "size", rows, skipped };
}
