// The part of reductions that is loaded on demand (gradloom/order): sorting, quantiles, running reductions.

export * from "./order.ts";
export * from "./scan.ts";
