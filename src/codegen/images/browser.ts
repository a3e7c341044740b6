// Images, in a page: there are none (src/images.ts).

import type { KernelGraph } from "../lower/lower.ts";
import type { Pass } from "../pass.ts";

export function lowerImages(): KernelGraph | undefined {
  return;
}
export const IMAGE_PASSES: readonly Pass[] = [];
