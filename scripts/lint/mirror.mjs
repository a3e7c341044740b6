// Checks that test/ mirrors src/: the tests of src/a/b are in test/a/b, the test of src/dtype.ts is
// test/dtype.test.ts. `EXTRAS` lists what tests more than one folder of src/, or something outside of it.
// In: a folder (this repository by default). Out: a complaint for each stray
// path, exit code 1 if there are any.

import { existsSync, readdirSync } from "node:fs";
import { join, resolve, sep } from "node:path";

/** Paths below test/ that need no twin in src/, and what they are for. */
const EXTRAS = {
  browser: "pages in a real browser",
  conformance: "values and gradients that PyTorch computed",
  device: "one suite for every device that opens",
  docs: "README, guide, reference and tour say what is true",
  examples: "the programs of examples/",
  golden: "stored kernels and queues",
  oracle: "random programs whose values numpy computed",
  scripts: "the programs of scripts/",
  standalone: "the suite without a test runner, for a machine without npm",
  "debug.test.ts": "what DEBUG prints, from every stage",
  "pool.test.ts": "the processes that run the tests",
};

function complaintsOf(root) {
  const paths = readdirSync(join(root, "test"), { recursive: true, withFileTypes: true });
  return paths.flatMap((entry) => {
    const path = join(entry.parentPath ?? entry.path, entry.name)
      .slice(join(root, "test").length + 1)
      .split(sep)
      .join("/");
    if (Object.hasOwn(EXTRAS, path.split("/")[0])) return [];
    if (entry.isDirectory()) {
      if (entry.name === "golden" || existsSync(join(root, "src", path))) return [];
      return [`test/${path}/ has no src/${path}/: move its tests to where the code is`];
    }
    // within a folder a test may be named after what it shows; at the top it is named after its file
    if (path.includes("/") || !path.endsWith(".test.ts")) return [];
    const file = path.replace(".test.ts", ".ts");
    if (existsSync(join(root, "src", file))) return [];
    return [`test/${path} has no src/${file}: move it to the folder of what it tests`];
  });
}

function main(root) {
  const complaints = complaintsOf(root).sort();
  for (const line of complaints) console.error(line);
  console.log(`mirror: ${complaints.length} tests without a place in src/`);
  return complaints.length === 0 ? 0 : 1;
}

process.exitCode = main(resolve(process.argv[2] ?? join(import.meta.dirname, "..", "..")));
