// dist/node. Two things make a start short: one file (the core) has all that a first result on WASM takes,
// since each further file costs a millisecond, and V8's code for it can be kept (src/host/start.ts); and what
// many programs never use is in a file that loads later (rest): the areas of Tensor, nn, the jit, packed and
// narrow types, BEAM, viz. Both are CommonJS, functions of what they are given: a sync method may be what
// needs the rest, and only `require` is sync. In: the entry points of the package, [file below dist/node,
// source], and the folder to write to. Out: esbuild's report.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Script } from "node:vm";
import { build, transform } from "esbuild";

const CORE = 'export * from "./index.ts";';
const REST = `
  import "./tensor/ondemand/all.ts";
  export * as nn from "./nn/index.ts";
  export * as fft from "./func/guarded/fft.ts";
  export * as func from "./func/guarded/transforms.ts";
  export * as narrow from "./codegen/narrow/node.ts";
  export * as codegenImages from "./codegen/images/node.ts";
  export * as tensorImages from "./tensor/images/node.ts";
  export * as engine from "./engine/ondemand/node.ts";
  export { TinyJit } from "./engine/jit/jit.ts";`;
const RENDER = 'export * from "./render/index.ts";';
const DEVICE = 'export * from "./device.ts";';
const ONNX = 'export * from "./onnx/index.ts";';
/** Lines of src/index.ts that would put more into the core, and what takes their place. */
const LATER_NAMES = [
  ['export * as nn from "./nn/index.ts";', 'export { nn } from "./nn/built.ts";'],
  ['export * as fft from "./func/guarded/fft.ts";', 'export { fft } from "./func/built.ts";'],
  ['export * as func from "./func/guarded/transforms.ts";', 'export { func } from "./func/built.ts";'],
  ['export { TinyJit } from "./engine/jit/jit.ts";', 'export { TinyJit } from "./engine/jit/built.ts";'],
];
/** What loads on its own: entry points besides the core, the devices and their parts, pictures. */
const LATER =
  /^(?:rest|render|device|onnx)$|[\\/]devices[\\/](?:\w+|webgpu[\\/](?:sequence|timer))\.ts$|[\\/]image[\\/]image\.ts$/;

/**
 * esbuild makes a chunk for each set of entry points that reach the same modules. If all of them import the
 * core, the core is one chunk.
 */
const oneCore = (root) => ({
  name: "one core",
  setup(build) {
    const texts = { core: CORE, rest: REST, render: RENDER, device: DEVICE, onnx: ONNX };
    const resolveDir = join(root, "src");
    const withCore = (path, text) => (LATER.test(path) ? `${text}\nimport "core";` : text);
    build.onResolve({ filter: /^(?:core|rest|render|device|onnx)$/ }, ({ path }) => ({
      path,
      namespace: "entry",
    }));
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
    external: ["koffi", "webgpu"],
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
    entryPoints: { index: "core", rest: "rest", render: "render", device: "device", onnx: "onnx" },
    conditions: ["built"],
    define: {
      NN_NAMES: JSON.stringify(nnNames),
      FFT_NAMES: JSON.stringify(await namesOf("src/func/fft.ts")),
      FUNC_NAMES: JSON.stringify(await namesOf("src/func/transforms.ts")),
    },
    plugins: [oneCore(root)],
    outdir: out,
  });
  const { imports } = node.metafile.outputs[`${out}/index.js`];
  const core = imports.find(({ kind }) => kind === "import-statement").path;
  const rest = await writeRest(root, out, options, core);
  const dynamic = node.metafile.outputs[core].imports.filter(({ kind }) => kind === "dynamic-import");
  const later = [...new Set(dynamic.map(({ path }) => basename(path)))];
  await writeStart(root, out, options, { core: writeCore(root, core, later), rest, later });
  // esbuild wrote render, device and onnx; nn is what the core exports, and the areas come by themselves
  mkdirSync(join(root, out, "areas"), { recursive: true });
  const nn = `import { nn } from "#start";\nexport const { ${nnNames.join(", ")} } = nn;\n`;
  for (const [file] of entries.filter(([file]) => !["index", "render", "device", "onnx"].includes(file))) {
    writeFileSync(join(root, out, `${file}.js`), file === "nn" ? nn : 'import "#start";\n');
  }
  return node.metafile;
}

/** Writes a part under a name that says what is in it: V8's code is kept by this name. */
function writePart(folder, name, text, map) {
  // src/host/start.ts reads a byte as a character
  if (/[^\0-\x7f]/.test(text)) throw new Error(`the ${name} has characters other than ASCII`);
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 10);
  const file = `${name}-${hash}.cjs`;
  writeFileSync(join(folder, file), `${text}//# sourceMappingURL=${file}.map\n`);
  writeFileSync(join(folder, `${file}.map`), JSON.stringify({ ...map, file }));
  return file;
}

/** A file of esbuild's without its last line, and its map. */
function readOutput(path) {
  const text = readFileSync(path, "utf8");
  const map = JSON.parse(readFileSync(`${path}.map`, "utf8"));
  for (const file of [path, `${path}.map`]) rmSync(file);
  return [text.slice(0, text.lastIndexOf("//# sourceMappingURL")), map];
}

