// `npm run files`: docs/FILES.md, every file of src/ with the first sentence of its header. A test
// compares it.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const root = resolve(import.meta.dirname, "..");
export const PAGE = join(root, "docs/FILES.md");

/** The first sentence of the comment that a file opens with. */
function jobOf(text) {
  const lines = text.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("//"));
  const header = lines.slice(0, end).map((line) => line.replace(/^\/\/ ?/, ""));
  const prose = header.join(" ").trim();
  return /^.*?[.:](?= |$)/.exec(prose)?.[0].replace(/[.:]$/, "") ?? prose;
}

/** The page: a heading and a list for each folder, the leaves first. */
export function filesPage() {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .map((f) => f.replaceAll("\\", "/"))
    .filter((f) => f.endsWith(".ts"))
    .sort();
  const folders = new Map();
  for (const f of files) {
    const folder = dirname(f) === "." ? "src" : `src/${dirname(f)}`;
    folders.set(folder, [...(folders.get(folder) ?? []), f]);
  }
  const sections = [...folders]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([folder, names]) => {
      const rows = names.map(
        (f) => `- \`${f.split("/").at(-1)}\` ${jobOf(readFileSync(join(root, "src", f), "utf8"))}`,
      );
      return `## ${folder}\n\n${rows.join("\n")}`;
    });
  const head =
    "# Files\n\nEvery file of src/ and its job. Written by `npm run files` from the headers of the files.";
  return `${[head, ...sections].join("\n\n")}\n`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) writeFileSync(PAGE, filesPage());
