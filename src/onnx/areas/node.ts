// Node loads the areas of Tensor by itself.

export {};
