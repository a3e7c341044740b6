// The part of indexing that is loaded on demand (gradloom/scatter): writing by index, selecting by mask,
// searching.

export * from "./scatter.ts";
export * from "./search.ts";
export * from "./select.ts";
