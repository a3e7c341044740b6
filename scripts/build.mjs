// src/ -> dist/. dist/node has a bundle for each entry point of the package, split so that a device loads
// only when it is opened: that starts fastest. dist/browser has the modules as they are, for the bundler of
// a page: it leaves out what the page does not use. dist/bundle is the same in one piece, for a page
// without a bundler. `npm run build` lets tsc add dist/types afterwards. It fails where a page would need a
// `node:` module.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { build } from "esbuild";

const root = join(import.meta.dirname, "..");
rmSync(join(root, "dist"), { recursive: true, force: true });

/** The entry points, out of the package's `exports`: their file below dist/node, and their source. */
const { exports, imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const entries = Object.values(exports)
  .filter(
    (entry) => typeof entry === "object" && entry.types !== undefined && entry.browser !== entry.default,
  )
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

// one file for what every program loads: each more costs a start about a millisecond. The entry points are
// lists of its names; those of the areas of Tensor have none, in Node all areas come with the package
const forNode = {
  ...bundled,
  platform: "node",
  target: "node20",
  external: ["koffi"],
  minifyWhitespace: true, // names stay, for stack traces
  minifySyntax: true,
};
const namesOf = async (source) => {
  const { metafile } = await build({ ...forNode, entryPoints: [source], outdir: "names", write: false });
  return Object.values(metafile.outputs).find(({ entryPoint }) => entryPoint === source).exports;
};
const node = await build({
  ...forNode,
  stdin: {
    contents: 'export * from "./index.ts"; export * as render from "./render/index.ts";',
    resolveDir: join(root, "src"),
    sourcefile: "main.ts",
  },
  entryNames: "main",
  outdir: "dist/node",
});
for (const [file, source] of entries) {
  const names = (await namesOf(source)).join(", ");
  const texts = {
    index: `export { ${names} } from "./main.js";\n`,
    nn: `import { nn } from "./main.js";\nexport const { ${names} } = nn;\n`,
    render: `import { render } from "./main.js";\nexport const { ${names} } = render;\n`,
  };
  mkdirSync(dirname(join(root, `dist/node/${file}`)), { recursive: true });
  writeFileSync(join(root, `dist/node/${file}.js`), texts[file] ?? 'import "../main.js";\n');
}
report("node", node.metafile);

const bundle = await build({
  ...bundled,
  ...page,
  minify: true,
  stdin: {
    contents:
      'import "./tensor/ondemand/all.ts"; export * from "./index.ts"; export * as render from "./render/index.ts";',
    resolveDir: join(root, "src"),
    sourcefile: "bundle.ts",
  },
  entryNames: "gradloom",
  outdir: "dist/bundle",
});
report("bundle", bundle.metafile);
const outside = Object.values(bundle.metafile.outputs).flatMap((o) => o.imports.filter((i) => i.external));
if (outside.length > 0) {
  throw new Error(`a page would import ${outside.map((i) => i.path).join(", ")}: it must import nothing`);
}

// the modules that the bundle is made of, a file each
const sources = Object.keys(bundle.metafile.inputs).filter((file) => file !== "src/bundle.ts");
const modules = await build({ ...shared, entryPoints: sources, outbase: "src", outdir: "dist/browser" });
const SPECIFIER = /(\bfrom\s*|\bimport\s*\(?\s*)"([.#][^"]*)"/g;
for (const file of Object.keys(modules.metafile.outputs).filter((name) => name.endsWith(".js"))) {
  const own = dirname(file.replace("dist/browser", "src"));
  const rewritten = readFileSync(join(root, file), "utf8").replaceAll(SPECIFIER, (_, before, path) => {
    const target = path.startsWith("#") ? relative(own, imports[path].browser.slice(2)) : path;
    const name = target.startsWith(".") ? target : `./${target}`;
    return `${before}"${name.replaceAll("\\", "/").replace(/\.ts$/, ".js")}"`;
  });
  writeFileSync(join(root, file), rewritten);
}
report("browser", modules.metafile);
