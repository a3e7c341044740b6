// The check of the length of files (scripts/lint/length.mjs): this repository passes, and what is too long,
// or exempt for nothing, is named.

import { expect, test } from "vitest";
import { script, withFolder } from "./run.ts";

test("no file of src/ is too long", () => {
  expect(script("lint/length.mjs")).toMatchObject({ status: 0, complaints: [] });
});

test("500 lines pass, 501 do not; an exemption must be needed", () => {
  const files = {
    "src/a/just.ts": "x\n".repeat(500),
    "src/a/long.ts": "x\n".repeat(501),
    "src/a/table.json": "x\n".repeat(501),
    "src/tensor/tensor.ts": "x\n".repeat(501),
    "src/uop/node.ts": "x\n".repeat(500),
  };
  expect(withFolder(files, (root) => script("lint/length.mjs", root))).toMatchObject({
    status: 1,
    complaints: [
      "src/a/long.ts has 501 lines, at most 500: move a part with one job out of it",
      "src/uop/node.ts fits into 500 lines: take it from EXEMPT in scripts/lint/length.mjs",
    ],
  });
});
