// `fft` and `func` of the built package in Node: their names, whose code loads when one of them is read.

import { rest } from "../host/rest.ts";

type Fft = typeof import("./fft.ts");
type Func = typeof import("./transforms.ts");
/** scripts/build/node.mjs fills them in. */
declare const FFT_NAMES: readonly (keyof Fft)[];
declare const FUNC_NAMES: readonly (keyof Func)[];

function later<S extends object>(space: "fft" | "func", names: readonly (keyof S & string)[]): S {
  const read = (name: keyof S) => rest<Record<typeof space, S>>()[space][name];
  const getters = names.map((name) => [name, { enumerable: true, get: () => read(name) }] as const);
  return Object.defineProperties(Object.create(null), Object.fromEntries(getters)) as S;
}
export const fft = later<Fft>("fft", FFT_NAMES);
export const func = later<Func>("func", FUNC_NAMES);
