// docs/GLOSSARY.md: every term is defined once, and the folders that it names exist.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const entries = readFileSync(join(root, "docs/GLOSSARY.md"), "utf8")
  .split(/^- (?=\*\*)/m)
  .slice(1);

test("every term is defined once", () => {
  const terms = entries.flatMap((e) => (/^\*\*([^*]+)\*\*/.exec(e)?.[1] ?? "").split(", "));
  expect(terms.length).toBeGreaterThan(80);
  expect(terms.filter((t, i) => t === "" || terms.indexOf(t) !== i)).toEqual([]);
});

test("every folder exists", () => {
  const folders = entries.flatMap((e) =>
    [...e.matchAll(/`((?:src|test)\/[^`]+)`/g)].map((m) => m[1] as string),
  );
  expect(folders.length).toBeGreaterThan(60);
  expect(folders.filter((f) => !existsSync(join(root, f)))).toEqual([]);
});
