// Bundles tests (or any TypeScript program of this repository) into one file that plain Node runs, for a
// machine with a GPU and without npm: `node scripts/standalone.mjs OUT.mjs test/device/*.test.ts`. Tests get
// test/standalone/vitest.ts in place of vitest; koffi stays outside. Run it there as
// `node OUT.mjs [pattern] [i/n]`.

import { resolve } from "node:path";
import { build } from "esbuild";

const root = resolve(import.meta.dirname, "..");
const [out, ...files] = process.argv.slice(2);
if (out === undefined || files.length === 0) {
  console.error("usage: node scripts/standalone.mjs OUT.mjs FILE.ts…");
  process.exit(2);
}
const isTest = files.some((f) => f.endsWith(".test.ts"));
const imports = files.map((f) => `await import(${JSON.stringify(resolve(f))});`);
const start = isTest ? [`(await import("vitest")).runTests();`] : [];
await build({
  stdin: { contents: [...imports, ...start].join("\n"), resolveDir: root, loader: "ts" },
  outfile: out,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  // peers of the benchmarks are loaded when they are measured
  external: ["koffi", "webgpu", "@jax-js/*", "@tensorflow/*", "onnxruntime-web"],
  alias: {
    gradloom: resolve(root, "src/index.ts"),
    "gradloom/nn": resolve(root, "src/nn/index.ts"),
    "gradloom/render": resolve(root, "src/render/index.ts"),
    "gradloom/device": resolve(root, "src/device.ts"),
    ...(isTest ? { vitest: resolve(root, "test/standalone/vitest.ts") } : {}),
  },
  // an example that a test imports must not take itself for the program that was started
  define: isTest ? { "import.meta.url": "importedUrl" } : {},
  banner: {
    js: [
      "import { createRequire as requireFrom } from 'node:module';",
      "const require = requireFrom(import.meta.url);",
      "const importedUrl = new URL('imported.mjs', import.meta.url).href;", // packages are found from here
    ].join("\n"),
  },
  logLevel: "warning",
});
