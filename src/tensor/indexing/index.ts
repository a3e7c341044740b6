// Reading and writing by index. The functions of the area, as the class Tensor calls them.

export * from "./getitem.ts";
export * from "./scatter.ts";
export * from "./select.ts";
