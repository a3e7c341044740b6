// Distances, and losses made of them: the part of the losses that is loaded on demand (gradloom/distances).

export * from "./distance.ts";
export * from "./embedding.ts";
export * from "./margin.ts";
