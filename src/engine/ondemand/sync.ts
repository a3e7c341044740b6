// What a page loads on first use, from the start, for kernels of sync calls: those cannot wait for an import.

import { setNarrow } from "../../codegen/narrow/browser.ts";
import * as narrow from "../../codegen/narrow/node.ts";
import { setTuning } from "../../codegen/tuning/browser.ts";
import * as tuning from "../../codegen/tuning/node.ts";
import { setPiece } from "../../deferred.ts";
import * as power from "../../power.ts";
import { shareOffsets } from "../../schedule/offsets.ts";
import { useSharing } from "../../schedule/schedule.ts";
import * as transcendental from "../../transcendental.ts";
import * as trigonometry from "../../trigonometry.ts";

export function loadNow(): void {
  setTuning(tuning);
  useSharing(shareOffsets);
  setNarrow(narrow);
  setPiece("transcendental", transcendental);
  setPiece("trigonometry", trigonometry);
  setPiece("power", power);
}
