// Runs a script of scripts/ on a folder of files made for the purpose, and gives what it printed.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const scripts = join(import.meta.dirname, "..", "..", "scripts");

/** A folder that holds `files` for the length of `use`. */
export function withFolder<T>(files: Record<string, string>, use: (root: string) => T): T {
  const root = mkdtempSync(join(tmpdir(), "gradloom-scripts-"));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return use(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** What `scripts/NAME ARGS` says: complaints from stderr, the rest from stdout. */
export function script(name: string, ...args: string[]) {
  const run = spawnSync(process.execPath, [join(scripts, name), ...args], { encoding: "utf8" });
  return {
    status: run.status,
    complaints: run.stderr.split("\n").filter((line) => line !== ""),
    said: run.stdout.trimEnd(),
  };
}
