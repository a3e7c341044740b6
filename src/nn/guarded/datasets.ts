// Written by `npm run signatures` from the types of the sources: nn.datasets, guarded.

import { guard } from "../../arguments.ts";
import * as raw from "../datasets.ts";

export * from "../datasets.ts";

export const parseIdx = /* @__PURE__ */ guard(
  "parseIdx",
  raw.parseIdx,
  () => "bytes:v name:s?",
);
export const mnist = /* @__PURE__ */ guard(
  "mnist",
  raw.mnist,
  () => "~options:{device:s,from:s}?",
);
export const cifar10 = /* @__PURE__ */ guard(
  "cifar10",
  raw.cifar10,
  () => "~options:{device:s,from:s}?",
);
export const sample = /* @__PURE__ */ guard(
  "sample",
  raw.sample,
  () => "options:k size:n options:{sharded:b}?",
);
export const batches = /* @__PURE__ */ guard(
  "batches",
  raw.batches,
  () => "options:k size:n options:{shuffle:b,dropLast:b}?",
);
