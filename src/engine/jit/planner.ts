// The memory planner (memoryplan.ts), once it is loaded: in Node from the start, in a page with the first
// captured step that is large enough.

import type { Planner } from "./placement.ts";

let loaded: Planner | undefined;
export const usePlanner = (planner: Planner): void => {
  loaded = planner;
};
export const loadedPlanner = (): Planner | undefined => loaded;
