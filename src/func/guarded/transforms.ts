// Written by `npm run signatures` from the types of the sources: func, guarded.

import { guard } from "../../arguments.ts";
import * as raw from "../transforms.ts";

export * from "../transforms.ts";

export const grad = /* @__PURE__ */ guard(
  "grad",
  raw.grad,
  () => "f:f inputs:z options:{createGraph:b}?",
);
export const jacobian = /* @__PURE__ */ guard(
  "jacobian",
  raw.jacobian,
  () => "f:f inputs:z options:{createGraph:b}?",
);
export const hessian = /* @__PURE__ */ guard(
  "hessian",
  raw.hessian,
  () => "f:f inputs:z options:{createGraph:b}?",
);
export const vjp = /* @__PURE__ */ guard(
  "vjp",
  raw.vjp,
  () => "f:f inputs:z",
);
export const vmap = /* @__PURE__ */ guard(
  "vmap",
  raw.vmap,
  () => "f:f options:{inDims:0mn,outDims:n}?",
);
