// What makes short captured steps faster, as one piece: a small page goes without it.

export { onceOf } from "./once.ts";
export { resultMemory } from "./slab.ts";
