// A dataset that is an array.

export default [1, 2, 3];
