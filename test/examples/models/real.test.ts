// Real models beside onnxruntime-node, where both are installed (npm install --prefix examples/models
// --ignore-scripts --include=dev): the same outputs, and what the examples make of them.
//
// Models of floats agree to rounding. Whisper, Moonshine and bge are quantised: each layer rounds its inputs
// to 255 steps of the largest one. A sum in another order now and then rounds to the next step, and the
// layers after it carry this on: in whisper's encoder, 1e-7 in front of the first layer are 6e-2 of the
// largest value at the end. So they are compared by direction and by the words they choose; that the
// integers themselves are exact has a test of its own.

import { readFileSync } from "node:fs";
import { Tensor } from "gradloom";
import { onnx } from "gradloom/onnx";
import { expect, test } from "vitest";
import { loadSentences } from "../../../examples/embed.ts";
import { boxesOf, Detector, letterbox, suppress } from "../../../examples/models/detect.ts";
import { logMel, RATE } from "../../../examples/models/mel.ts";
import { FILES, needFile } from "../../../examples/models/packages.ts";
import { batchOf, SENTENCES } from "../../../examples/models/sentences.ts";
import { Speaker } from "../../../examples/models/speech.ts";
import { FRAME, spansOf, speechChances } from "../../../examples/models/vad.ts";
import { WordPiece } from "../../../examples/models/wordpiece.ts";
import { loadMoonshine, loadWhisper, readSound, type Transcriber } from "../../../examples/transcribe.ts";
import { readPicture } from "../../../examples/yolo.ts";
import { decodeModel, MODEL, type ModelProto, type ValueInfoProto } from "../../../src/onnx/model.ts";
import {
  compare,
  numbers,
  type OrtSession,
  type OrtTensor,
  openOrt,
  ortBool,
  ortTensor,
  whyNot,
} from "./real.ts";

const floats = async (t: Tensor): Promise<Float32Array> => (await t.data()) as Float32Array;

test("yolov8n: the boxes of a photograph", async ({ skip }) => {
  const why = whyNot(FILES.yolo, FILES.photo);
  skip(why !== undefined, why);
  const model = await onnx.load(needFile(FILES.yolo));
  const picture = await readPicture(needFile(FILES.photo));
  const { planes, placed } = letterbox(picture, 640);
  const session = await openOrt(needFile(FILES.yolo));
  const want = (await session.run({ images: ortTensor(planes, [1, 3, 640, 640]) })).output0!;
  const detector = new Detector(model);
  expect((await compare(await detector.run(planes), want)).error).toBeLessThan(1e-5);
  const found = await detector.find(picture);
  const theirs = suppress(boxesOf(want.data, 8400, detector.names, placed, picture, 0.25), 0.45);
  expect(found.map((o) => o.name)).toEqual(theirs.map((o) => o.name));
  expect(found.filter((o) => o.score > 0.6).map((o) => o.name)).toEqual(["boat", "person"]);
});

for (const [name, model, words, nearest] of [
  ["MiniLM", FILES.minilm, FILES.minilmWords, "A puppy chews on an old shoe."],
  ["gte-small", FILES.gte, FILES.gteWords, "A puppy chews on an old shoe."],
] as const) {
  test(`${name}: sentences of different lengths, and the nearest one`, async ({ skip }) => {
    const why = whyNot(model, words);
    skip(why !== undefined, why);
    const tokenizer = new WordPiece(readFileSync(needFile(words), "utf8"));
    expect(tokenizer.encode("Hello, world!")).toEqual([101, 7592, 1010, 2088, 999, 102]);
    const batch = batchOf(SENTENCES.slice(0, 4).map((text) => tokenizer.encode(text)));
    const loaded = await onnx.load(needFile(model));
    const feeds: Record<string, OrtTensor> = {};
    for (const [key, value] of Object.entries(batch) as [string, Tensor][])
      feeds[key] = ortTensor((await value.data()) as BigInt64Array, value.shape as number[]);
    const want = (await (await openOrt(needFile(model))).run(feeds)).last_hidden_state!;
    for (let run = 0; run < 3; run++) {
      const { last_hidden_state } = await loaded.run({ ...batch });
      expect((await compare(last_hidden_state as Tensor, want)).error).toBeLessThan(1e-5);
    }
    const sentences = await loadSentences(needFile(model), needFile(words));
    const rows = await sentences.embed(SENTENCES);
    const [first, second] = await sentences.rank("a young dog plays", SENTENCES, rows);
    expect(first!.text).toBe(nearest);
    expect(first!.score - second!.score).toBeGreaterThan(0.05);
  });
}

