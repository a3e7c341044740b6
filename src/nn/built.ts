// `nn` of the built package in Node: the names of index.ts, whose code loads when one of them is read.

import { rest } from "../host/rest.ts";

type Names = typeof import("./index.ts");
/** scripts/build/node.mjs fills it in. */
declare const NN_NAMES: readonly (keyof Names)[];

const read = (name: keyof Names): unknown => rest<{ nn: Names }>().nn[name];

export const nn = Object.defineProperties(
  Object.create(null),
  Object.fromEntries(NN_NAMES.map((name) => [name, { enumerable: true, get: () => read(name) }])),
) as Names;
