// The part of elementwise math that is loaded on demand (gradloom/special): functions of statistics and number theory.

export * from "./numbers.ts";
export * from "./special.ts";
