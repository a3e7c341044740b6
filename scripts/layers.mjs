// The import rule between stages. It reads every file of src/ and fails where one imports what its stage may
// not. Run by `npm run lint`; the table below is the rule, everything after it only applies it.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";

const LEAVES = ["env.ts", "errors.ts", "dtype.ts", "helpers.ts", "ops.ts", "transcendental.ts"];

// Every stage may import the leaves and itself. "x:type" allows `import type` from
// x only; "*" allows every stage.
const MAY_IMPORT = {
  leaves: [],
  shape: [],
  lazy: ["shape", "runtime"],
  tensor: ["shape", "lazy", "runtime", "engine"],
  schedule: ["shape", "lazy", "runtime"],
  uop: ["shape"],
  codegen: ["shape", "schedule:type", "uop"],
  render: ["uop", "codegen"],
  runtime: ["shape", "uop:type", "codegen:type", "render:type", "devices"],
  devices: ["shape", "runtime", "render", "uop", "codegen"],
  engine: ["shape", "lazy", "schedule", "uop", "codegen", "render", "runtime", "devices", "viz"],
  nn: ["shape", "lazy", "runtime", "engine", "tensor"],
  cli: ["*"],
  viz: ["*"],
  index: ["*"],
};

// Only these reach outside of src/: `node:` modules and packages. The core must run in a browser.
const MAY_REACH_OUT = ["devices", "cli"];

const STATIC = /^(?:import|export)\b([^;"'`]*?)\bfrom\s*["']([^"']+)["']|^import\s*["']([^"']+)["']/gm;
const DYNAMIC = /\bimport\(\s*["']([^"']+)["']/g;
const COMMENT = /^\s*(\/\/|\/?\*)/;

/** The imports of one source text: `{ path, typeOnly }`. */
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
    for (const [, path] of line.matchAll(DYNAMIC)) found.push({ path, typeOnly: false });
  }
  return found;
}

/** The stage of a path below src/, or undefined where the house has no such room. */
function stageOf(path) {
  if (path === "index.ts") return "index";
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
    const target = path.startsWith("#")
      ? `${path.slice(1)}/`
      : relative("/", resolve("/", dirname(file), path));
    const to = stageOf(target.split(sep).join("/"));
    if (to === "leaves" || to === stage) return [];
    const allowed = MAY_IMPORT[stage];
    if (allowed.includes("*") || allowed.includes(to)) return [];
    if (typeOnly && allowed.includes(`${to}:type`)) return [];
    return [`src/${file} imports ${path.startsWith("#") ? path : `src/${target}`}: ${says(stage)}`];
  });
}

function outside(file, stage, path) {
  if (MAY_REACH_OUT.includes(stage)) return [];
  const who = MAY_REACH_OUT.join(" and ");
  return [`src/${file} imports ${path}: only ${who} may import node: modules and packages`];
}

function says(stage) {
  const names = MAY_IMPORT[stage].map((name) => name.replace(/(.*):type/, "types of $1"));
  return `${stage} may import only ${["leaves", ...names].join(", ")}`;
}

function main(root) {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".ts"));
  const complaints = files
    .map((file) => file.split(sep).join("/"))
    .sort()
    .flatMap((file) => check(file, readFileSync(join(root, file), "utf8")));
  for (const line of complaints) console.error(line);
  console.log(`layers: ${files.length} files, ${complaints.length} forbidden imports`);
  return complaints.length === 0 ? 0 : 1;
}

process.exitCode = main(resolve(process.argv[2] ?? join(import.meta.dirname, "..", "src")));
