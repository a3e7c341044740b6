// The types in the sources, as text (the compiler in use has no API), and what a type admits as an argument:
// letters for kinds of values (src/arguments.ts lists them), and the keys of an options object. In: a type
// and the file in which it is written. Out: an Admitted.

import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** What an argument may be: kinds, as letters; keys, where it is an options object. */
export interface Admitted {
  readonly kinds: string;
  readonly optional: boolean;
  readonly keys?: ReadonlyMap<string, Admitted> | undefined;
}

interface Declared {
  readonly file: string;
  readonly kind: string;
  /** names in < > */
  readonly generics: readonly string[];
  readonly parents: readonly string[];
  readonly text: string;
}
interface Module {
  readonly declared: ReadonlyMap<string, Declared>;
  readonly imported: ReadonlyMap<string, { readonly file: string; readonly name: string }>;
}

const OPEN = "([{<";
const CLOSE = ")]}>";

/** `text` cut at `mark`, outside all brackets and strings. */
export function splitAt(text: string, mark: string): string[] {
  const parts: string[] = [];
  let [depth, start, quoted] = [0, 0, false];
  for (let i = 0; i < text.length; i++) {
    const c = text[i] as string;
    if (c === '"') quoted = !quoted;
    if (quoted) continue;
    if (OPEN.includes(c)) depth++;
    else if (CLOSE.includes(c) && text[i - 1] !== "=") depth--;
    else if (depth === 0 && text.startsWith(mark, i)) {
      parts.push(text.slice(start, i));
      start = i + mark.length;
    }
  }
  return [...parts, text.slice(start)].map((p) => p.trim()).filter((p) => p !== "");
}

/** The part of `text` from `from` up to the bracket that closes the one there. */
function bracketed(text: string, from: number): string {
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    if (OPEN.includes(text[i] as string)) depth++;
    else if (CLOSE.includes(text[i] as string) && text[i - 1] !== "=" && --depth === 0) {
      return text.slice(from + 1, i);
    }
  }
  return text.slice(from + 1);
}

