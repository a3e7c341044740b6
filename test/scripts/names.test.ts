// The check of the files that comments and Markdown name (scripts/lint/names.mjs): this repository names
// files that exist, and one that does not is found.

import { expect, test } from "vitest";
import { script, withFolder } from "./run.ts";

test("comments and docs of this repository name files that exist", () => {
  expect(script("lint/names.mjs")).toMatchObject({ status: 0, complaints: [] });
});

test("ends of paths, patterns, users' files, strings and code blocks pass; what is gone is named", () => {
  const files = {
    "README.md":
      "See src/a/b.ts and a/b.ts.\n\n```sh\nnode gone.ts\n```\n\nRun `node dot.mjs`; read old.md.\n",
    "src/a/b.ts":
      '// c.ts does the rest, and *.ts, a/{c,d}.ts\nexport const x = "gone.ts"; // a/gone.ts, yours.ts\n',
    "src/c.ts": "/** dist/types/x.d.ts, scripts/gone.mjs */\n",
    "CHANGELOG.md": "old.ts is gone\n",
  };
  expect(withFolder(files, (root) => script("lint/names.mjs", root))).toMatchObject({
    status: 1,
    complaints: [
      "README.md:7: there is no file old.md: name the one that is meant",
      "src/a/b.ts:2: there is no file a/gone.ts: name the one that is meant",
      "src/c.ts:1: there is no file scripts/gone.mjs: name the one that is meant",
    ],
  });
});
