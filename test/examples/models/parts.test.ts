// The parts of the examples that run models, on data made here: pictures and boxes, sentences and pieces,
// sound and spectrograms. real.test.ts has the models themselves.

import { Tensor } from "gradloom";
import { onnx } from "gradloom/onnx";
import { describe, expect, test } from "vitest";
import {
  boxesOf,
  classNames,
  Detector,
  letterbox,
  overlapOf,
  suppress,
} from "../../../examples/models/detect.ts";
import { Canvas, colourOf, drawn, inkOn } from "../../../examples/models/draw.ts";
import { logMel, melFilters, RATE } from "../../../examples/models/mel.ts";
import { BytePieceDecoder } from "../../../examples/models/pieces.ts";
import { numberOf, optionsOf } from "../../../examples/models/program.ts";
import { batchOf, pooled } from "../../../examples/models/sentences.ts";
import { parts } from "../../../examples/models/speech.ts";
import { EDGE, TILE, upscale } from "../../../examples/models/upscale.ts";
import { FRAME, spansOf, withoutSilence } from "../../../examples/models/vad.ts";
import { readWav, resample } from "../../../examples/models/wav.ts";
import { WordPiece } from "../../../examples/models/wordpiece.ts";

const range = <T>(n: number, of: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => of(i));

describe("objects", () => {
  test("letterbox: a wide picture in the middle of grey, blended between its pixels", () => {
    const rgb = Uint8Array.from([0, 10, 255, 100, 10, 255, 200, 10, 255, 100, 10, 255]);
    const { planes, placed } = letterbox({ width: 4, height: 1, rgb }, 8);
    expect(placed).toEqual({ scale: 2, left: 0, top: 3 });
    const row = (plane: number, y: number): number[] =>
      [...planes.slice(64 * plane + 8 * y, 64 * plane + 8 * y + 8)].map((v) => Math.round(v * 255));
    expect(row(0, 2)).toEqual(range(8, () => 114));
    expect(row(0, 3)).toEqual([0, 25, 75, 125, 175, 175, 125, 100]);
    expect(row(1, 4)).toEqual(range(8, () => 10));
    expect(row(2, 5)).toEqual(range(8, () => 114));
  });

  test("letterbox: a tall picture is made smaller", () => {
    const { planes, placed } = letterbox({ width: 3, height: 12, rgb: new Uint8Array(108).fill(255) }, 4);
    expect(placed).toEqual({ scale: 1 / 3, left: 1, top: 0 });
    expect([...planes.slice(0, 4)].map((v) => Math.round(v * 255))).toEqual([114, 255, 114, 114]);
  });

  test("boxes are those of the picture, inside of it, of the likeliest class", () => {
    // three places: sure of class 1, not sure, and partly outside
    const output = [
      [4, 1, 7.5],
      [4, 1, 4],
      [2, 2, 4],
      [4, 2, 2],
      [0.1, 0.2, 0.6],
      [0.9, 0.1, 0.3],
    ].flat();
    const placed = { scale: 2, left: 0, top: 2 };
    const found = boxesOf(output, 3, ["cat"], placed, { width: 4, height: 2 }, 0.5);
    expect(found).toEqual([
      { left: 1.5, right: 2.5, top: 0, bottom: 2, kind: 1, name: "class 1", score: 0.9 },
      { left: 2.75, right: 4, top: 0.5, bottom: 1.5, kind: 0, name: "cat", score: 0.6 },
    ]);
  });

  test("of boxes that overlap the surest of a class stays", () => {
    const box = (left: number, kind: number, score: number) => {
      return { left, top: 0, right: left + 10, bottom: 10, kind, name: "", score };
    };
    expect(overlapOf(box(0, 0, 1), box(5, 0, 1))).toBeCloseTo(1 / 3);
    expect(overlapOf(box(0, 0, 1), box(10, 0, 1))).toBe(0);
    const boxes = [box(3, 0, 0.5), box(0, 0, 0.9), box(1, 1, 0.8), box(30, 0, 0.3), box(2, 0, 0.7)];
    expect(suppress(boxes, 0.45).map((b) => b.score)).toEqual([0.9, 0.8, 0.3]);
    expect(suppress(boxes, 0.6).map((b) => b.score)).toEqual([0.9, 0.8, 0.5, 0.3]);
  });

  test("a detector knows its size and its classes from the file", async () => {
    const bytes = await onnx.write(
      {
        inputs: { images: { type: "float", dims: [1, 3, 4, 4] } },
        outputs: { boxes: { type: "float", dims: [1, 6, 1] } },
        weights: { box: new Tensor([[[2], [2], [2], [4], [0.25], [0.75]]]), zero: new Tensor([0.0]) },
        nodes: [
          { op: "ReduceMax", inputs: ["images"], outputs: ["most"], attributes: { keepdims: 0 } },
          { op: "Mul", inputs: ["box", "most"], outputs: ["boxes"] },
        ],
      },
      { metadata: { names: `{0: 'cat', 1: "cow's bell"}`, stride: "32" } },
    );
    const model = await onnx.load(bytes);
    expect(model.metadata).toEqual({ names: `{0: 'cat', 1: "cow's bell"}`, stride: "32" });
    expect(classNames(model.metadata)).toEqual(["cat", "cow's bell"]);
    const white = { width: 8, height: 8, rgb: new Uint8Array(192).fill(255) };
    const found = await new Detector(model).find(white);
    expect(found).toEqual([
      { left: 2, right: 6, top: 0, bottom: 8, kind: 1, name: "cow's bell", score: 0.75 },
    ]);
    expect(await new Detector(model).find(white, { score: 0.8 })).toEqual([]);
    const other = await onnx.write({
      inputs: { x: { type: "float", dims: [2] } },
      outputs: { y: { type: "float", dims: [2] } },
      nodes: [{ op: "Neg", inputs: ["x"], outputs: ["y"] }],
    });
    const no = await onnx.load(other);
    expect(() => new Detector(no)).toThrow("does not detect objects");
  });

  test("frames and letters are drawn, and what is outside is left out", () => {
    const canvas = new Canvas({ width: 6, height: 8, rgb: new Uint8Array(144) });
    canvas.write("1", 0, 0, 1, [255, 0, 9]);
    const rows = range(8, (y) => range(6, (x) => (canvas.rgb[3 * (6 * y + x)] === 255 ? "#" : ".")).join(""));
    expect(rows).toEqual(["..#...", ".##...", "..#...", "..#...", "..#...", "..#...", ".###..", "......"]);
    canvas.fill(-5, 7, 100, 100, [1, 2, 3]);
    expect([...canvas.rgb.slice(-6)]).toEqual([1, 2, 3, 1, 2, 3]);
    const plain = { width: 80, height: 40, rgb: new Uint8Array(9600) };
    const object = { left: 10, top: 20, right: 60, bottom: 36, kind: 3, name: "égg", score: 0.5 };
    const picture = drawn(plain, [object]);
    const at = (x: number, y: number): number[] => [
      ...picture.rgb.slice(3 * (80 * y + x), 3 * (80 * y + x) + 3),
    ];
    for (const [x, y] of [[10, 20], [59, 35], [10, 30], [12, 10]] as const) expect(at(x, y)).toEqual([...colourOf(3)]); // biome-ignore format: points
    for (const [x, y] of [[30, 28], [9, 30], [60, 30]] as const) expect(at(x, y)).toEqual([0, 0, 0]); // biome-ignore format: points
    expect([...plain.rgb].every((v) => v === 0)).toBe(true);
    expect([inkOn([250, 250, 200]), inkOn([10, 60, 90])]).toEqual([[20, 20, 20], [255, 255, 255]]); // biome-ignore format: two colours
  });
});

