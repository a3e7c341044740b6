// Reductions, scans and order. The functions of the area, as the class Tensor calls them.

export * from "./order.ts";
export * from "./reduce.ts";
export * from "./scan.ts";
export * from "./totals.ts";
