// One random case of each op against onnxruntime-node, where it is installed. `npm run onnx-differ` compares
// as many as there is time for.

import { expect, test } from "vitest";
import { CaseDice } from "../conformance/differ/cases.ts";
import { compareCase } from "../conformance/differ/compare.ts";
import { MICROSOFT } from "../conformance/differ/microsoft.ts";
import { openOrt } from "../conformance/differ/ort.ts";
import { STANDARD } from "../conformance/differ/standard.ts";

for (const [table, makers] of Object.entries({ "the standard": STANDARD, "com.microsoft": MICROSOFT })) {
  test(`random nodes of ${table} agree with onnxruntime`, async ({ skip }) => {
    const ort = openOrt();
    skip(typeof ort === "string", String(ort));
    if (typeof ort === "string") return;
    const failures: string[] = [];
    let compared = 0;
    for (const [name, maker] of Object.entries(makers)) {
      const dice = new CaseDice(7);
      const one = maker(dice);
      const verdict = await compareCase(ort, one, (i) => i % 2 === 1, 3);
      if (verdict.outcome === "different") failures.push(`${name}: ${verdict.why}`);
      if (verdict.outcome === "same") compared++;
    }
    expect(failures).toEqual([]);
    expect(compared).toBeGreaterThan(0.85 * Object.keys(makers).length);
  });
}

test("a wrong result is found", async ({ skip }) => {
  const ort = openOrt();
  skip(typeof ort === "string", String(ort));
  if (typeof ort === "string") return;
  const maker = STANDARD.Add;
  if (maker === undefined) throw new Error("there is no case of Add");
  const one = maker(new CaseDice(1));
  const liar: typeof ort = {
    run: async (bytes, inputs) => {
      const results = await ort.run(bytes, inputs);
      if (typeof results === "string") return results;
      return results.map((x) => ({ ...x, data: Array.from(x.data, (v) => Number(v) + 1) }));
    },
  };
  expect((await compareCase(ort, one, () => false)).outcome).toBe("same");
  expect((await compareCase(liar, one, () => false)).outcome).toBe("different");
});
