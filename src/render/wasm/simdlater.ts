// simd.ts in a page: engine/ondemand loads it with what makes large kernels fast, and puts it here. Kernels
// that are compiled before have no OptOps, so they have no vectors.

import { laterIn } from "../../deferred.ts";

type SimdModule = typeof import("./simd.ts");
const { set, call } = laterIn<SimdModule>("vectors");

export const setSimd = set;
export const emitExtract = call("emitExtract");
export const emitLoadSplat = call("emitLoadSplat");
export const emitVectorAlu = call("emitVectorAlu");
export const emitVectorBitcast = call("emitVectorBitcast");
export const emitVectorCast = call("emitVectorCast");
export const emitVectorize = call("emitVectorize");
export const emitVectorLoad = call("emitVectorLoad");
export const emitVectorStore = call("emitVectorStore");
export const emitMinMax = call("emitMinMax");
export const inAllLanes = call("inAllLanes");
export const minMaxOf = call("minMaxOf");
export const pairIn = call("pairIn");
export const shiftOf = call("shiftOf");
export const hasVector = call("hasVector");
