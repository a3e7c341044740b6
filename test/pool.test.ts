// A run of the tests ends, whatever its files do: one that blocks for ever, and one whose process dies of a
// signal when it is stopped.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");

// What a run of vitest says about one test file, with our processes and a limit of three seconds.
function run(body: string): { status: number | null; said: string } {
  const parent = join(root, "node_modules", ".cache"); // where the imports below find vitest
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "pool-"));
  try {
    writeFileSync(join(folder, "a.test.ts"), `import { test } from "vitest";\ntest("a", () => {${body}});\n`);
    writeFileSync(join(folder, "b.test.ts"), `import { test } from "vitest";\ntest("b", () => {});\n`);
    writeFileSync(
      join(folder, "vitest.config.ts"),
      `import { WatchedFork } from ${JSON.stringify(join(root, "test", "pool.ts"))};
      const createPoolWorker = (options) => new WatchedFork(options, 3000);
      export default { test: { pool: { name: "watched-forks", createPoolWorker }, maxWorkers: 1, teardownTimeout: 1000 } };`,
    );
    const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
    const env = { ...process.env, VITEST: undefined, VITEST_POOL_ID: undefined, VITEST_WORKER_ID: undefined };
    const ran = spawnSync(process.execPath, [vitest, "run", "--root", folder], {
      env,
      encoding: "utf8",
      timeout: 60_000,
    });
    return { status: ran.status, said: ran.stdout + ran.stderr };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("a file that blocks is killed and named, and the others run", () => {
  const { status, said } = run("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);");
  expect(said).toMatch(/a\.test\.ts: no end after 3 s, killed/);
  expect(said).toMatch(/1 passed/); // b
  expect(status).toBe(1);
});

test("a process that dies of a signal while it is stopped does not hold the run", () => {
  const dies = 'process.on("message", (m) => m?.type === "stop" && process.kill(process.pid, "SIGKILL"));';
  const { status, said } = run(dies);
  expect(said).toMatch(/2 passed/);
  expect(status).not.toBe(null); // it ended by itself
});