test("Silero VAD: the chances of 40 frames, each with the memory of those before", async ({ skip }) => {
  const why = whyNot(FILES.vad, FILES.speech);
  skip(why !== undefined, why);
  const sound = readSound(needFile(FILES.speech)).subarray(0, 40 * FRAME);
  const chances = await speechChances(await onnx.load(needFile(FILES.vad)), sound);
  const session = await openOrt(needFile(FILES.vad));
  let state = ortTensor(new Float32Array(256), [2, 1, 128]);
  for (let i = 0; i < 40; i++) {
    const frame = new Float32Array(64 + FRAME);
    frame.set(sound.subarray(Math.max(0, i * FRAME - 64), (i + 1) * FRAME), i === 0 ? 64 : 0);
    const sr = ortTensor(BigInt64Array.of(BigInt(RATE)), []);
    const out = await session.run({ input: ortTensor(frame, [1, 64 + FRAME]), state, sr });
    expect(Math.abs(chances[i]! - out.output!.data[0]!)).toBeLessThan(1e-4);
    state = out.stateN!;
  }
  const [span, ...others] = spansOf(chances, sound.length);
  expect(others).toEqual([]);
  expect([span!.start / RATE, span!.end / RATE]).toEqual([0.224, 1.28]);
});

/** What onnxruntime says, with the same loop as Speaker's. */
async function theirPieces(
  decoder: OrtSession,
  heard: OrtTensor,
  pasts: Record<string, OrtTensor>,
  ids: number[],
  n: number,
  refused: ReadonlySet<number>,
): Promise<number[]> {
  const said: number[] = [];
  const past = { ...pasts };
  for (let step = 0, given = ids; step < n; step++) {
    const out = await decoder.run({
      input_ids: ortTensor(BigInt64Array.from(given, BigInt), [1, given.length]),
      encoder_hidden_states: heard,
      use_cache_branch: ortBool(step > 0),
      ...past,
    });
    for (const name of Object.keys(past))
      if (step === 0 || !name.includes(".encoder."))
        past[name] = out[name.replace("past_key_values", "present")]!;
    const { data, dims } = out.logits!;
    const last = data.subarray(data.length - dims[2]!);
    let best = -1;
    last.forEach((x, id) => {
      if (!refused.has(id) && (best < 0 || x > last[best]!)) best = id;
    });
    said.push(best);
    given = [best];
  }
  return said;
}
const nothing = (heads: number, size: number, layers: number): Record<string, OrtTensor> =>
  Object.fromEntries(
    Array.from({ length: layers }, (_, i) =>
      ["decoder.key", "decoder.value", "encoder.key", "encoder.value"].map((what) => [
        `past_key_values.${i}.${what}`,
        ortTensor(new Float32Array(0), [1, heads, 0, size]),
      ]),
    ).flat(),
  );

async function firstPieces(speaker: Speaker, heard: Tensor, prompt: number[], n: number, never: number[]) {
  const said: number[] = [];
  for await (const id of speaker.say(heard, { prompt, end: -1, most: n, never })) said.push(id);
  return said;
}
async function firstWords(transcribe: Transcriber, sound: Float32Array, n: number): Promise<string> {
  let words = "";
  for await (const text of transcribe(sound)) {
    words = text.trim();
    if (words.split(/\s+/).length > n) break;
  }
  return words.split(/\s+/).slice(0, n).join(" ");
}

