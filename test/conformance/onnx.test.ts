// The standard's own tests, a sample of the open half: the file is beside the repository, not in it.
// `npm run onnx-conformance -- FILE` runs all.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Case, readCases } from "./onnx/cases.ts";
import { checkCase } from "./onnx/check.ts";

const file = join(import.meta.dirname, "../../../shared/conformance/onnx-open.tgz");
/** Too slow for a sample, or compared with a decoder of photographs that rounds otherwise. */
const LEFT_OUT = /image_decoder|lstm|gru|linear_attention/;

test("one case in twelve agrees, run three times", async ({ skip }) => {
  skip(!existsSync(file), `no ${file}`);
  const cases = readCases(file, (name) => !LEFT_OUT.test(name)).filter((_, k) => k % 12 === 3);
  const failures: string[] = [];
  for (const one of cases) {
    const verdict = await checkCase(one, 3);
    if (verdict.outcome !== "passed") failures.push(`${one.name}: ${verdict.why}`);
  }
  expect(cases.length).toBeGreaterThan(70);
  expect(failures).toEqual([]);
});

test("a wrong result is not passed over", async ({ skip }) => {
  skip(!existsSync(file), `no ${file}`);
  const [add] = readCases(file, (name) => name === "test_add") as [Case];
  const [set] = add.sets;
  const wrong = { ...add, sets: [{ inputs: set?.inputs ?? [], outputs: set?.inputs.slice(0, 1) ?? [] }] };
  expect((await checkCase(add)).outcome).toBe("passed");
  expect((await checkCase(wrong)).outcome).toBe("failed");
});
