// `#engine/compiler` in a page: loaded with the first kernel that must be compiled, see ondemand/browser.ts.

import { laterIn } from "../deferred.ts";

type Compiler = typeof import("./compiler.ts");
const { set, has, call } = laterIn<Compiler>("the compiler");

export const setCompiler = set;
export const hasCompiler = has;
export const isObserved = call("isObserved");
export const optimized = call("optimized");
export const optimizedSteps = call("optimizedSteps");
export const render = call("render");
