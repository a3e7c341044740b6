// `nn` of the built package in Node: the names of index.ts, whose code loads when one of them is read.

import { rest } from "../host/rest.ts";

type NnNames = typeof import("./index.ts");
/** scripts/build/node.mjs fills it in. */
declare const NN_NAMES: readonly (keyof NnNames)[];

const read = (name: keyof NnNames): unknown => rest<{ nn: NnNames }>().nn[name];

export const nn = Object.defineProperties(
  Object.create(null),
  Object.fromEntries(NN_NAMES.map((name) => [name, { enumerable: true, get: () => read(name) }])),
) as NnNames;
