// What scripts/standalone.mjs makes of tests: one file that plain Node runs, with what passed, failed and was
// skipped as vitest would have it, chosen by name and share.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
  const tests = `
    import { Tensor } from "gradloom";
    import { beforeEach, describe, expect, test } from "vitest";
    let runs = 0;
    describe("outer", () => {
      beforeEach(() => void runs++);
      test("adds", async () => expect(await new Tensor([1, 2]).add(1).tolist()).toEqual([2, 3]));
      describe("inner", () => {
        test("is wrong", () => expect([1, { a: 2 }]).toEqual([1, { a: 3 }]));
        test("throws", async () => expect(Promise.reject(new Error("so"))).rejects.toThrow(/^so$/));
      });
      test("is skipped", ({ skip }) => skip(true, "there is no such thing"));
      test("hooks ran", () => expect(runs).toBe(5));
      describe.each([["two", 2], ["three", 3]])("a row of %s", (_, n) => {
        test.each([1, 2])("times %d", (k) => expect(n * k).toBeLessThan(7));
      });
    });`;
  writeFileSync(join(folder, "some.test.ts"), tests);
  const bundle = [
    join(root, "scripts/standalone.mjs"),
    join(folder, "out.mjs"),
    join(folder, "some.test.ts"),
  ];
  const { status, stderr } = spawnSync(process.execPath, bundle, { encoding: "utf8", cwd: root });
  expect(status, stderr).toBe(0);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (...args: string[]) =>
  spawnSync(process.execPath, [join(folder, "out.mjs"), ...args], { encoding: "utf8" });

test("says what passed, what failed and why, and what was skipped", () => {
  const { stdout, status } = run();
  expect(stdout).toMatch(/^ok {3}outer > adds/m);
  expect(stdout).toMatch(/^FAIL outer > inner > is wrong.*\n.*AssertionError/m);
  expect(stdout).toMatch(/^ok {3}outer > a row of three > times 2/m);
  expect(stdout).toMatch(/^skip outer > is skipped.*\nthere is no such thing/m);
  expect(stdout.trim().split("\n").at(-1)).toBe("7 passed, 1 failed, 1 skipped");
  expect(status).toBe(1);
});
test("by a pattern, and every n-th", () => {
  const { stdout, status } = run("adds|throws");
  expect(stdout).toMatch(/2 passed, 0 failed, 0 skipped\n$/);
  expect(status).toBe(0);
  expect(run("adds|throws", "1/2").stdout).toMatch(/^ok {3}outer > inner > throws.*\n1 passed/);
});
