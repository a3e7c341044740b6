// Every public name has a test that can be found by it: a search for a method of Tensor, a name of nn or an
// op in test/ leads to what holds it. The pages of the reference say which names are public.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { allEntries, type Entry } from "../../scripts/reference.ts";
import { OPS } from "../../src/ops.ts";

/** Base classes that nobody makes an object of. */
const ABSTRACT = ["Moments"];

const folder = join(import.meta.dirname, "..");
const isTest = (path: string): boolean => /\.(ts|jsonl)$/.test(path) && !/^docs\b/.test(path);
const words = new Set(
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter(isTest)
    .flatMap((path) => readFileSync(join(folder, path), "utf8").match(/\b[A-Za-z_]\w*/g) ?? []),
);

test("every public function and method", () => {
  const entries: readonly Entry[] = allEntries();
  const names = entries.filter((e) => !["field", "interface", "type"].includes(e.kind)).map((e) => e.name);
  expect(names.length).toBeGreaterThan(400);
  expect(names.filter((name) => !words.has(name))).toEqual(ABSTRACT);
});

test("every op", () => {
  expect(Object.keys(OPS).filter((name) => !words.has(name))).toEqual([]);
});
