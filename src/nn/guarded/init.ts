// Written by `npm run signatures` from the types of the sources: nn.init, guarded.

import { guard } from "../../arguments.ts";
import * as raw from "../init.ts";

export * from "../init.ts";

export const calculateGain = /* @__PURE__ */ guard(
  "init.calculateGain",
  raw.calculateGain,
  () => "nonlinearity:s param:n?",
);
export const uniform_ = /* @__PURE__ */ guard(
  "init.uniform_",
  raw.uniform_,
  () => "tensor:t a:n? b:n?",
);
export const normal_ = /* @__PURE__ */ guard(
  "init.normal_",
  raw.normal_,
  () => "tensor:t mean:n? std:n?",
);
export const truncNormal_ = /* @__PURE__ */ guard(
  "init.truncNormal_",
  raw.truncNormal_,
  () => "tensor:t mean:n? std:n? a:n? b:n?",
);
export const constant_ = /* @__PURE__ */ guard(
  "init.constant_",
  raw.constant_,
  () => "tensor:t val:n",
);
export const zeros_ = /* @__PURE__ */ guard(
  "init.zeros_",
  raw.zeros_,
  () => "tensor:t",
);
export const ones_ = /* @__PURE__ */ guard(
  "init.ones_",
  raw.ones_,
  () => "tensor:t",
);
export const eye_ = /* @__PURE__ */ guard(
  "init.eye_",
  raw.eye_,
  () => "tensor:t",
);
export const dirac_ = /* @__PURE__ */ guard(
  "init.dirac_",
  raw.dirac_,
  () => "tensor:t groups:n?",
);
export const xavierUniform_ = /* @__PURE__ */ guard(
  "init.xavierUniform_",
  raw.xavierUniform_,
  () => "tensor:t gain:n?",
);
export const xavierNormal_ = /* @__PURE__ */ guard(
  "init.xavierNormal_",
  raw.xavierNormal_,
  () => "tensor:t gain:n?",
);
export const kaimingUniform_ = /* @__PURE__ */ guard(
  "init.kaimingUniform_",
  raw.kaimingUniform_,
  () => "tensor:t options:{a:n,mode:s,nonlinearity:s}?",
);
export const kaimingNormal_ = /* @__PURE__ */ guard(
  "init.kaimingNormal_",
  raw.kaimingNormal_,
  () => "tensor:t options:{a:n,mode:s,nonlinearity:s}?",
);
export const orthogonal_ = /* @__PURE__ */ guard(
  "init.orthogonal_",
  raw.orthogonal_,
  () => "tensor:t gain:n?",
);
export const sparse_ = /* @__PURE__ */ guard(
  "init.sparse_",
  raw.sparse_,
  () => "tensor:t sparsity:n std:n?",
);
