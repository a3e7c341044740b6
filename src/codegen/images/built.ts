// Kernels on images, in the built package of Node: node.ts, loaded with the first program that names one.

import { rest } from "../../host/rest.ts";
import { hasImages } from "../../images.ts";
import type { Pass } from "../pass.ts";

type ImageKernels = typeof import("./node.ts");
const images = (): ImageKernels => rest<{ codegenImages: ImageKernels }>().codegenImages;

export const lowerImages: ImageKernels["lowerImages"] = (...args) =>
  hasImages() ? images().lowerImages(...args) : undefined;
export const IMAGE_PASSES: readonly Pass[] = [
  {
    name: "images",
    applies: ({ target }) => target.images !== undefined && hasImages(),
    run: (graph, context) => images().IMAGE_PASSES.reduce((g, pass) => pass.run(g, context), graph),
  },
];
