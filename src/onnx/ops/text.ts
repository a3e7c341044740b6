// Ops on strings. They run on the host, where strings are.

import { prod, range } from "../../helpers.ts";
import { TYPES } from "../elements.ts";
import { TensorValue } from "../values.ts";
import { bigInts, type Call, flag, floats, int, ints, type OpTable, op, string, strings } from "./op.ts";
import { broadcastShapes } from "./shapes.ts";

const texts = (c: Call, shape: readonly number[], data: readonly string[]): TensorValue =>
  TensorValue.ofTexts({ shape, data }, c.sources);

/** The element of a list of this shape that stands at place `i` of a larger one. */
function placeIn(shape: readonly number[], larger: readonly number[], i: number): number {
  let [at, step, rest] = [0, 1, i];
  for (let d = larger.length - 1; d >= 0; d--) {
    const own = shape[d - larger.length + shape.length] ?? 1;
    if (own !== 1) at += (rest % (larger[d] as number)) * step;
    step *= own;
    rest = Math.floor(rest / (larger[d] as number));
  }
  return at;
}
const concat = op({}, (c) => {
  const [a, b] = [c.value(0), c.value(1)];
  const shape = broadcastShapes([a.shape, b.shape]);
  const pick = (v: TensorValue, i: number): string => v.texts[placeIn(v.shape, shape, i)] as string;
  return texts(
    c,
    shape,
    range(prod(shape)).map((i) => pick(a, i) + pick(b, i)),
  );
});

/** At most `most` cuts; what is left is the last part. */
function parts(text: string, delimiter: string, most: number): string[] {
  if (delimiter !== "") {
    const all = text.split(delimiter);
    return all.length - 1 <= most ? all : [...all.slice(0, most), all.slice(most).join(delimiter)];
  }
  const out: string[] = [];
  let rest = text.trim();
  while (rest !== "" && out.length < most) {
    const gap = /\s+/.exec(rest);
    if (gap === null) break;
    out.push(rest.slice(0, gap.index));
    rest = rest.slice(gap.index + gap[0].length);
  }
  return rest === "" ? out : [...out, rest];
}
const split = op({ delimiter: string(""), maxsplit: int() }, (c) => {
  const x = c.value(0);
  const rows = x.texts.map((text) => parts(text, c.attr.delimiter, c.attr.maxsplit ?? Infinity));
  const width = rows.reduce((n, r) => Math.max(n, r.length), 0);
  const data = rows.flatMap((r) => range(width).map((i) => r[i] ?? ""));
  const counts = rows.map((r) => BigInt(r.length));
  return [texts(c, [...x.shape, width], data), c.known(TYPES.int64, x.shape, counts)];
});

const normalizer = op(
  {
    case_change_action: string("NONE"),
    is_case_sensitive: flag(false),
    locale: string(),
    stopwords: strings([]),
  },
  (c) => {
    const { case_change_action: action, is_case_sensitive: isExact, stopwords, locale } = c.attr;
    const x = c.value(0);
    const language = locale?.split(/[._]/)[0];
    const same = (text: string): string => (isExact ? text : text.toLocaleLowerCase(language));
    const stops = new Set(stopwords.map(same));
    const kept = x.texts.filter((text) => !stops.has(same(text)));
    const change: Readonly<Record<string, (text: string) => string>> = {
      NONE: (text) => text,
      LOWER: (text) => text.toLocaleLowerCase(language),
      UPPER: (text) => text.toLocaleUpperCase(language),
    };
    const f = change[action] ?? c.fail(`case_change_action is "${action}", expected NONE, LOWER or UPPER`);
    const data = kept.length === 0 ? [""] : kept.map(f);
    return texts(c, [...x.shape.slice(0, -1), data.length], data);
  },
);

const matches = op({ pattern: string.required }, (c) => {
  const x = c.value(0);
  // flags at the start are written otherwise here
  const [, flags = "", body = ""] = /^(?:\(\?([ims]+)\))?(.*)$/s.exec(c.attr.pattern) ?? [];
  const compile = (unicode: string): RegExp => new RegExp(`^(?:${body})$`, flags + unicode);
  let pattern: RegExp;
  try {
    pattern = compile("u");
  } catch {
    try {
      pattern = compile("");
    } catch (cause) {
      return c.fail(`the pattern is not a regular expression: ${(cause as Error).message}`);
    }
  }
  return c.known(
    TYPES.bool,
    x.shape,
    x.texts.map((text) => (pattern.test(text) ? 1 : 0)),
  );
});

interface Vectorizer {
  readonly max_gram_length: number;
  readonly max_skip_count: number;
  readonly min_gram_length: number;
  readonly mode: string;
  readonly ngram_counts: readonly number[];
  readonly ngram_indexes: readonly number[];
  readonly pool_int64s: readonly bigint[] | undefined;
  readonly pool_strings: readonly string[] | undefined;
  readonly weights: readonly number[] | undefined;
}
/** Which column each n-gram of the pool has, by its words; the pool has those of one word first. */
function gramsOf(a: Vectorizer): Map<string, number> {
  const pool = (a.pool_strings ?? a.pool_int64s ?? []).map(String);
  const grams = new Map<string, number>();
  let id = 0;
  a.ngram_counts.forEach((start, i) => {
    const end = a.ngram_counts[i + 1] ?? pool.length;
    for (let at = start; at + i + 1 <= end; at += i + 1)
      grams.set(JSON.stringify(pool.slice(at, at + i + 1)), id++);
  });
  return grams;
}
const vectorizer = op(
  {
    max_gram_length: int.required,
    max_skip_count: int.required,
    min_gram_length: int.required,
    mode: string.required,
    ngram_counts: ints.required,
    ngram_indexes: ints.required,
    pool_int64s: bigInts(),
    pool_strings: strings(),
    weights: floats(),
  },
  async (c) => {
    const a: Vectorizer = c.attr;
    const x = c.value(0);
    const words = x.isText ? x.texts : Array.from((await c.host(0)).data, String);
    const grams = gramsOf(a);
    const width = Math.max(0, ...a.ngram_indexes.map((i) => i + 1));
    const rows = x.shape.length === 2 ? (x.shape[0] as number) : 1;
    const length = words.length / rows;
    const data = new Array<number>(rows * width).fill(0);
    for (const row of range(rows)) {
      for (let n = a.min_gram_length; n <= a.max_gram_length; n++) {
        for (let skip = 1; skip <= (n === 1 ? 1 : a.max_skip_count + 1); skip++) {
          for (let start = 0; start + (n - 1) * skip < length; start++) {
            const gram = range(n).map((k) => words[row * length + start + k * skip]);
            const id = grams.get(JSON.stringify(gram));
            const column = id === undefined ? undefined : a.ngram_indexes[id];
            if (id === undefined || column === undefined) continue;
            const at = row * width + column;
            const before = data[at] as number;
            const weight = a.weights?.[id] ?? 1;
            if (a.mode === "TF") data[at] = before + 1;
            else if (a.mode === "IDF") data[at] = weight;
            else if (a.mode === "TFIDF") data[at] = before + weight;
            else c.fail(`mode is "${a.mode}", expected TF, IDF or TFIDF`);
          }
        }
      }
    }
    return c.known(TYPES.float, x.shape.length === 2 ? [rows, width] : [width], data);
  },
);

export const text: OpTable = {
  StringConcat: concat,
  StringSplit: split,
  StringNormalizer: normalizer,
  RegexFullMatch: matches,
  TfIdfVectorizer: vectorizer,
};
