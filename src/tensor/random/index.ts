// Random numbers. The functions of the area, as the class Tensor calls them.

export * from "./random.ts";
