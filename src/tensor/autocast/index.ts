// Mixed precision. The functions of the area, as the class Tensor and the optimisers call them.

export { autocast } from "./autocast.ts";
export { keep, type NarrowOptions, onlyIf } from "./standins.ts";
