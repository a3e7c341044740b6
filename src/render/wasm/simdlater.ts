// simd.ts in a page: engine/ondemand loads it with what makes large kernels fast, and puts it here. Kernels
// that are compiled before have no OptOps, so they have no vectors.

import { InternalError } from "../../errors.ts";

type SimdModule = typeof import("./simd.ts");
let loaded: SimdModule | undefined;
export function setSimd(vectors: SimdModule): void {
  loaded = vectors;
}
function later<K extends keyof SimdModule>(name: K): SimdModule[K] {
  const call = (...args: unknown[]): unknown => {
    if (loaded === undefined) throw new InternalError(`WASM: ${name} before it was loaded`);
    return (loaded[name] as (...args: unknown[]) => unknown)(...args);
  };
  return call as SimdModule[K];
}

export const emitExtract = later("emitExtract");
export const emitLoadSplat = later("emitLoadSplat");
export const emitVectorAlu = later("emitVectorAlu");
export const emitVectorBitcast = later("emitVectorBitcast");
export const emitVectorCast = later("emitVectorCast");
export const emitVectorize = later("emitVectorize");
export const emitVectorLoad = later("emitVectorLoad");
export const emitVectorStore = later("emitVectorStore");
export const emitMinMax = later("emitMinMax");
export const inAllLanes = later("inAllLanes");
export const minMaxOf = later("minMaxOf");
export const shiftOf = later("shiftOf");
export const hasVector = later("hasVector");
