// Uses an installed package as a stranger would: imports every entry, computes a dot product, and type-checks
// a small program strictly. In: the folder it is installed in, its package.json, our node_modules (for tsc
// and the types of Node). Out: complaints.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** The names that a program can import: `gradloom`, `gradloom/nn` … */
export function entries(manifest) {
  const names = typeof manifest.exports === "string" ? ["."] : Object.keys(manifest.exports);
  return names
    .filter((name) => !name.endsWith(".json") && !name.includes("*"))
    .map((name) => `${manifest.name}${name.slice(1)}`);
}

function run(folder, args) {
  const { DEBUG: _, DEV: __, ...env } = process.env;
  const done = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8", env });
  return { status: done.status, output: `${done.stdout}${done.stderr}`.trim() };
}

export function checkInstalled(folder, manifest, modules) {
  const complaints = [];
  const imports = entries(manifest).map((name, i) => `import * as m${i} from ${JSON.stringify(name)};`);
  // the areas of Tensor add methods, and export nothing
  const named = entries(manifest).flatMap((name, i) =>
    manifest.exports[`.${name.slice(manifest.name.length)}`]?.default?.includes("/areas/") ? [] : [`m${i}`],
  );
  const empty = `if ([${named}].some((m) => Object.keys(m).length === 0)) process.exit(3);`;
  const dot = "console.log(await new m0.Tensor([1, 2]).dot(new m0.Tensor([3, 4])).item());";
  writeFileSync(join(folder, "dot.mjs"), `${imports.join("\n")}\n${empty}\n${dot}\n`);
  const { status, output } = run(folder, ["dot.mjs"]);
  if (status !== 0 || output !== "11")
    complaints.push(`dot.mjs ended with ${status} and printed ${output}, not 11`);

  const typed = "export const product: m0.Tensor = new m0.Tensor([1, 2]).dot(new m0.Tensor([3, 4]));";
  writeFileSync(join(folder, "dot.ts"), `${imports.join("\n")}\n${typed}\n`);
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    module: "nodenext",
    target: "es2022",
    lib: ["es2023", "dom", "dom.iterable", "esnext.disposable"],
    types: [],
  };
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions: options, files: ["dot.ts"] }),
  );
  const types = run(folder, [join(modules, "typescript", "bin", "tsc"), "-p", "."]);
  if (types.status !== 0)
    complaints.push(`the types do not check:\n${types.output.split("\n").slice(0, 10).join("\n")}`);
  return complaints;
}
