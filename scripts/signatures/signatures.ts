// Signatures of public functions in the short form that src/arguments.ts reads: what each argument may be,
// taken from its TypeScript type. In: declarations as scripts/reference.ts parses them. Out: a text for each.

import { type Admitted, admittedAsDefault, admittedBy, splitAt } from "./types.ts";

/** torch's order of what is an option here: these may come by position, too. */
const CONV = ["stride", "padding", "dilation", "groups"];
const TRANSPOSED = ["stride", "padding", "outputPadding", "groups"];
const ADAM = ["lr", "betas", "eps", "weightDecay", "amsgrad"];
const RECURRENT = ["numLayers", "bias", "batchFirst", "dropout", "bidirectional"];
const POSITIONAL: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^conv\dd$/, CONV],
  [/^Conv\dd$/, [...CONV, "bias"]],
  [/^convTranspose\dd$/, [...TRANSPOSED, "dilation"]],
  [/^ConvTranspose\dd$/, [...TRANSPOSED, "bias", "dilation"]],
  [/^maxPool\dd/i, ["stride", "padding", "dilation", "ceilMode"]],
  [/^avgPool\dd$/i, ["stride", "padding", "ceilMode", "countIncludePad"]],
  [/^lpPool\dd$/i, ["stride", "ceilMode"]],
  [/^(?:Linear|LSTMCell|GRUCell|RNNCell)$/, ["bias"]],
  [/^Embedding$/, ["paddingIdx"]],
  [/^(?:Batch|Instance)Norm\d?d?$/, ["eps", "momentum", "affine", "trackRunningStats"]],
  [/^LayerNorm$/, ["eps", "elementwiseAffine", "bias"]],
  [/^RMSNorm$/, ["eps", "elementwiseAffine"]],
  [/^GroupNorm$/, ["eps", "affine"]],
  [/^MultiHeadAttention$/, ["dropout", "bias"]],
  [/^(?:LSTM|GRU)$/, RECURRENT],
  [/^SGD$/, ["lr", "momentum", "dampening", "weightDecay", "nesterov"]],
  [/^(?:Adam|AdamW|NAdam|LAMB)$/, ADAM],
  [/^RMSprop$/, ["lr", "alpha", "eps", "weightDecay", "momentum", "centered"]],
  [/^Adagrad$/, ["lr", "lrDecay", "weightDecay", "initialAccumulatorValue", "eps"]],
  [/^Adadelta$/, ["lr", "rho", "eps", "weightDecay"]],
  [/^(?:LARS|Muon)$/, ["lr"]],
  [/^(?:div|divide)$/, ["roundingMode"]],
  [/^scaledDotProductAttention$/, ["attnMask", "dropoutP", "isCausal"]],
  [/Loss$|^klDiv$|[cC]ross[eE]ntropy|^bceWithLogits/, ["reduction"]],
];
const positionalOf = (name: string): readonly string[] =>
  POSITIONAL.find(([pattern]) => pattern.test(name))?.[1] ?? [];

/** Parameters whose value may be NaN: they are elements, whatever their type says. */
const ELEMENTS = /^(?:value|fill|nan|posinf|neginf)$/;
/** Lists of numbers that may have NaN: curves with gaps. */
const LISTS = /^(?:values|series)$/;

/** The options in braces; those that may come by position come first, with `!`; required ones have `+`. */
function showOptions(name: string, { keys = new Map() }: Admitted): string {
  const first = positionalOf(name).filter((k) => keys.has(k));
  const order = [...first, ...[...keys.keys()].filter((k) => !first.includes(k))];
  const items = order.map((key) => {
    const { kinds, optional } = keys.get(key) as Admitted;
    const marks = `${first.includes(key) ? "!" : ""}${optional ? "" : "+"}`;
    return `${marks}${key}:${kinds.replace("o", "k") || "z"}`;
  });
  return `{${items.join(",")}}`;
}

