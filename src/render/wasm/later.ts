// `#render/wasm` in a page: the emitter comes with the compiler, see engine/ondemand.

import { laterIn } from "../../deferred.ts";

type EmitterModule = typeof import("./wasm.ts");
const { set, has, call } = laterIn<EmitterModule>("the compiler");

export const setEmitter = set;
/** Undefined where it is there. */
export const loadEmitter = (): Promise<void> | undefined =>
  has() ? undefined : import("./wasm.ts").then(set);
export const emit = call("emit");
export const hasAlu = call("hasAlu");
export const simd = call("simd");
