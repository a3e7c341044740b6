// Arithmetic on packed and narrow types, in the built package of Node: node.ts, loaded on first use.

import { rest } from "../../host/rest.ts";

type Narrow = typeof import("./node.ts");
const narrow = (): Narrow => rest<{ narrow: Narrow }>().narrow;

export const unpackTypes: Narrow["unpackTypes"] = (...args) => narrow().unpackTypes(...args);
export const emulate: Narrow["emulate"] = (...args) => narrow().emulate(...args);