test("a picture is made larger in tiles, without a seam", async () => {
  const [width, height] = [150, 20];
  const rgb = Uint8Array.from(range(3 * width * height, (i) => (i * 7919) % 256));
  const done: string[] = [];
  // twice as large, each pixel as it is, and nonsense at the edges of a tile
  const run = async (planes: Float32Array): Promise<Float32Array> => {
    const out = new Float32Array(planes.length * 4);
    for (let i = 0; i < out.length; i++) {
      const [x, y] = [i % (2 * TILE), Math.floor(i / (2 * TILE)) % (2 * TILE)];
      const isEdge = Math.min(x, y, 2 * TILE - 1 - x, 2 * TILE - 1 - y) < 2 * EDGE;
      const plane = Math.floor(i / (4 * TILE * TILE));
      out[i] = isEdge ? 77 : planes[(plane * TILE + (y >> 1)) * TILE + (x >> 1)]!;
    }
    return out;
  };
  const made = await upscale({ width, height, rgb }, run, (n, all) => void done.push(`${n}/${all}`));
  expect([made.width, made.height, ...done]).toEqual([300, 40, "1/2", "2/2"]);
  const wanted = range(made.rgb.length, (i) => {
    const [c, x, y] = [i % 3, Math.floor(i / 3) % 300, Math.floor(i / 900)];
    return rgb[3 * ((y >> 1) * width + (x >> 1)) + c]!;
  });
  expect(Buffer.compare(Buffer.from(made.rgb), Buffer.from(wanted))).toBe(0);
});

