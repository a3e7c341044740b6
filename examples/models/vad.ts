// Where somebody speaks: Silero's detector hears a frame of 32 milliseconds at a time and remembers what it
// has heard. In: sound at 16 kHz. Out: a chance for each frame, and the spans of speech.

import { Tensor } from "gradloom";
import type { OnnxModel } from "gradloom/onnx";

const RATE = 16_000;
export const FRAME = 512;
/** The end of the last frame goes in front of the next one. */
const CONTEXT = 64;

/** From one sample up to another. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** How likely each frame is speech. */
export async function speechChances(model: OnnxModel, samples: Float32Array): Promise<number[]> {
  const chances: number[] = [];
  let state = Tensor.zeros([2, 1, 128]);
  for (let at = 0; at < samples.length; at += FRAME) {
    const frame = new Float32Array(CONTEXT + FRAME);
    const from = Math.max(0, at - CONTEXT);
    frame.set(samples.subarray(from, at + FRAME), CONTEXT - (at - from));
    const input = new Tensor(frame).reshape(1, -1);
    const outputs = await model.run({ input, state, sr: BigInt64Array.of(BigInt(RATE)) });
    state = outputs.stateN as Tensor;
    chances.push((await (outputs.output as Tensor).item()) as number);
  }
  return chances;
}

/** Speech begins above this chance, and ends after a while below the other. */
const [BEGINS, ENDS] = [0.5, 0.35];
/** Frames of silence that end a span, frames that a span has at least, and frames added at both ends. */
const [SILENCE, SHORTEST, AROUND] = [10, 4, 3];

/** The spans of speech, with a little of what is around them. */
export function spansOf(chances: readonly number[], length: number): Span[] {
  const spans: { start: number; end: number }[] = [];
  let [begin, last] = [-1, -1];
  const close = (): void => {
    if (begin >= 0 && last + 1 - begin >= SHORTEST) {
      const start = Math.max(0, begin - AROUND) * FRAME;
      const end = Math.min(length, (last + 1 + AROUND) * FRAME);
      const before = spans.at(-1);
      if (before !== undefined && before.end >= start) before.end = end;
      else spans.push({ start, end });
    }
    begin = -1;
  };
  chances.forEach((chance, i) => {
    if (begin < 0 && chance >= BEGINS) begin = i;
    if (begin >= 0 && chance >= ENDS) last = i;
    if (begin >= 0 && i - last >= SILENCE) close();
  });
  close();
  return spans;
}

/** The sound without its silence. */
export function withoutSilence(samples: Float32Array, spans: readonly Span[]): Float32Array {
  const out = new Float32Array(spans.reduce((sum, { start, end }) => sum + end - start, 0));
  let at = 0;
  for (const { start, end } of spans) {
    out.set(samples.subarray(start, end), at);
    at += end - start;
  }
  return out;
}
