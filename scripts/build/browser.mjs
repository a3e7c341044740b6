// dist/browser: for the bundler of a page, which leaves out what the page does not use. A file for each
// module, since bundlers decide by the file, minified, with a map to its source. In: the modules of a page,
// [path of a source, its imports] as esbuild reports them, and the folder to write to. Out: esbuild's report.

import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { build } from "esbuild";

const SPECIFIER = /(\bfrom\s*|\bimport\s*\(?\s*)"([.#][^"]*)"/g;

/** What every page loads, whatever it does: all else that it loads from the start hangs on this module. */
const CORE = "src/tensor/tensor.ts";

const toPath = (own, target) => {
  const path = relative(dirname(own), target).replaceAll("\\", "/");
  return path.startsWith(".") ? path : `./${path}`;
};

/**
 * `from "#host"` and `from "./view.ts"` become paths of files in dist/browser: before minifying, so that maps
 * stay right.
 */
function rewriteImports(file, text, imports) {
  return text.replaceAll(SPECIFIER, (_, before, path) => {
    const target = path.startsWith("#") ? toPath(file, imports[path].browser.slice(2)) : path;
    return `${before}"${target.replace(/\.ts$/, ".js")}"`;
  });
}

/** `outputs` of esbuild's report. `out` is relative to `root`. */
export async function buildBrowser({ root, out, shared, modules, imports }) {
  // Bundlers make a chunk of the modules that the same imports reach. Without this line a page would load a
  // chunk for each set of parts that load later, and the names that those chunks import from each other.
  const later = new Set(
    modules.flatMap(([, found]) => found.filter((i) => i.kind === "dynamic-import").map(({ path }) => path)),
  );
  const core = (file) =>
    `\nexport { Tensor as core } from "${toPath(file, CORE).replace(/\.ts$/, ".js")}";\n`;
  const load = ({ path }) => {
    const file = relative(root, path).replaceAll("\\", "/");
    const text = rewriteImports(file, readFileSync(path, "utf8"), imports);
    return { contents: later.has(file) ? text + core(file) : text, loader: "ts" };
  };
  const { metafile } = await build({
    ...shared,
    minify: true,
    sourcesContent: false, // a map names files and lines; with their text it would be most of the tarball
    entryPoints: modules.map(([file]) => join(root, file)),
    outbase: "src",
    outdir: out,
    plugins: [{ name: "paths", setup: (b) => b.onLoad({ filter: /\.ts$/ }, load) }],
  });
  return metafile;
}
