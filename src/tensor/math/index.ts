// Elementwise math. The functions of the area, as the class Tensor calls them.

export * from "./arithmetic.ts";
export * from "./elementary.ts";
export * from "./numbers.ts";
export * from "./rounding.ts";
export * from "./special.ts";
