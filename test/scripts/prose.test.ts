// The check of comments, messages and Markdown (scripts/lint/prose.mjs): this repository keeps it, long
// comments and private words are found where they are, and code that only looks like a comment is left alone.

import { describe, expect, test } from "vitest";
import { script, withFolder } from "./run.ts";

const prose = (files: Record<string, string>) =>
  withFolder(files, (root) => script("lint/prose.mjs", root).complaints);
const long = "word ".repeat(25).trim();

test("this repository keeps both rules", () => {
  expect(script("lint/prose.mjs")).toMatchObject({ status: 0, complaints: [] });
});

describe("width", () => {
  test.each([
    ["a line comment", `// ${long}\n`, 1],
    ["a comment behind code", `const a = 1;\nconst b = ${"a + ".repeat(20)}a; // ${"word ".repeat(6)}\n`, 2],
    ["a line of a block", `/**\n * short\n * ${long}\n */\n`, 3],
    ["a comment behind a regular expression with a quote", `const a = /"/; // ${long}\n`, 1],
    ["a comment inside a template's expression", `const a = \`\${1 /* ${long} */}\`;\n`, 1],
    ["a comment after a division", `const a = 4 / 2; // ${long}\n`, 1],
  ])("%s is found", (_, text, line) => {
    const found = prose({ "bench/a.ts": text });
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(new RegExp(`^bench/a.ts:${line}: a comment of \\d+ columns, at most 110$`));
  });

  test.each([
    ["a string that looks like a comment", `const a = "// ${long}";\n`],
    ["a template that looks like one", `const a = \`\n// ${long}\n\`;\n`],
    ["a regular expression", `const a = /[/]\\/\\/ ${long}/;\n`],
    ["one word that cannot be wrapped", `// ${"w".repeat(120)}\n`],
    ["an address", `// see https://example.org/${"w".repeat(100)} for more\n`],
    ["an example with its result", `/**\n * @example\n * f(${long}) // => 1\n */\n`],
    ["a comment of 110 columns", `// ${"w".repeat(50)} ${"w".repeat(56)}\n`],
  ])("%s is not", (_, text) => {
    expect(prose({ "bench/a.ts": text })).toEqual([]);
  });

  test("prose of Markdown is found; tables, code and links are not", () => {
    const text = `${long}\n\n| ${long} |\n\n\`\`\`js\n${long}\n\`\`\`\n\n${long} [x](y)\n`;
    expect(prose({ "GUIDE.md": text })).toEqual(["GUIDE.md:1: prose of 124 columns, at most 110"]);
  });
});

describe("words", () => {
  test.each([
    ["what is no number counts as 0", "is no number"],
    ["these are no loops", "are no loops"],
    ["a folder that is none", "is none"],
    ["the same in every turn", "every turn"],
    ["fetched turns ahead", "turns ahead"],
    ["a work item a row", "work item"],
    ["a steady value", "steady"],
    ["a number from 0 on", "from 0 on"],
  ])("%s", (text, found) => {
    const where = {
      "bench/a.ts": `// ${text}\n`,
      "bench/b.mjs": `throw new Error("${text}");\n`,
      "A.md": `${text}\n`,
    };
    const complaints = prose(where);
    for (const at of ["A.md:1", "bench/a.ts:1", "bench/b.mjs:1"]) {
      expect(complaints.filter((line) => line.startsWith(`${at}: "${found}": `))).toHaveLength(1);
    }
  });

  test.each([
    "there is no file",
    "where there are none",
    "is no longer used",
    "is no slower than before",
    "each in turn",
    "when its turn comes",
    "it turns out",
    "the name `is no number` in quotes",
  ])("%s is English", (text) => {
    expect(prose({ "bench/a.ts": `// ${text}\n` })).toEqual([]);
  });

  test("code is not prose", () => {
    expect(prose({ "bench/a.ts": "const steady = 1;\nexport const next = steady;\n" })).toEqual([]);
  });
});