const modules = new Map<string, Module>();
const withoutComments = (text: string): string =>
  text.replaceAll(/\/\*[\s\S]*?\*\//g, " ").replaceAll(/(^|\s)\/\/.*$/gm, "");

function moduleAt(file: string): Module {
  const known = modules.get(file);
  if (known !== undefined) return known;
  const text = withoutComments(readFileSync(file, "utf8"));
  const declared = new Map<string, Declared>();
  const head =
    /^(?:export )?(?:declare )?(?:abstract )?(interface|type|class) (\w+)(<(?:[^<>]|<[^<>]*>)*>)?([^{=;]*)([{=])/gm;
  for (const found of text.matchAll(head)) {
    const [all, kind = "", name = "", generics = "", between = "", mark] = found;
    const end = found.index + all.length;
    const body = mark === "{" ? bracketed(text, end - 1) : (splitAt(text.slice(end), ";")[0] ?? "");
    declared.set(name, {
      file,
      kind,
      generics: splitAt(generics.slice(1, -1), ",").map(
        (g) => /\w+(?=\s|$)/.exec(g.replace("const ", ""))?.[0] ?? "",
      ),
      parents: splitAt(/\bextends\s+([\s\S]*)/.exec(between)?.[1] ?? "", ","),
      text: body,
    });
  }
  const imported = new Map<string, { file: string; name: string }>();
  for (const [, list = "", from = ""] of text.matchAll(
    /^(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s*from\s*"(\.[^"]*)"/gm,
  )) {
    for (const item of list.split(",").map((n) => n.trim().replace(/^type /, ""))) {
      const [name = "", own = name] = item.split(/\s+as\s+/);
      if (name !== "") imported.set(own, { file: resolve(dirname(file), from), name });
    }
  }
  const made = { declared, imported };
  modules.set(file, made);
  return made;
}

function lookUp(name: string, file: string): Declared | undefined {
  const { declared, imported } = moduleAt(file);
  const from = imported.get(name);
  return declared.get(name) ?? (from === undefined ? undefined : lookUp(from.name, from.file));
}

const NONE: Admitted = { kinds: "", optional: false };
/** Types that are known by name. A Sint is a number or a symbolic expression. */
const KNOWN: Readonly<Record<string, string>> = {
  number: "n",
  string: "s",
  boolean: "b",
  true: "b",
  false: "b",
  bigint: "g",
  null: "0",
  unknown: "z",
  never: "z",
  object: "kcf",
  Element: "e",
  Sint: "nc",
  DTypeLike: "d",
  Shape: "a",
  Tensor: "t",
  TensorHandle: "t",
  LazyBuffer: "c",
  TypedArray: "v",
  ArrayBufferView: "v",
  ArrayBuffer: "c",
  URL: "c",
  Blob: "c",
  Response: "c",
  TensorData: "esvmc",
  TensorSource: "ck",
  Tree: "z",
  // parameters, groups of them, or a model that has them
  Params: "kmt",
  AnyModel: "kmt",
  // the areas speak of tensors as T
  T: "t",
  this: "t",
};

/** An element is a number, a bigint or a boolean; of z there is nothing left to say. */
const simplest = (kinds: string): string =>
  kinds.includes("z") ? "z" : kinds.includes("e") ? kinds.replaceAll(/[bgn]/g, "") : kinds;

const union = (list: readonly Admitted[]): Admitted => {
  const keys = list.flatMap((a) => (a.keys === undefined ? [] : [...a.keys]));
  return {
    kinds: simplest([...new Set(list.flatMap((a) => [...a.kinds]))].sort().join("")),
    optional: list.some((a) => a.optional),
    ...(list.some((a) => a.keys !== undefined) && { keys: new Map(keys) }),
  };
};

/** The kinds of an array, given those of its elements. */
const arrayOf = (element: Admitted): Admitted => ({
  ...NONE,
  kinds: /^[cn]+$/.test(element.kinds) ? "a" : element.kinds === "t" ? "l" : "m",
});

/** The properties of an object type: `a?: number; b: string`. */
function properties(text: string, file: string): Map<string, Admitted> {
  const found = new Map<string, Admitted>();
  for (const property of splitAt(text.replaceAll("\n", " "), ";")) {
    const [, name, mark, type] = /^(?:readonly )?(\w+)(\??):\s*([\s\S]*)$/.exec(property) ?? [];
    if (name === undefined || type === undefined) continue;
    const admitted = admittedBy(type, file);
    found.set(name, { ...admitted, optional: admitted.optional || mark === "?" });
  }
  return found;
}

function namedType(name: string, file: string): Admitted {
  const found = lookUp(name, file);
  if (found === undefined) return { ...NONE, kinds: /^[A-Z]$/.test(name) ? "z" : "c" };
  if (found.kind === "type") return admittedBy(found.text, found.file);
  if (found.kind === "class") return { ...NONE, kinds: "c" };
  // with methods it is not options
  if (/\w\(/.test(found.text)) return { ...NONE, kinds: "k" };
  const keys = new Map([
    ...found.parents.flatMap((p) => [...(admittedBy(p, found.file).keys ?? [])]),
    ...properties(found.text, found.file),
  ]);
  return { ...NONE, kinds: "o", keys };
}

const allOptional = (a: Admitted): Admitted => ({
  ...a,
  keys: new Map([...(a.keys ?? [])].map(([k, v]) => [k, { ...v, optional: true }])),
});

/** One member of a union. */
function single(type: string, file: string): Admitted {
  if (type === "undefined" || type === "void") return { ...NONE, optional: true };
  if (/^".*"$/.test(type)) return { ...NONE, kinds: "s" };
  if (/^-?\d/.test(type)) return { ...NONE, kinds: "n" };
  const parts = splitAt(type, "&");
  if (parts.length > 1) return { ...union(parts.map((p) => admittedBy(p, file))), kinds: "o" };
  if (/^(?:<.*?>)?\([\s\S]*\)\s*=>/.test(type)) return { ...NONE, kinds: "f" };
  const bare = type.replace(/^readonly\s+/, "");
  if (bare.endsWith("[]")) return arrayOf(admittedBy(bare.slice(0, -2), file));
  if (bare.startsWith("[")) {
    const items = splitAt(bare.slice(1, -1), ",").map((i) =>
      i.replace(/^\w+\??:\s*/, "").replace(/^\.\.\./, ""),
    );
    return arrayOf(union(items.map((i) => admittedBy(i, file))));
  }
  if (bare.startsWith("(")) return admittedBy(bare.slice(1, -1), file);
  if (bare.startsWith("{")) return { ...NONE, kinds: "o", keys: properties(bare.slice(1, -1), file) };
  const [, name = bare, given = ""] = /^(\w+)<([\s\S]*)>$/.exec(bare) ?? [];
  if (name === "Partial") return allOptional(admittedBy(given, file));
  if (name === "Record" || name === "Readonly") return { ...NONE, kinds: "r" };
  if (name === "NoInfer") return admittedBy(given, file);
  const known = /^(?:Big)?(?:Int|Uint|Float)\d+(?:Clamped)?Array$/.test(name) ? "v" : KNOWN[name];
  if (known !== undefined) return { ...NONE, kinds: known };
  // a computed type: there is nothing to read from its text
  return given !== "" && lookUp(name, file) === undefined ? { ...NONE, kinds: "z" } : namedType(name, file);
}

/** What the type `type`, written in `file`, admits. */
export function admittedBy(type: string, file: string): Admitted {
  return union(splitAt(type.replace(/^\s*\|/, ""), "|").map((t) => single(t, file)));
}

/** The kind of a default value: `= 0`, `= "mean"`, `= {}`. */
export function admittedAsDefault(value: string): Admitted {
  const kinds = /^-?[\d.]|^Infinity|[-+*/] ?\d/.test(value)
    ? "n"
    : /^"/.test(value)
      ? "s"
      : /^(true|false)$/.test(value)
        ? "b"
        : "z";
  return { kinds, optional: true };
}

export const source = (path: string): string => join(import.meta.dirname, "../../src", path);
