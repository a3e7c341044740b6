// The part of networks that is loaded on demand (gradloom/neural): normalisation, attention, rarer
// activations.

export * from "./further.ts";
export * from "./layers.ts";
