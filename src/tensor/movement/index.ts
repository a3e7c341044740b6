// Movement: shapes, joins and parts of tensors. The functions of the area, as the class Tensor calls them.

export * from "./arrange.ts";
export * from "./join.ts";
export * from "./views.ts";
