// src/ -> dist/node and dist/browser: one bundle for each, split so that a device loads only when it is
// opened. `npm run build` lets tsc add dist/types afterwards. It fails where the browser
// bundle would need a `node:` module.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const root = join(import.meta.dirname, "..");
rmSync(join(root, "dist"), { recursive: true, force: true });

const shared = {
  absWorkingDir: root,
  entryPoints: ["src/index.ts"],
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  chunkNames: "chunks/[name]-[hash]",
  sourcemap: true,
  metafile: true,
  logLevel: "warning",
};

const targets = {
  node: { platform: "node", target: "node20", external: ["koffi"] },
  browser: { platform: "browser", conditions: ["browser"] },
};

for (const [name, options] of Object.entries(targets)) {
  const { metafile } = await build({ ...shared, ...options, outdir: `dist/${name}` });
  const outputs = Object.entries(metafile.outputs).filter(([file]) => file.endsWith(".js"));
  const externals = new Set(
    outputs.flatMap(([, o]) => o.imports.filter((i) => i.external).map((i) => i.path)),
  );
  if (name === "browser" && externals.size > 0) {
    throw new Error(`the browser bundle imports ${[...externals].join(", ")}: it must import nothing`);
  }
  const bytes = outputs.reduce((sum, [, output]) => sum + output.bytes, 0);
  console.error(`dist/${name}: ${outputs.length} files, ${(bytes / 1024).toFixed(1)} KiB`);
}
