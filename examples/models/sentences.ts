// The meaning of sentences as directions: a BERT model reads the pieces of a sentence, the mean of what it
// says of them is the sentence's direction, and sentences that mean the same have directions with a small
// angle between them. In: a model and its tokenizer. Out: rows of length 1. A page and Node use it alike.

import { Tensor } from "gradloom";
import type { OnnxModel } from "gradloom/onnx";
import type { WordPiece } from "./wordpiece.ts";

/** Rows of equal length: shorter sentences are padded, and the mask says where. */
export interface Batch {
  readonly input_ids: Tensor;
  readonly attention_mask: Tensor;
  readonly token_type_ids: Tensor;
}

/** Lengths are rounded up to a multiple of it, so that most queries find kernels that are there already. */
const STEP = 8;

export function batchOf(rows: readonly (readonly number[])[], step = STEP): Batch {
  const width = Math.ceil(Math.max(1, ...rows.map((row) => row.length)) / step) * step;
  const ints = (value: (row: readonly number[], i: number) => number): Tensor => {
    const flat = rows.flatMap((row) => Array.from({ length: width }, (_, i) => BigInt(value(row, i))));
    return new Tensor(BigInt64Array.from(flat)).reshape(rows.length, width);
  };
  return {
    input_ids: ints((row, i) => row[i] ?? 0),
    attention_mask: ints((row, i) => (i < row.length ? 1 : 0)),
    token_type_ids: ints(() => 0),
  };
}

/** The mean over the pieces that the mask keeps, of length 1. */
export function pooled(hidden: Tensor, mask: Tensor): Tensor {
  const kept = mask.cast("float32").unsqueeze(-1);
  const mean = hidden.mul(kept).sum(1).div(kept.sum(1));
  return mean.div(mean.square().sum(-1, true).sqrt());
}

export class Sentences {
  readonly #model: OnnxModel;
  readonly #tokenizer: WordPiece;

  constructor(model: OnnxModel, tokenizer: WordPiece) {
    if (!model.inputs.some(({ name }) => name === "input_ids") || model.outputs.length === 0)
      throw new Error("this model does not read sentences: expected an input with the name input_ids");
    this.#model = model;
    this.#tokenizer = tokenizer;
  }

  /** A row for each text. */
  async embed(texts: readonly string[]): Promise<Tensor> {
    const batch = batchOf(texts.map((text) => this.#tokenizer.encode(text)));
    const wanted = this.#model.inputs.map(({ name }) => [name, batch[name as keyof Batch]] as const);
    const outputs = await this.#model.run(Object.fromEntries(wanted));
    const hidden = outputs[this.#model.outputs[0]!.name] as Tensor;
    return pooled(hidden, batch.attention_mask).realize();
  }

  /** The texts by how near they are to the query, the nearest first: the cosine of the angle. */
  async rank(
    query: string,
    texts: readonly string[],
    directions: Tensor,
  ): Promise<{ text: string; score: number }[]> {
    const [one] = [await this.embed([query])];
    const scores = (await directions.matmul(one.reshape(-1, 1)).reshape(-1).tolist()) as number[];
    return texts.map((text, i) => ({ text, score: scores[i] as number })).sort((a, b) => b.score - a.score);
  }
}

/** What the example and the page search in. */
export const SENTENCES: readonly string[] = [
  "The cat sleeps on the warm window sill.",
  "A puppy chews on an old shoe.",
  "The recipe needs two eggs, flour and a cup of milk.",
  "Fresh bread comes out of the oven at six in the morning.",
  "The train to the coast leaves from platform four.",
  "Heavy rain flooded the streets of the old town.",
  "The bank raised the interest rate on savings accounts.",
  "Her new phone runs out of power before the evening.",
  "The orchestra played the last movement twice.",
  "Astronomers found a planet that circles two suns.",
  "He put a plaster on the cut and washed his hands.",
  "The goalkeeper saved the penalty in the final minute.",
];
