// src/ -> dist/. dist/node is bundled for a short start (build/node.mjs). dist/browser has the modules, for
// the bundler of a page (build/browser.mjs). dist/bundle is the same in one piece, for a page without a
// bundler. `npm run build` lets tsc add dist/types afterwards. It fails where a page would need a `node:`
// module.

import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { buildBrowser } from "./build/browser.mjs";
import { buildNode } from "./build/node.mjs";

const root = join(import.meta.dirname, "..");
rmSync(join(root, "dist"), { recursive: true, force: true });

/** The entry points, out of the package's `exports`: their file below dist/node, and their source. */
const { exports, imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const entries = Object.values(exports)
  .filter((entry) => typeof entry === "object" && entry.default.startsWith("./dist/node/"))
  .map(({ types, default: file }) => [
    file.replace("./dist/node/", "").replace(".js", ""),
    types.replace("./dist/types/", "src/").replace(".d.ts", ".ts"),
  ]);

const shared = {
  absWorkingDir: root,
  format: "esm",
  target: "es2022",
  sourcemap: true,
  metafile: true,
  logLevel: "warning",
};
const bundled = { ...shared, bundle: true, splitting: true, chunkNames: "chunks/[name]-[hash]" };
const page = { platform: "browser", conditions: ["browser"] };

/** What was written, in a line. */
function report(name, { outputs }) {
  const scripts = Object.entries(outputs).filter(([file]) => file.endsWith(".js"));
  const bytes = scripts.reduce((sum, [, { bytes }]) => sum + bytes, 0);
  console.error(`dist/${name}: ${scripts.length} files, ${(bytes / 1024).toFixed(1)} KiB`);
}

report("node", await buildNode({ root, out: "dist/node", bundled, entries }));

/** All that a page can import, by path below `folder`. */
const everything = (folder, end, more = "") => ({
  contents: `${more}
    import "./tensor/ondemand/all.${end}";
    import "./tensor/ondemand/sync.${end}";
    export * from "./index.${end}";
    export * as render from "./render/index.${end}";`,
  resolveDir: join(root, folder),
  sourcefile: "page.js",
});
const found = await build({
  ...bundled,
  ...page,
  stdin: everything("src", "ts", 'export * as onnx from "./onnx/index.ts";'),
  outdir: "dist",
  write: false,
});
const outside = Object.values(found.metafile.outputs).flatMap((o) => o.imports.filter((i) => i.external));
if (outside.length > 0) {
  throw new Error(`a page would import ${outside.map((i) => i.path).join(", ")}: it must import nothing`);
}
const modules = Object.entries(found.metafile.inputs)
  .filter(([file]) => file.endsWith(".ts"))
  .map(([file, { imports }]) => [file, imports]);
/** What the code is: kernels that a page keeps are good for this build alone. */
const hash = createHash("sha256");
for (const [file] of modules.toSorted(([a], [b]) => (a < b ? -1 : 1)))
  hash.update(readFileSync(join(root, file)));
const define = { GRADLOOM_BUILD: JSON.stringify(hash.digest("hex").slice(0, 16)) };
const options = { root, out: "dist/browser", shared: { ...shared, define }, modules, imports };
report("browser", await buildBrowser(options));

const bundle = await build({
  ...bundled,
  ...page,
  minify: true,
  sourcesContent: false, // the map names files and lines; with their text it would be most of the tarball
  stdin: everything("dist/browser", "js"),
  entryNames: "gradloom",
  outdir: "dist/bundle",
});
report("bundle", bundle.metafile);