describe("sentences", () => {
  const words = "[PAD] [UNK] [CLS] [SEP] play ##ing ##s a cafe , ' t don 日 ##本 本 + e".split(" ");
  const json = (more: object = {}) =>
    JSON.stringify({
      normalizer: { lowercase: true, strip_accents: null },
      truncation: { max_length: 8 },
      model: {
        type: "WordPiece",
        unk_token: "[UNK]",
        vocab: Object.fromEntries(words.map((w, i) => [w, i])),
      },
      ...more,
    });
  const pieces = (text: string, of = new WordPiece(json())): string[] =>
    of.encode(text).map((id) => words[id] as string);

  test("words are cut into the longest pieces that there are", () => {
    expect(pieces("Playing  PLAYS")).toEqual(["[CLS]", "play", "##ing", "play", "##s", "[SEP]"]);
    expect(pieces("a café,\tdon't")).toEqual(["[CLS]", "a", "cafe", ",", "don", "'", "t", "[SEP]"]);
    expect(pieces("日本 a\u0000+E\u0301")).toEqual(["[CLS]", "日", "本", "a", "+", "e", "[SEP]"]);
    // a word with an unknown end is unknown as a whole, and so is one that is too long
    expect(pieces("playx a")).toEqual(["[CLS]", "[UNK]", "a", "[SEP]"]);
    expect(pieces("a".repeat(101))).toEqual(["[CLS]", "[UNK]", "[SEP]"]);
    expect(pieces("")).toEqual(["[CLS]", "[SEP]"]);
    expect(pieces("a a a a a a a a a")).toEqual(["[CLS]", ..."aaaaaa", "[SEP]"]);
  });

  test("capitals and accents stay where the file says so", () => {
    const cased = new WordPiece(json({ normalizer: { lowercase: false } }));
    expect(pieces("a A é", cased)).toEqual(["[CLS]", "a", "[UNK]", "[UNK]", "[SEP]"]);
  });

  test("another tokenizer is refused", () => {
    expect(() => new WordPiece(json({ model: { type: "BPE", vocab: {} } }))).toThrow(
      "of type BPE, expected WordPiece",
    );
    expect(() => new WordPiece(json({ model: { unk_token: "?", vocab: {} } }))).toThrow("has no [CLS]");
  });

  test("padding does not count in the mean", async () => {
    const { input_ids, attention_mask } = batchOf([[5, 6, 7], [8]], 4);
    expect(await input_ids.tolist()).toEqual([[5n, 6n, 7n, 0n], [8n, 0n, 0n, 0n]]); // biome-ignore format: rows
    expect(await attention_mask.tolist()).toEqual([[1n, 1n, 1n, 0n], [1n, 0n, 0n, 0n]]); // biome-ignore format: rows
    const hidden = new Tensor([[[0, 3], [3, 6], [6, 3], [90, 9]], [[0, -2], [7, 7], [7, 7], [7, 7]]]); // biome-ignore format: rows
    const rows = (await pooled(hidden.cast("float32"), attention_mask).tolist()) as number[][];
    expect(rows.flat().map((x) => Math.round(x * 1e6) / 1e6)).toEqual([0.6, 0.8, 0, -1]);
  });
});

// ---- sound ----

interface Format {
  readonly kind: 1 | 3;
  readonly bits: number;
  readonly channels?: number;
  readonly isExtensible?: boolean;
}
/** A WAV file of these samples, channels in turn, with a chunk of an odd length before the sound. */
function wav(
  samples: readonly number[],
  { kind, bits, channels = 1, isExtensible = false }: Format,
): Uint8Array {
  const [head, size] = [isExtensible ? 40 : 16, bits / 8];
  const bytes = new Uint8Array(12 + 8 + head + 8 + 4 + 8 + samples.length * size);
  const view = new DataView(bytes.buffer);
  const write = (at: number, text: string): void => bytes.set(new TextEncoder().encode(text), at);
  write(0, "RIFF");
  view.setUint32(4, bytes.length - 8, true);
  write(8, "WAVEfmt ");
  view.setUint32(16, head, true);
  view.setUint16(20, isExtensible ? 0xfffe : kind, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, 8000, true);
  view.setUint16(34, bits, true);
  if (isExtensible) view.setUint16(44, kind, true);
  const list = 20 + head;
  write(list, "LIST");
  view.setUint32(list + 4, 3, true);
  write(list + 12, "data");
  view.setUint32(list + 16, samples.length * size, true);
  samples.forEach((x, i) => {
    const at = list + 20 + i * size;
    if (kind === 3 && bits === 32) view.setFloat32(at, x, true);
    else if (kind === 3) view.setFloat64(at, x, true);
    else {
      const whole = Math.round(x * 2 ** (bits - 1)) + (bits === 8 ? 128 : 0);
      for (let b = 0; b < size; b++) view.setUint8(at + b, (whole >> (8 * b)) & 255);
    }
  });
  return bytes;
}

