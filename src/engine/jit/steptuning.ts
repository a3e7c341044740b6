// What makes short captured steps faster, and steps of several sizes one capture, as one piece: a small page
// goes without it.

export { growthOf, sizesOf } from "./growth.ts";
export { onceOf } from "./once.ts";
export { resultMemory } from "./slab.ts";
