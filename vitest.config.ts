import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { alias: { gradloom: fileURLToPath(new URL("./src/index.ts", import.meta.url)) } },
  test: {
    include: ["test/**/*.test.ts"],
    environment: "node",
    env: { SPEC: "1", CACHE: "node_modules/.cache/gradloom" }, // the C of most tests is the same every time
    pool: "forks", // a kernel that crashes the process must not take the other test files with it
    maxWorkers: 2,
    execArgv: ["--expose-gc"], // the tests of finalisers collect by hand
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ["./test/reporter.ts"],
  },
});
