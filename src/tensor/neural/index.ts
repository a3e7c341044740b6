// What networks are made of: activations, normalisation, attention. The functions of the area,
// as the class Tensor calls them.

export * from "./activations.ts";
export * from "./layers.ts";
export * from "./softmax.ts";
