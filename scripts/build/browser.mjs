// dist/browser: for the bundler of a page, which leaves out what the page does not use. A file for each
// module, since bundlers decide by the file, minified, with a map to its source. In: the modules of a page,
// [path of a source, its imports] as esbuild reports them, and the folder to write to. Out: esbuild's report.

import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { build } from "esbuild";

const SPECIFIER = /(\bfrom\s*|\bimport\s*\(?\s*)"([.#][^"]*)"/g;

/** What every page loads, whatever it does: all else that it loads from the start hangs on this module. */
const CORE = "src/tensor/tensor.ts";

/** Files whose names are made by calls: a page leaves out those that it does not use. */
const MARKED = /^src\/nn\/(?:index|guarded\/)/;

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

/**
 * A method of Tensor whose body only calls the function of its area, with the same arguments: areas.ts makes
 * it out of its name, which is shorter. A test holds its defaults to those of the function.
 */
const FORWARDS =
  /^ {2}(?:static )?(\w+)(?:<[^(]*>)?\((?:[^()]|\([^()]*\))*\): [^{]*\{\n {4}return area\("\w+"\)\.\1\([^;()]*\);\n {2}\}\n/gm;
const withoutForwards = (text) => text.replaceAll(FORWARDS, (member) => member.replaceAll(/[^\n]/g, ""));

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
    const all = rewriteImports(file, readFileSync(path, "utf8"), imports);
    const text = file === CORE ? withoutForwards(all) : all;
    return { contents: later.has(file) ? text + core(file) : text, loader: "ts" };
  };
  const write = (files, minifyWhitespace) =>
    build({
      ...shared,
      minifyWhitespace,
      minifyIdentifiers: true,
      minifySyntax: true,
      sourcesContent: false, // a map names files and lines; with their text it would be most of the tarball
      entryPoints: files.map(([file]) => join(root, file)),
      outbase: "src",
      outdir: out,
      plugins: [{ name: "paths", setup: (b) => b.onLoad({ filter: /\.ts$/ }, load) }],
    });
  // a call that bundlers may leave out is marked so in a comment, which goes with the white space
  const isMarked = ([file]) => MARKED.test(file);
  const all = await write(
    modules.filter((m) => !isMarked(m)),
    true,
  );
  const marked = await write(modules.filter(isMarked), false);
  return { ...all.metafile, outputs: { ...all.metafile.outputs, ...marked.metafile.outputs } };
}
