// The part of linear algebra that is loaded on demand (gradloom/linalg): solving, factorizations, norms of
// matrices.

export * from "./factor.ts";
export * from "./linalg.ts";
export * from "./solve.ts";
