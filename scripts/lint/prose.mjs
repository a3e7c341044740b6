// Checks what people read: comments, string literals and Markdown. Two rules, see `RULES`: nothing in a
// comment or in Markdown prose runs past 110 columns, and nobody uses a private word or an unidiomatic phrase
// of `PHRASES`. In: a folder (this repository by default). Out: `file:line: complaint` for each,
// and exit code 1 if there are any.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { markdown } from "./markdown.mjs";
import { scan } from "./scan.mjs";

const WIDTH = 110;

const FOLDERS = ["src", "test", "docs", "bench", "scripts", "examples"];

/** What is exempt for good: figures and reference are written by programs, two files quote what to avoid. */
const EXEMPT = {
  width: ["docs/reference", "docs/FILES.md", "bench/RESULTS.md"],
  words: ["docs/GLOSSARY.md", "test/scripts/prose.test.ts"],
};

/** What to write instead of what. Each phrase is looked for in one line, outside `code quotes`. */
const PHRASES = [
  [
    // "there is no file" is English, and so is "is no longer", "is no worse"
    /(?<!\bthere )\b(?:is|are|was|were) no (?!longer|more|less|fewer|larger|smaller|slower|faster|worse|better|different|such|one\b)[\w-]+/i,
    'say "is not a …"',
  ],
  [/(?<!\bthere )\b(?:is|are) none\b(?! of)/i, 'say "is not one", or what it is'],
  [
    /\b(?:each|every|first|last|previous|next|per|one|two|fewer|more|number of|of no) turns?\b/i,
    'a loop has iterations: say "iteration"',
  ],
  [/\bturns? ahead\b/i, 'say "iterations ahead", or prefetching'],
  [/\bwork[ -]items?\b/i, 'say "thread"'],
  [/\bsteady\b/i, 'say "loop-invariant" or "unchanging"'],
  [/\bin that in which\b/i, "turn it into two sentences"],
  [/\bfrom \d+ on\b/i, 'say "0 or more", "1 or more"'],
  [/\bnobody else's\b|\bnone of ours\b/i, "say whose it is"],
];

/** Lines of comments and strings of a program. A comment is as wide as the line it is on. */
function program(text) {
  const lines = text.split("\n");
  return scan(text).map((part) => {
    const whole = lines[part.line - 1] ?? "";
    const unbreakable = !/\S\s+\S/.test(part.text.replace(/^\s*(?:\/\/|\/?\*+)/, "").trim());
    // an example with its result is one line of code, which the reference shows as it is
    const fixed = /https?:\/\/|biome-ignore|\/\/ => /.test(part.text);
    const wide = part.kind === "comment" && !unbreakable && !fixed;
    return { ...part, width: wide ? whole.length : 0 };
  });
}

const RULES = {
  width: ({ width, kind }) =>
    width > WIDTH
      ? [`${kind === "comment" ? "a comment" : "prose"} of ${width} columns, at most ${WIDTH}`]
      : [],
  words: ({ text }) => {
    const plain = text.replaceAll(/`[^`]*`/g, "``");
    return PHRASES.flatMap(([phrase, advice]) => {
      const found = phrase.exec(plain)?.[0];
      return found === undefined ? [] : [`"${found}": ${advice}`];
    });
  },
};

const isUnder = (path, list) => list.some((part) => path === part || path.startsWith(`${part}/`));

function filesOf(root) {
  const top = readdirSync(root).filter((name) => name.endsWith(".md"));
  const deep = FOLDERS.filter((folder) => existsSync(join(root, folder))).flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((path) => `${folder}/${path.split(sep).join("/")}`)
      .filter((path) => /\.(ts|mjs|md)$/.test(path) && !path.includes("node_modules/")),
  );
  return [...top, ...deep].sort();
}

function main(root) {
  const files = filesOf(root);
  const complaints = { width: [], words: [] };
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8").replaceAll("\r\n", "\n");
    const parts = file.endsWith(".md") ? markdown(text) : program(text);
    for (const [rule, check] of Object.entries(RULES)) {
      if (isUnder(file, EXEMPT[rule])) continue;
      const found = parts.flatMap((part) => check(part).map((what) => `${file}:${part.line}: ${what}`));
      complaints[rule].push(...found);
    }
  }
  let failed = 0;
  for (const [rule, list] of Object.entries(complaints)) {
    for (const line of list) console.error(line);
    failed += list.length;
    console.log(`prose: ${files.length} files, ${list.length} complaints about ${rule}`);
  }
  return failed === 0 ? 0 : 1;
}

process.exitCode = main(resolve(process.argv[2] ?? join(import.meta.dirname, "..", "..")));
