// Images, in a page: there are none (src/images.ts).

import type { Tensor } from "../tensor.ts";

export function imageConvolution(): Tensor | undefined {
  return;
}
export function imageProduct(): Tensor | undefined {
  return;
}
