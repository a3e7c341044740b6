// Speech to text: npm run transcribe -- FILE.wav. whisper-tiny writes down what is said; --model moonshine is
// another model, --vad leaves out the silence, --language de (or auto) says what is spoken. Without a file it
// takes a recording from an npm package. examples/models/speech.ts and mel.ts have the work.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Device, Tensor } from "gradloom";
import { onnx } from "gradloom/onnx";
import { logMel, RATE, WINDOW } from "./models/mel.ts";
import { Complaint, FILES, main, needFile } from "./models/packages.ts";
import { BytePieceDecoder } from "./models/pieces.ts";
import { existing, optionsOf } from "./models/program.ts";
import { parts, type SayOptions, Speaker } from "./models/speech.ts";
import { spansOf, speechChances, withoutSilence } from "./models/vad.ts";
import { readWav, resample } from "./models/wav.ts";

const USAGE = "npm run transcribe -- [FILE.wav] [--model whisper|moonshine] [--language en|auto] [--vad]";

/** Hears at most 30 seconds, and writes what was said: longer and longer beginnings of the text. */
export type Transcriber = (samples: Float32Array) => AsyncGenerator<string>;

interface WhisperConfig {
  readonly suppress_tokens: readonly number[];
  readonly begin_suppress_tokens: readonly number[];
  readonly eos_token_id: number;
  readonly decoder_start_token_id: number;
  readonly vocab_size: number;
}
/** Whisper says at most half of the 448 pieces that it knows places for. */
const MOST = 224;

export async function loadWhisper(language = "en"): Promise<Transcriber> {
  const [encoder, decoder] = [needFile(FILES.whisperEncoder), needFile(FILES.whisperDecoder)];
  const speaker = new Speaker(await onnx.load(encoder), await onnx.load(decoder));
  const pieces = new BytePieceDecoder(readFileSync(needFile(FILES.whisperPieces), "utf8"));
  const config = JSON.parse(readFileSync(needFile(FILES.whisperConfig), "utf8")) as WhisperConfig;
  const [start, task, plain] = [config.decoder_start_token_id, "<|transcribe|>", "<|notimestamps|>"].map(
    (m) => (typeof m === "number" ? m : (pieces.mark(m) as number)),
  ) as [number, number, number];
  const spoken = language === "auto" ? undefined : pieces.mark(`<|${language}|>`);
  if (language !== "auto" && spoken === undefined)
    throw new Complaint(`whisper has no language ${language}: expected a code like en, de or zh, or auto`);
  // languages are the pieces between the mark of the beginning and the tasks; times follow all others
  const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
  const languages = range(start + 1, task - 1);
  const never = [...config.suppress_tokens, ...range(plain + 1, config.vocab_size)];
  return async function* (samples) {
    const heard = await speaker.listen(logMel(samples));
    const tongue = spoken ?? (await speaker.choose(heard, [start], languages));
    const options: SayOptions = {
      prompt: [start, tongue, task, plain],
      end: config.eos_token_id,
      most: MOST,
      never,
      notFirst: config.begin_suppress_tokens,
    };
    const ids: number[] = [];
    for await (const id of speaker.say(heard, options)) {
      ids.push(id);
      yield pieces.decode(ids);
    }
  };
}

/** What llama-tokenizer-js exports, of which Moonshine uses one method. */
interface LlamaPieces {
  readonly default: { decode(ids: readonly number[], hasMark: boolean, hasSpace: boolean): string };
}

export async function loadMoonshine(): Promise<Transcriber> {
  const [encoder, decoder] = [needFile(FILES.moonshineEncoder), needFile(FILES.moonshineDecoder)];
  const speaker = new Speaker(await onnx.load(encoder), await onnx.load(decoder));
  const { default: pieces }: LlamaPieces = await import(pathToFileURL(needFile(FILES.moonshinePieces)).href);
  return async function* (samples) {
    const heard = await speaker.listen(new Tensor(samples).reshape(1, -1));
    const ids: number[] = [];
    // nobody says more than six pieces a second; without a limit, noise can make it repeat itself
    const most = Math.ceil((samples.length / RATE) * 6);
    for await (const id of speaker.say(heard, { prompt: [1], end: 2, most })) {
      ids.push(id);
      yield pieces.decode(ids, false, false);
    }
  };
}

function load(model: string, language: string | undefined): Promise<Transcriber> {
  if (model === "whisper") return loadWhisper(language);
  if (model !== "moonshine") throw new Complaint(`there is no model ${model}\nDo: ${USAGE}`);
  if (language !== undefined) throw new Complaint("moonshine knows English only: leave out --language");
  return loadMoonshine();
}

/** The sound of a WAV file, at the rate that the models know. */
export function readSound(path: string): Float32Array {
  try {
    return resample(readWav(readFileSync(path)), RATE);
  } catch (error) {
    throw new Complaint(`${path}: ${(error as Error).message}`);
  }
}

async function speechIn(samples: Float32Array): Promise<Float32Array> {
  const model = await onnx.load(needFile(FILES.vad));
  const spans = spansOf(await speechChances(model, samples), samples.length);
  const seconds = (at: number): string => (at / RATE).toFixed(1);
  for (const { start, end } of spans) console.log(`speech from ${seconds(start)} to ${seconds(end)} s`);
  return withoutSilence(samples, spans);
}

async function run(): Promise<void> {
  const { file, options, flags } = optionsOf(USAGE, ["model", "language"], ["vad"]);
  const transcribe = await load(options.model ?? "whisper", options.language);
  const all = readSound(existing(file ?? needFile(FILES.speech)));
  const samples = flags.has("vad") ? await speechIn(all) : all;
  const start = performance.now();
  if (samples.length === 0) throw new Complaint("there is no speech in this file");
  for (const part of parts(samples, WINDOW)) {
    let shown = "";
    for await (const text of transcribe(part)) {
      const whole = text.replace(/\uFFFD+$/, ""); // a letter may come in parts
      process.stdout.write(shown === "" ? whole.trimStart() : whole.slice(shown.length));
      shown = whole;
    }
    console.log();
  }
  const [took, length] = [(performance.now() - start) / 1000, samples.length / RATE];
  console.log(
    `\n${length.toFixed(1)} s of sound: ${took.toFixed(1)} s on ${Device.DEFAULT}, compiling included`,
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main(run);
