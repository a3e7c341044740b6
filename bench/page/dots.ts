// The time to the first result of a page with one dot product, beside the same page with jax-js: in one
// browser, alternating, each time under an address of its own, so that no code is kept between two of them.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { buildIfStale, isInstalled } from "../processes.ts";
import { esbuildPage } from "../size/pages.ts";
import { type Row, summarize } from "../stats.ts";
import { type Open, visit } from "./visit.ts";

const here = import.meta.dirname;
const DONE = 'parent.postMessage({ kind: "done", ms: performance.now() }, "*");';

/** Our page as bench/size has it: the built package, by esbuild. */
async function oursPage(): Promise<Map<string, string>> {
  buildIfStale();
  const files = await esbuildPage(join(here, "..", "size", "dot.js"));
  return new Map([...files].map(([name, text]) => [`ours/${name}`, text]));
}
async function jaxPage(): Promise<Map<string, string>> {
  const { outputFiles } = await build({
    stdin: {
      contents: readFileSync(join(here, "..", "startup", "jax.mjs"), "utf8"),
      resolveDir: join(here, ".."),
    },
    bundle: true,
    splitting: true,
    format: "esm",
    minify: true,
    platform: "browser",
    target: "es2022",
    outdir: "jax",
    write: false,
    logLevel: "silent",
  });
  const named = outputFiles.map((f) => [f.path.replace(/^.*\/jax\//, "jax/"), f.text] as const);
  return new Map(named.map(([name, text]) => [name.replace("stdin.js", "page.js"), text]));
}

/** Loads each page so often, in turns; the first visit of each does not count. */
const program = (names: readonly string[], times: number): string => `
  const visit = (name, i) => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    const listen = ({ data }) => {
      if (data?.kind !== "done") return;
      removeEventListener("message", listen);
      frame.remove();
      resolve(data.ms);
    };
    addEventListener("message", listen);
    frame.src = "/" + name + "-" + i + "/index.html";
    document.body.append(frame);
  });
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const all = ${JSON.stringify(Object.fromEntries(names.map((n) => [n, []])))};
  for (let i = 0; i <= ${times}; i++) {
    for (const name of i % 2 ? ${JSON.stringify(names)} : ${JSON.stringify(names.toReversed())}) {
      const ms = await visit(name, i);
      if (i > 0) all[name].push(ms);
    }
  }
  report(all);`;

export async function dotRows(browser: string, open: Open, times: number): Promise<Row[]> {
  const pages = new Map([["ours", await oursPage()]]);
  if (isInstalled("@jax-js/jax")) pages.set("jax", await jaxPage());
  const files = new Map<string, string>();
  for (const [name, some] of pages) {
    // a dot product is logged when it is there: the page's last statement
    for (const [path, text] of some) files.set(path, path === `${name}/page.js` ? `${text}\n${DONE}` : text);
    files.set(
      `${name}/index.html`,
      '<!doctype html><meta charset="utf-8"><script type="module" src="page.js"></script>',
    );
  }
  const names = [...pages.keys()];
  const all = await visit<Record<string, number[]>>(open, { files, program: program(names, times) });
  const jax = all.jax === undefined ? undefined : summarize(all.jax).median;
  const rows: Row[] = [];
  for (const [name, samples] of Object.entries(all)) {
    const whose = name === "ours" ? "" : ", jax-js";
    const limit = name === "ours" && jax !== undefined ? { limit: Number(jax.toPrecision(3)) } : {};
    rows.push({
      what: `${browser}: a dot product from navigation on${whose}`,
      ...summarize(samples),
      ...limit,
    });
  }
  return rows;
}
