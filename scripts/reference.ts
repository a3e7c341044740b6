// Writes docs/reference/: one page for each family of the public API, made of the JSDoc in the sources, and
// an index of all names. `npm run reference` writes, `--check` fails where a page is not what would be
// written. It reads the text itself (the compiler in use has no API for it); the
// formatter keeps that text regular.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OPT_OPS } from "../src/codegen/opt/registry.ts";
import { ABOUT, optOpsPage, TITLE } from "./optops.ts";

const ROOT = join(import.meta.dirname, "..");
const OUT = "docs/reference";

export interface Doc {
  readonly text: string;
  readonly example: readonly string[];
}
export interface Entry {
  readonly owner?: string | undefined;
  readonly kind: string;
  readonly name: string;
  readonly access: string;
  readonly isStatic: boolean;
  signatures: string[];
  readonly doc?: Doc;
  overloaded?: boolean;
  /** an interface or type as it is written */
  code?: string;
  /** the heading of the class that it is below */
  readonly section?: string | undefined;
}
type Family = readonly [page: string, title: string, about: string, files: readonly string[]];

/**
 * Page, title, what it is about, and the files it is made of in order. A page of Tensor is an area of
 * src/tensor: the methods between two headings of the class (`tensor/tensor#math`), and the types that the
 * files of the area declare.
 */
