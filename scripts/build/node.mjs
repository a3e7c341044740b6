// dist/node. Two things make a start short: one file (the core) has all that a first result on WASM takes,
// since each further file costs a millisecond; and what many programs never use is in a file that loads later
// (rest.cjs): the areas of Tensor, nn, the jit, packed and narrow types, BEAM, viz. A sync method may be what
// needs it, so it is CommonJS: only `require` is sync. In: the entry points of the package, [file below
// dist/node, source], and the folder to write to. Out: esbuild's report.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { build } from "esbuild";

const CORE = 'export * from "./index.ts";';
const REST = `
  import "./tensor/ondemand/all.ts";
  export * as nn from "./nn/index.ts";
  export * as narrow from "./codegen/narrow/node.ts";
  export * as engine from "./engine/ondemand/node.ts";
  export { TinyJit } from "./engine/jit/jit.ts";`;
const RENDER = 'export * from "./render/index.ts";';
/** Lines of src/index.ts that would put more into the core, and what takes their place. */
const LATER_NAMES = [
  ['export * as nn from "./nn/index.ts";', 'export { nn } from "./nn/built.ts";'],
  ['export { TinyJit } from "./engine/jit/jit.ts";', 'export { TinyJit } from "./engine/jit/built.ts";'],
];
/** What loads on its own: entry points besides the core, the devices, the reading of pictures. */
const LATER = /^(?:rest|render)$|[\\/]devices[\\/]\w+\.ts$|[\\/]creation[\\/]pixels\.ts$/;

/**
 * esbuild makes a chunk for each set of entry points that reach the same modules. If all of them import the
 * core, the core is one chunk.
 */
const oneCore = (root) => ({
  name: "one core",
  setup(build) {
    const texts = { core: CORE, rest: REST, render: RENDER };
    const resolveDir = join(root, "src");
    const withCore = (path, text) => (LATER.test(path) ? `${text}\nimport "core";` : text);
    build.onResolve({ filter: /^(?:core|rest|render)$/ }, ({ path }) => ({ path, namespace: "entry" }));
    build.onLoad({ filter: /./, namespace: "entry" }, ({ path }) => {
      return { contents: withCore(path, texts[path]), resolveDir };
    });
    build.onLoad({ filter: /[\\/]src[\\/]index\.ts$/ }, ({ path }) => {
      let contents = readFileSync(path, "utf8");
      for (const [line, instead] of LATER_NAMES) {
        if (!contents.includes(line)) throw new Error(`src/index.ts has no line ${line}`);
        contents = contents.replace(line, instead);
      }
      return { contents, loader: "ts" };
    });
    build.onLoad({ filter: LATER }, ({ path }) => {
      return { contents: withCore(path, readFileSync(path, "utf8")), loader: "ts" };
    });
  },
});

/** `out` is relative to `root`. */
export async function buildNode({ root, out, bundled, entries }) {
  const options = {
    ...bundled,
    platform: "node",
    target: "node20",
    external: ["koffi"],
    minifyWhitespace: true, // names stay, for stack traces
    lineLimit: 160, // Node prints the line that threw
    minifySyntax: true,
  };
  const namesOf = async (source) => {
    const { metafile } = await build({ ...options, entryPoints: [source], outdir: "names", write: false });
    return Object.values(metafile.outputs).find(({ entryPoint }) => entryPoint === source).exports;
  };
  const nnNames = await namesOf("src/nn/index.ts");
  const node = await build({
    ...options,
    entryPoints: { index: "core", rest: "rest", render: "render" },
    conditions: ["built"],
    define: { NN_NAMES: JSON.stringify(nnNames) },
    plugins: [oneCore(root)],
    outdir: out,
  });
  const { imports } = node.metafile.outputs[`${out}/index.js`];
  const core = imports.find(({ kind }) => kind === "import-statement").path;
  await writeRest(root, out, options, core);
  // esbuild wrote index and render; nn is what the core exports, and the areas come by themselves
  mkdirSync(join(root, out, "areas"), { recursive: true });
  const nn = `import { nn } from "./index.js";\nexport const { ${nnNames.join(", ")} } = nn;\n`;
  for (const [file] of entries.filter(([file]) => file !== "index" && file !== "render")) {
    writeFileSync(join(root, out, `${file}.js`), file === "nn" ? nn : 'import "../index.js";\n');
  }
  return node.metafile;
}

/**
 * rest.js becomes rest.cjs: a function that is given the core's exports. `loadRest` in the core calls it. The
 * bundler of a user finds a `require` that it can follow; a module in Node has none, and makes one.
 */
async function writeRest(root, out, options, core) {
  const given = `./${basename(core)}`;
  const { metafile } = await build({
    ...options,
    entryPoints: [join(root, out, "rest.js")],
    splitting: false,
    format: "cjs",
    external: [given, `./chunks/${basename(core)}`],
    banner: { js: "module.exports=(core)=>((require,module)=>{" },
    footer: { js: "return module.exports})(()=>core,{});" },
    outfile: join(root, dirname(core), "rest.cjs"),
  });
  const [{ imports }] = Object.values(metafile.outputs).filter(({ entryPoint }) => entryPoint !== undefined);
  const others = imports.filter(({ path }) => !path.endsWith(basename(core)));
  if (others.length > 0) throw new Error(`rest.cjs imports ${others.map(({ path }) => path).join(", ")}`);
  for (const file of ["rest.js", "rest.js.map"]) rmSync(join(root, out, file));
  const text = readFileSync(join(root, core), "utf8");
  const map = text.lastIndexOf("//# sourceMappingURL");
  // in a REPL there is a `require`, too, which looks elsewhere: the file beside this one comes first
  const load = `import*as $core from"${given}";import{createRequire as $createRequire}from"node:module";
function loadRest(){let load;try{load=$createRequire(import.meta.url)("./rest.cjs")}catch{load=require("./rest.cjs")}return load($core)}
`;
  writeFileSync(join(root, core), text.slice(0, map) + load + text.slice(map));
}
