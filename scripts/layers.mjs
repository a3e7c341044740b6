// The import rule between stages. It reads every file of src/ and fails where one imports what its stage may
// not, or where stages import each other in a circle. Run by `npm run lint`; the table below is the rule,
// everything after it only applies it. `--cycles` also lists the circles of files within a stage.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";

const LEAVES = [
  "env.ts",
  "errors.ts",
  "arguments.ts",
  "dtype.ts",
  "hostarrays.ts",
  "images.ts",
  "helpers.ts",
  "names.ts",
  "printable.ts",
  "ops.ts",
  "pace.ts",
  "notation.ts",
  "transcendental.ts",
  "transcendental64.ts",
  "errorfunction.ts",
  "deferred.ts",
  "functions.ts",
  "trigonometry.ts",
  "trigonometry64.ts",
  "power.ts",
  "narrow.ts",
  "scattercost.ts",
];

// Every stage may import the leaves and itself. "x:type" allows `import type` from
// x only, "x/file.ts" one file of it; "*" allows every stage.
const MAY_IMPORT = {
  leaves: [],
  shape: [],
  lazy: ["shape", "runtime"],
  tensor: ["shape", "lazy", "runtime", "engine", "host"],
  schedule: ["shape", "lazy", "runtime"],
  uop: ["shape"],
  // the AST is what schedule hands over, and codegen rewrites it
  codegen: ["shape", "schedule:type", "schedule/lazyop.ts", "uop", "host/rest.ts"],
  render: ["uop", "codegen"],
  host: [],
  runtime: ["shape", "uop:type", "codegen:type", "render:type", "host"],
  devices: ["shape", "runtime", "render", "uop", "codegen", "host"],
  engine: ["shape", "lazy", "schedule", "uop", "codegen", "render", "runtime", "devices", "host", "viz"],
  func: ["tensor", "host/rest.ts"],
  nn: ["shape", "lazy", "runtime", "engine", "tensor", "host"],
  onnx: ["shape", "lazy", "runtime", "engine", "tensor", "nn/bytes.ts", "host", "index.ts"],
  cli: ["*"],
  viz: ["*"],
  index: ["*"],
};

// Only these reach outside of src/: `node:` modules and packages. The core must run in a browser.
const MAY_REACH_OUT = ["host", "devices", "cli"];

