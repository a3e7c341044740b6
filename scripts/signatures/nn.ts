// The public names of nn behind the check of their arguments: for each class and function that names.ts
// exports, a call that guards it with its signature. In: the sources of nn and func. Out: the texts of
// src/nn/index.ts (the names of nn), of src/nn/guarded/ (those of its namespaces: nn.optim and others) and of
// src/func/guarded/ (fft and func).

import { readFileSync } from "node:fs";
import { type Entry, parse } from "../reference.ts";
import { signatureOf } from "./signatures.ts";
import { source } from "./types.ts";

interface Named {
  readonly name: string;
  /** the file that declares it, below src/nn */
  readonly file: string;
}
const read = (file: string): string => readFileSync(source(`nn/${file}.ts`), "utf8");

const parsed = new Map<string, Entry[]>();
/** The entries of a text; a file is asked for again with each of its names. */
function entriesOf(text: string): Entry[] {
  const entries = parsed.get(text) ?? parse(text);
  parsed.set(text, entries);
  return entries;
}

/** The values that a file of nn exports, and the files of its namespaces. */
function exportsOf(file: string): { names: Named[]; spaces: Map<string, string> } {
  const text = read(file);
  const names: Named[] = entriesOf(text)
    .filter((e) => e.owner === undefined && /^(?:class|function\*?)$/.test(e.kind))
    .filter((e) => e.signatures[0]?.startsWith("export "))
    .map(({ name }) => ({ name, file }));
  const spaces = new Map<string, string>();
  for (const [, list, star, from = ""] of text.matchAll(
    /^export (?:\{([^}]*)\}|\*( as \w+)?) from "\.\/([^"]+)\.ts";/gm,
  )) {
    if (star !== undefined) {
      spaces.set(star.replace(" as ", ""), from);
      continue;
    }
    const wanted = list?.split(",").map((n) => n.trim());
    names.push(...exportsOf(from).names.filter(({ name }) => wanted?.includes(name) ?? true));
  }
  return { names, spaces };
}

/** A class and those that it extends, from itself on, with the entries of their files. */
function lineage(name: string, file: string): { name: string; file: string; entries: Entry[] }[] {
  const text = read(file);
  const [, parent] = new RegExp(`\\bclass ${name}\\b(?:<[^{]*?>)? extends (\\w+)`).exec(text) ?? [];
  // the parser looks for exported classes, and for bodies of several lines
  const regular = text.replaceAll(/^(?=(?:abstract )?class )/gm, "export ").replaceAll(/\{\}$/gm, "{\n  }");
  const own = { name, file, entries: entriesOf(regular) };
  if (parent === undefined) return [own];
  const from = new RegExp(`import \\{[^}]*\\b${parent}\\b[^}]*\\} from "\\./([^"]+)\\.ts"`).exec(text)?.[1];
  return [own, ...lineage(parent, from ?? file)];
}
const path = (file: string): string => source(`nn/${file}.ts`);

/** The line that guards a name; undefined where it cannot be called as it is. */
function guardOf({ name, file }: Named, prefix = ""): string | undefined {
  const entry = entriesOf(read(file)).find((e) => e.owner === undefined && e.name === name);
  if (entry === undefined) return undefined;
  const quote = (text: string): string => JSON.stringify(text);
  if (entry.kind !== "class") {
    const signature = signatureOf(entry, path(file), true);
    return `export const ${name} = /* @__PURE__ */ guard(\n  ${quote(prefix + name)},\n  raw.${name},\n  () => ${quote(signature)},\n);`;
  }
  // abstract and generic classes are there to be extended
  if (/\babstract class\b|\bclass \w+</.test(entry.signatures[0] ?? "")) return undefined;
  const classes = lineage(name, file);
  const members = (wanted: (e: Entry) => boolean) =>
    classes.flatMap((c) =>
      c.entries
        .filter((e) => e.owner === c.name && e.kind === "method" && !e.isStatic && e.access === "public")
        .filter(wanted)
        .map((e) => ({ e, file: path(c.file) })),
    );
  const [make] = members((e) => e.name === "constructor");
  const signature = make === undefined ? "" : signatureOf({ ...make.e, name }, make.file, true);
  const methods = new Map<string, string>();
  for (const { e, file } of members((e) => e.name !== "constructor")) {
    if (!methods.has(e.name)) methods.set(e.name, signatureOf(e, file, true));
  }
  const list = [...methods].map(([method, text]) => `${method} ${text}`.trim()).join(";");
  const call = `guardClass(\n  ${[quote(name), `raw.${name}`, quote(signature), quote(list)].join(",\n  ")},\n)`;
  return `export const ${name} = /* @__PURE__ */ ${call};\nexport type ${name} = raw.${name};`;
}

/** A file with the guarded names of `from`, and everything else that it exports. */
function guardedFile(from: string, about: string, names: readonly Named[], more: readonly string[]): string {
  const up = from.startsWith("../") ? "../../" : "../";
  // `zeros_` alone could be anything
  const prefix = from.includes("init") ? "init." : "";
  const lines = names.flatMap((n) => guardOf(n, prefix) ?? []);
  const used = ["guard", "guardClass"].filter((f) => lines.some((l) => l.includes(`${f}(`)));
  return [
    `// Written by \`npm run signatures\` from the types of the sources: ${about}`,
    "",
    `import { ${used.join(", ")} } from "${up}arguments.ts";`,
    `import * as raw from "${from}";`,
    "",
    `export * from "${from}";`,
    ...more,
    "",
    ...lines,
    "",
  ].join("\n");
}

/** The generated files of nn: path below src/ -> text. */
export function nnFiles(): Map<string, string> {
  const { names, spaces } = exportsOf("names");
  const files = new Map<string, string>();
  const more: string[] = [];
  const elsewhere = new Set<string>();
  for (const [space, file] of spaces) {
    const own = exportsOf(file).names;
    if (own.every((n) => guardOf(n) === undefined)) continue;
    files.set(`nn/guarded/${space}.ts`, guardedFile(`../${file}.ts`, `nn.${space}, guarded.`, own, []));
    more.push(`export * as ${space} from "./guarded/${space}.ts";`);
    const both = own.filter((n) => names.some(({ name, file }) => name === n.name && file === n.file));
    const guarded = both.filter((n) => guardOf(n) !== undefined).map(({ name }) => name);
    for (const name of guarded) elsewhere.add(name);
    if (guarded.length > 0)
      more.push(`export { ${guarded.sort().join(", ")} } from "./guarded/${space}.ts";`);
  }
  for (const [space, file] of [
    ["fft", "fft"],
    ["func", "transforms"],
  ] as const) {
    const { names } = exportsOf(`../func/${file}`);
    files.set(`func/guarded/${file}.ts`, guardedFile(`../${file}.ts`, `${space}, guarded.`, names, []));
  }
  const rest = names.filter(({ name }) => !elsewhere.has(name));
  return files.set(
    "nn/index.ts",
    guardedFile("./names.ts", "the names of nn (names.ts), guarded.", rest, more),
  );
}