test("whisper-tiny: what it hears, and the first pieces that it says", async ({ skip }) => {
  const why = whyNot(FILES.whisperEncoder, FILES.whisperDecoder, FILES.speech);
  skip(why !== undefined, why);
  const mel = await logMel(readSound(needFile(FILES.speech))).realize();
  const paths = [needFile(FILES.whisperEncoder), needFile(FILES.whisperDecoder)] as const;
  const [encoder, decoder] = [await openOrt(paths[0]), await openOrt(paths[1])];
  const input = ortTensor(await floats(mel), [1, 80, 3000]);
  const want = (await encoder.run({ input_features: input })).last_hidden_state!;
  const speaker = new Speaker(await onnx.load(paths[0]), await onnx.load(paths[1]));
  const heard = await speaker.listen(mel);
  expect((await compare(heard, want)).cosine).toBeGreaterThan(0.99);
  const prompt = [50258, 50259, 50359, 50363];
  const said = await firstPieces(speaker, heard, prompt, 6, [220, 50257]);
  const refused = new Set([220, 50257]);
  expect(said).toEqual(await theirPieces(decoder, want, nothing(6, 64, 4), prompt, 6, refused));
});

test("whisper-tiny writes down a sentence", async ({ skip }) => {
  const why = whyNot(FILES.whisperEncoder, FILES.speech);
  skip(why !== undefined, why);
  const sound = readSound(needFile(FILES.speech));
  expect(await firstWords(await loadWhisper(), sound, 4)).toBe("And so my fellow");
});

test("Moonshine: what it hears, and the first pieces that it says", async ({ skip }) => {
  const why = whyNot(FILES.moonshineEncoder, FILES.moonshinePieces, FILES.speech);
  skip(why !== undefined, why);
  const sound = readSound(needFile(FILES.speech)).subarray(0, 4 * RATE);
  const paths = [needFile(FILES.moonshineEncoder), needFile(FILES.moonshineDecoder)] as const;
  const [encoder, decoder] = [await openOrt(paths[0]), await openOrt(paths[1])];
  const want = (await encoder.run({ input_values: ortTensor(sound, [1, sound.length]) })).last_hidden_state!;
  const speaker = new Speaker(await onnx.load(paths[0]), await onnx.load(paths[1]));
  const heard = await speaker.listen(new Tensor(sound).reshape(1, -1));
  expect((await compare(heard, want)).cosine).toBeGreaterThan(0.99);
  const said = await firstPieces(speaker, heard, [1], 5, []);
  expect(said).toEqual(await theirPieces(decoder, want, nothing(8, 36, 6), [1], 5, new Set()));
  expect(await firstWords(await loadMoonshine(), sound, 2)).toBe("And so");
});

test("bge-small-zh: a padded batch of two", async ({ skip }) => {
  const why = whyNot(FILES.bge);
  skip(why !== undefined, why);
  const rows = [
    [101, 2769, 1599, 3614, 4696, 102],
    [101, 791, 1921, 102],
  ];
  const batch = batchOf(rows);
  const model = await onnx.load(needFile(FILES.bge));
  const names = model.inputs.map(({ name }) => name);
  const feeds: Record<string, OrtTensor> = {};
  for (const name of names) {
    const value = batch[name as keyof typeof batch];
    feeds[name] = ortTensor((await value.data()) as BigInt64Array, value.shape as number[]);
  }
  const want = await (await openOrt(needFile(FILES.bge))).run(feeds);
  const got = await model.run(Object.fromEntries(names.map((n) => [n, batch[n as keyof typeof batch]])));
  for (const { name } of model.outputs)
    expect((await compare(got[name] as Tensor, want[name]!)).cosine).toBeGreaterThan(0.99);
});

test("Real-ESRGAN: a tile", async ({ skip }) => {
  const why = whyNot(FILES.esrgan);
  skip(why !== undefined, why);
  const tile = numbers(3 * 16 * 16, 0.5).map((x) => x + 0.5);
  const want = await (await openOrt(needFile(FILES.esrgan))).run({ input: ortTensor(tile, [1, 3, 16, 16]) });
  const model = await onnx.load(needFile(FILES.esrgan));
  const { output } = await model.run({ input: new Tensor(tile).reshape(1, 3, 16, 16) });
  expect((await compare(output as Tensor, want.output!)).error).toBeLessThan(1e-5);
});

// ---- the integers of a quantised model ----

