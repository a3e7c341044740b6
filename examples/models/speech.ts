// Speech to text with an encoder and a decoder: the encoder listens once, the decoder says a piece at a time,
// always the likeliest. What it has computed for earlier pieces comes back as outputs and goes in again, so
// each step only computes one piece. In: models as exporters make them, with "past_key_values" and
// "use_cache_branch". Out: numbers of pieces. A page and Node use it alike.

import { Tensor } from "gradloom";
import type { OnnxModel } from "gradloom/onnx";

export interface SayOptions {
  /** what the decoder has said before it begins */
  readonly prompt: readonly number[];
  /** the piece that ends the text */
  readonly end: number;
  /** at most so many pieces */
  readonly most: number;
  /** pieces that may never be said, and those that may not be the first */
  readonly never?: readonly number[];
  readonly notFirst?: readonly number[];
}

const PAST = "past_key_values";

export class Speaker {
  readonly #encoder: OnnxModel;
  readonly #decoder: OnnxModel;

  constructor(encoder: OnnxModel, decoder: OnnxModel) {
    const names = decoder.inputs.map(({ name }) => name);
    for (const name of ["input_ids", "encoder_hidden_states", "use_cache_branch"])
      if (!names.includes(name))
        throw new Error(`the decoder has no input ${name}: expected a merged decoder`);
    this.#encoder = encoder;
    this.#decoder = decoder;
  }

  /** What the encoder makes of sound, or of its spectrogram. */
  async listen(sound: Tensor): Promise<Tensor> {
    const { name } = this.#encoder.inputs[0]!;
    const outputs = await this.#encoder.run({ [name]: sound });
    return outputs[this.#encoder.outputs[0]!.name] as Tensor;
  }

  /** The pieces of a text, one by one, without the end. */
  async *say(heard: Tensor, options: SayOptions): AsyncGenerator<number> {
    const step = this.#steps(heard);
    let given = options.prompt;
    for (let i = 0; i < options.most; i++) {
      const logits = await step(given);
      const refused = [...(options.never ?? []), ...(i === 0 ? (options.notFirst ?? []) : [])];
      const id = (await allowed(logits, refused).argmax().item()) as number;
      if (id === options.end) return;
      yield id;
      given = [id];
    }
  }

  /** The likeliest of some pieces as the first one after a prompt. */
  async choose(heard: Tensor, prompt: readonly number[], among: readonly number[]): Promise<number> {
    const logits = await this.#steps(heard)(prompt);
    const values = (await logits.data()) as Float32Array;
    return among.reduce((best, id) => ((values[id] as number) > (values[best] as number) ? id : best));
  }

  /** A function that takes the next pieces and gives what may follow the last of them. */
  #steps(heard: Tensor): (ids: readonly number[]) => Promise<Tensor> {
    const past = new Map<string, Tensor>();
    for (const { name, dims = [] } of this.#decoder.inputs) {
      // nothing is remembered: one row, no pieces
      const shape = dims.map((d, i) => (typeof d === "number" ? d : i === 0 ? 1 : 0));
      if (name.startsWith(PAST)) past.set(name, Tensor.zeros(shape));
    }
    let isFirst = true;
    return async (ids) => {
      const outputs = await this.#decoder.run({
        input_ids: new Tensor(BigInt64Array.from(ids, BigInt)).reshape(1, -1),
        encoder_hidden_states: heard,
        use_cache_branch: [!isFirst],
        ...Object.fromEntries(past),
      });
      for (const name of past.keys()) {
        // what was heard does not change: later steps give an empty tensor for it
        if (isFirst || !name.includes(".encoder."))
          past.set(name, outputs[name.replace(PAST, "present")] as Tensor);
      }
      isFirst = false;
      const logits = outputs.logits as Tensor;
      const [, pieces, size] = logits.shape as [number, number, number];
      return logits
        .shrink([
          [0, 1],
          [pieces - 1, pieces],
          [0, size],
        ])
        .reshape(size);
    };
  }
}

/** Logits of what may not be said are lower than any other. */
function allowed(logits: Tensor, refused: readonly number[]): Tensor {
  if (refused.length === 0) return logits;
  const bias = new Float32Array(logits.shape[0] as number);
  for (const id of refused) bias[id] = Number.NEGATIVE_INFINITY;
  return logits.add(new Tensor(bias));
}

/** Sound in parts of at most `size` samples; the last one is as long as what is left. */
export function parts(samples: Float32Array, size: number): Float32Array[] {
  const count = Math.max(1, Math.ceil(samples.length / size));
  return Array.from({ length: count }, (_, i) => samples.subarray(i * size, (i + 1) * size));
}
