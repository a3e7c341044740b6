// dist/browser: for the bundler of a page, which leaves out what the page does not use. A file for each
// module, since bundlers decide by the file, minified, with a map to its source. In: the modules of a page,
// [path of a source, its imports] as esbuild reports them, and the folder to write to. Out: esbuild's report.

import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { build } from "esbuild";

const SPECIFIER = /(\bfrom\s*|\bimport\s*\(?\s*)"([.#][^"]*)"/g;

/** What every page loads, whatever it does: all else that it loads from the start hangs on this module. */
const CORE = "src/tensor/tensor.ts";
/** What a page loads with its first kernel that must be compiled: all of codegen, and the emitter of WASM. */
const COMPILER = "src/engine/compiler.ts";
const EMITTER = "src/render/wasm/wasm.ts";

/** A file of src/index.ts, and what a page has in its place, so that it is loaded later. */
const LATER_NAMES = ["./codegen/names.ts", "./codegen/nameslater.ts"];

/** Files whose names are made by calls: a page leaves out those that it does not use. */
const MARKED = /^src\/nn\/(?:index|operations|guarded\/)/;

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
 * A method of Tensor whose body only calls the function of its area, with the same arguments, and perhaps
 * keeps the result apart: areas.ts makes it out of its name, which is shorter. A test holds its defaults to
 * those of the function.
 */
const FORWARDS =
  /^ {2}(?:static )?(\w+)(?:<[^(]*>)?\((?:[^()]|\([^()]*\))*\): [^{]*\{\n {4}return (?:area\("\w+"\)\.\1\([^;()]*\)|\w*[aA]part\(area\("\w+"\)\.\1\([^;()]*\), (?:this|\.\.\.tensors)\));\n {2}\}\n/gm;
const withoutForwards = (text) => text.replaceAll(FORWARDS, (member) => member.replaceAll(/[^\n]/g, ""));

/**
 * What the platform of a page says of itself once and for all, such as `canBlock`: bundlers do not carry a
 * constant from one file to another, so the files that ask get the value, and what a page never does is left
 * out.
 */
function constantsOf(root, imports) {
  const host = readFileSync(join(root, imports["#host"].browser), "utf8");
  return Object.fromEntries(
    [...host.matchAll(/^export const (\w+) = (true|false);$/gm)].map((m) => m.slice(1)),
  );
}
const withoutImports = (text, constants) =>
  text.replace(/import \{([^}]*)\} from "#host";/, (line, names) => {
    const left = names.split(",").filter((name) => name.trim() !== "" && !(name.trim() in constants));
    return left.length > 0 ? line.replace(names, left.join(",")) : "";
  });

/**
 * Opcodes of WebAssembly are named in tables, out of which no bundler takes a number: a page gets the
 * numbers, and the tables and names are left out.
 */
const OPCODES = { OP: "assembler.ts", VECTOR_OP: "vectorops.ts" };
function opcodesOf(root) {
  const tables = Object.entries(OPCODES).map(([table, file]) => {
    const [, text] = readFileSync(join(root, "src/render/wasm", file), "utf8").split(
      `export const ${table} = {`,
    );
    const entries = text.slice(0, text.indexOf("}")).matchAll(/"?([\w.]+)"?: (0x[0-9a-f]+)/g);
    return [table, new Map([...entries].map(([, name, code]) => [name, String(Number(code))]))];
  });
  return new Map(tables);
}
const withOpcodes = (text, opcodes) =>
  text
    .replaceAll(/(?<![\w.])(OP|VECTOR_OP)(?:\["([\w.]+)"\]|\.(\w+))/g, (all, table, quoted, plain) => {
      return opcodes.get(table).get(quoted ?? plain) ?? all;
    })
    // a file whose names are all gone is not imported for its effects, of which it has none
    .replace(/^import \{ VECTOR_OP \} from .*;$/m, "");

/**
 * Fields of the words that executors share: their names are in no interface of the package, and a page gets
 * short ones. Only names of several words, which nothing else has.
 */
function layoutNames(root) {
  const [, text] = readFileSync(join(root, "src/devices/wasm/layout.ts"), "utf8").split(
    "export const LAYOUT = {",
  );
  const fields = text.slice(0, text.indexOf("\n}")).matchAll(/^ {2}([a-z]+[A-Z]\w*)[:,]/gm);
  const names = [...fields].map(([, name], i) => [name, `$${i.toString(36)}`]);
  return {
    mangleProps: new RegExp(`^(${names.map(([name]) => name).join("|")})$`),
    mangleCache: Object.fromEntries(names),
  };
}

/** `outputs` of esbuild's report. `out` is relative to `root`. */
export async function buildBrowser({ root, out, shared, modules, imports }) {
  // Bundlers make a chunk of the modules that the same imports reach. Without these lines a page would load a
  // chunk for each set of parts that load later, and the names that those chunks import from each other.
  const later = new Set(
    modules.flatMap(([, found]) => found.filter((i) => i.kind === "dynamic-import").map(({ path }) => path)),
  );
  const known = new Map(modules);
  const reached = (file, all = new Set()) => {
    if (all.has(file)) return all;
    all.add(file);
    for (const i of known.get(file) ?? []) if (i.kind !== "dynamic-import") reached(i.path, all);
    return all;
  };
  // each module hangs on those of these, with a name of theirs, that it needs a part of
  const bases = [
    [CORE, "Tensor"],
    [COMPILER, "render"],
    [EMITTER, "emit"],
  ];
  const own = bases.map(([base], i) => {
    const before = bases.slice(0, i).map(([b]) => reached(b));
    return [...reached(base)].filter((file) => !before.some((all) => all.has(file)));
  });
  const hung = (file) => {
    const needed = reached(file);
    const lines = bases.map(([base, name], i) => {
      if (base === file || (i > 0 && !own[i].some((f) => needed.has(f)))) return "";
      return `\nexport { ${name} as ${name}_ } from "${toPath(file, base).replace(/\.ts$/, ".js")}";\n`;
    });
    return lines.join("");
  };
  const constants = constantsOf(root, imports);
  const opcodes = opcodesOf(root);
  const load = ({ path }) => {
    const file = relative(root, path).replaceAll("\\", "/");
    const read = withoutImports(readFileSync(path, "utf8"), constants);
    if (file === "src/index.ts" && !read.includes(LATER_NAMES[0]))
      throw new Error(`src/index.ts has no ${LATER_NAMES[0]}`);
    const source = file.startsWith("src/render/wasm/") ? withOpcodes(read, opcodes) : read;
    const placed = file === "src/index.ts" ? source.replace(...LATER_NAMES) : source;
    const all = rewriteImports(file, placed, imports);
    const text = file === CORE ? withoutForwards(all) : all;
    return { contents: later.has(file) ? text + hung(file) : text, loader: "ts" };
  };
  const write = (files, minifyWhitespace) =>
    build({
      ...shared,
      define: { ...shared.define, ...constants },
      ...layoutNames(root),
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