/** What DynamicQuantizeLinear gives by the standard, which computes in float32 and rounds halves to even. */
function quantised(x: ArrayLike<number>): { values: Uint8Array; scale: number; zero: number } {
  let [low, high] = [0, 0];
  for (let i = 0; i < x.length; i++) [low, high] = [Math.min(low, x[i]!), Math.max(high, x[i]!)];
  const scale = Math.fround(Math.fround(high - low) / 255);
  const even = (v: number): number => (Math.abs(v % 1) === 0.5 ? 2 * Math.round(v / 2) : Math.round(v));
  const clamp = (v: number): number => Math.min(255, Math.max(0, v));
  const zero = clamp(even(-Math.fround(low / scale)));
  return { values: Uint8Array.from(x, (v) => clamp(even(Math.fround(v / scale)) + zero)), scale, zero };
}

/** The model with more outputs: values between its nodes, and weights. */
function opened(proto: ModelProto, names: readonly string[], weights: readonly string[]): Uint8Array {
  const graph = proto.graph!;
  const [like] = graph.output as [ValueInfoProto];
  const copies = weights.map((name) => ({
    ...graph.node[0]!,
    op_type: "Identity",
    name: "",
    attribute: [],
    input: [name],
    output: [`${name} again`],
  }));
  const open = (name: string): ValueInfoProto => {
    const from = graph.node.find((node) => node.output.includes(name));
    const [FLOAT, BYTE, INT] = [1, 2, 6];
    const isByte =
      from === undefined || (from.op_type === "DynamicQuantizeLinear" && name !== from.output[1]);
    const elem_type = isByte ? BYTE : from.op_type === "MatMulInteger" ? INT : FLOAT;
    return { ...like, name, type: { ...like.type!, tensor_type: { elem_type, shape: undefined } } };
  };
  const output = [...graph.output, ...names.map(open), ...weights.map((name) => open(`${name} again`))];
  return MODEL.write({ ...proto, graph: { ...graph, node: [...graph.node, ...copies], output } });
}

test("quantised layers are exact: the integers of whisper's are those of the standard", async ({ skip }) => {
  const why = whyNot(FILES.whisperEncoder);
  skip(why !== undefined, why);
  const proto = decodeModel(new Uint8Array(readFileSync(needFile(FILES.whisperEncoder))));
  const nodes = proto.graph!.node;
  const layers = nodes
    .filter((node) => node.op_type === "DynamicQuantizeLinear")
    .flatMap((quantise) => {
      const product = nodes.find((n) => n.op_type === "MatMulInteger" && n.input[0] === quantise.output[0]);
      return product === undefined ? [] : [{ quantise, product }];
    })
    .slice(0, 4);
  expect(layers.length).toBe(4);
  const names = layers.flatMap(({ quantise: q, product: p }) => [q.input[0]!, ...q.output, ...p.output]);
  const weights = layers.flatMap(({ product: p }) => [p.input[1]!, p.input[3]!]);
  const model = await onnx.load(opened(proto, names, weights));
  const all = await model.run({ input_features: new Tensor(numbers(80 * 3000, 1)).reshape(1, 80, 3000) });
  const read = (name: string): Promise<Float32Array> => floats(all[name] as Tensor);
  for (const { quantise, product } of layers) {
    const x = quantised(await read(quantise.input[0]!));
    const [bytes, scale, zero] = await Promise.all(quantise.output.map(read));
    expect([...scale!, ...zero!]).toEqual([x.scale, x.zero]);
    expect(Buffer.compare(Buffer.from(x.values), Buffer.from(bytes!))).toBe(0);
    const [sums, w, wZero] = await Promise.all([product.output[0]!, `${product.input[1]} again`, `${product.input[3]} again`].map(read)); // biome-ignore format: one line
    const [inner, width] = all[`${product.input[1]} again`]!.shape as [number, number];
    // every 997th sum, in all rows and columns
    for (let at = 0; at < sums!.length; at += 997) {
      const [row, column] = [Math.floor(at / width), at % width];
      let sum = 0;
      for (let k = 0; k < inner; k++)
        sum += (x.values[row * inner + k]! - x.zero) * (w![k * width + column]! - wZero![0]!);
      if (sums![at] !== sum)
        throw new Error(`${product.name}[${row}, ${column}] is ${sums![at]}, expected ${sum}`);
    }
  }
});
