// Linear algebra: the products. The rest of the area is loaded on demand (ondemand.ts).

export * from "./products.ts";
