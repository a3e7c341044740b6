// What is kept for the next process: found again under its key, bounded in number, and given up
// where the folder cannot be used.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withEnv } from "gradloom";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { cached, keyOf } from "../../src/host/diskcache.ts";

const root = join(import.meta.dirname, "../..");
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const bytes = Uint8Array.of(1, 2, 3);
const never = (): never => {
  throw new Error("made again");
};

test("what was made is found again, under its key only", () => {
  withEnv({ CACHE: join(folder, "a") }, () => {
    expect([...cached("kind", keyOf("x"), () => bytes)]).toEqual([1, 2, 3]);
    expect([...cached("kind", keyOf("x"), never)]).toEqual([1, 2, 3]);
    expect(() => cached("kind", keyOf("y"), never)).toThrow("made again");
    expect(() => cached("other", keyOf("x"), never)).toThrow("made again");
  });
  expect(readdirSync(join(folder, "a", "kind"))).toEqual([keyOf("x")]);
});
test("CACHE=0 keeps nothing", () => {
  withEnv({ CACHE: "0" }, () => {
    expect([...cached("kind", keyOf("x"), () => bytes)]).toEqual([1, 2, 3]);
    expect(() => cached("kind", keyOf("x"), never)).toThrow("made again");
  });
  expect(existsSync("0")).toBe(false);
});
test("a folder that cannot be made is told once, and costs time and no more", () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  const file = join(folder, "file");
  writeFileSync(file, "");
  withEnv({ CACHE: file }, () => {
    expect([...cached("kind", "k", () => bytes)]).toEqual([1, 2, 3]);
    expect([...cached("kind", "l", () => bytes)]).toEqual([1, 2, 3]);
  });
  expect(warn.mock.calls.map(String)).toEqual([
    expect.stringMatching(
      /file\/kind cannot keep what was compiled \(ENOTDIR.*set CACHE to a folder that can/,
    ),
  ]);
  warn.mockRestore();
});
test("one that was removed meanwhile is made again", () => {
  withEnv({ CACHE: join(folder, "deep", "er") }, () => {
    cached("kind", "k", () => bytes);
    rmSync(join(folder, "deep"), { recursive: true });
    cached("kind", "k", () => bytes);
    expect([...cached("kind", "k", never)]).toEqual([1, 2, 3]);
  });
});
// Node's recursive mkdir never returns there, which would be the end of this process
test("where no folder can ever be made, BEAM searches and the program ends", { timeout: 30_000 }, ({
  skip,
}) => {
  skip(!existsSync("/proc/self"), "there is no /proc here");
  const program = join(folder, "beam.mts");
  writeFileSync(
    program,
    `import { Tensor } from ${JSON.stringify(join(root, "src/index.ts"))};
     for (const n of [64, 96]) console.log(await Tensor.ones(n, n).sum().item());`,
  );
  const tsx = createRequire(import.meta.url).resolve("tsx/cli");
  const env = { ...process.env, CACHE: "/proc/none", BEAM: "1", BEAM_SECONDS: "1", DEV: "WASM" };
  const run = spawnSync(process.execPath, [tsx, program], {
    cwd: root,
    env,
    encoding: "utf8",
    timeout: 25_000,
  });
  expect(run.stdout, run.stderr).toBe("4096\n9216\n");
  expect(run.stderr.match(/cannot keep/g)).toEqual(["cannot keep"]);
});
test("too many files: the older half goes", () => {
  const crowded = join(folder, "b", "kind");
  mkdirSync(crowded, { recursive: true });
  for (let i = 0; i < 8300; i++) writeFileSync(join(crowded, `f${i}`), "");
  utimesSync(join(crowded, "f8000"), 1, 1);
  withEnv({ CACHE: join(folder, "b") }, () => cached("kind", "last", () => bytes));
  const left = readdirSync(crowded);
  expect(left.length).toBeLessThan(4300);
  expect(left).not.toContain("f8000");
  expect(left).toContain("last");
});
