// The list of ops in docs/guide/onnx.md, made of the table of src/onnx. `npm run reference` writes it, and
// test/onnx/ops.test.ts compares it.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OPS_OF_ONNX } from "../src/onnx/ops/index.ts";

const PAGE = join(import.meta.dirname, "../docs/guide/onnx.md");
const [START, END] = ["<!-- ops -->\n", "<!-- end of ops -->\n"];
const TITLES: Readonly<Record<string, string>> = { "": "the standard" };

/** The names of the ops of each domain, as text of the page's width. */
function list(): string {
  const domains = new Map<string, string[]>();
  for (const op of Object.keys(OPS_OF_ONNX).sort()) {
    const at = op.lastIndexOf(".");
    const domain = op.slice(0, Math.max(at, 0));
    domains.set(domain, [...(domains.get(domain) ?? []), op.slice(at + 1)]);
  }
  return [...domains]
    .map(([domain, names]) =>
      wrapped(`- **${TITLES[domain] ?? domain}** (${names.length}): ${names.join(", ")}`),
    )
    .join("\n");
}
function wrapped(text: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length + 1 > 108) {
      lines.push(line);
      line = ` ${word}`;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].map((l, i) => (i === 0 ? l : ` ${l}`)).join("\n");
}

/** The page with the list as it should be. */
export function onnxPage(): { readonly path: string; readonly now: string; readonly text: string } {
  const now = readFileSync(PAGE, "utf8");
  const [before, rest = ""] = now.split(START) as [string, string?];
  const after = rest.includes(END) ? rest.slice(rest.indexOf(END) + END.length) : rest;
  return { path: PAGE, now, text: `${before}${START}\n${list()}\n\n${END}${after}` };
}

if (process.argv.includes("--write")) {
  const { path, text } = onnxPage();
  writeFileSync(path, text);
}
