// dist/node as scripts/build/node.mjs makes it, in a folder of its own, for tests that run it.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";

const root = join(import.meta.dirname, "..", "..");

export interface Built {
  /** has node/, and programs of tests beside it, which import it as "built" */
  readonly folder: string;
  /** Writes the program, if there is a text, and gives what it prints; `flags` are those of Node. */
  run(name: string, text?: string, env?: Record<string, string>, flags?: readonly string[]): string;
  remove(): void;
}

export async function buildPackage(): Promise<Built> {
  const folder = mkdtempSync(join(tmpdir(), "gradloom-build-"));
  const url = pathToFileURL(join(root, "scripts/build/node.mjs")).href;
  const { buildNode } = (await import(url)) as { buildNode(options: object): Promise<unknown> };
  const bundled = {
    ...{ absWorkingDir: root, format: "esm", target: "es2022", logLevel: "warning" },
    ...{ sourcemap: true, metafile: true, bundle: true, splitting: true },
    chunkNames: "chunks/[name]-[hash]",
  };
  const entries = ["index", "nn", "render", "areas/conv"].map((file) => [file, ""]);
  await buildNode({ root, out: relative(root, join(folder, "node")), bundled, entries });
  const start = { module: "./node/bundled.js", default: "./node/index.js" };
  const exports = { ".": start, "./nn": "./node/nn.js", "./conv": "./node/areas/conv.js" };
  const manifest = { name: "built", type: "module", exports, imports: { "#start": start } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  return {
    folder,
    run(name, text, env = {}, flags = []) {
      const file = join(folder, name);
      if (text !== undefined) writeFileSync(file, text);
      return execFileSync(process.execPath, [...flags, file], {
        encoding: "utf8",
        env: { ...process.env, CACHE: join(folder, "cache"), ...env },
      }).trim();
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}
