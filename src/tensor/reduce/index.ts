// Reductions. Order and scans are loaded on demand (ondemand.ts).

export * from "./reduce.ts";
export * from "./totals.ts";
