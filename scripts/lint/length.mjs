// Checks that no file of src/ has more than 500 lines: a reader should hold a file in mind. `EXEMPT` lists
// those that may, and why. In: a folder (this repository by default). Out: a complaint for each file that is
// too long, and for each exemption that is not needed; exit code 1 if there are any.

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve, sep } from "node:path";

const MAX_LINES = 500;

const EXEMPT = {
  "src/nn/index.ts": "written by a script: a call for each name of nn",
  "src/tensor/tensor.ts": "one class of thin methods, most of it their documentation",
  "src/uop/node.ts": "an interface for each op of the IR, which are read together",
};

function complaintsOf(root) {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `src/${file.split(sep).join("/")}`);
  const lengths = new Map(
    files.map((file) => [file, readFileSync(join(root, file), "utf8").split("\n").length - 1]),
  );
  const long = [...lengths].filter(([file, lines]) => lines > MAX_LINES && !Object.hasOwn(EXEMPT, file));
  const idle = Object.keys(EXEMPT).filter((file) => lengths.has(file) && lengths.get(file) <= MAX_LINES);
  return [
    ...long.map(
      ([file, n]) => `${file} has ${n} lines, at most ${MAX_LINES}: move a part with one job out of it`,
    ),
    ...idle.map(
      (file) => `${file} fits into ${MAX_LINES} lines: take it from EXEMPT in scripts/lint/length.mjs`,
    ),
  ];
}

function main(root) {
  const complaints = complaintsOf(root).sort();
  for (const line of complaints) console.error(line);
  console.log(`length: ${complaints.length} complaints`);
  return complaints.length === 0 ? 0 : 1;
}

process.exitCode = main(resolve(process.argv[2] ?? join(import.meta.dirname, "..", "..")));