export const FAMILIES: readonly Family[] = [
  [
    "tensor",
    "Tensors, values and gradients",
    "What a tensor is, how a value is asked for, how gradients flow.",
    ["tensor/core", "tensor/tensor#tensor", "tensor/gradients", "tensor/scan"],
  ],
  [
    "creation",
    "Creation",
    "Tensors out of nothing. All take `{ dtype, device, requiresGrad }` at the end.",
    ["tensor/tensor#creation", "tensor/creation/creation", "tensor/creation/hostdata"],
  ],
  [
    "random",
    "Random numbers",
    "Draws that are the same on every device, and what depends on training.",
    ["tensor/tensor#random", "tensor/random/random", "tensor/random/distributions"],
  ],
  [
    "movement",
    "Movement",
    "Shapes, joins and parts. Views cost no kernel.",
    [
      "tensor/tensor#movement",
      "tensor/movement/views",
      "tensor/movement/arrange",
      "tensor/movement/join",
      "tensor/movement/rearrange",
      "tensor/movement/shard",
    ],
  ],
  [
    "indexing",
    "Indexing",
    "Reading and writing by index.",
    [
      "tensor/tensor#indexing",
      "tensor/indexing/getitem",
      "tensor/indexing/scatter",
      "tensor/indexing/select",
      "tensor/indexing/search",
    ],
  ],
  [
    "math",
    "Elementwise math",
    "Arithmetic, comparison, bits and functions, with broadcasting and promotion as in torch.",
    [
      "tensor/tensor#math",
      "tensor/math/arithmetic",
      "tensor/math/rounding",
      "tensor/math/elementary",
      "tensor/math/further",
      "tensor/math/special",
      "tensor/math/numbers",
    ],
  ],
  [
    "reduce",
    "Reductions and order",
    "Sums, extremes, running reductions, sorting.",
    [
      "tensor/tensor#reduce",
      "tensor/reduce/reduce",
      "tensor/reduce/totals",
      "tensor/reduce/scan",
      "tensor/reduce/statistics",
      "tensor/reduce/order",
    ],
  ],
  [
    "linalg",
    "Linear algebra",
    "Products, solving and factorizations.",
    [
      "tensor/tensor#linalg",
      "tensor/linalg/products",
      "tensor/linalg/contractions",
      "tensor/linalg/solve",
      "tensor/linalg/factor",
      "tensor/linalg/linalg",
    ],
  ],
  [
    "conv",
    "Convolution, pooling and images",
    "Windows over the last dims.",
    [
      "tensor/tensor#conv",
      "tensor/conv/conv",
      "tensor/conv/pool",
      "tensor/conv/resample",
      "tensor/conv/image",
    ],
  ],
  [
    "image",
    "Pictures",
    "PNG and JPEG files, and what a page can draw. A page imports gradloom/image.",
    ["tensor/tensor#image", "tensor/image/image", "tensor/image/canvas", "tensor/image/pixels"],
  ],
  [
    "losses",
    "Losses and distances",
    "How far a prediction is from its target.",
    [
      "tensor/tensor#losses",
      "tensor/losses/distance",
      "tensor/losses/loss",
      "tensor/losses/embedding",
      "tensor/losses/margin",
      "tensor/losses/likelihood",
    ],
  ],
  [
    "neural",
    "Activations, normalisation and attention",
    "What networks are made of.",
    [
      "tensor/tensor#neural",
      "tensor/neural/activations",
      "tensor/neural/softmax",
      "tensor/neural/layers",
      "tensor/neural/further",
    ],
  ],
  [
    "func",
    "func: functions of functions",
    "Gradients, Jacobians, Hessians and vmap, as in torch.func.",
    ["func/transforms"],
  ],
  [
    "fft",
    "fft: Fourier transforms",
    "As torch.fft. A complex Tensor has a last dim of 2: the real and the imaginary part.",
    ["func/fft"],
  ],
  [
    "engine",
    "Jit, devices, variables, profiles",
    "Captured functions, the devices of the process, symbolic sizes, and what ran when.",
    [
      "engine/jit/jit:TinyJit",
      "runtime/registry:DeviceRegistry,DeviceMemory",
      "shape/symbolic:Variable",
      "runtime/profiling:profiler",
      "runtime/profile:Span",
      "runtime/counters:Counters",
    ],
  ],
  [
    "onnx",
    "gradloom/onnx",
    'Models in the ONNX format: `import { onnx } from "gradloom/onnx"`. The guide has [a page](../guide/onnx.md).',
    [
      "onnx/load:load,OnnxLoadOptions",
      "onnx/session:OnnxModel,OnnxPort,OnnxInput,OnnxOutput,OnnxTexts",
      "onnx/save/save:save,OnnxSaveOptions",
      "onnx/save/trace:OnnxExample,OnnxResult",
      "onnx/write:write,OnnxGraph,OnnxNode,OnnxAttribute,OnnxValueType,OnnxWriteOptions",
      "onnx/errors:OnnxError",
    ],
  ],
  ["names", "Other names", "torch's other names for methods of the pages above.", ["tensor/tensor#names"]],
  [
    "layers",
    "nn: layers",
    "Classes with parameters; all of them are in `nn`.",
    ["nn/layers", "nn/module", "nn/norms", "nn/recurrent", "nn/rnn", "nn/attention"],
  ],
  [
    "modules",
    "nn: activations, pooling, losses",
    "What Tensor has as methods, as classes with torch's names: for `nn.Sequential` and fields of a model.",
    ["nn/activations", "nn/dropouts", "nn/pooling", "nn/padding", "nn/bags", "nn/losses", "nn/marginlosses"],
  ],
  [
    "init",
    "nn.init: initial values",
    "Functions that write new values into a parameter, as in torch.nn.init.",
    ["nn/init"],
  ],
  [
    "optim",
    "nn.optim: optimisers and schedules",
    "How parameters change.",
    ["nn/optim", "nn/adaptive", "nn/trust", "nn/gradscaler", "nn/schedules"],
  ],
  [
    "state",
    "nn: state and files",
    "Parameters by name, checkpoints, safetensors, NumPy files and quantised weights.",
    ["nn/state", "nn/checkpoint", "nn/safetensors", "nn/npy", "nn/weights", "nn/quantize"],
  ],
  [
    "metrics",
    "nn.metrics: how good predictions are",
    "Of a batch, as Tensors, and over many batches, as numbers.",
    ["nn/metrics"],
  ],
  [
    "transforms",
    "nn.transforms: images",
    "Sizes, parts, flips and normalisation of images; random ones by seed.",
    ["nn/transforms"],
  ],
  [
    "plot",
    "nn.plot: plots",
    "Curves, histograms and images as SVG texts; curves and histograms as text for a terminal.",
    ["nn/plot"],
  ],
  [
    "inspect",
    "nn: looking at models",
    "The layers of a model, and where the time of a function goes.",
    ["nn/summary", "nn/profile"],
  ],
  [
    "data",
    "nn: data",
    "Batches of data of any structure, datasets to learn from, and a bar that shows how far a loop is.",
    ["nn/dataloader", "nn/datasets", "nn/progress"],
  ],
];