const STATIC = /^(?:import|export)\b([^;"'`]*?)\bfrom\s*["']([^"']+)["']|^import\s*["']([^"']+)["']/gm;
const DYNAMIC = /\bimport\(\s*["']([^"']+)["']/g;
const COMMENT = /^\s*(\/\/|\/?\*)/;

/** The imports of one source text: `{ path, typeOnly, dynamic }`. */
function importsOf(text) {
  const found = [];
  for (const [, clause, from, bare] of text.matchAll(STATIC)) {
    const names = clause?.match(/^\s*\{([^}]*)\}\s*$/)?.[1];
    const allTypes = names
      ?.split(",")
      .filter((name) => name.trim())
      .every((name) => /^\s*type\s/.test(name));
    found.push({ path: from ?? bare, typeOnly: /^\s*type\b/.test(clause ?? "") || allTypes === true });
  }
  for (const line of text.split("\n")) {
    if (COMMENT.test(line)) continue;
    for (const [, path] of line.matchAll(DYNAMIC)) found.push({ path, typeOnly: false, dynamic: true });
  }
  return found;
}

/** The stage of a path below src/, or undefined where the house has no such room. */
function stageOf(path) {
  if (path === "index.ts" || path === "device.ts") return "index";
  if (LEAVES.includes(path)) return "leaves";
  const folder = path.includes("/") ? path.split("/")[0] : undefined;
  return folder !== undefined && Object.hasOwn(MAY_IMPORT, folder) ? folder : undefined;
}

/** Complaints about one file. `file` is its path below src/, with forward slashes. */
function check(file, text) {
  const stage = stageOf(file);
  if (!stage) return [`src/${file} belongs to no stage: move it, or give it a row in scripts/layers.mjs`];
  return importsOf(text).flatMap(({ path, typeOnly }) => {
    if (!/^[.#]/.test(path)) return outside(file, stage, path);
    const target = targetOf(file, path);
    const to = stageOf(target);
    if (to === "leaves" || to === stage) return [];
    const allowed = MAY_IMPORT[stage];
    if (allowed.includes("*") || allowed.includes(to) || allowed.includes(target)) return [];
    if (typeOnly && allowed.includes(`${to}:type`)) return [];
    return [`src/${file} imports ${path.startsWith("#") ? path : `src/${target}`}: ${says(stage)}`];
  });
}

/** What an import of ours means, as a path below src/; `#host` and its like stand for a folder or a leaf. */
const targetOf = (file, path) =>
  path.startsWith("#")
    ? (LEAVES.find((leaf) => leaf === `${path.slice(1)}.ts`) ?? `${path.slice(1)}/`)
    : relative("/", resolve("/", dirname(file), path))
        .split(sep)
        .join("/");

/**
 * Circles of value imports between stages, each with the imports that make it. A dynamic import counts: it
 * only loads later. Types are erased, so they may go in circles.
 */
function stageCycles(texts) {
  const edges = new Map();
  for (const [file, text] of texts) {
    const from = stageOf(file);
    for (const { path, typeOnly } of importsOf(text)) {
      const to = /^[.#]/.test(path) && !typeOnly ? stageOf(targetOf(file, path)) : undefined;
      if (to === undefined || to === from || from === undefined) continue;
      if (!edges.has(from)) edges.set(from, new Map());
      edges.get(from).set(to, `src/${file} imports ${path}`);
    }
  }
  return components(edges).map((stages) => {
    const inside = stages.flatMap((from) =>
      [...(edges.get(from) ?? [])].filter(([to]) => stages.includes(to)).map(([, example]) => example),
    );
    return `${stages.sort().join(", ")} import each other in a circle: ${inside.sort().join("; ")}`;
  });
}

/** Circles of static value imports between files: they load only as long as no file runs code of another. */
function fileCycles(texts) {
  const edges = new Map();
  for (const [file, text] of texts) {
    const values = importsOf(text).filter((i) => !i.typeOnly && !i.dynamic && i.path.startsWith("."));
    edges.set(file, new Map(values.map(({ path }) => [targetOf(file, path), path])));
  }
  return components(edges).map((files) => files.sort().join(" "));
}

/** The strongly connected components of more than one node (Tarjan); the keys of a Map are next. */
function components(edges) {
  const [index, low, stack, found] = [new Map(), new Map(), [], []];
  const visit = (node) => {
    index.set(node, index.size);
    low.set(node, index.get(node));
    stack.push(node);
    for (const next of edges.get(node)?.keys() ?? []) {
      if (!index.has(next)) visit(next);
      if (stack.includes(next)) low.set(node, Math.min(low.get(node), low.get(next)));
    }
    if (low.get(node) !== index.get(node)) return;
    const component = stack.splice(stack.indexOf(node));
    if (component.length > 1) found.push(component);
  };
  for (const node of edges.keys()) if (!index.has(node)) visit(node);
  return found;
}

function outside(file, stage, path) {
  if (MAY_REACH_OUT.includes(stage)) return [];
  const who = MAY_REACH_OUT.join(", ").replace(/, (?=\w+$)/, " and ");
  return [`src/${file} imports ${path}: only ${who} may import node: modules and packages`];
}

function says(stage) {
  const names = MAY_IMPORT[stage].map((name) => name.replace(/(.*):type/, "types of $1"));
  return `${stage} may import only ${["leaves", ...names].join(", ")}`;
}

function main(root) {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".ts"));
  const texts = new Map(
    files
      .map((file) => file.split(sep).join("/"))
      .sort()
      .map((file) => [file, readFileSync(join(root, file), "utf8")]),
  );
  const complaints = [...texts].flatMap(([file, text]) => check(file, text));
  const cycles = stageCycles(texts);
  for (const line of [...complaints, ...cycles]) console.error(line);
  if (process.argv.includes("--cycles"))
    for (const line of fileCycles(texts)) console.log(`a circle: ${line}`);
  const within = fileCycles(texts).length;
  console.log(
    `layers: ${files.length} files, ${complaints.length} forbidden imports, ${cycles.length} circles between stages, ` +
      `${within} within (--cycles lists them)`,
  );
  return complaints.length + cycles.length === 0 ? 0 : 1;
}

const given = process.argv.slice(2).find((arg) => !arg.startsWith("--"));
process.exitCode = main(resolve(given ?? join(import.meta.dirname, "..", "src")));
