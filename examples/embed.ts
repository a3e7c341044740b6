// Sentence search: npm run embed -- "something to drink with breakfast". MiniLM turns twelve sentences and
// the query into directions and prints the sentences by how near they are. --model gte-small is another
// model, --model FILE.onnx with --tokenizer tokenizer.json your own; --file has sentences of your own, one
// a line. examples/models/sentences.ts has the work.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Device } from "gradloom";
import { onnx } from "gradloom/onnx";
import { Complaint, FILES, main, needFile, type PackageFile } from "./models/packages.ts";
import { existing, optionsOf } from "./models/program.ts";
import { SENTENCES, Sentences } from "./models/sentences.ts";
import { WordPiece } from "./models/wordpiece.ts";

const USAGE =
  'npm run embed -- ["QUERY"] [--model minilm|gte-small|FILE.onnx] [--tokenizer tokenizer.json] [--file SENTENCES.txt]';
const QUERY = "a young dog plays";

interface Files {
  readonly model: PackageFile;
  readonly words: PackageFile;
}
const MODELS: Readonly<Record<string, Files>> = {
  minilm: { model: FILES.minilm, words: FILES.minilmWords },
  "gte-small": { model: FILES.gte, words: FILES.gteWords },
};

export async function loadSentences(model: string, tokenizer: string): Promise<Sentences> {
  return new Sentences(await onnx.load(model), new WordPiece(readFileSync(tokenizer, "utf8")));
}

function filesOf(model: string, tokenizer: string | undefined): readonly [string, string] {
  const known = Object.hasOwn(MODELS, model) ? MODELS[model] : undefined;
  if (known !== undefined) return [needFile(known.model), existing(tokenizer ?? needFile(known.words))];
  if (!model.endsWith(".onnx")) throw new Complaint(`there is no model ${model}\nDo: ${USAGE}`);
  if (tokenizer === undefined) throw new Complaint(`${model} needs its tokenizer\nDo: ${USAGE}`);
  return [existing(model), existing(tokenizer)];
}

async function run(): Promise<void> {
  const { file: query = QUERY, options } = optionsOf(USAGE, ["model", "tokenizer", "file"]);
  const model = await loadSentences(...filesOf(options.model ?? "minilm", options.tokenizer));
  const lines =
    options.file === undefined ? SENTENCES : readFileSync(existing(options.file), "utf8").split("\n");
  const texts = lines.filter((line) => line.trim() !== "");
  if (texts.length === 0) throw new Complaint(`${options.file} has no sentences`);
  const start = performance.now();
  const directions = await model.embed(texts);
  const ranked = await model.rank(query, texts, directions);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`"${query}"\n`);
  for (const { text, score } of ranked) console.log(`${score.toFixed(3).padStart(6)}  ${text}`);
  console.log(`\n${texts.length + 1} sentences: ${seconds} s on ${Device.DEFAULT}, compiling included`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main(run);
