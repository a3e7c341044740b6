// Linear algebra: products, solving, factorizations. The functions of the area,
// as the class Tensor calls them.

export * from "./factor.ts";
export * from "./linalg.ts";
export * from "./products.ts";
export * from "./solve.ts";