/** One parameter: `name: kinds`, with `?` if it may be left out, `*` if there may be many. */
function showParameter(fn: string, text: string, file: string, named: boolean): string[] {
  const rest = text.startsWith("...");
  const [, name = "options", mark, after = ""] =
    /^(?:\{[\s\S]*?\}|(\w+))(\??)\s*([\s\S]*)$/.exec(text.replace(/^\.\.\./, "")) ?? [];
  if (name === "this") return [];
  let [typed = "", value] = splitAt(after.replace(/^:/, "").replaceAll("=>", "⇒"), "=").map((p) =>
    p.replaceAll("⇒", "=>"),
  );
  const hasType = after.startsWith(":");
  const fallback = hasType ? value : typed.replace(/^=\s*/, "");
  // `m: number | TensorOptions`, with options behind: they may come earlier anyway
  typed = typed.replace(/ \| TensorOptions$/, "");
  let admitted = hasType ? admittedBy(typed, file) : admittedAsDefault(fallback ?? "");
  if (ELEMENTS.test(name)) {
    admitted = {
      ...admitted,
      kinds: admitted.kinds.replace("n", "e").replaceAll(/[bg]/g, ""),
    };
  }
  if (LISTS.test(name)) admitted = { ...admitted, kinds: admitted.kinds.replace("a", "m") };
  const optional = admitted.optional || mark === "?" || fallback !== undefined;
  const label = named ? `${name}:` : "";
  if (rest) return showRest(label, typed, admitted, file);
  const { keys, kinds } = admitted;
  // what is an options object in the last place may be a record with given properties in another
  const isOptions = keys !== undefined && keys.size > 0 && (optional || /Options\b|^\{|Partial</.test(typed));
  const shown = isOptions
    ? showOptions(fn, admitted) + kinds.replace("o", "")
    : kinds.replace("o", "k") || (hasType ? "" : "z");
  return [`${label}${shown}${optional ? "?" : ""}`];
}

/** `...args`: many elements, or (after the `/`) an array of them; sizes may have options behind. */
function showRest(label: string, type: string, admitted: Admitted, file: string): string[] {
  const name = type.trim().replace(/^readonly\s+/, "");
  const options = name === "SizeArgs" ? ` ${showOptions("", admittedBy("TensorOptions", file))}?` : "";
  if (/^(?:Size|Shape)Args$/.test(name)) return [`${label}nc*${options}`, `${label}a${options}`];
  const kinds = splitAt(name, "|").map((t) => {
    const bare = t.replace(/^readonly\s+/, "");
    if (bare.endsWith("[]")) return admittedBy(bare.slice(0, -2), file).kinds.replace("o", "k");
    if (bare.startsWith("[")) return admittedBy(bare.slice(1, -1), file).kinds;
    return /^[A-Z]$/.test(bare) ? "z" : admitted.kinds;
  });
  const many = [...new Set(kinds.join(""))].sort().join("");
  const array = /[al]/.exec(many)?.[0];
  return array === undefined || many.length === 1
    ? [`${label}${many}*`]
    : [`${label}${many.replace(array, "")}*`, `${label}${array}`];
}

export interface Shown {
  /** the name that messages say */
  readonly name: string;
  /** declarations as they are written; of overloads all but the last count */
  readonly signatures: readonly string[];
  readonly overloaded?: boolean | undefined;
}

/** The parameters of a declaration, and what it returns. */
function partsOf(signature: string): { params: string; result: string } {
  const text = signature.replaceAll(/\s+/g, " ");
  const from = /^[^(<]*(?:<[^(]*?>)?\(/.exec(text)?.[0].length ?? 0;
  let depth = 1;
  let at = from;
  for (; at < text.length && depth > 0; at++) {
    if ("([{".includes(text[at] as string)) depth++;
    else if (")]}".includes(text[at] as string)) depth--;
  }
  return { params: text.slice(from, at - 1), result: text.slice(at) };
}

/** The short form of a function. Overloads are separated by `/`, `~` is before a function with a promise. */
export function signatureOf({ name, signatures, overloaded }: Shown, file: string, named: boolean): string {
  const list = overloaded === true ? signatures.slice(0, -1) : signatures;
  const shown = list.map((signature) => {
    const { params } = partsOf(signature);
    const all = splitAt(params, ",").map((p) => showParameter(name, p, file, named));
    // a rest parameter has two forms
    const forms = Math.max(1, ...all.map((p) => p.length));
    return Array.from({ length: forms }, (_, form) =>
      all
        .map((p) => p[form] ?? p[0] ?? "")
        .filter((p) => p !== "")
        .join(" "),
    ).join("/");
  });
  const waits =
    list.some((s) => /^: Promise</.test(partsOf(s).result)) ||
    /\basync (?!function\*|\*)/.test(list[0] ?? "");
  return (waits ? "~" : "") + shown.join("/");
}
