// Writes the signatures that arguments are checked against (src/arguments.ts), from the TypeScript sources:
// those of Tensor's methods to src/tensor/signatures.ts, those of nn to src/nn/index.ts and src/nn/guarded/.
// `npm run signatures` writes, `--check` fails where a file is not what would be written.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type Entry, parse } from "./reference.ts";
import { nnFiles } from "./signatures/nn.ts";
import { signatureOf } from "./signatures/signatures.ts";
import { source } from "./signatures/types.ts";

/** The methods of Tensor in the order of the class: those of instances, or the static ones. */
function tensorMethods(isStatic: boolean): Entry[] {
  const entries = parse(readFileSync(source("tensor/tensor.ts"), "utf8"));
  return entries.filter(
    (e) => e.owner === "Tensor" && e.kind === "method" && e.isStatic === isStatic && e.name !== "constructor",
  );
}

/**
 * The area that a method is in, and whether it keeps its results apart from its operands; undefined for those
 * of the core. The body of a method is one call.
 */
function areaOf(e: Entry, text: string): { area: string; isApart: boolean } | undefined {
  const at = text.indexOf(`\n  ${e.signatures.at(-1)?.split("(")[0]}(`);
  if (at < 0) throw new Error(`tensor.ts: the body of ${e.name} was not found`);
  const body = text.slice(at, text.indexOf("\n  }\n", at));
  const area = /\barea\("(\w+)"\)/.exec(body)?.[1];
  return area === undefined
    ? undefined
    : { area, isApart: /part\(area\(.*, (?:this|\.\.\.tensors)\);$/.test(body) };
}
/** The character of the first signature: `(`. */
const FIRST = 40;
const quoted = (xs: readonly string[], mark: string): string => JSON.stringify(xs.join(mark));

/**
 * The file of Tensor's signatures. The methods of the core have theirs by the order of the class, those of an
 * area by name; the signatures of an area come with it.
 */
function tensorTable(): string {
  const file = source("tensor/tensor.ts");
  const all = readFileSync(file, "utf8");
  const counts = new Map<string, number>();
  const areas = new Map<string, { names: string[]; signatures: string[] }>();
  const core = [false, true].map((isStatic) =>
    tensorMethods(isStatic).flatMap((e) => {
      const signature = signatureOf(e, file, false);
      const found = areaOf(e, all);
      if (found === undefined) {
        counts.set(signature, (counts.get(signature) ?? 0) + 1);
        return [signature];
      }
      const { area, isApart } = found;
      const { names, signatures } = areas.get(area) ?? { names: [], signatures: [] };
      const name = (isStatic ? "." : "") + e.name + (isApart ? "'" : "");
      areas.set(area, { names: [...names, name], signatures: [...signatures, signature] });
      return [];
    }),
  );
  // the frequent ones have the short numbers
  const distinct = [...counts.keys()].toSorted((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  const numbers = core.map((list) => list.map((s) => String.fromCharCode(FIRST + distinct.indexOf(s))));
  const lists = [...areas].map(([area, { names }]) => `${area} ${names.join(" ")}`);
  const lines = [
    `export const CORE = ${quoted(distinct, ";")};`,
    `export const METHODS = ${quoted(numbers[0] ?? [], "")};`,
    `export const STATICS = ${quoted(numbers[1] ?? [], "")};`,
    `export const AREAS = ${quoted(lists, ";")};`,
    ...[...areas].map(([area, { signatures }]) => `export const ${area} = ${quoted(signatures, ";")};`),
  ];
  return [
    "// Written by `npm run signatures` from the types in tensor.ts; src/arguments.ts says what the texts mean.",
    "// CORE has the distinct signatures of the core. METHODS and STATICS have a character for each method of the",
    "// core, in the order of the class: `(` is the first signature, `)` the second. AREAS has the names of the",
    "// other methods by area (a dot: static; a quote: its results are kept apart from its operands). The texts",
    "// after it are the signatures of the areas, in the same order.",
    "",
    ...lines,
    "",
  ].join("\n");
}

/** All files: path below src/ -> text. */
export function signatureFiles(): Map<string, string> {
  return new Map([["tensor/signatures.ts", tensorTable()], ...nnFiles()]);
}

if (process.argv[1]?.endsWith("signatures.ts")) {
  const stale = [...signatureFiles()].filter(
    ([path, text]) => !existsSync(source(path)) || readFileSync(source(path), "utf8") !== text,
  );
  if (process.argv.includes("--check")) {
    for (const [path] of stale) console.error(`src/${path} is not what \`npm run signatures\` writes`);
    process.exit(stale.length === 0 ? 0 : 1);
  }
  for (const [path, text] of stale) {
    mkdirSync(dirname(source(path)), { recursive: true });
    writeFileSync(source(path), text);
  }
}
