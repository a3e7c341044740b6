// The tokenizer of BERT models: text is cleaned and cut into words, and each word into the longest pieces
// that the vocabulary has. In: a tokenizer.json. Out: numbers, with the marks of a beginning and an end.

/** What a tokenizer.json says, as far as it matters here. */
interface TokenizerFile {
  readonly normalizer?: { readonly lowercase?: boolean; readonly strip_accents?: boolean | null } | null;
  readonly truncation?: { readonly max_length: number } | null;
  readonly model: {
    readonly type?: string;
    readonly vocab: Readonly<Record<string, number>>;
    readonly unk_token: string;
    readonly continuing_subword_prefix?: string;
    readonly max_input_chars_per_word?: number;
  };
}

/** Ideographs stand alone: the words of Chinese are not set apart by spaces. */
const IDEOGRAPH =
  /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b81f}\u{2b820}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu;
/** ASCII signs count, too, that Unicode calls symbols: + < = > ^ ` | ~ $ */
const PUNCTUATION = /[\p{P}!-/:-@[-`{-~]/gu;
const CONTROL = /[\p{C}\ufffd]/gu;

export class WordPiece {
  /** numbers of text that is longer are cut off */
  readonly maxLength: number;
  readonly #vocab: ReadonlyMap<string, number>;
  readonly #file: TokenizerFile;
  readonly #marks: { readonly begin: number; readonly end: number; readonly unknown: number };

  /** `json` is the text of a tokenizer.json. */
  constructor(json: string) {
    const file = JSON.parse(json) as TokenizerFile;
    if ((file.model?.type ?? "WordPiece") !== "WordPiece" || file.model?.vocab === undefined)
      throw new Error(`this tokenizer.json is of type ${file.model?.type}, expected WordPiece`);
    this.#file = file;
    this.#vocab = new Map(Object.entries(file.model.vocab));
    this.#marks = {
      begin: this.#number("[CLS]"),
      end: this.#number("[SEP]"),
      unknown: this.#number(file.model.unk_token),
    };
    this.maxLength = file.truncation?.max_length ?? 512;
  }
  #number(token: string): number {
    const found = this.#vocab.get(token);
    if (found === undefined) throw new Error(`the vocabulary of this tokenizer.json has no ${token}`);
    return found;
  }

  encode(text: string): number[] {
    const pieces = this.#words(text).flatMap((word) => this.#pieces(word));
    return [this.#marks.begin, ...pieces.slice(0, this.maxLength - 2), this.#marks.end];
  }

  #words(text: string): string[] {
    const { lowercase = false, strip_accents } = this.#file.normalizer ?? {};
    let clean = text
      .replace(/\s/gu, " ")
      .replace(CONTROL, "")
      .replace(IDEOGRAPH, (c) => ` ${c} `);
    if (strip_accents ?? lowercase) clean = clean.normalize("NFD").replace(/\p{Mn}/gu, "");
    if (lowercase) clean = clean.toLowerCase();
    return clean
      .replace(PUNCTUATION, (c) => ` ${c} `)
      .split(/\s+/u)
      .filter((word) => word !== "");
  }

  #pieces(word: string): number[] {
    const { continuing_subword_prefix: prefix = "##", max_input_chars_per_word: most = 100 } =
      this.#file.model;
    const letters = [...word];
    if (letters.length > most) return [this.#marks.unknown];
    const pieces: number[] = [];
    for (let start = 0; start < letters.length; ) {
      let end = letters.length;
      let piece: number | undefined;
      for (; end > start; end--) {
        const text = (start > 0 ? prefix : "") + letters.slice(start, end).join("");
        piece = this.#vocab.get(text);
        if (piece !== undefined) break;
      }
      // a word with a part that nothing stands for is unknown as a whole
      if (piece === undefined) return [this.#marks.unknown];
      pieces.push(piece);
      start = end;
    }
    return pieces;
  }
}
