// The part of elementwise math that is loaded on demand (gradloom/special): functions of statistics and
// number theory, and what fewer programs use.

export * from "./further.ts";
export * from "./numbers.ts";
export * from "./special.ts";
