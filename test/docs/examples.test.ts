// Every @example in the sources is run: what stands behind `// =>` is what comes out.

import { readdirSync, readFileSync } from "node:fs";
import * as core from "gradloom";
import { onnx } from "gradloom/onnx";
import { describe, expect, test } from "vitest";

const gradloom = { ...core, onnx };

interface Example {
  readonly where: string;
  readonly lines: readonly string[];
}

/** The examples of one file: the lines between @example and the next tag or the end of the comment. */
function examplesOf(path: string): Example[] {
  const found: Example[] = [];
  let lines: string[] | undefined;
  readFileSync(path, "utf8")
    .split("\n")
    .forEach((line, i) => {
      const text = line.match(/^\s*\* ?(.*)$/)?.[1];
      if (text?.startsWith("@example")) {
        lines = [];
        found.push({ where: `${path}:${i + 1}`, lines });
      } else if (text === undefined || text.startsWith("@") || line.includes("*/")) lines = undefined;
      else if (text.trim() !== "") lines?.push(text);
    });
  return found;
}

/** Runs the lines; the value of the last one. `console.log` is not watched: an example shows a value. */
async function run({ lines }: Example): Promise<{ got: unknown; wanted: unknown }> {
  const last = lines.at(-1) ?? "";
  const [code, wanted] = last.split(/\/\/ (?:=> )?/, 2) as [string, string | undefined];
  const names = Object.keys(gradloom).filter((n) => /^[A-Za-z]\w*$/.test(n));
  const AsyncFunction = (async () => {}).constructor as new (
    ...args: string[]
  ) => (...xs: unknown[]) => Promise<unknown>;
  const values = names.map((n) => (gradloom as Record<string, unknown>)[n]);
  const body = [...lines.slice(0, -1), `return (${code.trim().replace(/;$/, "")});`].join("\n");
  const got = await new AsyncFunction(...names, body)(...values);
  return { got, wanted: wanted === undefined ? undefined : new Function(`return (${wanted});`)() };
}

function expectNear(got: unknown, wanted: unknown): void {
  if (typeof wanted === "number" && typeof got === "number" && Number.isFinite(wanted)) {
    expect(Math.abs(got - wanted)).toBeLessThanOrEqual(1e-4 * Math.max(1, Math.abs(wanted)));
  } else if (Array.isArray(wanted)) {
    expect(Array.isArray(got)).toBe(true);
    expect((got as unknown[]).length).toBe(wanted.length);
    wanted.forEach((w, i) => void expectNear((got as unknown[])[i], w));
  } else expect(got).toEqual(wanted);
}

const files = ["src/tensor", "src/nn", "src/onnx", "src/func", "src/shape", "src/runtime"].flatMap((dir) =>
  readdirSync(dir, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `${dir}/${name.replaceAll("\\", "/")}`),
);
const examples = files.flatMap(examplesOf);

test("there are examples to run", () => expect(examples.length).toBeGreaterThan(300));

describe.each(files.filter((f) => examples.some((e) => e.where.startsWith(`${f}:`))))("%s", (file) => {
  const own = examples.filter((e) => e.where.startsWith(`${file}:`));
  test.each(own.filter((e) => e.lines.at(-1)?.includes("// ")))("$where", async (example) => {
    gradloom.Tensor.manualSeed(0);
    const { got, wanted } = await run(example);
    expectNear(got, wanted);
  });
});
