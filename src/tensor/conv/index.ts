// Windows over the last dims: convolution, pooling, images. The functions of the area, as the class Tensor
// calls them.

export * from "./conv.ts";
export * from "./image.ts";
export * from "./pool.ts";
export * from "./resample.ts";
