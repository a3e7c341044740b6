// From the numbers that a speech model says to text. In: the tokenizer.json of a byte-level vocabulary, as
// GPT-2 and Whisper have it. Out: text; marks of languages, times and the end say nothing.

interface BytePieces {
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
  readonly added_tokens?: readonly {
    readonly id: number;
    readonly content: string;
    readonly special: boolean;
  }[];
}

/**
 * Bytes are spelt as letters that can be seen: those of Latin-1 that can stand for themselves, the other
 * bytes one by one as the letters from 256 up.
 */
function bytesOfLetters(): Map<string, number> {
  const isVisible = (b: number): boolean => (b >= 33 && b <= 126) || (b >= 161 && b <= 255 && b !== 173);
  const letters = new Map<string, number>();
  let next = 256;
  for (let b = 0; b < 256; b++) letters.set(String.fromCharCode(isVisible(b) ? b : next++), b);
  return letters;
}
const BYTES = bytesOfLetters();

export class BytePieceDecoder {
  readonly #pieces: string[] = [];
  readonly #special = new Set<number>();
  readonly #marks = new Map<string, number>();

  /** `json` is the text of a tokenizer.json. */
  constructor(json: string) {
    const { model, added_tokens = [] } = JSON.parse(json) as BytePieces;
    if (model?.vocab === undefined) throw new Error("this tokenizer.json has no vocabulary of pieces");
    for (const [piece, id] of Object.entries(model.vocab)) this.#pieces[id] = piece;
    for (const { id, content } of added_tokens) {
      this.#special.add(id);
      this.#marks.set(content, id);
    }
  }

  /** The number of a mark, as "<|en|>" is one. */
  mark(content: string): number | undefined {
    return this.#marks.get(content);
  }

  decode(ids: readonly number[]): string {
    const letters = ids.filter((id) => !this.#special.has(id)).flatMap((id) => [...(this.#pieces[id] ?? "")]);
    return new TextDecoder().decode(Uint8Array.from(letters, (letter) => BYTES.get(letter) ?? 0x3f));
  }
}