/** rest.js becomes a function that is given the core's exports. */
async function writeRest(root, out, options, core) {
  const folder = join(root, dirname(core));
  const outfile = join(folder, "rest.cjs");
  const { metafile } = await build({
    ...options,
    entryPoints: [join(root, out, "rest.js")],
    splitting: false,
    format: "cjs",
    external: [`./${basename(core)}`, `./chunks/${basename(core)}`],
    // in parentheses V8 compiles it at once, and does not look through it first
    banner: { js: "module.exports=(function(core){return((require,module)=>{" },
    footer: { js: "return module.exports})(()=>core,{})});" },
    outfile,
  });
  const [{ imports }] = Object.values(metafile.outputs).filter(({ entryPoint }) => entryPoint !== undefined);
  const others = imports.filter(({ path }) => !path.endsWith(basename(core)));
  if (others.length > 0) throw new Error(`the rest imports ${others.map(({ path }) => path).join(", ")}`);
  for (const file of ["rest.js", "rest.js.map"]) rmSync(join(root, out, file));
  return writePart(folder, "rest", ...readOutput(outfile));
}

/**
 * The core's chunk becomes a function that returns its exports. Its place takes a module that exports them
 * one by one, for the chunks that import them. They are values: nothing exports a variable that changes.
 */
function writeCore(root, core, later) {
  const [chunk, map] = readOutput(join(root, core));
  const [list, names] = /export\{([^}]*)\};\s*$/.exec(chunk);
  let text = chunk
    .slice(0, -list.length)
    .replaceAll('import{createRequire}from"node:module";', "const{createRequire}=$given;")
    .replaceAll("import.meta.url", "$given.url");
  // as long as before: the map stays true
  for (const file of later) text = text.replaceAll(`import("./${file}")`, `$later("./${file}")`);
  const pairs = names.split(",").map((name) => name.trim().split(" as "));
  const exported = pairs.map(([own, as = own]) => (own === as ? own : `${as}:${own}`));
  const before = 'module.exports=(function($given){"use strict";const $later=$given.later;\n';
  const after = `return{${exported}}});\n`;
  new Script(before + text + after); // throws where a word of modules is left
  const outside = pairs.map(([own, as = own]) => as);
  writeFileSync(join(root, core), `import{$core}from"#start";\nexport const{${outside}}=$core;\n`);
  const shifted = { ...map, mappings: `;${map.mappings}` }; // `before` is a line
  return writePart(join(root, dirname(core)), "core", before + text + after, shifted);
}

/** The public names: [that of the core, that of the package]. */
function publicNames(path) {
  const [text] = readOutput(path);
  const [, names] = /^import\{([^}]*)\}from/.exec(text);
  return names.split(",").map((name) => {
    const [own, as = own] = name.trim().split(" as ");
    return own === as ? own : `${own}:${as}`;
  });
}

/**
 * The entry, `#start` in package.json: index.js makes the core in Node (src/host/start.ts), in one file,
 * since each further module costs two milliseconds; bundled.js does it in the bundle of a user, whose
 * bundler follows its imports. Besides the public names it exports the core, for chunks that load later.
 */
async function writeStart(root, out, options, { core, rest, later }) {
  const names = publicNames(join(root, out, "index.js"));
  const imports = later.map((file) => `"./${file}":()=>import("./chunks/${file}")`);
  const common = `
    const codes = [], later = {${imports}};
    const url = import.meta.url ?? (typeof __filename === "string" ? __filename : undefined);
    const given = { url, createRequire, codes, later: (path) => later[path](), rest: (flags) => makeRest(flags) };`;
  const exported = `export const {${names}} = $core;`;
  const { outputFiles } = await build({
    ...options,
    stdin: {
      contents: `
        import { createRequire } from "node:module";
        import { loadPart } from "./src/host/start.ts";
        ${common}
        const load = (name, bundled, flags) => {
          const { make, code } = loadPart(name, url, bundled, flags);
          if (code !== undefined) codes.push(code);
          return make;
        };
        const makeRest = (flags) => load("./chunks/${rest}", () => $require("./chunks/${rest}"), flags)($core);
        export const $core = load("./chunks/${core}", () => $require("./chunks/${core}"))(given);
        ${exported}`,
      resolveDir: root,
      sourcefile: "start.js",
    },
    external: ["./chunks/*"],
    minifyIdentifiers: true,
    splitting: false,
    sourcemap: false,
    write: false,
    outdir: out,
  });
  // esbuild would hide a `require`, which a bundler without the condition "module" follows
  writeFileSync(join(root, out, "index.js"), outputFiles[0].text.replaceAll("$require(", "require("));
  const bundled = `
    import { createRequire } from "node:module";
    import make from "./chunks/${core}";
    import rest from "./chunks/${rest}";
    ${common}
    const makeRest = () => rest($core);
    export const $core = make(given);
    ${exported}`;
  const { code } = await transform(bundled, { minifyWhitespace: true });
  writeFileSync(join(root, out, "bundled.js"), code);
}