describe("sound", () => {
  const SAMPLES = [0, 0.5, -0.5, 0.25, -1, 0.125];
  for (const format of [
    { kind: 1, bits: 8 },
    { kind: 1, bits: 16 },
    { kind: 1, bits: 24 },
    { kind: 1, bits: 32 },
    { kind: 3, bits: 32 },
    { kind: 3, bits: 64 },
    { kind: 1, bits: 24, isExtensible: true },
  ] as const) {
    test(`a WAV file: ${JSON.stringify(format)}`, () => {
      const { rate, samples } = readWav(wav(SAMPLES, format));
      expect([rate, ...samples]).toEqual([8000, ...SAMPLES]);
      const stereo = readWav(wav(SAMPLES, { ...format, channels: 2 })).samples;
      expect([...stereo]).toEqual([0.25, -0.125, -0.4375]);
    });
  }

  test("files that are damaged or something else are refused; what a truncated one has is read", () => {
    expect(() => readWav(new Uint8Array(40))).toThrow("not a WAV file");
    const file = wav(SAMPLES, { kind: 1, bits: 16 });
    expect(() => readWav(file.subarray(0, 40))).toThrow("has no sound in it");
    expect([...readWav(file.subarray(0, file.length - 5)).samples]).toEqual(SAMPLES.slice(0, 3));
    new DataView(file.buffer).setUint16(20, 6, true);
    expect(() => readWav(file)).toThrow("format 6 with 16 bits");
    expect(readWav(wav([], { kind: 1, bits: 16 })).samples.length).toBe(0);
  });

  test("another rate keeps a tone, and leaves out what is too high for it", () => {
    const tone = (hertz: number, rate: number, n: number) =>
      Float32Array.from({ length: n }, (_, i) => Math.sin((2 * Math.PI * hertz * i) / rate));
    for (const rate of [8000, 11025, 22050, 44100, 48000]) {
      const made = resample({ rate, samples: tone(1000, rate, rate / 5) }, RATE);
      expect(made.length).toBe(RATE / 5);
      const wanted = tone(1000, RATE, RATE / 5);
      for (let i = 300; i < made.length - 300; i++)
        expect(Math.abs(made[i]! - wanted[i]!)).toBeLessThan(2e-3);
    }
    const high = resample({ rate: 44100, samples: tone(12_000, 44100, 8820) }, RATE).slice(300, -300);
    expect(Math.max(...high.map(Math.abs))).toBeLessThan(5e-3);
    const constant = resample({ rate: 44100, samples: new Float32Array(4410).fill(0.5) }, RATE).slice(
      100,
      -100,
    );
    for (const x of constant) expect(x).toBeCloseTo(0.5, 5);
    const same = tone(5, RATE, 10);
    expect(resample({ rate: RATE, samples: same }, RATE)).toBe(same);
  });

  /** The logarithms of one frame, without tensors and in float64; `sound` is as long as it is. */
  function plainFrame(sound: Float32Array, at: number): number[] {
    const filters = melFilters();
    const power = range(201, (bin) => {
      let [re, im] = [0, 0];
      for (let i = 0; i < 400; i++) {
        const [where, angle] = [at * 160 + i - 200, (2 * Math.PI * bin * i) / 400];
        const x = (sound[Math.abs(where)] ?? 0) * (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / 400));
        re += x * Math.cos(angle);
        im -= x * Math.sin(angle);
      }
      return re * re + im * im;
    });
    return range(80, (band) =>
      Math.log10(
        Math.max(
          1e-10,
          power.reduce((sum, p, bin) => sum + p * filters[band * 201 + bin]!, 0),
        ),
      ),
    );
  }

  test("the spectrogram is that of plain loops", async () => {
    const sound = Float32Array.from({ length: 3 * RATE }, (_, i) => {
      const t = i / RATE;
      return 0.4 * Math.sin(2 * Math.PI * (300 + 900 * t) * t) + 0.05 * Math.sin(i * i);
    });
    const mel = logMel(sound);
    expect(mel.shape).toEqual([1, 80, 3000]);
    const [rows] = (await mel.tolist()) as number[][][];
    const frames = [0, 1, 37, 150, 299, 300, 301, 302, 2999];
    const plain = frames.map((at) => plainFrame(sound, at));
    const loudest = 4 * Math.max(...rows!.map((row) => Math.max(...row))) - 4;
    frames.forEach((at, k) => {
      plain[k]!.forEach((log, band) => {
        const wanted = (Math.max(log, loudest - 8) + 4) / 4;
        expect(Math.abs(rows![band]![at]! - wanted)).toBeLessThan(2e-4);
      });
    });
    // frame 100 is at one second, where the tone has 300 + 2 * 900 Hz
    const column = rows!.map((row) => row[100]!);
    const peak = column.indexOf(Math.max(...column));
    const filters = melFilters();
    expect(filters[peak * 201 + Math.round(2100 / 40)]).toBeGreaterThan(0);
  });

  test("the filters are triangles of equal area over all frequencies", () => {
    const filters = melFilters();
    const row = (band: number) => filters.slice(band * 201, (band + 1) * 201);
    // the narrow ones of low pitch have few bins; from here up the sum is near the area
    for (let band = 40; band < 80; band++)
      expect(row(band).reduce((a, b) => a + b, 0) * 40).toBeCloseTo(1, 0);
    expect([filters[0], row(79)[200], row(0)[1]! > 0.02]).toEqual([0, 0, true]);
    // linear below 1000 Hz: bands of 40 mels are 200 / 3 Hz times their share of the scale apart
    const top = 15 + Math.log(8) / (Math.log(6.4) / 27);
    expect(row(0).indexOf(Math.max(...row(0)))).toBe(Math.round(((top / 81) * (200 / 3)) / 40));
  });

  test("spans of speech: short ones and short silence do not count", () => {
    const chances = [...range(10, () => 0.1), 0.9, 0.9, ...range(15, () => 0), ...range(20, () => 0.8)];
    chances.push(0.4, 0.1, 0.1, 0.2, 0.4, ...range(12, () => 0.1));
    expect(spansOf(chances, 1e6)).toEqual([{ start: 24 * FRAME, end: 55 * FRAME }]);
    expect(spansOf([], 0)).toEqual([]);
    expect(spansOf(range(5, () => 1), 5 * FRAME - 100)).toEqual([{ start: 0, end: 5 * FRAME - 100 }]); // biome-ignore format: one line
    const two = [...range(6, () => 1), ...range(14, () => 0), ...range(6, () => 1)];
    expect(spansOf(two, 26 * FRAME).map(({ start, end }) => [start / FRAME, end / FRAME])).toEqual([[0, 9], [17, 26]]); // biome-ignore format: one line
    const sound = Float32Array.from(range(10, (i) => i));
    const spoken = withoutSilence(sound, [{ start: 1, end: 3 }, { start: 7, end: 10 }]); // biome-ignore format: one line
    expect([...spoken]).toEqual([1, 2, 7, 8, 9]);
  });

  test("sound in parts", () => {
    const lengths = (n: number): number[] => parts(new Float32Array(n), 4).map((part) => part.length);
    expect([lengths(9), lengths(8), lengths(1)]).toEqual([[4, 4, 1], [4, 4], [1]]);
  });

  test("pieces of bytes become text, and marks nothing", () => {
    const vocab = { Ġna: 0, Ã: 1, "¯": 2, ve: 3, ðŁĻĤ: 4, Ċ: 5 };
    const added_tokens = [{ id: 6, content: "<|en|>", special: true }];
    const decoder = new BytePieceDecoder(JSON.stringify({ model: { vocab }, added_tokens }));
    expect(decoder.decode([6, 0, 1, 2, 3, 5, 4, 6])).toBe(" naïve\n🙂");
    expect(decoder.decode([0, 1])).toBe(" na\uFFFD");
    expect([decoder.mark("<|en|>"), decoder.mark("<|xx|>")]).toEqual([6, undefined]);
    expect(() => new BytePieceDecoder("{}")).toThrow("no vocabulary");
  });
});

test("command lines: what means nothing is refused", () => {
  const given = optionsOf("usage", ["out"], ["vad"], ["a.wav", "--out", "b", "--vad"]);
  expect([given.file, given.options.out, given.flags.has("vad")]).toEqual(["a.wav", "b", true]);
  for (const args of [["--uot", "b"], ["--out"], ["a", "b"], ["--vad=1"]]) // biome-ignore format: one line
    expect(() => optionsOf("usage", ["out"], ["vad"], args)).toThrow("\nDo: usage");
  expect(numberOf("--score", "0.5", 0, 1)).toBe(0.5);
  for (const text of ["x", "", "2", "-1", "NaN"])
    expect(() => numberOf("--score", text, 0, 1)).toThrow(`--score is ${text}, expected`);
});
