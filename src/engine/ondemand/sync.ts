// Loads at the start what a page otherwise loads on first use: sync calls cannot wait for an import.
// `gradloom/sync` calls it.

import * as names from "../../codegen/names.ts";
import { setNames } from "../../codegen/nameslater.ts";
import { setNarrow } from "../../codegen/narrow/browser.ts";
import * as narrow from "../../codegen/narrow/node.ts";
import { setTuning } from "../../codegen/tuning/browser.ts";
import * as tuning from "../../codegen/tuning/node.ts";
import { setPiece } from "../../deferred.ts";
import * as erf from "../../errorfunction.ts";
import * as power from "../../power.ts";
import { setEmitter } from "../../render/wasm/later.ts";
import * as simd from "../../render/wasm/simd.ts";
import { setSimd } from "../../render/wasm/simdlater.ts";
import * as emitter from "../../render/wasm/wasm.ts";
import * as reuse from "../../schedule/reuse.ts";
import { useReuse, useTuning } from "../../schedule/schedule.ts";
import * as scheduleTuning from "../../schedule/tuning.ts";
import * as transcendental from "../../transcendental.ts";
import * as transcendental64 from "../../transcendental64.ts";
import * as trigonometry from "../../trigonometry.ts";
import * as trigonometry64 from "../../trigonometry64.ts";
import * as compiler from "../compiler.ts";
import { setCompiler } from "../compilerlater.ts";
import * as memoryplan from "../jit/memoryplan.ts";
import { usePlanner } from "../jit/planner.ts";

export function loadNow(): void {
  setCompiler(compiler);
  setEmitter(emitter);
  setNames(names);
  setSimd(simd);
  setTuning(tuning);
  useTuning(scheduleTuning);
  useReuse(reuse);
  usePlanner(memoryplan);
  setNarrow(narrow);
  setPiece("transcendental", transcendental);
  setPiece("transcendental64", transcendental64);
  setPiece("trigonometry", trigonometry);
  setPiece("trigonometry64", trigonometry64);
  setPiece("erf", erf);
  setPiece("power", power);
}
