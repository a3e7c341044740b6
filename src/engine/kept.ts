// Which kernels a page keeps for its next visit, and what of them. In: a lowered kernel and its source. Out:
// what host/kernelstore.ts stores. A page loads this file with its first large kernel.

import type { Kernel } from "../codegen/kernel.ts";
import type { Source } from "../codegen/target.ts";
import { type KeptKernel, KernelStore } from "../host/kernelstore.ts";

export interface KernelKeeper {
  recall(key: string): KeptKernel | undefined;
  keep(key: string, kernel: Kernel, source: Source): void;
}

/** What this build has kept; undefined where nothing can be kept. */
export async function openKept(build: string): Promise<KernelKeeper | undefined> {
  const store = await KernelStore.open(build);
  return (
    store && {
      recall: (key) => store.recall(key),
      keep(key, kernel, source) {
        const kept = keptOf(kernel, source);
        if (kept !== undefined) store.keep(key, kept);
      },
    }
  );
}

/** undefined: it has sizes that vary, whose values come with the launch, or its code is not bytes. */
function keptOf(kernel: Kernel, source: Source): KeptKernel | undefined {
  const { name, globalSize, localSize, globals, repeats, ops, bytes, vars } = kernel;
  const { code, buffers, vals, isPart, dynamicShared } = source;
  const sizes = globalSize.filter((n) => typeof n === "number");
  if (!ArrayBuffer.isView(code) || vars.length > 0 || sizes.length < globalSize.length) return undefined;
  return {
    name,
    code: code as Uint8Array<ArrayBuffer>,
    buffers,
    vals,
    isPart,
    dynamicShared,
    globalSize: sizes,
    localSize,
    globals,
    repeats,
    ops,
    bytes,
  };
}
