// Checks that comments and Markdown name files that exist: `shape/view.ts` must be the end of the path of
// some file of the repository. In: a folder (this repository by default). Out: `file:line: complaint` for
// each name without a file, exit code 1 if there are any. Strings are not checked: a user's file may be
// meant.

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { markdown } from "./markdown.mjs";
import { scan } from "./scan.mjs";

const FOLDERS = ["src", "test", "docs", "bench", "scripts", "examples"];
/** What tells of the past, or quotes what it must not say. */
const EXEMPT = ["CHANGELOG.md", "test/scripts/names.test.ts"];
/** Names of files of somebody else: a program of the reader, or what a build makes. */
const FOREIGN = /(?:^|\/)(?:dist|node_modules)\/|\.d\.ts$|^(?:x\/|my|your)\w*\./;
/**
 * A file of this repository, with or without folders; .mjs only with its folder, since users' programs in the
 * docs have it. What follows a star or a brace is a pattern.
 */
const NAME =
  /(?<![\w*{}$@:/.-])(?:(?:[\w-]+\/)*[\w-]+(?:\.test)?\.(?:ts|md)|(?:[\w-]+\/)+[\w-]+\.mjs)\b(?![\w/])/g;

/** The paths of all files below the folders, and those at the top. */
function pathsOf(root) {
  const top = readdirSync(root, { withFileTypes: true }).flatMap((e) => (e.isFile() ? [e.name] : []));
  const folders = readdirSync(root).filter((name) => FOLDERS.includes(name));
  const deep = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((path) => `${folder}/${path.split(sep).join("/")}`)
      .filter((path) => !path.includes("node_modules/")),
  );
  return [...top, ...deep].sort();
}

/** Every end of every path, at a slash. */
function endsOf(paths) {
  const ends = new Set();
  for (const path of paths) {
    const parts = path.split("/");
    for (let i = 0; i < parts.length; i++) ends.add(parts.slice(i).join("/"));
  }
  return ends;
}

function main(root) {
  const paths = pathsOf(root);
  const ends = endsOf(paths);
  const complaints = paths
    .filter((path) => /\.(?:ts|mjs|md)$/.test(path) && !EXEMPT.includes(path))
    .flatMap((path) => {
      const text = readFileSync(join(root, path), "utf8").replaceAll("\r\n", "\n");
      const parts = path.endsWith(".md")
        ? markdown(text)
        : scan(text).filter(({ kind }) => kind === "comment");
      return parts.flatMap(({ line, text: prose }) =>
        (prose.match(NAME) ?? [])
          .filter((name) => !ends.has(name) && !FOREIGN.test(name))
          .map((name) => `${path}:${line}: there is no file ${name}: name the one that is meant`),
      );
    });
  for (const line of complaints) console.error(line);
  console.log(`names: ${paths.length} files, ${complaints.length} names of files that are not there`);
  return complaints.length === 0 ? 0 : 1;
}

process.exitCode = main(resolve(process.argv[2] ?? join(import.meta.dirname, "..", "..")));
