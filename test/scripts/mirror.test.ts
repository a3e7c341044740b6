// The check that test/ mirrors src/ (scripts/lint/mirror.mjs): this repository
// does, and a stray test is named.

import { expect, test } from "vitest";
import { script, withFolder } from "./run.ts";

test("this repository's tests are where their code is", () => {
  expect(script("lint/mirror.mjs")).toMatchObject({ status: 0, complaints: [] });
});

test("twins, extras, helpers and goldens pass; what has no twin is named", () => {
  const files = {
    "src/dtype.ts": "",
    "src/a/b/c.ts": "",
    "test/dtype.test.ts": "",
    "test/reporter.ts": "",
    "test/a/shown.test.ts": "",
    "test/a/b/c.test.ts": "",
    "test/a/b/golden/text.txt": "",
    "test/docs/deep/er/x.test.ts": "",
    "test/old.test.ts": "",
    "test/a/gone/x.test.ts": "",
  };
  expect(withFolder(files, (root) => script("lint/mirror.mjs", root))).toMatchObject({
    status: 1,
    complaints: [
      "test/a/gone/ has no src/a/gone/: move its tests to where the code is",
      "test/old.test.ts has no src/old.ts: move it to the folder of what it tests",
    ],
  });
});