const count = (text: string, pattern: RegExp): number => (text.match(pattern) ?? []).length;
const isWhole = (text: string): boolean =>
  count(text, /[([{]/g) - count(text, /[)\]}]/g) === (/\{\s*$/.test(text) ? 1 : 0) && /[{;]\s*$/.test(text);

/** The declaration that starts at line `i`, up to its body, and the line after it. */
function declarationAt(lines: readonly string[], i: number): { text: string; next: number } {
  let text = "";
  let at = i;
  while (at < lines.length) {
    text += `${lines[at++]?.trim()} `;
    if (isWhole(text)) break;
  }
  return { text: text.trim().replace(/\s*[{;]$/, ""), next: at };
}
/** The text of a comment, its example apart. */
function docOf(lines: readonly string[]): Doc {
  const plain = lines.map((l) => l.replace(/^\s*\/?\*+\/? ?/, "").replace(/\s*\*\/\s*$/, ""));
  const at = plain.findIndex((l) => l.startsWith("@example"));
  const text = (at < 0 ? plain : plain.slice(0, at)).join("\n").trim();
  const example = at < 0 ? [] : plain.slice(at + 1).filter((l) => l.trim() !== "");
  return { text, example };
}
const MEMBER =
  /^(?:(protected|private)\s+)?(?:(static)\s+)?(?:override\s+)?(?:(?:async|readonly)\s+)*(?:(get|set)\s+)?([A-Za-z]\w*)/;
const TOP = /^export\s+(?:abstract\s+)?(?:async\s+)?(class|function\*?|const|interface|type)\s+(\w+)/;

/** What a line declares, at the top of the file or in the class `owner`. */
function declared(line: string, text: string, owner: string | undefined): Entry | undefined {
  const top = TOP.exec(line);
  if (top) {
    return {
      kind: top[1] as string,
      name: top[2] as string,
      access: "public",
      isStatic: false,
      signatures: [text],
    };
  }
  const member =
    owner !== undefined && /^ {2}[A-Za-z]/.test(line) && !/^[\w *]*#/.test(line)
      ? MEMBER.exec(line.trim())
      : null;
  if (member === null) return undefined;
  const [, access = "public", word, accessor, name] = member;
  const kind = accessor ?? (/\w\s*(<.*?>)?\(/.test(text) ? "method" : "field");
  return { owner, kind, name: name as string, access, isStatic: word !== undefined, signatures: [text] };
}
const isType = (e: Entry): boolean => e.kind === "interface" || e.kind === "type";

/** Every declaration of a file that may be public, with the comment before it. */
export function parse(source: string): Entry[] {
  const lines = source.split("\n");
  const found: Entry[] = [];
  let doc: Doc | undefined;
  let owner: string | undefined;
  let section: string | undefined;
  for (let i = 0; i < lines.length; ) {
    const line = lines[i] as string;
    if (/^( {2})?\/\*\*/.test(line)) {
      let end = i;
      while (!lines[end]?.includes("*/")) end++;
      doc = docOf(lines.slice(i, end + 1));
      i = end + 1;
      continue;
    }
    if (line === "}") owner = undefined;
    section = /^ {2}\/\/ ==== (\w+)/.exec(line)?.[1] ?? section;
    const { text, next } = declarationAt(lines, i);
    const entry = declared(line, text, owner);
    if (entry === undefined) {
      if (line.trim() !== "") doc = undefined;
      i++;
      continue;
    }
    let end = next;
    if (isType(entry)) {
      if (/\{\s*$/.test(lines[next - 1] ?? "")) while (lines[end++] !== "}");
      entry.code = lines.slice(i, end).join("\n");
    }
    const last = found.at(-1);
    const again = last?.owner === owner && last?.name === entry.name && last.isStatic === entry.isStatic;
    const callable = entry.kind === "method" || entry.kind === "function";
    if (last !== undefined && again && doc === undefined && callable) {
      last.signatures.push(text);
      last.overloaded = true;
    } else found.push(doc === undefined ? { ...entry, section } : { ...entry, section, doc });
    if (entry.kind === "class") owner = entry.name;
    doc = undefined;
    i = end;
  }
  return found;
}

/** A signature as a reader wants it: no `this` for a maker, one type for all tensors. */
function show(signature: string, entry: Entry): string {
  let s = signature
    .replace(/\s+/g, " ")
    .replace(/\(\s+/g, "(")
    .replace(/,?\s+\)/g, ")")
    .replace(/\{\s+/g, "{ ");
  s = s.replace(/^(?:export|override|static|async|abstract|protected|readonly|get)\s+/g, "");
  while (/^(?:export|override|static|async|abstract|readonly|get|function\*?|const) /.test(s))
    s = s.replace(/^[\w*]+ /, "");
  const generic = /^\w+<(T) extends \w*Tensor>/.exec(s);
  if (generic) s = s.replace(/<T extends \w*Tensor>/, "").replace(/\bT\b/g, "Tensor");
  s = s.replace(/\(this: Maker<\w+>(?:, )?/, "(");
  const self = /^(?:Tensor(?:Handle)?)?$/.test(entry.owner ?? "") ? "Tensor" : (entry.owner as string);
  s = s.replace(/(?<![.\w])this\b(?!:)/g, self).replace(new RegExp(`\\b${self} is\\b`, "g"), "this is");
  if (entry.kind === "get") s = s.replace("()", "");
  return entry.isStatic ? `Tensor.${s}` : s;
}
const title = (e: Entry): string =>
  e.isStatic
    ? `Tensor.${e.name}`
    : e.owner === undefined || e.owner === "Tensor" || e.owner === "TensorHandle"
      ? e.name
      : `${e.owner}.${e.name}`;

/** The names that `nn` takes from one of its files: all, or those it lists. */
function exported(path: string): (name: string) => boolean {
  const index = ["names", "optimizers"]
    .map((f) => readFileSync(join(ROOT, `src/nn/${f}.ts`), "utf8"))
    .join("\n");
  const list = new RegExp(`export \\{([^}]*)\\} from "\\./${path.split("/")[1]}\\.ts"`).exec(index)?.[1];
  const names = list?.split(",").map((n) => n.trim().replace(/^type /, ""));
  return (name) => names === undefined || names.includes(name);
}
/** What src/tensor exports by itself; the rest are methods of the class. */
const EXPORTED = ["Tensor", "scan"];

/** Classes whose one object is exported under another name. */
const OBJECTS: Readonly<Record<string, string>> = { DeviceRegistry: "Device", Counters: "GlobalCounters" };

/** The named declarations of a file, and what of their members has a text. */
function listedEntries(file: string, names: readonly string[]): Entry[] {
  const all = parse(readFileSync(join(ROOT, "src", `${file}.ts`), "utf8"));
  return all
    .filter((e) => names.includes(e.owner ?? e.name) && e.access === "public" && e.kind !== "set")
    .filter((e) => e.doc !== undefined && !(e.kind === "class" && OBJECTS[e.name] !== undefined))
    .map((e) => (e.owner === undefined ? e : { ...e, owner: OBJECTS[e.owner] ?? e.owner }))
    .map((e) => (e.kind === "const" ? { ...e, signatures: [CALLS[e.name] ?? withoutValue(e)] } : e));
}
/** How what is made by an expression is called. */
const CALLS: Readonly<Record<string, string>> = {
  TinyJit: "new TinyJit(fn: (...args: A) => R): TinyJit<A, R>",
};
const withoutValue = (e: Entry): string => (e.signatures[0] ?? "").replace(/ = .*/s, "");

/**
 * What of a file is for users: in src/tensor the methods and the types that they
 * speak of, in src/nn what `nn` has.
 */
export function publicEntries(source: string): Entry[] {
  const [file, listed] = source.split(":") as [string, string | undefined];
  if (listed !== undefined) return listedEntries(file, listed.split(","));
  const [path, section] = source.split("#") as [string, string | undefined];
  const all = parse(readFileSync(join(ROOT, "src", `${path}.ts`), "utf8"));
  const entries = section === undefined ? all : all.filter((e) => (e.section ?? "tensor") === section);
  const isOwn = /^(?:nn|func)\//.test(path);
  const shown = path.startsWith("nn/") ? exported(path) : () => true;
  return entries
    .filter((e) => e.access === "public" && e.kind !== "set" && e.name !== "constructor")
    .filter((e) => e.kind !== "field" || e.doc !== undefined)
    .filter((e) => (e.owner === undefined ? isOwn || isType(e) || EXPORTED.includes(e.name) : true))
    .filter((e) => shown(e.owner ?? e.name) || path.startsWith("tensor/"))
    .map((e) => {
      const make = entries.find((m) => e.kind === "class" && m.owner === e.name && m.name === "constructor");
      const call = make?.signatures[0]?.replace("constructor", `new ${e.name}`);
      return call === undefined ? e : { ...e, signatures: [call] };
    });
}
function section(e: Entry): string {
  const signatures = e.overloaded === true ? e.signatures.slice(0, -1) : e.signatures;
  const code = e.code ?? signatures.map((s) => show(s, e)).join("\n");
  const parts = [`### ${title(e)}`, e.doc?.text ?? "", `\`\`\`ts\n${code}\n\`\`\``];
  const example = e.doc?.example ?? [];
  if (example.length > 0) parts.push(`\`\`\`js\n${example.join("\n")}\n\`\`\``);
  return parts.filter((p) => p !== "").join("\n\n");
}
const anchor = (e: Entry): string =>
  title(e)
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]/g, "");

/** The function of a method knows its defaults: `{ alpha = 1 }: Scaled = {}` for `options: Scaled = {}`. */
function withDefaults(method: Entry, functions: readonly Entry[]): Entry {
  const own = functions.find((f) => f.name === method.name)?.signatures.at(-1) ?? "";
  const options = /\{.*\}: .* = \{\}(?=,? \))|\{.*\}: .* = \{\}(?=\))/.exec(own)?.[0];
  if (options === undefined) return method;
  const shown = (s: string): string => s.replace(/\boptions: .* = \{\}(?=,? ?\))/, () => options);
  return { ...method, signatures: method.signatures.map(shown) };
}
/** Everything that is on a page. */
export const allEntries = (): (Entry & { readonly page: string })[] =>
  FAMILIES.flatMap(([page, , , files]) => {
    const areas = files.filter((f) => f.startsWith("tensor/") && !f.includes("#"));
    const functions = areas
      .flatMap((f) => parse(readFileSync(join(ROOT, "src", `${f}.ts`), "utf8")))
      .filter((e) => e.kind === "function");
    return files
      .flatMap(publicEntries)
      .map((e) => ({ ...(e.kind === "method" ? withDefaults(e, functions) : e), page }));
  });

/** All pages: name -> text. */
export function pages(): Map<string, string> {
  const all = allEntries();
  const made = new Map<string, string>();
  const index = [
    "# Reference",
    "Made from the sources by `npm run reference`; every example is run by the tests.",
  ];
  for (const [page, heading, about] of FAMILIES) {
    const own = all.filter((e) => e.page === page);
    const names = own.filter((e) => !isType(e));
    const types = own.filter(isType);
    const tail = types.length === 0 ? [] : ["## Types", ...types.map(section)];
    const text = [`# ${heading}`, `${about} [All names](README.md).`, ...names.map(section), ...tail].join(
      "\n\n",
    );
    made.set(`${page}.md`, `${text}\n`);
    const links = names.map((e) => `[${title(e)}](${page}.md#${anchor(e)})`);
    index.push(`## [${heading}](${page}.md)`, about, links.join(" · "));
  }
  made.set("optops.md", `${optOpsPage()}\n`);
  const ops = OPT_OPS.map(({ name }) => `[${name}](optops.md#${name.toLowerCase()})`);
  index.push(`## [${TITLE}](optops.md)`, ABOUT, ops.join(" · "));
  made.set("README.md", `${index.join("\n\n")}\n`);
  return made;
}

if (process.argv[1]?.endsWith("reference.ts")) {
  const wanted = pages();
  const dir = join(ROOT, OUT);
  const stale = [...wanted].filter(
    ([name, text]) => !existsSync(join(dir, name)) || readFileSync(join(dir, name), "utf8") !== text,
  );
  // measured, and written by npm run accuracy
  const isOther = (name: string): boolean => name === "accuracy.md";
  const extra = existsSync(dir) ? readdirSync(dir).filter((n) => !wanted.has(n) && !isOther(n)) : [];
  if (process.argv.includes("--check")) {
    if (stale.length + extra.length > 0) {
      console.error(
        `reference: not up to date: ${[...stale.map(([n]) => n), ...extra].join(", ")}; run npm run reference`,
      );
      process.exit(1);
    }
  } else {
    mkdirSync(dir, { recursive: true });
    for (const name of extra) rmSync(join(dir, name));
    for (const [name, text] of stale) writeFileSync(join(dir, name), text);
    console.log(`reference: ${wanted.size} pages in ${OUT}, ${stale.length} written`);
  }
}
