// Creation: constants, ranges, tensors like another one, data of the host. The functions of the area,
// as the class Tensor calls them.

export * from "./creation.ts";
export * from "./hostdata.ts";
