// A page whose parts do not always come.

import { Tensor } from "gradloom";

const offline = {
  /** kernels that are too large to be interpreted */
  sum: async (n: number): Promise<unknown> => Tensor.arange(n).mul(3).sum().item(),
  /** a product that OptOps make fast */
  product: async (n: number): Promise<unknown> => Tensor.ones(n, n).matmul(Tensor.ones(n, n)).mean().item(),
};
export type OfflinePage = typeof offline;
Object.assign(globalThis, { gradloomOffline: offline });
