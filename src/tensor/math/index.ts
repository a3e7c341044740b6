// Elementwise math. Special functions are loaded on demand (ondemand.ts).

export * from "./arithmetic.ts";
export * from "./elementary.ts";
export * from "./rounding.ts";
