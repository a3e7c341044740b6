// names.ts in a page: the names are there from the start, what they stand for comes with the compiler.

import { laterIn, withCompiler } from "../deferred.ts";

type Names = typeof import("./names.ts");
const { set, call, get } = laterIn<Names>("the compiler");

/** Does what is done to it to the object of that name. A bound class has no prototype of its own. */
const standIn = <K extends keyof Names & ("UOpGraph" | "UOps")>(name: K): Names[K] =>
  new Proxy(class {}.bind(undefined) as unknown as Names[K], {
    get: (_, key) => Reflect.get(get(name), key),
    has: (_, key) => Reflect.has(get(name), key),
    construct: (_, args) => Reflect.construct(get(name) as Names["UOpGraph"], args),
  });

export const setNames = set;
withCompiler.push(() => import("./names.ts").then(set));
export const resetKernelNames = call("resetKernelNames");
export const toKernel = call("toKernel");
export const UOpGraph = standIn("UOpGraph");
export const UOps = standIn("UOps");
