// Distances, and losses that fewer programs use: what is loaded on demand (gradloom/distances).

export * from "./distance.ts";
export * from "./embedding.ts";
export * from "./likelihood.ts";
export * from "./margin.ts";
