// Not a dataset.

export const data = [1];
