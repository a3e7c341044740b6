// The part of reductions that is loaded on demand (gradloom/order): sorting, quantiles, running reductions,
// differences, NaN.

export * from "./order.ts";
export * from "./scan.ts";
export * from "./statistics.ts";
