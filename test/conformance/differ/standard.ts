// Random cases of the standard's ops, by name.

import type { CaseMaker } from "./cases.ts";
import { ELEMENTS, REDUCES } from "./elements.ts";
import { MOVES } from "./moves.ts";
import { SIGNALS } from "./signals.ts";
import { WINDOWS } from "./windows.ts";

export const STANDARD: Readonly<Record<string, CaseMaker>> = {
  ...MOVES,
  ...ELEMENTS,
  ...REDUCES,
  ...WINDOWS,
  ...SIGNALS,
};
