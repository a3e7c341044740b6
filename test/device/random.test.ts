// Random programs (program.ts) through the whole pipeline on every device: movement chains, elementwise ops,
// reduces and what fusion makes of them, compared with plain arrays. A failure
// prints the seed and the program.

import { withEnv } from "gradloom";
import { describe } from "vitest";
import { deviceTest } from "./harness.ts";
import { runProgram } from "./program.ts";

/** A compiler takes its time for each kernel, an interpreter for each element. */
const PROGRAMS: Readonly<Record<string, number>> = { WASM: 600, JS: 250, CLANG: 12, MOCKNV: 100 };
/** Of a device that is not named above. */
const USUAL_PROGRAMS = 40;

describe("random programs", () => {
  deviceTest("as they come", async (device) => {
    for (let seed = 1; seed <= (PROGRAMS[device] ?? USUAL_PROGRAMS); seed++)
      await runProgram(seed, device, 6 + (seed % 12));
  });
  deviceTest("cut as the seeds cut (FUSE=0)", async (device) => {
    for (let seed = 1; seed <= (PROGRAMS[device] ?? USUAL_PROGRAMS) / 4; seed++) {
      await withEnv({ FUSE: 0 }, () => runProgram(seed + 100_000, device, 14));
    }
  });
});
