// The part of linear algebra that is loaded on demand (gradloom/linalg): einsum and its kin, solving,
// factorizations, norms of matrices.

export * from "./contractions.ts";
export * from "./factor.ts";
export * from "./linalg.ts";
export * from "./solve.ts";
