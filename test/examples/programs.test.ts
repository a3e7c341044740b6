// The twelve programs of examples/programs with few steps: each does what its first lines claim. Those with
// import run here; those with require load the built package in a process of their own.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { format } from "node:util";
import { afterEach, expect, test, vi } from "vitest";
import { buildIfStale } from "../../bench/processes.ts";

const root = join(import.meta.dirname, "..", "..");
const folder = join(root, "examples", "programs");

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** What a program prints. */
async function run(name: string, steps: number): Promise<string> {
  if (name.endsWith(".cjs")) {
    buildIfStale();
    const env = { ...process.env, STEPS: String(steps), SPEC: "0" };
    return execFileSync(process.execPath, [join(folder, name)], { encoding: "utf8", env });
  }
  vi.stubEnv("STEPS", String(steps));
  const lines: string[] = [];
  vi.spyOn(console, "log").mockImplementation((...args) => void lines.push(format(...args)));
  await import(join(folder, name));
  return lines.join("\n");
}
/** The numbers that a pattern finds, in order. */
const numbers = (text: string, pattern: RegExp): number[] =>
  [...text.matchAll(pattern)].map(([, n]) => Number(n));
const losses = (text: string): number[] => numbers(text, /loss (?:[\d.]+ to )?([\d.]+)/g);

test("regression: the weights are found, and the labels", async () => {
  const text = await run("regression.cjs", 60);
  expect(text).toContain("weights and bias 2.00, -3.40, 0.50, 4.20;");
  expect(numbers(text, /([\d.]+) % of the labels/g)[0]).toBeGreaterThan(95);
});
test("cnn: the loss falls, new pictures are recognised", async () => {
  const text = await run("cnn.ts", 3);
  const [first, , last] = losses(text);
  expect(last!).toBeLessThan(0.6 * first!);
  expect(numbers(text, /([\d.]+) % of 80/g)[0]).toBeGreaterThan(75);
});
test("lstm: sequences of different lengths are classified", async () => {
  const text = await run("lstm.ts", 100);
  expect(losses(text).at(-1)).toBeLessThan(0.2);
  expect(numbers(text, /([\d.]+) % of 500/g)[0]).toBeGreaterThan(90);
});
test("gpt: it learns, resumes bit for bit, and writes", async () => {
  const text = await run("gpt.ts", 50);
  const [first, , last] = losses(text);
  expect(first).toBeGreaterThan(3);
  expect(last).toBeLessThan(1.7);
  expect(text).toContain("resumed at step 25, the same loss: true");
  expect(text.split("\n").at(-1)).toMatch(/^the [a-z. ]{56}$/);
});
test("autoencoder: pictures come back, closer than their mean", async () => {
  const text = await run("autoencoder.ts", 160);
  expect(losses(text).at(-1)!).toBeLessThan(0.5 * losses(text)[0]!);
  const [error, blank] = numbers(text, /(?:pixel|picture) ([\d.]+)/g);
  expect(error!).toBeLessThan(0.9 * blank!);
});
test("gan: the points go to the circle", async () => {
  const text = await run("gan.js", 600);
  const [before, after] = numbers(text, /radius ([\d.]+)/g);
  expect(Math.abs(after! - 1)).toBeLessThan(0.35);
  expect(before).toBeLessThan(0.5);
});
test("dqn: it walks to the right from every cell", async () => {
  const text = await run("dqn.js", 15);
  expect(text).toContain("what it does in each cell: > > > > > > >");
});
test("mixed: narrow layers learn as wide ones do, and overflows are skipped", async () => {
  const text = await run("mixed.js", 100);
  const [wide, bfloat, half] = losses(text);
  expect(wide).toBeLessThan(0.1);
  expect(Math.abs(bfloat! - wide!)).toBeLessThan(0.02);
  expect(Math.abs(half! - wide!)).toBeLessThan(0.02);
  const skipped = numbers(text, /(\d+) steps skipped/g);
  expect(skipped.slice(0, 2)).toEqual([0, 0]);
  expect(skipped[2]).toBeGreaterThan(0);
  expect(numbers(text, /2\^(\d+)/g)[2]).toBe(20 - skipped[2]!);
  expect(text.match(/weights float32/g)?.length).toBe(3);
});
test("lora: few parameters learn the second task, and are merged", async () => {
  const text = await run("lora.ts", 80);
  for (const right of numbers(text, /([\d.]+) % right/g)) expect(right).toBeGreaterThan(90);
  expect(numbers(text, /(\d+) parameters trained/g)).toEqual([771, 278]);
  expect(text).toContain("the frozen weights are as before: true");
  expect(text).toContain("merged into 0.weight, 0.bias, 2.weight, 2.bias; the same outputs: true");
});
test("gradient: what is right is found right, and what is wrong wrong", async () => {
  const text = await run("gradient.ts", 4);
  expect(text).toMatch(
    /^swish: right\nproduct: right\nwrong: off by [\d.]+\nsecond derivatives are right: true\n/,
  );
  expect(text).toContain("straight through a rounding: [0,4,4]");
});
test("server: a hundred clients get their own answers, in batches", async () => {
  const text = await run("server.cjs", 2);
  expect(text).toContain("100 clients, 200 of 200 answers right");
  expect(numbers(text, /([\d.]+) requests to a batch/g)[0]).toBeGreaterThan(1);
  expect(text).toContain("a wrong request: 400, expected x with 16 numbers");
});
test("images: files become a normalised batch and a grid", async () => {
  const text = await run("images.ts", 3);
  expect(text).toContain("a file: [3,60,90] of uint8");
  expect(text).toContain("a batch: [3,3,32,32] of float32, labels [0,1,2]");
  expect(text).toMatch(/grid\.svg: width="\d+" height="\d+", 3 pictures/);
});

test("the guide shows what each program prints", () => {
  const page = readFileSync(join(root, "docs/guide/programs.md"), "utf8");
  const names = readdirSync(folder);
  expect(names.length).toBe(12);
  const shown = [...page.matchAll(/^## .*\n\n\[(.*)\]\(\.\.\/\.\.\/examples\/programs\/(.*)\)/gm)];
  expect(shown.map(([, title, path]) => [title, path]).sort()).toEqual(names.map((n) => [n, n]).sort());
  expect(page.match(/^```text$/gm)?.length).toBe(12);
});
