// Checks that a name of a type means one thing: no two files of src/ declare an interface, a class or a type
// of the same name. In: a folder (this repository by default). Out: a complaint for each name that several
// files declare, and for each exemption that is not needed; exit code 1 if there are any.

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve, sep } from "node:path";

/** Names that two files may declare, and why. */
const EXEMPT = {
  BatchNormOptions: "the options of the method and of the layer, as torch names them",
  EmbeddingOptions: "the options of the method and of the layer, as torch names them",
  Gpu: "codegen's figures of a GPU, and the object of the WebGPU standard",
};
/** Files that repeat the names of others to check the arguments of their calls. */
const WRAPPERS = /^src\/(?:nn\/index\.ts$|\w+\/guarded\/)/;
const DECLARATION = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|class|type) (\w+)(.*)$/gm;
/** The form of a module for a page, and the one for the built package: both are the module. */
const MODULE = /^ = typeof import\("[^"]+"\);$/;

function declarations(root) {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `src/${file.split(sep).join("/")}`)
    .filter((file) => !WRAPPERS.test(file))
    .sort();
  const found = new Map();
  for (const file of files) {
    for (const [, name, rest] of readFileSync(join(root, file), "utf8").matchAll(DECLARATION)) {
      const folder = file.slice(0, file.lastIndexOf("/"));
      const thing = MODULE.test(rest.trimEnd()) ? folder + rest : file;
      found.set(name, (found.get(name) ?? new Map()).set(thing, file));
    }
  }
  return found;
}

function complaintsOf(root) {
  const found = declarations(root);
  const several = [...found].filter(([, things]) => things.size > 1);
  const shared = several.filter(([name]) => !Object.hasOwn(EXEMPT, name));
  const idle = Object.keys(EXEMPT).filter((name) => found.get(name)?.size === 1);
  return [
    ...shared.map(
      ([name, things]) => `${name} is declared in ${[...things.values()].join(", ")}: one name for one thing`,
    ),
    ...idle.map((name) => `${name} is declared once: take it from EXEMPT in scripts/lint/types.mjs`),
  ];
}

function main(root) {
  const complaints = complaintsOf(root).sort();
  for (const line of complaints) console.error(line);
  console.log(`types: ${complaints.length} names of types that mean two things`);
  return complaints.length === 0 ? 0 : 1;
}

process.exitCode = main(resolve(process.argv[2] ?? join(import.meta.dirname, "..", "..")));
