// What networks are made of: activations and softmax. Normalisation and attention are loaded on demand
// (layers.ts).

export * from "./activations.ts";
export * from "./softmax.ts";
