// npm run onnx-differ -- [--minutes 5] [--seed 1] [--only regexp] [--runs 1]: random nodes here and in
// onnxruntime-node. Says what differs, smallest cases first for each op, and how many were compared.

import { parseArgs } from "node:util";
import { CaseDice, type CaseMaker, type OpCase } from "./cases.ts";
import { compareCase, type Verdict } from "./compare.ts";
import { MICROSOFT } from "./microsoft.ts";
import { openOrt } from "./ort.ts";
import { STANDARD } from "./standard.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "5" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: "" },
    runs: { type: "string", default: "1" },
    verbose: { type: "boolean", default: false },
  },
});
const ort = openOrt();
if (typeof ort === "string") {
  console.error(`onnx-differ: ${ort}`);
  process.exit(2);
}
const only = new RegExp(values.only);
const makers: readonly (readonly [name: string, maker: CaseMaker])[] = Object.entries({
  ...STANDARD,
  ...MICROSOFT,
});
const chosen = makers.filter(([name]) => only.test(name));

const shown = ({ op, opset, inputs, attributes }: OpCase): string => {
  const list = inputs.map((x) => (x === undefined ? "-" : `${x.type}[${x.shape.join(", ")}]`)).join(", ");
  return `${op} (opset ${opset}) of ${list} ${JSON.stringify(attributes)}`;
};
const sizeOf = (one: OpCase): number => one.inputs.reduce((n, x) => n + (x?.data.length ?? 0), 0);

const counts = new Map<string, Record<Verdict["outcome"], number>>();
const findings = new Map<string, { readonly one: OpCase; readonly text: string }>();
const refusals = new Map<string, string>();
const end = performance.now() + Number(values.minutes) * 60_000;
for (let seed = Number(values.seed); performance.now() < end; seed++) {
  for (const [name, maker] of chosen) {
    const dice = new CaseDice(seed);
    const one = maker(dice);
    const fixed = one.inputs.map(() => dice.chance(30));
    const verdict = await compareCase(ort, one, (i) => fixed[i] === true, Number(values.runs));
    const count = counts.get(name) ?? { same: 0, different: 0, refused: 0, alone: 0 };
    count[verdict.outcome]++;
    counts.set(name, count);
    if (verdict.outcome === "alone" || verdict.outcome === "refused")
      refusals.set(`${name} (${verdict.outcome})`, `${shown(one)}: ${verdict.why}`);
    if (verdict.outcome !== "different") continue;
    const key = `${name}: ${(verdict.why ?? "").replaceAll(/-?\d+(?:\.\d+)?/g, "#")}`;
    const before = findings.get(key);
    if (before !== undefined && sizeOf(before.one) <= sizeOf(one)) continue;
    findings.set(key, { one, text: `${name}, seed ${seed}: ${shown(one)}: ${verdict.why}` });
  }
}
for (const { text } of findings.values()) console.log(text);
if (values.verbose) for (const [name, why] of refusals) console.log(`${name}: ${why.slice(0, 400)}`);
const total = { same: 0, different: 0, refused: 0, alone: 0 };
for (const [name, count] of counts) {
  for (const outcome of Object.keys(total) as (keyof typeof total)[]) total[outcome] += count[outcome];
  if (values.verbose || count.different > 0 || count.same === 0) console.log(name, JSON.stringify(count));
}
console.log(
  `${total.same} the same, ${total.different} different; onnxruntime refused ${total.refused + total.alone}, ` +
    `of which ${total.alone} run here`,
);
process.exitCode = total.different === 0 ? 0 : 1;
