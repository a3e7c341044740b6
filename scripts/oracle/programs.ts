// Writes random programs, one JSON object a line, for scripts/oracle/expect.py to compute with numpy. `tsx
// scripts/oracle/programs.ts [--seed 13] [--count 5400]`: the classes in turn, the same for the same seed.

import { parseArgs } from "node:util";
import { generate } from "../fuzz/generate/generate.ts";

const { values } = parseArgs({
  options: { seed: { type: "string", default: "13" }, count: { type: "string", default: "5200" } },
});
/** Seeds of the fuzzer are below: it does not repeat the programs of the oracle. */
const FIRST = 12_000_000_000;
for (let i = 0; i < Number(values.count); i++) {
  const { program } = generate(FIRST + Number(values.seed) * 1_200_000 + i);
  process.stdout.write(`${JSON.stringify(program)}\n`);
}
