// Losses. The functions of the area, as the class Tensor calls them; ondemand.ts has those that fewer use.

export * from "./loss.ts";
