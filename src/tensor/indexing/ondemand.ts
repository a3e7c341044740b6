// The part of indexing that is loaded on demand (gradloom/scatter): writing by index, and selecting by mask.

export * from "./scatter.ts";
export * from "./select.ts";
