// Functions that are made of simpler ops where a target lacks them. `#functions` is this file; in a page it
// is deferred.ts, which has them once they are loaded.

export { pow } from "./power.ts";
export { erf, erfOfNumber, exp2, log2 } from "./transcendental.ts";
export { cos, sin } from "./trigonometry.ts";
