import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { watchedForks } from "./test/pool.ts";

// the entry points of the package, as tsconfig.json maps them to sources
const { paths } = JSON.parse(
  readFileSync(new URL("./tsconfig.json", import.meta.url), "utf8"),
).compilerOptions;
const alias = Object.entries(paths as Record<string, [string]>).map(([name, [file]]) => ({
  find: new RegExp(`^${name}$`),
  replacement: fileURLToPath(new URL(file, import.meta.url)),
}));

export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/**/*.test.ts"],
    environment: "node",
    env: { SPEC: "1", CACHE: "node_modules/.cache/gradloom" }, // the C of most tests is the same every time
    pool: watchedForks, // a kernel that crashes or blocks its process must not take the other test files with it
    maxWorkers: 2,
    execArgv: ["--expose-gc"], // the tests of finalisers collect by hand
    testTimeout: 180_000,
    hookTimeout: 180_000,
    reporters: ["./test/reporter.ts"],
  },
});
