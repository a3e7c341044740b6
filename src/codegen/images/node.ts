// Kernels on images (src/images.ts): what codegen does before it lowers their AST, and after its other
// passes. Only Node has images; `#codegen/images` is this file or browser.ts.

import type { Pass } from "../pass.ts";
import { pixels } from "../passes/pixels.ts";

export { lowerImages } from "../lower/images.ts";
/** After coalesce, which takes images for buffers. */
export const IMAGE_PASSES: readonly Pass[] = [
  {
    name: "images",
    applies: ({ target }) => target.images !== undefined,
    run: (graph) => {
      const sink = pixels(graph.sink, graph.arena);
      return sink === graph.sink ? graph : { ...graph, sink };
    },
  },
];
