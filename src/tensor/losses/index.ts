// Losses and distances. The functions of the area, as the class Tensor calls them.

export * from "./distance.ts";
export * from "./loss.ts";
export * from "./margin.ts";
