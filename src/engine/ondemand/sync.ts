// What a page loads on first use, from the start, for kernels of sync calls: those cannot wait for an import.

import { setNarrow } from "../../codegen/narrow/browser.ts";
import * as narrow from "../../codegen/narrow/node.ts";
import { setFunctions } from "../../deferred.ts";
import * as functions from "../../transcendental.ts";

export function loadNow(): void {
  setNarrow(narrow);
  setFunctions(functions);
}
