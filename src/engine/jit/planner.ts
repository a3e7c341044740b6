// The memory planner (memoryplan.ts), once it is loaded: in Node from the start, in a page with the first
// captured step that is large enough. And what makes short steps faster.

import type { Planner, StepTuning } from "./placement.ts";

let loaded: Planner | undefined;
export const usePlanner = (planner: Planner): void => {
  loaded = planner;
};
export const loadedPlanner = (): Planner | undefined => loaded;

/** What makes short steps faster (once.ts, slab.ts): in Node from the start, in a page with gradloom/onnx. */
let tuning: StepTuning | undefined;
export const useStepTuning = (given: StepTuning): void => {
  tuning = given;
};
export const stepTuning = (): StepTuning | undefined => tuning;
